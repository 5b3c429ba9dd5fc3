"""`kong.worker_events`, `kong.cluster_events`, `kong.timer`, `kong.vault`: what a worker has."""

from __future__ import annotations

import json

from kit_runner import RUNNER, Worker, running, workers

from sluice import Start
from upstream import Upstream
from wire import wait_until

# As plugins do: functions taken where the file is loaded, handlers registered in init_worker.
LISTENER = """
local register = kong.worker_events.register
local Listener = { VERSION = "1", PRIORITY = 2 }
local config = { type = "record", fields = {} }
Listener.schema = { name = "listener", fields = { { config = config } } }
local function note(key)
    return function(data, event, source)
        local text = key .. " " .. source .. "/" .. event .. " " .. tostring(data and data.n)
        ngx.shared.kong:rpush("heard " .. ngx.worker.id(), text)
    end
end
register(note("early"), "mine", "one")
function Listener.init_worker()
    register(note("one"), "mine", "one")
    register(note("all"), "mine")
    register(note("two"), "mine", "two", "three")
    kong.timer:every(0.01, function(premature)
        if not premature then ngx.shared.kong:incr("ticks", 1, 0) end
    end)
    assert(kong.worker_events.post("mine", "three", { n = 0 }))
end
return Listener
"""


def heard(worker: Worker, number: int) -> list[str]:
    """What a worker's handlers have noted, and forgets it."""
    code = """
        local found, key = {}, "heard NUMBER"
        for i = 1, ngx.shared.kong:llen(key) do found[i] = ngx.shared.kong:lpop(key) end
        return require("cjson").encode(found)
    """
    text = worker.run(code.replace("NUMBER", str(number)))[0]
    return list(json.loads(text))


def test_events_reach_all_workers_and_local_ones_this_one(
    gateway: Start, upstream: Upstream
) -> None:
    plugins = RUNNER | {"listener": LISTENER}
    started = gateway(running(upstream), plugins=plugins, workers=2)
    one, other = workers(started)
    for worker in (one, other):
        wait_until(lambda worker=worker: heard(one, worker.id), "the events of the start")
    wait_until(lambda: one.run('return ngx.shared.kong:get("ticks")')[0], "a timer's ticks")
    posted = one.run('return kong.worker_events.post("mine", "one", { n = 1 })')
    assert posted[:2] == ["done", None]
    lines = {"early mine/one 1", "one mine/one 1", "all mine/one 1"}
    for worker in (one, other):
        seen: set[str] = set()
        wait_until(
            lambda worker=worker, seen=seen: seen.update(heard(one, worker.id)) or lines <= seen,
            "an event",
        )
    # A handler for another event would have heard by now.
    assert one.run('return kong.worker_events.post_local("mine", "two", { n = 2 })')[0] == "done"
    found: set[str] = set()
    wait_until(lambda: found.update(heard(one, one.id)) or len(found) >= 2, "a local event")
    assert found == {"two mine/two 2", "all mine/two 2"}
    assert heard(one, other.id) == []


def test_what_is_wrong_with_an_event_is_told(gateway: Start, upstream: Upstream) -> None:
    (one,) = workers(gateway(running(upstream), plugins=RUNNER))
    for call, words in (
        ('worker_events.post("", "e")', "source is required"),
        ('worker_events.post("s", nil)', "event is required"),
        ("worker_events.register(1)", "expected function, got: number"),
        ("cluster_events:subscribe(1, print)", "channel must be a string"),
        ('cluster_events:subscribe("c", 1)', "callback must be a function"),
        ("timer:at(-1, print)", "expected `delay` to be at least 0"),
    ):
        told = one.ask(f"return kong.{call}")
        assert told["status"] == 500, call
        assert told["values"][0].endswith(words), told
    assert one.run("return kong.worker_events.poll()")[0] == "done"
    assert one.run('return kong.cluster_events:broadcast("c", "data")')[0] is True
    refused = one.run('return kong.cluster_events:broadcast("c", 1)')
    assert refused[:2] == [None, "data must be a string"]


def test_timers_run_by_name(gateway: Start, upstream: Upstream) -> None:
    (one,) = workers(gateway(running(upstream), plugins=RUNNER))
    at = """return kong.timer:named_at("mine", 0, function(premature, text)
        ngx.shared.kong:set("ran", text)
    end, "here")"""
    assert one.run(at)[0] == "mine"
    wait_until(lambda: one.run('return ngx.shared.kong:get("ran")')[0] == "here", "the timer")
    assert one.run('return kong.timer:named_every("again", 100, print)')[0] == "again"
    assert one.run('return kong.timer:is_managed("again")')[0] is True
    assert one.run('return kong.timer:cancel("again")')[0] is True
    assert one.run('return kong.timer:cancel("again")')[:2] == [False, "timer not found"]


def test_values_of_the_environment_are_found(gateway: Start, upstream: Upstream) -> None:
    started = gateway(
        running(upstream),
        plugins=RUNNER,
        vault_env=["MY_SECRET", "MY_TABLE"],
        env={"MY_SECRET": "hidden", "MY_TABLE": '{"a":"b"}'},
    )
    (one,) = workers(started)
    get = 'return kong.vault.get("{vault://env/%s}")'
    assert one.run(get % "my-secret")[:2] == ["hidden", None]
    assert one.run(get % "my-table/a")[:2] == ["b", None]
    assert one.run(get % "secret?prefix=my_")[:2] == ["hidden", None]
    assert one.run(get % "other")[0] is None
    update = """
        local options = { token = "old", ["$refs"] = { token = "{vault://env/my-secret}" } }
        local calls = 0
        local found = kong.vault.try(function(given)
            calls = calls + 1
            return calls == 2 and given.token
        end, options)
        return found, calls
    """
    assert one.run(update)[:2] == ["hidden", 2]


def test_names_are_resolved(gateway: Start, upstream: Upstream) -> None:
    (one,) = workers(gateway(running(upstream), plugins=RUNNER))
    assert one.run('return kong.dns.toip("localhost", 80)')[1] == 80
    assert one.run('return kong.dns.toip("127.0.0.1", 80)')[:2] == ["127.0.0.1", 80]
    records = one.run('return kong.dns.resolve("127.0.0.1")')[0]
    assert records[0]["address"] == "127.0.0.1"
    assert records[0]["type"] == 1
    assert one.run('return kong.dns.toip("")')[0] is None
