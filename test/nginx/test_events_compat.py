"""Other libraries' names on our events, used as their READMEs show."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from bare import Bare
from wire import Wire, wait_until

SERVER = """
    server {
        listen 127.0.0.1:@port@ reuseport;
        location / {
            content_by_lua_block {
                local lua = "local ev, notes = ... " .. ngx.req.get_uri_args().lua
                local run = assert(loadstring(lua))
                local result = { run(require("notes").ev, require("notes")) }
                ngx.say(ngx.worker.id(), " ", require("cjson").encode(result))
            }
        }
    }
    server {
        listen unix:@socket@;
        location / { content_by_lua_block { require("notes").ev@run@ } }
    }
"""

NOTES = """
    lua_shared_dict process_events 1m;
    init_by_lua_block {
        package.loaded.notes = { heard = {} }
        -- A handler that notes under a name what it gets.
        package.loaded.notes.take = function(name)
            return function(data, event, source, sender)
                local heard = require("notes").heard
                heard[#heard + 1] = { name, source, event, data == nil and "nil" or data,
                    sender == nil and "nil" or sender }
            end
        end
        @init@
    }
    init_worker_by_lua_block {
        local notes = require("notes")
        @init_worker@
    }
"""

RESTY_EVENTS = """
    local ev = assert(require("resty.events").new({ listening = "unix:@socket@", @options@ }))
    require("notes").ev = ev
"""
RESTY_EVENTS_WORKER = """
    local ev = notes.ev
    ev:subscribe("*", "*", notes.take("all"))
    ev:subscribe("source", "*", notes.take("source"))
    notes.id = ev:subscribe("source", "event", notes.take("event"))
    assert(ev:init_worker())
"""
COMPAT_WORKER = """
    local ev = require("resty.events.compat")
    notes.ev = ev
    assert(not ev.configured())
    ev.register(notes.take("all"))
    assert(ev.configure({ listening = "unix:@socket@", @options@ }))
    assert(ev.configured())
"""
WORKER_EVENTS_WORKER = """
    local ev = require("resty.worker.events")
    notes.ev = ev
    assert(not ev.configured())
    ev.register(notes.take("all"))
    assert(ev.configure({ shm = "process_events", timeout = 60, @options@ }))
    assert(ev.configured())
"""

OPTIONS = {
    "ring": "",
    "socket": 'transport = "socket",',
    "poll": 'transport = "poll", shm = "process_events", interval = 0.02,',
}
BY_TRANSPORT = pytest.mark.parametrize("transport", OPTIONS)


class Library(Bare):
    """An nginx that uses a library by its README; Lua is run in a worker on demand."""

    def __init__(self, init: str, init_worker: str, run: str, transport: str) -> None:
        options = OPTIONS[transport]
        if "worker.events" in init_worker and transport == "socket":
            options += 'listening = "unix:@socket@",'
        http = NOTES.replace("@init@", init).replace("@init_worker@", init_worker)
        http = (http + SERVER).replace("@options@", options).replace("@run@", run)
        super().__init__(http)
        if transport == "socket":
            # Of a worker that has not yet connected at the end.
            self.expect_log("no broker at", range(5))

    def run(self, wire: Wire, lua: str) -> tuple[int, list[Any]]:
        reply = wire.ask("/?" + urlencode({"lua": lua}))
        assert reply.status == 200, (lua, reply.body)
        wid, _, rest = reply.body.decode().partition(" ")
        return int(wid), json.loads(rest) or []

    def wires(self) -> dict[int, Wire]:
        """A connection to each of the two workers."""
        found: dict[int, Wire] = {}

        def reach() -> bool:
            wire = Wire(self.proxy_port)
            wid = self.run(wire, "return 1")[0]
            if wid in found:
                wire.close()
            else:
                found[wid] = wire
            return len(found) == 2

        wait_until(reach, "both workers")
        return found


def heard(library: Library, wires: dict[int, Wire], count: int) -> dict[int, list[list[Any]]]:
    """What each worker noted, once there are so many notes in each."""

    def enough() -> bool:
        return all(library.run(w, "return #notes.heard")[1][0] >= count for w in wires.values())

    wait_until(enough, f"{count} notes in each worker")
    return {wid: library.run(w, "return notes.heard")[1][0] or [] for wid, w in wires.items()}


def heard_to_the_end(library: Library, wires: dict[int, Wire]) -> dict[int, list[list[Any]]]:
    """What each worker noted, once the event "end" is the last of it."""

    def ended() -> bool:
        return all(
            library.run(w, "return notes.heard[#notes.heard][3]")[1] == ["end"]
            for w in wires.values()
        )

    wait_until(ended, "the last event")
    return heard(library, wires, 0)


def resty_events(transport: str) -> Library:
    return Library(RESTY_EVENTS, RESTY_EVENTS_WORKER, ":run()", transport)


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


def test_resty_events_errors() -> None:
    with resty_events("ring") as library:
        wire = library.wires()[0]
        ok, err = library.run(wire, 'return ev:publish("all", "s", "e", print)')[1]
        assert ok is None
        assert err.startswith("not serialisable: ")
        code = 'return ev:publish("all", "s", "e", ("x"):rep(70000))'
        assert library.run(wire, code)[1] == [None, "payload too large"]
        for bad in (
            "{ listening = 1 }",
            '{ listening = "/tmp/x.sock" }',
            '{ broker_id = "1" }',
            "{ broker_id = -1 }",
            "{ broker_id = 2 }",
            '{ unique_timeout = "1" }',
            "{ unique_timeout = -1 }",
            "{ max_queue_len = -1 }",
            "{ max_payload_len = 2^24 + 1 }",
            '{ transport = "socket" }',
        ):
            code = f'return pcall(require("resty.events").new, {bad})'
            assert library.run(wire, code)[1][0] is False, bad
        assert library.run(wire, 'return pcall(ev.subscribe, ev, "s", "e", 1)')[1][0] is False


def test_resty_events_testing() -> None:
    """Alone in its worker, without a transport."""
    init = 'require("notes").ev = require("resty.events").new({ testing = true })'
    with Library(init, RESTY_EVENTS_WORKER, ":run()", "ring") as library:
        wires = library.wires()
        library.run(wires[0], 'ev:publish("all", "source", "event", 1)')
        library.run(wires[0], 'ev:publish("key", "source", "event", 2)')
        wait_until(lambda: library.run(wires[0], "return #notes.heard")[1] == [6], "both events")
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
    with Library("", WORKER_EVENTS_WORKER, ".run()", transport) as library:
        wires = library.wires()
        wait_until(
            lambda: all(
                library.run(w, 'return ev.post("warm", "up")')[1] == ["done"]
                for w in wires.values()
            ),
            "a post to be handled",
        )
        pid = library.run(wires[0], "return ngx.worker.pid()")[1][0]
        code = 'return ev.post("source", "event", { n = 1 }), notes.heard[#notes.heard]'
        assert library.run(wires[0], code)[1] == [
            "done",
            ["all", "source", "event", {"n": 1}, pid],
        ], "it has been handled when post returns"
        wait_until(
            lambda: (
                library.run(wires[1], "return notes.heard[#notes.heard]")[1]
                == [["all", "source", "event", {"n": 1}, pid]]
            ),
            "the other worker to hear it",
        )
        code = 'notes.heard = {} return ev.post_local("s", "e", "d"), notes.heard'
        assert library.run(wires[1], code)[1] == ["done", [["all", "s", "e", "d", "nil"]]]


def test_resty_worker_events_started_and_recursive() -> None:
    with Library("", WORKER_EVENTS_WORKER, ".run()", "ring") as library:
        wires = library.wires()
        first = heard(library, wires, 1)[0][0]
        assert first == ["all", "resty-worker-events", "started", "nil", "nil"]
        code = """
            ev.register(function() notes.inner = ev.post("inner", "event") end, "outer")
            ev.register(function() notes.inner_heard = true end, "inner")
            local outer = ev.post("outer", "event")
            for _ = 1, 500 do
                if notes.inner_heard then break end
                ngx.sleep(0.01)
            end
            return outer, notes.inner, notes.inner_heard
        """
        assert library.run(wires[0], code)[1] == ["done", "recursive", True]
        library.expect_log("no functions here|handler of s/bad failed", 1)
        code = """
            ev.register(function() error("no functions here") end, "s", "bad")
            return ev.post_local("s", "bad"), ev.post("s", "e", print)
        """
        done, posted, err = library.run(wires[0], code)[1]
        assert (done, posted) == ("done", None)
        assert err.startswith("not serialisable: ")


def test_resty_worker_events_posts_wait_where_a_handler_has_ended() -> None:
    """nginx gives a coroutine in which handlers ran to requests, once it has no more use for it."""
    handle = """
        notes.left = 30
        ev.register(function(data)
            ngx.sleep(0.01)
            notes.left = notes.left - 1
            if data % 2 == 0 then error("on purpose") end
        end, "waits")
    """
    with Library("", WORKER_EVENTS_WORKER, ".run()", "ring") as library:
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
                assert library.run(wire, 'return ev.post("a", "request")')[1] == ["done"]


def test_resty_worker_events_stopping() -> None:
    with Library("", WORKER_EVENTS_WORKER, ".run()", "ring") as library:
        library.expect_log("heard stopping of resty-worker-events", 2)
        code = """
            local own = ev.events
            ev.register(function(data, event, source)
                ngx.log(ngx.NOTICE, "heard ", event, " of ", source)
            end, own._source, own.stopping)
        """
        for wire in library.wires().values():
            library.run(wire, code)


def test_resty_worker_events_reconfigured() -> None:
    with Library("", WORKER_EVENTS_WORKER, ".run()", "ring") as library:
        wire = library.wires()[0]
        code = 'return ev.configure({ shm = "process_events", timeout = 0.05 })'
        assert library.run(wire, code)[1] == [True]
        for bad in ("{ timeout = 'x' }", "{ timeout = -1 }", "1"):
            ok, err = library.run(wire, f"return ev.configure({bad})")[1]
            assert ok is None
            assert err


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
