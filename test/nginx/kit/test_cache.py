"""`kong.cache`: two levels, one loader over all workers, and nothing old after a write."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections import Counter

import pytest
from admin_client import Client
from kit_runner import RUNNER, Worker, head, running, workers

from sluice import Gateway, Start
from upstream import Upstream
from wire import ClosedEarly, Reply, Wire, wait_until

# A loader that counts its calls; `ttl` and the like are put in.
GET = """
    local shared = ngx.shared.kong
    return kong.cache:get("KEY", OPTS, function(value)
        return LOAD, nil, shared:incr("loads", 1, 0) and TTL
    end, "loaded")
"""


def get(key: str, load: str = "value", opts: str = "nil", ttl: str = "nil") -> str:
    """Lua that gets a key."""
    text = GET.replace("KEY", key).replace("OPTS", opts)
    return text.replace("LOAD", load).replace("TTL", ttl)


def loads(worker: Worker) -> int:
    """How often loaders ran."""
    return worker.run('return ngx.shared.kong:get("loads") or 0')[0]


@pytest.fixture(name="pair")
def _pair(gateway: Start, upstream: Upstream) -> list[Worker]:
    return workers(gateway(running(upstream), plugins=RUNNER, workers=2))


def test_a_value_comes_from_the_loader_the_other_workers_and_the_own_memory(
    pair: list[Worker],
) -> None:
    one, other = pair
    assert one.run(get("a")) == ["loaded", None, 3, None]
    assert one.run(get("a")) == ["loaded", None, 1, None]
    assert other.run(get("a")) == ["loaded", None, 2, None]
    assert other.run(get("a")) == ["loaded", None, 1, None]
    assert loads(one) == 1


def test_nothing_is_an_answer_too(pair: list[Worker]) -> None:
    one, other = pair
    assert one.run(get("a", load="nil")) == [None, None, 3, None]
    assert one.run(get("a", load="nil")) == [None, None, 1, None]
    assert other.run(get("a", load="nil")) == [None, None, 2, None]
    assert loads(one) == 1
    assert one.run('return kong.cache:get("never asked for")') == [None, None, -1, None]


def test_tables_and_other_values_reach_all_workers(pair: list[Worker]) -> None:
    one, other = pair
    for key, load, wanted in (
        ("t", '{ a = { 1, 2 }, b = "x" }', {"a": [1, 2], "b": "x"}),
        ("n", "1.5", 1.5),
        ("f", "false", False),
        ("s", '""', ""),
    ):
        assert one.run(get(key, load=load))[:3] == [wanted, None, 3]
        assert other.run(get(key, load=load))[:3] == [wanted, None, 2]
        assert other.run(get(key, load=load))[:3] == [wanted, None, 1]
    told = one.ask(get("u", load="print"))
    assert told["status"] == 500
    assert told["values"][0].endswith("cannot cache value of type function")
    # Its turn was given back.
    assert one.run(get("u"))[:3] == ["loaded", None, 3]


def test_invalidate_reaches_all_workers_before_it_returns(pair: list[Worker]) -> None:
    one, other = pair
    for verb in ("invalidate", "invalidate_local"):
        for worker in pair:
            worker.run(get("a"))
        before = loads(one)
        assert one.run(f'return kong.cache:{verb}("a")') == [None] * 4
        assert other.run(get("a"))[2] == 3
        assert one.run(get("a"))[2] == 2
        assert loads(one) == before + 1
    one.run("return kong.cache:purge()")
    assert [worker.run(get("a"))[2] for worker in (other, one)] == [3, 2]


def test_values_expire(pair: list[Worker]) -> None:
    one, other = pair
    opts = "{ ttl = 0.05, neg_ttl = 0.05 }"
    for load in ("value", "nil"):
        key = f"a{load}"
        one.run(get(key, load=load, opts=opts))
        other.run(get(key, load=load, opts=opts))
        wait_until(
            lambda key=key: one.run(f'return kong.cache:probe("{key}")')[0] is None, "its end"
        )
        assert other.run(get(key, load=load, opts=opts))[2] == 3
        assert one.run(get(key, load=load, opts=opts))[2] in (2, 3)
    # The loader's own time; less than none: it is not kept.
    assert one.run(get("never", ttl="-1"))[:3] == ["loaded", None, 3]
    assert one.run(get("never", ttl="-1"))[2] == 3
    one.run(get("own", ttl="1000"))
    left = one.run('return kong.cache:probe("own")')
    assert left[0] == pytest.approx(1000, abs=100)
    assert left[2] == "loaded"


def test_probe_tells_what_is_there_and_loads_nothing(pair: list[Worker]) -> None:
    one, other = pair
    assert one.run('return kong.cache:probe("a")') == [None] * 4
    one.run(get("a"))
    assert other.run('return kong.cache:probe("a")') == [0, None, "loaded", None]
    other.run('return kong.cache:invalidate("a")')
    assert one.run('return kong.cache:probe("a")') == [None] * 4
    assert one.run('return kong.cache:safe_set("a", "set")')[0] is True
    assert other.run('return kong.cache:probe("a")') == [0, None, "set", None]


def test_renew_replaces_a_value_in_all_workers(pair: list[Worker]) -> None:
    one, other = pair
    for worker in pair:
        worker.run(get("a"))
    renew = 'return kong.cache:renew("a", { ttl = 60 }, function() return "renewed" end)'
    assert one.run(renew) == ["renewed", None, 60, None]
    assert other.run(get("a"))[:3] == ["renewed", None, 2]
    assert one.run(get("a"))[:3] == ["renewed", None, 1]
    failed = one.run('return kong.cache:renew("a", nil, function() return nil, "no" end)')
    assert failed[:2] == [None, "failed to renew key in node cache: no"]
    assert other.run(get("a"))[0] == "renewed"


def test_a_failed_loader_is_no_answer_and_an_expired_value_is_better(
    gateway: Start, upstream: Upstream
) -> None:
    started = gateway(running(upstream), plugins=RUNNER)
    (one,) = workers(started)
    fails = 'return kong.cache:get("a", { resurrect_ttl = 60 }, function() return nil, "no" end)'
    assert one.run(fails)[:3] == [None, "failed to get from node cache: no", None]
    told = one.run('return kong.cache:get("a", nil, function() error("oh") end)')
    assert told[1].startswith("failed to get from node cache: callback threw an error: ")
    assert "oh" in told[1]
    one.run(get("a", opts="{ ttl = 0.05 }"))
    wait_until(lambda: one.run('return kong.cache:probe("a")')[0] is None, "its end")
    started.expect_log(r"callback returned an error \(no\) but stale value found in shm", 1)
    assert one.run(fails)[:3] == ["loaded", None, 4]
    assert one.run(fails)[:3] == ["loaded", None, 1]
    # What somebody has changed is no better than nothing.
    one.run('return kong.cache:invalidate("a")')
    assert one.run(fails)[1] == "failed to get from node cache: no"


def test_wrong_arguments_are_told(pair: list[Worker]) -> None:
    one = pair[0]
    for call, words in (
        ("get(1)", "key must be a string"),
        ('get("k", 1, print)', "opts must be a table"),
        ('get("k", { ttl = "1" }, print)', "opts.ttl must be a number"),
        ('get("k", { neg_ttl = -1 }, print)', "opts.neg_ttl must be >= 0"),
        ('get("k", { l1_serializer = 1 }, print)', "opts.l1_serializer must be a function"),
        ('get("k", nil, 1)', "callback must be nil or a function"),
        ('renew("k", nil, nil)', "callback must be a function"),
        ("probe(nil)", "key must be a string"),
        ("invalidate(nil)", "key must be a string"),
    ):
        told = one.ask(f"return kong.cache:{call}")
        assert told["status"] == 500, call
        assert told["values"][0].endswith(words), told


def test_what_the_worker_keeps_can_be_made_of_it(pair: list[Worker]) -> None:
    one, other = pair
    opts = '{ l1_serializer = function(v) return v .. "!" end }'
    assert one.run(get("a", opts=opts))[:3] == ["loaded!", None, 3]
    assert one.run(get("a", opts=opts))[:3] == ["loaded!", None, 1]
    assert other.run(get("a", opts=opts))[:3] == ["loaded!", None, 2]


def test_several_are_got_at_once(pair: list[Worker]) -> None:
    one = pair[0]
    one.run(get("b"))
    code = """
        local function load(value) ngx.sleep(0) return value end
        local found = kong.cache:get_bulk({ n = 3, "a", nil, load, 1, "b", nil, load, 2,
            "c", nil, load, 3 })
        return { found[1], found[3], found[4], found[6], found[7], found[9] }, found.n
    """
    assert one.run(code)[:2] == [[1, 3, "loaded", 1, 3, 3], 9]


# One loader over all workers ----------------------------------------------------------------------

# Waits until it is told to go on; counts who has come, who loads, and who ran it.
WAITING = """
    local shared = ngx.shared.kong
    shared:set("worker " .. ngx.worker.id(), true)
    shared:incr("come", 1, 0)
    local value, err, level = kong.cache:get("key", nil, function()
        local number = shared:incr("loads", 1, 0)
        shared:set("loader", ngx.worker.pid())
        while number <= STUCK and not shared:get("go") do ngx.sleep(0.001) end
        return "load " .. number
    end)
    return value, err, level
"""


def state(port: int) -> dict[str, int]:
    """What the requests have counted."""
    code = """
        local found = {}
        for _, key in ipairs(ngx.shared.kong:get_keys(0)) do
            found[key] = ngx.shared.kong:get(key)
        end
        return found
    """
    with Wire(port) as wire:
        found = wire.ask("/", headers=head(code)).json()["values"][0]
    return found if isinstance(found, dict) else {}


def sent(port: int, code: str, count: int) -> list[Wire]:
    """So many connections, each with a request under way."""
    made = []
    lines = "".join(f"{name}: {value}\r\n" for name, value in head(code).items())
    for _ in range(count):
        wire = Wire(port)
        wire.send(f"GET / HTTP/1.1\r\nHost: a\r\n{lines}Connection: close\r\n\r\n".encode())
        made.append(wire)
    return made


def test_one_of_a_thousand_requests_on_four_workers_loads(
    gateway: Start, upstream: Upstream
) -> None:
    started = gateway(running(upstream), plugins=RUNNER, workers=4, worker_connections=4096)
    port = started.proxy_port
    waiting = sent(port, WAITING.replace("STUCK", "1"), 1000)
    wait_until(lambda: state(port).get("come") == 1000, "all to have come")
    with Wire(port) as wire:
        wire.ask("/", headers=head('ngx.shared.kong:set("go", true)'))
    levels: Counter[int] = Counter()
    for wire in waiting:
        reply = wire.read_reply().json()
        assert reply["values"][:2] == ["load 1", None]
        levels[reply["values"][2]] += 1
        wire.close()
    counted = state(port)
    assert counted["loads"] == 1
    assert sum(1 for key in counted if key.startswith("worker ")) == 4
    assert levels[3] == 1
    assert levels[2] + levels[1] == 999


def test_another_loads_where_the_loader_s_worker_is_killed(
    gateway: Start, upstream: Upstream
) -> None:
    started = gateway(running(upstream), plugins=RUNNER, workers=4)
    port = started.proxy_port
    code = WAITING.replace("STUCK", "1")
    first = sent(port, code, 1)
    wait_until(lambda: state(port).get("loader"), "a loader")
    others = sent(port, code, 40)
    wait_until(lambda: state(port)["come"] == 41, "all to have come")
    started.expect_log(r"exited on signal 9", 1)
    os.kill(state(port)["loader"], signal.SIGKILL)
    replies: list[Reply] = []
    for wire in first + others:
        with contextlib.suppress(ConnectionError, ClosedEarly):
            replies.append(wire.read_reply())
        wire.close()
    assert replies, "some were in other workers"
    for reply in replies:
        assert reply.json()["values"][:2] == ["load 2", None]
    assert state(port)["loads"] == 2


# Writes -------------------------------------------------------------------------------------------

# What a plugin does with a consumer: keeps it under its key, and asks the gateway for it.
CONSUMER = """
    return kong.cache:get("consumers:bob:::::", nil, function()
        ngx.shared.kong:incr("loads", 1, 0)
        local found = require("gateway.pdk").store():get("consumers", "bob")
        return found and found.custom_id
    end)
"""


def keep_asking(started: Gateway, stop: threading.Event) -> None:
    """Fills the caches of all workers again and again."""
    while not stop.is_set():
        with Wire(started.proxy_port) as wire:
            for _ in range(50):
                wire.ask("/", headers=head(CONSUMER))


def test_no_worker_returns_what_was_before_an_answered_write(
    gateway: Start, upstream: Upstream
) -> None:
    started = gateway(None, plugins=RUNNER, workers=4)
    admin = Client(started)
    service = admin.must(201, "POST", "/services", {"url": upstream.url})
    admin.must(201, "POST", "/routes", {"paths": ["/"], "service": {"id": service["id"]}})
    admin.must(201, "POST", "/plugins", {"name": "runner"})
    admin.must(200, "PUT", "/consumers/bob", {"custom_id": "0"})
    asking = workers(started)
    stop = threading.Event()
    thread = threading.Thread(target=keep_asking, args=(started, stop))
    thread.start()
    try:
        for number in range(1, 120):
            admin.must(200, "PATCH", "/consumers/bob", {"custom_id": str(number)})
            for worker in asking:
                assert worker.run(CONSUMER)[0] == str(number)
        admin.must(204, "DELETE", "/consumers/bob")
        for worker in asking:
            assert worker.run(CONSUMER)[0] is None
    finally:
        stop.set()
        thread.join()


def test_a_change_of_something_else_loads_nothing(gateway: Start, upstream: Upstream) -> None:
    started = gateway(None, plugins=RUNNER, workers=1)
    admin = Client(started)
    admin.must(201, "POST", "/plugins", {"name": "runner"})
    service = admin.must(201, "POST", "/services", {"url": upstream.url})
    admin.must(201, "POST", "/routes", {"paths": ["/"], "service": {"id": service["id"]}})
    for name in ("bob", "eve"):
        admin.must(200, "PUT", f"/consumers/{name}", {"custom_id": name})
    (one,) = workers(started)
    assert one.run(CONSUMER)[:3] == ["bob", None, 3]
    admin.must(200, "PATCH", "/consumers/eve", {"custom_id": "changed"})
    assert one.run(CONSUMER)[:3] == ["bob", None, 1]
    assert loads(one) == 1
