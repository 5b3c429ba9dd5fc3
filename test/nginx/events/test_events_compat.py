"""Other libraries' names on our events, used as their READMEs show."""

import os
import signal
from typing import Any

import pytest
from events_library import (
    COMPAT_WORKER,
    OPTIONS,
    RESTY_EVENTS_WORKER,
    WORKER_EVENTS_WORKER,
    Library,
    heard,
    heard_to_the_end,
    resty_events,
    worker_events,
)

from wire import Wire, wait_until

BY_TRANSPORT = pytest.mark.parametrize("transport", OPTIONS)


def ready(library: Library, wires: dict[int, Wire]) -> None:
    wait_until(
        lambda: all(library.run(w, "return ev:is_ready()")[1][0] for w in wires.values()),
        "both to be ready",
    )


@BY_TRANSPORT
def test_resty_events(transport: str) -> None:
    with resty_events(transport) as library:
        wires = library.wires()
        ready(library, wires)
        code = 'return ev:publish("all", "source", "event", { n = 1 })'
        assert library.run(wires[0], code)[1] == [True]
        for notes in heard(library, wires, 3).values():
            assert notes == [
                [name, "source", "event", {"n": 1}, 0] for name in ("all", "source", "event")
            ]
        library.run(wires[1], "ev:unsubscribe(notes.id)")
        code = 'return ev:publish("current", "source", "event", "data")'
        assert library.run(wires[1], code)[1] == [True]
        wait_until(
            lambda: (
                library.run(wires[1], "return notes.heard")[1][0][3:]
                == [[name, "source", "event", "data", "nil"] for name in ("all", "source")]
            ),
            "the local event",
        )
        for wire in wires.values():
            code = 'return ev:publish("key", "other", "event", nil)'
            assert library.run(wire, code)[1] == [True]
        library.run(wires[0], 'ev:publish("all", "other", "end", nil)')

        found = heard_to_the_end(library, wires)
        keyed = [n for notes in found.values() for n in notes if n[1:3] == ["other", "event"]]
        assert len(keyed) == 1
        assert keyed[0][3] == "nil"


def test_resty_events_testing() -> None:
    """Alone in its worker, without a transport: the handlers run in the call."""
    init = """
        require("notes").ev = require("resty.events").new({ listening = "unix:x", testing = true })
    """
    with Library(init, RESTY_EVENTS_WORKER, ":run()", "ring") as library:
        library.expect_log("handler of source/bad failed: .*on purpose")
        wires = library.wires()
        ready(library, wires)
        for target in ("all", "current", "key", "key"):
            code = (
                f'notes.heard = {{}} ev:publish("{target}", "source", "event") return #notes.heard'
            )
            assert library.run(wires[0], code)[1] == [3], target
        code = """
            ev:subscribe("source", "bad", function() error("on purpose") end)
            local last = ev:subscribe("source", "bad", notes.take("last"))
            ev:subscribe("source", "bad", function() ev:unsubscribe(last) end)
            notes.heard = {}
            return ev:publish("all", "source", "bad"), #notes.heard, notes.heard[3][5]
        """
        assert library.run(wires[0], code)[1] == [True, 3, "nil"]
        assert library.run(wires[1], "return #notes.heard")[1] == [0]


@BY_TRANSPORT
def test_resty_events_compat(transport: str) -> None:
    with Library("", COMPAT_WORKER, ".run()", transport) as library:
        wires = library.wires()
        code = 'return ev.post("source", "event", "data"), ev.poll()'
        assert library.run(wires[1], code)[1] == ["done", "done"]
        for notes in heard(library, wires, 1).values():
            assert notes == [["all", "source", "event", "data", 1]]
        library.run(wires[0], 'ev.post_local("source", "event", { 1 })')
        wait_until(
            lambda: library.run(wires[0], "return #notes.heard")[1] == [2], "the local event"
        )
        assert library.run(wires[0], "return notes.heard[2]")[1] == [
            ["all", "source", "event", [1], "nil"]
        ]
        for wire in wires.values():
            library.run(wire, 'ev.post("source", "once", 1, "key")')
        library.run(wires[0], 'ev.post("source", "end")')

        found = heard_to_the_end(library, wires)
        assert sum(n[2] == "once" for notes in found.values() for n in notes) == 1


@BY_TRANSPORT
def test_resty_worker_events(transport: str) -> None:
    with worker_events(transport) as library:
        wires = library.wires()
        wait_until(
            lambda: all(
                library.run(w, 'return ev.post("warm", "up"), ev.poll()')[1] == [True, "done"]
                for w in wires.values()
            ),
            "a post to be handled",
        )
        pid = library.run(wires[0], "return ngx.worker.pid()")[1][0]
        code = """
            notes.heard = {}
            local posted = ev.post("source", "event", { n = 1 })
            local there = #notes.heard
            return posted, there, ev.poll(), notes.heard[#notes.heard]
        """
        note = ["all", "source", "event", {"n": 1}, pid]
        assert library.run(wires[0], code)[1] == [True, 0, "done", note]
        wait_until(
            lambda: library.run(wires[1], "return notes.heard[#notes.heard]")[1] == [note],
            "the other worker to hear it",
        )
        code = """
            notes.heard = {}
            local posted = ev.post_local("s", "e", "d")
            local there = #notes.heard
            return posted, there, ev.poll(), notes.heard
        """
        note = ["all", "s", "e", "d", "nil"]
        assert library.run(wires[0], code)[1] == [True, 0, "done", [note]]


@pytest.mark.parametrize("post", ["post", "post_local"])
def test_a_handler_that_posts_again_and_again(post: str) -> None:
    """Each one's handlers run after it, not in it: no stack grows."""
    code = f"""
        local inside, deepest, count = 0, 0, 0
        ev.register(function()
            inside = inside + 1
            deepest = math.max(deepest, inside)
            count = count + 1
            if count < 20000 then assert(ev.{post}("again", "event")) end
            inside = inside - 1
        end, "again")
        ev.{post}("again", "event")
        for _ = 1, 3000 do
            if count == 20000 then break end
            ngx.sleep(0.01)
        end
        return count, deepest
    """
    with worker_events("ring") as library:
        assert library.run(library.wires()[0], code)[1] == [20000, 1]


def test_poll_says_recursive_where_it_cannot_wait() -> None:
    """In a handler; while one takes longer than `wait_max`; and before anything is configured."""
    code = """
        local blocked = require("ngx.semaphore").new(0)
        ev.configure({ wait_max = 0.05 })
        ev.register(function() notes.inner = ev.poll() end, "inner")
        ev.register(function() blocked:wait(30) end, "blocks")
        ev.post("inner", "event")
        local first = ev.poll()
        ev.post("blocks", "event")
        local second = ev.poll()
        blocked:post(1)
        ev.configure({ wait_max = 30 })
        return first, notes.inner, second, ev.poll()
    """
    with worker_events("ring") as library:
        result = library.run(library.wires()[0], code)[1]
        assert result == ["done", "recursive", "recursive", "done"]


def test_posts_wait_where_a_handler_has_ended() -> None:
    """nginx gives a coroutine in which handlers ran to requests, once it has no more use for it."""
    handle = """
        notes.left = 30
        ev.register(function(data)
            ngx.sleep(0.01)
            notes.left = notes.left - 1
            if data % 2 == 0 then error("on purpose") end
        end, "waits")
    """
    with worker_events("ring") as library:
        library.expect_log("on purpose", 2)
        wires = library.wires()
        for wire in wires.values():
            library.run(wire, handle)
        library.run(wires[0], 'for i = 1, 30 do ev.post("waits", "event", i) end')
        for wire in wires.values():
            wait_until(
                lambda wire=wire: library.run(wire, "return notes.left")[1] == [0],
                "the handlers to return",
            )
            for _ in range(50):
                code = 'ev.post("a", "request") return ev.poll()'
                assert library.run(wire, code)[1] == ["done"]


@BY_TRANSPORT
def test_a_worker_hears_that_it_stops(transport: str) -> None:
    with worker_events(transport) as library:
        # On the ring and the dictionary also what the other one says.
        library.expect_log("heard stopping of resty-worker-events", range(2, 5))
        code = """
            local own = ev.events
            ev.register(function(data, event, source)
                ngx.log(ngx.NOTICE, "heard ", event, " of ", source)
            end, own._source, own.stopping)
        """
        for wire in library.wires().values():
            library.run(wire, code)


LATE_WORKER = """
    local ev = require("resty.worker.events")
    notes.ev = ev
    ev.register(notes.take("own"), ev.events._source)
"""


@pytest.mark.parametrize("transport", ["ring", "poll"])
def test_started_and_stopping_reach_all_workers(transport: str) -> None:
    """Configured by requests, one worker after the other; then one of them leaves."""
    configure = f"""
        local called = {{ ev.configure({{ shm = "process_events", {OPTIONS[transport]} }}) }}
        called[2] = #notes.heard -- in the call no handler runs
        return called, ngx.worker.pid()
    """
    with Library("", LATE_WORKER, ".run()", transport) as library:
        wires = library.wires()
        unconfigured = library.run(wires[0], 'return { ev.post("s", "e") }, { ev.poll() }')[1]
        pids = []
        for wire in wires.values():
            called, pid = library.run(wire, configure)[1]
            assert called == [True, 0]
            pids.append(pid)

        def own(wire: Wire) -> list[list[Any]]:
            notes = library.run(wire, "return notes.heard")[1][0] or []
            return [[event, pid] for _, _, event, _, pid in notes]

        first, second = wires.values()
        started = [["started", pid] for pid in pids]
        wait_until(lambda: own(first) == started, "the first to hear both")
        # From the log it has what was posted before it was configured, too.
        heard = started if transport == "ring" else started[1:]
        wait_until(lambda: own(second) == heard, "the second to hear itself")
        os.kill(pids[1], signal.SIGQUIT)
        wait_until(
            lambda: [*started, ["stopping", pids[1]]] == own(first)[:3],
            "the first to hear that the second stops",
        )
        # nginx does not replace a worker that left by itself.
        library.started_with = 1
    assert unconfigured == [[None, "not configured"], [None, "not configured"]]


@pytest.mark.parametrize(
    ("worker", "run"),
    [(COMPAT_WORKER, ".run()"), (WORKER_EVENTS_WORKER, ".run()")],
    ids=["resty.events.compat", "resty.worker.events"],
)
class TestRegistration:
    """The older interfaces share it."""

    def test_by_source_and_event(self, worker: str, run: str) -> None:
        with Library("", worker, run, "ring") as library:
            wires = library.wires()
            code = """
                notes.two = notes.take("two")
                local first = ev.register(notes.two, "s", "one", "two", "three")
                ev.register(notes.two, "s", "one")
                ev.register(notes.take("source"), "s")
                for _, event in ipairs({ "one", "two", "three", "four" }) do
                    ev.post("s", event, 1)
                    ev.post("other", event, 1)
                end
                return first
            """
            assert library.run(wires[0], code)[1] == [True]
            notes = self.names(library, wires[0], "four", "other")
            assert [n for n in notes if n[0] == "two"] == [
                ["two", "s", "one"],
                ["two", "s", "two"],
                ["two", "s", "three"],
            ], "registering twice is registering once"
            assert [n[2] for n in notes if n[0] == "source"] == ["one", "two", "three", "four"]

    def test_unregister_several(self, worker: str, run: str) -> None:
        with Library("", worker, run, "ring") as library:
            wires = library.wires()
            code = """
                notes.two = notes.take("two")
                ev.register(notes.two, "s", "one", "two", "three")
                local first = ev.unregister(notes.two, "s", "one", "two")
                local again = ev.unregister(notes.two, "s", "one", "two")
                local other = ev.unregister(print)
                for _, event in ipairs({ "one", "two", "three", "end" }) do
                    ev.post("s", event, 1)
                end
                return first, again, other, pcall(ev.unregister, 1)
            """
            result = library.run(wires[0], code)[1]
            assert result[:4] == [True, False, False, False]
            notes = self.names(library, wires[0], "end", "s")
            assert [n for n in notes if n[0] == "two"] == [["two", "s", "three"]]

    def test_weak_is_weak(self, worker: str, run: str) -> None:
        with Library("", worker, run, "ring") as library:
            wires = library.wires()
            code = """
                notes.kept = notes.take("kept")
                ev.register_weak(notes.kept, "s")
                ev.register_weak(notes.take("gone"), "s")
                ev.register(notes.take("strong"), "s")
                collectgarbage() collectgarbage()
                ev.post("s", "one", 1)
                ev.post("s", "end", 1)
            """
            library.run(wires[0], code)
            notes = self.names(library, wires[0], "end", "s")
            assert [n[0] for n in notes if n[2] == "one"] == ["all", "kept", "strong"]

    def test_event_list(self, worker: str, run: str) -> None:
        with Library("", worker, run, "ring") as library:
            wire = library.wires()[0]
            code = """
                local list = ev.event_list("source", "started", "event2")
                return list._source, list.started, list.event2, pcall(function()
                    return list.startde
                end)
            """
            *known, ok, err = library.run(wire, code)[1]
            assert known == ["source", "started", "event2"]
            assert ok is False
            assert "'startde' is an unknown event" in err

    def names(self, library: Library, wire: Wire, event: str, source: str) -> list[list[str]]:
        """Who heard what, once the last event was heard."""

        def notes() -> list[list[str]]:
            return library.run(wire, "return notes.heard")[1][0] or []

        wait_until(
            lambda: any(n[1:3] == [source, event] for n in notes()), f"{source}/{event} to be heard"
        )
        return [n[:3] for n in notes() if n[1] != "resty-worker-events"]
