"""An nginx with timers, which runs the Lua that a test sends it."""

from typing import Any, ClassVar

from nginx import Json, Nginx
from wire import wait_until

HTTP = """
    lua_shared_dict notes 16m;
    @limits@
    init_by_lua_block {
        require("resty.core")
        package.loaded.probe = { notes = ngx.shared.notes, noted = {} }
        local probe = package.loaded.probe
        -- Of this process, in milliseconds, whatever the wall clock does.
        local ffi = require("ffi")
        ffi.cdef("typedef struct { long s; long n; } probe_time;")
        ffi.cdef('int probe_clock(int, probe_time *) __asm__("clock_gettime");')
        local time = ffi.new("probe_time")
        function probe.ms()
            ffi.C.probe_clock(1, time)
            return tonumber(time.s) * 1e3 + tonumber(time.n) / 1e6
        end
        @init@
    }
    @server@
    init_worker_by_lua_block {
        @before@
        local probe = require("probe")
        local t = probe.t or require("sluice.timer").new(@options@)
        probe.t = t
        assert(t:start())
        @init_worker@
    }
    server {
        listen 127.0.0.1:@port@;
        keepalive_requests 1000000;
        location / { return 200 "ok"; }
        @runs@
        @locations@
    }
"""


class Timers(Nginx):
    """A worker with timers. `options` is the Lua table given to `new`; the text `before` is run
    before it is used, `server` and `limits` stand in the http block."""

    given: ClassVar = {"t": 'require("probe").t', "probe": 'require("probe")'}

    def __init__(self, options: str = "{}", **more: Any) -> None:
        super().__init__(HTTP, options=options, **{"workers": 1} | more)

    def run(self, code: str) -> Json:
        """Runs Lua with `t` and `probe`; what it returned."""
        with self.wire(timeout=60) as wire:
            return self.run_on(wire, code)

    def pid(self) -> int:
        """The process of the only worker."""
        wait_until(lambda: len(self.workers()) == 1, "one worker")
        return self.workers()[0]
