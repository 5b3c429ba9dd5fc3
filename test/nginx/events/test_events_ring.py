"""The ring transport: who hears what, in which order, and what publishing answers."""

import os
import signal
import time

import pytest

from events_nginx import Events, names
from processes import switches
from wire import request_bytes, wait_until

# Publishes from a timer, as fast as the log takes it: `count` events named after the worker.
PUBLISH = """
    local count = %d
    ngx.timer.at(0, function()
        for i = 1, count do
            while not ev:publish("all", "order", "w" .. ngx.worker.id(), i) do ngx.sleep(0.001) end
            if i %% 100 == 0 then ngx.sleep(0.001) end
        end
        probe.finished = true
    end)
"""


def test_all_workers_hear_the_same_sequence() -> None:
    with Events(workers=4) as ring:
        ring.ready()
        ring.run_all(PUBLISH % 2000)
        heard = ring.heard(8000)
        sequences = [[(e["event"], e["data"]) for e in heard[worker]] for worker in range(4)]
        assert all(sequence == sequences[0] for sequence in sequences)
        for worker in range(4):
            own = [data for event, data in sequences[0] if event == f"w{worker}"]
            assert own == list(range(1, 2001))


def test_a_cause_comes_before_its_effect() -> None:
    with Events(workers=3) as ring:
        ring.ready()
        # 0 says ping, 1 answers pong: nobody may hear the pong first, and 0 goes on.
        ring.run(1, 'ev:subscribe("t", "ping", function(n) ev:publish("all", "t", "pong", n) end)')
        ring.run(
            0,
            """
            ev:subscribe("t", "pong", function(n)
                if n < 500 then ev:publish("all", "t", "ping", n + 1) end
            end)
            ev:publish("all", "t", "ping", 1)
        """,
        )
        expected = [(word, n) for n in range(1, 501) for word in ("ping", "pong")]
        for heard in ring.heard(1000).values():
            assert [(e["event"], e["data"]) for e in heard] == expected


def test_a_burst_arrives_whole() -> None:
    burst = """
        local text, accepted, queued = ("x"):rep(64), 0, 0
        for i = 1, 50000 do
            local ok = ev:publish("all", "burst", "e", { i, text })
            if ok then accepted = accepted + 1 end
            if ok == "queued" then queued = queued + 1 end
        end
        return accepted, queued
    """
    count = """
        ev:subscribe("burst", "e", function(data)
            probe.in_order = (probe.in_order or 0) + (data[1] == (probe.last or 0) + 1 and 1 or 0)
            probe.last = data[1]
        end)
    """
    with Events(workers=3) as ring:
        ring.ready()
        ring.run_all(count)
        accepted, _ = ring.run(0, burst)
        assert accepted == 50000
        for worker in range(3):
            wait_until(
                lambda w=worker: ring.run(w, "return probe.last or 0") == 50000, "the last event"
            )
        assert set(ring.run_all("return probe.in_order").values()) == {50000}


@pytest.mark.parametrize("transport", ["ring", "poll"])
def test_a_publisher_is_told_that_a_key_is_known(transport: str) -> None:
    code = 'return { ev:publish("k", "s", "1") }, { ev:publish("k", "s", "2") }'
    with Events(f'{{ transport = "{transport}" }}') as ring:
        assert ring.run(0, code) == [[True], [True, "repeat"]]


def test_a_key_is_forgotten_after_its_time() -> None:
    with Events("{ unique_timeout = 0.5 }", workers=2) as ring:
        ring.ready()
        ring.publish(key="k", first=1)
        time.sleep(0.6)
        ring.publish(key="k", first=2)
        wait_until(
            lambda: sum(ring.all("/heard-count").values()) == 2, "the key to run after its timeout"
        )


def test_any_number_of_keys() -> None:
    """More than the 1,024 at which a peer's keys began to run twice."""
    with Events("{ unique_timeout = 600 }", workers=2) as ring:
        ring.ready()
        for worker in (0, 1):
            assert ring.publish_at(worker, keys=1, count=20000) == {"true": 20000}
        ring.publish(event="end")
        heard = ring.heard_through("end")
        assert [names(heard[worker]).pop() for worker in (0, 1)] == ["end", "end"]
        found = names(heard[0])[:-1] + names(heard[1])[:-1]
        assert sorted(found) == sorted(map(str, range(1, 20001)))


def test_a_receiver_that_dies_is_replaced_if_asked_for() -> None:
    code = """
        ev:subscribe("die", "*", function(attempt)
            if probe.notes():incr("attempts", 1, 0) == 1 then
                os.execute("kill -9 " .. ngx.worker.pid())
                ngx.sleep(5)
            end
            probe.notes():incr("done", 1, 0)
        end)
    """
    init_worker = "probe.notes = function() return ngx.shared.notes end\n" + code
    for redeliver, expected in (("true", 1), ("false", 0)):
        with Events(workers=2, init_worker=init_worker) as ring:
            ring.expect_log(r"exited on signal 9")
            ring.ready()
            ring.run(
                0,
                f'return ev:publish({{ key = "k", redeliver = {redeliver} }}, "die", "now", 1)',
            )
            wait_until(lambda: "exited on signal 9" in ring.error_log(), "the receiver to die")
            wait_until(lambda: len(ring.workers()) == 2, "its successor")
            done = 'return ngx.shared.notes:get("done") or 0'
            if expected:
                wait_until(lambda done=done: ring.run(0, done), "it to be delivered again")
            # What would be heard once more would be heard before this.
            ring.publish(event="end")
            ring.heard_through("end")
            assert ring.run(0, done) == expected, f"redeliver = {redeliver}"


def check_after_successors(ring: Events) -> None:
    """Waits until what a dead worker left has been heard again, if it is to be."""
    ring.ready()
    for worker in range(ring.count):
        # It goes out behind what this worker took over.
        ring.publish_at(worker, event=f"after {worker}")
    for worker in range(ring.count):
        ring.heard_through(f"after {worker}")


def test_a_keyed_event_that_cannot_be_decoded_is_not_handed_on(ring: Events) -> None:
    """Nobody can: each successor would come to the same end."""
    code = """
        local ffi = require("ffi")
        local handle = ffi.C.sluice_events_open(0)
        local to = ffi.new("sluice_events_receiver_t", { key = "k", key_length = 1,
            timeout_ms = 60000, kind = 2, flags = 2 })
        return ffi.C.sluice_events_publish_to(handle, to, "broken", 6, "e", 1, "\\255\\255", 2)
    """
    ring.expect_log(r"event broken/e cannot be decoded")
    ring.expect_log(r"exited on signal 9")
    assert ring.run(0, code) == 0
    ring.publish(event="next")
    ring.heard_through("next")
    line = next(line for line in ring.error_log().splitlines() if "broken/e" in line)
    claimer = int(line.partition("#")[0].rpartition(" ")[2])
    os.kill(claimer, signal.SIGKILL)
    wait_until(lambda: claimer not in ring.workers(), "the claimer to be gone")
    check_after_successors(ring)


def test_payloads_of_another_length_are_refused_not_their_neighbours(
    lone_ring: Events,
) -> None:
    """The payloads of a batch are read through one buffer: one ends where its frame says."""
    code = """
        local ffi, buffer = require("ffi"), require("string.buffer")
        local handle = ffi.C.sluice_events_open(0)
        local text = buffer.encode(("x"):rep(100))
        local broken = { text .. text, text:sub(1, 9), "", "\255", text .. "\255" }
        for i, payload in ipairs(broken) do
            assert(ev:publish("all", "whole", "before " .. i, { i }) == true)
            assert(ffi.C.sluice_events_publish(handle, 0, "broken", 6, "e", 1, payload, #payload)
                == 0)
        end
        assert(ev:publish("all", "whole", "end", { 6 }) == true)
    """
    lone_ring.expect_log("event broken/e cannot be decoded", 5)
    lone_ring.run(0, code)
    heard = lone_ring.heard_through("end")[0]
    assert names(heard) == [*(f"before {i}" for i in range(1, 6)), "end"]
    assert [event["data"] for event in heard] == [[i] for i in range(1, 7)]


def test_current_is_never_serialised_and_never_within_publish() -> None:
    code = """
        local order, value = {}, { print }
        ev:subscribe("here", "e", function(data, event, source, wid)
            order[#order + 1] = data == value and wid == ngx.worker.id() and "callback" or "wrong"
        end)
        assert(ev:publish("current", "here", "e", value))
        order[#order + 1] = "published"
        for _ = 1, 3000 do if #order >= 2 then break end ngx.sleep(0.01) end
        return table.concat(order, " ")
    """
    with Events() as ring:
        ring.ready()
        assert ring.run(0, code) == "published callback"


@pytest.mark.parametrize(
    ("data", "same"),
    [
        ("nil", "got == nil"),
        ("false", "got == false"),
        ("0.1", "got == 0.1"),
        ("('x'):rep(100000)", "got == data"),
        ("{ 1, { a = { true } }, [1.5] = 2 }", "got[2].a[1] == true and got[1.5] == 2"),
        ("9007199254740993LL", "got == 9007199254740993LL"),
        ("require('cjson').null", "got == require('cjson').null"),
        ("'\\0\\255'", "got == data"),
    ],
)
def test_what_can_be_serialised_arrives(data: str, same: str, lone_ring: Events) -> None:
    code = f"""
        local data, got, came = {data}, nil, false
        local id = ev:subscribe("data", "e", function(value) got, came = value, true end)
        assert(ev:publish("all", "data", "e", data) == true)
        for _ = 1, 3000 do if came then break end ngx.sleep(0.01) end
        ev:unsubscribe(id)
        return came and ({same})
    """
    assert lone_ring.run(0, code) is True


def test_what_cannot_be_serialised_is_refused() -> None:
    code = """
        local ok, err, what = ev:publish("all", "a", "b", { print })
        local again = ev:publish("all", "a", "b", { 1 })
        return tostring(ok), err, what, again
    """
    with Events() as ring:
        ring.ready()
        ok, err, what, again = ring.run(0, code)
        assert (ok, err, again) == ("nil", "not serialisable", True)
        assert "function" in what


def test_misuse_throws_at_the_line_of_the_caller(lone_ring: Events) -> None:
    cases = {
        'ev:publish("all", 1, "e")': "bad argument #2 to 'publish' (string expected, got number)",
        'ev:publish("all", "s", "")': "bad argument #3 to 'publish' (1 to 3840 bytes",
        'ev:publish("all", "*", "e")': "bad argument #2 to 'publish' (a name expected",
        'ev:publish("all", "sluice", "e")': "bad argument #2 to 'publish'",
        'ev:publish(7, "s", "e")': "bad argument #1 to 'publish' (string or table expected",
        'ev:publish({ key = "k", redeliver = "no" }, "s", "e")': "'redeliver': boolean expected",
        'ev:publish({ worker = -1 }, "s", "e")': "bad argument #1 to 'publish'",
        'ev:publish({}, "s", "e")': "bad argument #1 to 'publish'",
        'ev:publish({ key = "k", timeout = 0 }, "s", "e")': "bad argument #1 to 'publish'",
        'ev:publish({ worker = 0, key = "k" }, "s", "e")': "got a table with 'worker' and 'key')",
        'ev:publish({ worker = 0, timeout = 1 }, "s", "e")': "'worker' and 'timeout')",
        'ev:publish({ key = "k", timout = 1 }, "s", "e")': "'key' and 'timout')",
        'ev:subscribe("s", "e")': "bad argument #3 to 'subscribe' (function expected, got nil)",
        'ev:unsubscribe("1")': "bad argument #1 to 'unsubscribe' (number expected",
        'require("sluice.events").new({ queue = 1 })': "unknown option 'queue'",
        'require("sluice.events").new({ queue_len = "1" })': "option 'queue_len': number expected",
        'require("sluice.events").new({ transport = "pigeon" })': "option 'transport'",
    }
    for code, expected in cases.items():
        message = lone_ring.run(0, f"return select(2, pcall(function()\n{code}\nend))")
        assert message.startswith("sent:3: "), message
        assert expected in message, message


def test_publishing_works_in_every_phase() -> None:
    publish = 'require("probe").ev:publish("all", "phase", ngx.get_phase(), 1)'
    locations = (
        "location /phases { "
        + "".join(
            f"{phase}_by_lua_block {{ {publish} }} "
            for phase in ("rewrite", "access", "content", "header_filter", "body_filter", "log")
        ).replace(
            f"content_by_lua_block {{ {publish}", f"content_by_lua_block {{ {publish} ngx.say(1)"
        )
        + "}"
    )
    init_worker = f"{publish} ngx.timer.at(0, function() {publish} end)"
    with Events(workers=2, locations=locations, init_worker=init_worker) as ring:
        ring.ready()
        assert ring.ask("/phases").status == 200
        wanted = {
            "init_worker", "timer", "rewrite", "access", "content", "header_filter", "body_filter",
            "log",
        }  # fmt: skip

        def complete() -> bool:
            return all(set(names(heard)) == wanted for heard in ring.all("/heard").values())

        wait_until(complete, "an event of each phase")


def test_init_has_no_worker_to_publish_in() -> None:
    init = """
        local probe = package.loaded.probe
        probe.ev = probe.new()
        local answers = {}
        for _, target in ipairs({ "all", "current", "key", { worker = 0 } }) do
            local ok, err = probe.ev:publish(target, "s", "e", 1)
            table.insert(answers, tostring(ok) .. " " .. tostring(err))
        end
        probe.answer = answers
    """
    refused = ["nil not ready"] * 4
    with Events(init=init) as ring:
        ring.ready()
        assert ring.run(0, "return probe.answer") == refused
        ring.restart_workers()
        ring.ready()
        assert ring.run(0, "return probe.answer") == refused
        ring.publish(first=5)
        assert all(names(heard) == ["5"] for heard in ring.heard(1).values())


def test_what_is_published_before_the_others_attached_is_not_missed() -> None:
    init_worker = 'ev:publish("all", "boot", "after", ngx.worker.id())'
    # `probe.early` runs before init_worker.
    init = """
        package.loaded.probe.early = true
        local events = require("sluice.events")
        local new = events.new
        events.new = function(...)
            local ev = new(...)
            ev:publish("all", "boot", "before", ngx.worker.id())
            return ev
        end
    """
    with Events(workers=4, init=init, init_worker=init_worker) as ring:
        heard = ring.heard(8)
        expected = sorted((e, w) for e in ("before", "after") for w in range(4))
        for events in heard.values():
            assert sorted((e["event"], e["data"]) for e in events) == expected


def test_names_separate_buses() -> None:
    code = """
        local events = require("sluice.events")
        for _, name in ipairs({ "a", "b" }) do
            local bus = assert(events.new({ name = name }))
            probe[name] = bus
            probe["heard_" .. name] = {}
            bus:subscribe("*", "*", function(data, event, source)
                table.insert(probe["heard_" .. name], source .. "/" .. event)
            end)
            assert(bus:init_worker())
        end
    """
    with Events(workers=2, init_worker=code) as ring:
        ring.ready()
        ring.run(0, 'probe.a:publish("all", "s", "1") probe.b:publish({ key = "k" }, "s", "2")')
        ring.run(1, 'probe.a:publish({ key = "k" }, "s", "3") ev:publish("all", "s", "4")')
        ring.heard_through("4")
        ring.settle()
        heard = ring.run_all("return probe.heard_a, probe.heard_b")
        both = [sum(len(h[i]) for h in heard.values()) for i in (0, 1)]
        assert both == [3, 1]
        assert all(names(h) == ["4"] for h in ring.all("/heard").values())


def test_wildcards_and_exact_names(lone_ring: Events) -> None:
    code = """
        probe.log = {}
        for _, pair in ipairs({ "a/x", "a/*", "*/x", "*/*", "b/y" }) do
            local source, event = pair:match("(.*)/(.*)")
            ev:subscribe(source, event, function(_, e, s)
                table.insert(probe.log, pair .. "<" .. s .. "/" .. e)
            end)
        end
        ev:publish("all", "a", "x") ev:publish("all", "a", "y") ev:publish("all", "ax", "")
    """.replace(' ev:publish("all", "ax", "")', ' ev:publish("all", "b", "x")')
    lone_ring.run(0, code)
    wait_until(lambda: lone_ring.run(0, "return #probe.log") >= 8, "all callbacks")
    assert lone_ring.run(0, "return probe.log") == [
        "a/x<a/x", "a/*<a/x", "*/x<a/x", "*/*<a/x",
        "a/*<a/y", "*/*<a/y",
        "*/x<b/x", "*/*<b/x",
    ]  # fmt: skip


def test_there_is_no_broker_to_connect_to() -> None:
    locations = 'location /broker { content_by_lua_block { require("probe").ev:run() } }'
    with Events(workers=1, locations=locations) as ring:
        ring.ready()
        with ring.connection(0) as wire:
            wire.send(request_bytes("/broker"))
            assert wire.read_reply().status == 404


def test_idle_workers_sleep(ring: Events) -> None:
    ring.publish(count=100)
    ring.settle()
    pids = ring.workers()

    def asleep(seconds: float) -> bool:
        before = [switches(pid) for pid in pids]
        time.sleep(seconds)
        return [switches(pid) for pid in pids] == before

    wait_until(lambda: asleep(0.3), "the connections that asked to be closed")
    # The kernel may wake one for its own sake, but not each time.
    wait_until(lambda: asleep(3), "a while in which nobody wakes")


def test_figures_of_all_workers(ring: Events) -> None:
    ring.publish_at(0, count=10)
    ring.publish_at(1, count=5)
    ring.heard(15)
    ring.settle()
    wait_until(lambda: ring.ring_stats()["total"]["delivered"] == 30, "it to be counted")
    stats = ring.ring_stats()
    workers = {worker["worker"]: worker for worker in stats["workers"]}
    assert [workers[w]["published"] for w in (0, 1)] == [10, 5]
    assert [workers[w]["delivered"] for w in (0, 1)] == [15, 15]
    assert stats["total"]["delivered"] == 30
    assert stats["log"]["published"] == 15
    assert [s["calls"] for s in stats["subscriptions"]] == [15, 0]
    assert stats["subscriptions"][0]["seconds"] > 0
