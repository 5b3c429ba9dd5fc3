"""An nginx with events: each worker notes what it hears, publishes when asked, and runs what Lua a
test sends it."""

from __future__ import annotations

import json
from typing import Any, ClassVar
from urllib.parse import urlencode

from nginx import Json, Nginx
from wire import ClosedEarly, Wire, wait_until

LUA = """
    lua_shared_dict sluice_events 1m;
    lua_shared_dict notes 16m;
    init_by_lua_block {
        local cjson = require("cjson")
        -- Functions of the test, beyond what the library needs.
        package.loaded.probe = {
            heard = {},
            -- Makes data from its short name.
            data = function(name)
                local kind, size = name:match("^(%a+)(%d*)$")
                if kind == "text" then
                    return ("t"):rep(tonumber(size))
                elseif kind == "function" then
                    return print
                elseif kind == "table" then
                    return { yes = true, list = { 1, 2.5, "three" }, nested = { { a = "b" } } }
                end
                return tonumber(name)
            end,
            say = function(value)
                ngx.say(ngx.worker.id(), " ", cjson.encode(value))
            end,
        }
        package.loaded.probe.new = function()
            return assert(require("sluice.events").new(@options@))
        end
        @init@
    }
    init_worker_by_lua_block {
        local probe = require("probe")
        local ev = probe.ev or probe.new()
        probe.ev = ev
        ev:subscribe("*", "*", function(data, event, source, wid)
            local heard = probe.heard
            heard[#heard + 1] = {
                source = source,
                event = event,
                wid = wid,
                data = type(data) == "string" and #data > 100 and #data or data,
            }
        end)
        ev:subscribe("sluice", "overrun", function(data)
            probe.overruns = (probe.overruns or 0) + 1
            probe.overrun = data
        end)
        assert(ev:init_worker())
        @init_worker@
    }
    server {
        listen 127.0.0.1:@port@ reuseport;
        # Publishes `count` events named from `first` on; says what `publish` returned, by count.
        location /publish {
            content_by_lua_block {
                local probe, args = require("probe"), ngx.req.get_uri_args()
                local target = args.worker and { worker = tonumber(args.worker) }
                    or args.key and { key = args.key, timeout = tonumber(args.timeout) }
                    or args.target or "all"
                local data = args.data and probe.data(args.data)
                local first, counts = tonumber(args.first or 1), {}
                for i = first, first + tonumber(args.count or 1) - 1 do
                    if args.keys then target = "key " .. i end
                    local ok, err = probe.ev:publish(target, args.source or "test",
                        args.event or tostring(i), args.data and data or i)
                    local word = tostring(ok or err)
                    counts[word] = (counts[word] or 0) + 1
                end
                probe.say(counts)
            }
        }
        location /heard {
            content_by_lua_block {
                local probe = require("probe")
                local cjson = require("cjson")
                probe.say(setmetatable(probe.heard, cjson.array_mt))
            }
        }
        location /heard-count {
            content_by_lua_block { local probe = require("probe") probe.say(#probe.heard) }
        }
        location /overrun {
            content_by_lua_block {
                local probe = require("probe")
                probe.say({ count = probe.overruns or 0, last = probe.overrun })
            }
        }
        location /forget {
            content_by_lua_block { local probe = require("probe") probe.heard = {} probe.say(true) }
        }
        location /stats {
            content_by_lua_block {
                local probe = require("probe")
                local stats = probe.ev:stats()
                stats.is_ready = probe.ev:is_ready()
                stats.pid = ngx.worker.pid()
                probe.say(stats)
            }
        }
        @runs@
        @locations@
    }
    @servers@
"""

SOCKET_SERVER = """
    server {
        listen unix:@socket@;
        location / { content_by_lua_block { require("probe").ev:run() } }
        location = /raw { content_by_lua_block { require("probe").ev:run("raw") } }
    }
"""


class Events(Nginx):
    """Workers that hear and publish. `options` is the Lua table given to `new`; texts for `init`,
    `init_worker`, `locations` and `servers` are added there."""

    given: ClassVar = {"ev": 'require("probe").ev', "probe": 'require("probe")'}

    def __init__(self, options: str = "{}", **more: Any) -> None:
        super().__init__(LUA, options=options, **more)

    def ready(self) -> Events:
        """Waits until each worker is connected."""

        def all_ready() -> bool:
            return all(stats["is_ready"] for stats in self.all("/stats").values())

        wait_until(all_ready, "every worker to be connected")
        return self

    def one(self, target: str, /, **query: object) -> tuple[int, Any]:
        """What one worker answers, with its id."""
        if query:
            target += "?" + urlencode(query)
        wid, _, rest = self.text(target).partition(" ")
        return int(wid), json.loads(rest)

    def at(self, worker: int, target: str, /) -> dict[str, Any]:
        """The table that a worker answers."""
        return self._until(worker, target)[1]

    def heard_at(self, worker: int, /) -> list[dict[str, Any]]:
        """What a worker heard so far."""
        return self._until(worker, "/heard")[1]

    def publish(self, **query: object) -> tuple[int, dict[str, int]]:
        """Publishes in some worker: its id, and how often `publish` returned what."""
        return self.one("/publish", **query)

    def publish_at(self, worker: int, /, **query: object) -> dict[str, int]:
        """Publishes in one worker: asks it over a connection on which it answers."""
        with self.connection(worker) as wire:
            return self._ask(wire, "/publish?" + urlencode(query))[1]

    def connection(self, worker: int) -> Wire:
        """A keep-alive connection to a worker."""
        found: list[Wire] = []

        def reach() -> bool:
            wire = Wire(self.proxy_port)
            if self._ask(wire, "/heard-count")[0] == worker:
                found.append(wire)
                return True
            wire.close()
            return False

        wait_until(reach, f"a connection to worker {worker}")
        return found[0]

    def _ask(self, wire: Wire, target: str) -> tuple[int, Any]:
        reply = wire.ask(target)
        assert reply.status == 200, (target, reply.status, reply.body)
        wid, _, rest = reply.body.decode().partition(" ")
        return int(wid), json.loads(rest)

    def _until(self, worker: int, target: str) -> tuple[int, Any]:
        with self.connection(worker) as wire:
            return self._ask(wire, target)

    def all(self, target: str) -> dict[int, Any]:
        """What each worker answers, by id."""
        return {wid: self._until(wid, target)[1] for wid in range(self.count)}

    def heard(self, count: int) -> dict[int, list[dict[str, Any]]]:
        """What each worker heard, once all of them heard at least `count` events."""

        def enough() -> bool:
            return all(number >= count for number in self.all("/heard-count").values())

        wait_until(enough, f"every worker to hear {count} events")
        return self.all("/heard")

    def heard_through(self, event: str) -> dict[int, list[dict[str, Any]]]:
        """What each worker heard, once all of them heard the event of this name.

        The mark of "nothing else comes" for events that only some workers hear.
        """
        wait_until(
            lambda: all(event in names(heard) for heard in self.all("/heard").values()),
            f"every worker to hear {event}",
        )
        return self.all("/heard")

    def forget(self) -> None:
        """Lets each worker forget what it heard."""
        self.all("/forget")

    def run(self, worker: int, code: str) -> Json:
        """Runs Lua in a worker, with `ev` and `probe`; what it returned."""
        with self.connection(worker) as wire:
            return self.run_on(wire, code)

    def run_all(self, code: str) -> dict[int, Json]:
        """Runs Lua in each worker."""
        return {worker: self.run(worker, code) for worker in range(self.count)}

    def pid_of(self, worker: int) -> int:
        """The process of a worker."""
        return self.run(worker, "return ngx.worker.pid()")

    def ring_stats(self) -> dict[str, Json]:
        """Figures of the log and all processes, as some worker sees them."""
        return self.one("/stats")[1]

    def settle(self) -> None:
        """Waits until every process has read everything in the log."""

        def all_read() -> bool:
            try:
                stats = self.ring_stats()
            except (ClosedEarly, ConnectionError):
                return False
            return stats["total"]["lag"] == 0 and stats["total"]["queue_depth"] == 0

        wait_until(all_read, "everything published to be read")


def over_socket(options: str = "", **more: Any) -> Events:
    """With the socket transport."""
    options = '{ transport = "socket", listening = "unix:@socket@", ' + options + " }"
    return Events(options, servers=SOCKET_SERVER + more.pop("servers", ""), **more)


def over_poll(options: str = "interval = 0.02", **more: Any) -> Events:
    """With the transport that polls a dictionary."""
    return Events('{ transport = "poll", ' + options + " }", **more)


def names(heard: list[dict[str, Any]]) -> list[str]:
    """The names of the events, in the order in which they were heard."""
    return [event["event"] for event in heard]
