"""An nginx that uses another library's name on our events, and runs the Lua that a test sends."""

import json
from typing import Any
from urllib.parse import urlencode

from nginx import Nginx
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
        location / { content_by_lua_block { require("notes").ev@serve@ } }
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


class Library(Nginx):
    """An nginx that uses a library by its README; Lua is run in a worker on demand."""

    def __init__(
        self, init: str, init_worker: str, serve: str, transport: str, *, level: str = "notice"
    ) -> None:
        options = OPTIONS[transport]
        if "worker.events" in init_worker and transport == "socket":
            options += 'listening = "unix:@socket@",'
        texts = {"init": init, "init_worker": init_worker, "serve": serve}
        if "@options@" in init + init_worker:
            texts["options"] = options
        super().__init__(NOTES + SERVER, level=level, **texts)
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


def resty_events(transport: str, *, level: str = "notice") -> Library:
    """With `resty.events`."""
    return Library(RESTY_EVENTS, RESTY_EVENTS_WORKER, ":run()", transport, level=level)


def worker_events(transport: str, *, level: str = "notice") -> Library:
    """With `resty.worker.events`."""
    return Library("", WORKER_EVENTS_WORKER, ".run()", transport, level=level)
