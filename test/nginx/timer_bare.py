"""A bare nginx with timers, which runs the Lua that a test sends it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from bare import Bare
from sluice import COMMAND_SECONDS, NGINX, ROOT
from wire import Wire, request_bytes, wait_until

Json = Any
"""What Lua sends back."""

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
        location /run {
            client_body_buffer_size 1m;
            content_by_lua_block {
                local probe = require("probe")
                ngx.req.read_body()
                local run = assert(loadstring(ngx.req.get_body_data(), "=sent"))
                ngx.say(require("cjson").encode({ run(probe.t, probe) }))
            }
        }
        @locations@
    }
"""


class Timers(Bare):
    """Workers with timers. `options` is the Lua table given to `new`; `before` is run before it is
    used, and `server` stands in the http block; `main` is put into the main context; `module` is
    the file to load, or "" for none; `environment` is nginx's."""

    def __init__(
        self,
        options: str = "{}",
        *,
        workers: int = 1,
        init: str = "",
        before: str = "",
        init_worker: str = "",
        server: str = "",
        locations: str = "",
        limits: str = "",
        main: str = "",
        connections: int = 256,
        module: str | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        http = HTTP.replace("@options@", options).replace("@init@", init)
        http = http.replace("@init_worker@", init_worker).replace("@locations@", locations)
        http = http.replace("@before@", before).replace("@server@", server)
        self._main = main
        self._connections = connections
        self._module = module
        self._environment = environment
        super().__init__(http.replace("@limits@", limits), workers=workers)

    def write(self, text: str) -> None:
        line = f'load_module "{ROOT}/build/module/ngx_sluice_module.so";'
        assert line in text
        if self._module is not None:
            text = text.replace(line, f"load_module {self._module};" if self._module else "")
        text = text.replace("\nevents {", f"\n{self._main}events {{", 1)
        text = text.replace("worker_connections 256", f"worker_connections {self._connections}")
        super().write(text)

    def nginx(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """In the environment of the test."""
        return subprocess.run(
            [
                *(NGINX, "-p", f"{self.prefix}/", "-c", "nginx.conf"),
                *("-e", "logs/error.log", *arguments),
            ],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def run(self, code: str) -> Json:
        """Runs Lua with `t` and `probe`; what it returned: its only value, or the list of them."""
        with Wire(self.proxy_port, timeout=60) as wire:
            body = ("local t, probe = ...\n" + code).encode()
            wire.send(request_bytes("/run", "POST", body=body))
            reply = wire.read_reply("POST")
        assert reply.status == 200, (reply.status, reply.body, self.error_log()[-2000:])
        values = json.loads(reply.body)
        return values[0] if isinstance(values, list) and len(values) == 1 else values

    def pid(self) -> int:
        """The process of the only worker."""
        wait_until(lambda: len(self.workers()) == 1, "one worker")
        return self.workers()[0]
