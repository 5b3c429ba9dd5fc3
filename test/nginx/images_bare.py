"""A bare nginx with images: worker 0 runs Lua of the test's, the others match requests."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from bare import Bare
from sluice import ROOT, alive
from wire import Pairs, Wire, request_bytes, wait_until

Json = Any
"""What Lua sends back."""

HTTP = """
    client_body_buffer_size 1m;
    init_worker_by_lua_block {
        local writer = require("images_writer")
        writer.open("@images@")
        if ngx.worker.id() == 0 then
            @role@
        end
    }
    server {
        listen 127.0.0.1:@control@;
        sluice_control_server;
        location / { content_by_lua_block { require("images_writer").run() } }
    }
    server {
        listen 127.0.0.1:@port@;
        underscores_in_headers on;
        server_name some.name;
        location / { content_by_lua_block { require("images_writer").serve() } }
        location = /run { content_by_lua_block { require("images_writer").run() } }
    }
"""

ACCEPT = 'ngx.timer.at(0, function() require("sluice.images").C.sluice_control_accept() end)'
"""Worker 0 has the role at once."""


class Images(Bare):
    """`role` is Lua that worker 0 runs in init_worker; `main`, `events` and `more` are put into the
    main, the events and the http context, where `@other@` stands for another port. There are
    `workers`, worker 0 among them. `module` is the folder of the module's file."""

    def __init__(
        self,
        *,
        workers: int = 2,
        role: str = ACCEPT,
        main: str = "",
        more: str = "",
        events: str = "",
        http: str = HTTP,
        control: str = "sluice_control on;",
        module: str = f"{ROOT}/build/module",
    ) -> None:
        self._main = f"{control}\n{main}"
        self._events, self._module = events, module
        self._role, self._more = role, more
        self.control_port = self.other_port = 0
        self.images = Path()
        super().__init__(http, workers=workers)

    def _filled(self, text: str) -> str:
        self.control_port = self.ports.take()
        self.other_port = self.ports.take()
        self.images = self.prefix / "images"
        self.images.mkdir(mode=0o700)
        text = text.replace("@role@", self._role) + self._more
        text = text.replace("@control@", str(self.control_port))
        text = text.replace("@other@", str(self.other_port))
        return super()._filled(text.replace("@images@", str(self.images)))

    def write(self, text: str) -> None:
        if "\nsluice_control" not in text:
            text = text.replace("\nevents {", f"\n{self._main}\nevents {{ {self._events}", 1)
            text = text.replace(f"{ROOT}/build/module", self._module)
        paths = f'lua_package_path "{ROOT}/test/nginx/?.lua;{ROOT}/?.lua;{ROOT}/?/init.lua;'
        super().write(text.replace('lua_package_path "', paths))

    def workers(self) -> list[int]:
        """All that have not begun to leave, worker 0 among them."""
        titles = ("worker process", "control process")
        return [
            pid
            for pid, title in self._children()
            if any(part in title for part in titles) and "is shutting down" not in title
        ]

    def run(self, code: str, port: int | None = None) -> Json:
        """Runs Lua in worker 0, or in one that accepts on the port, with `w` for the writer; what
        it returned: its only value, or the list of them."""
        with Wire(port or self.control_port) as wire:
            return self.run_on(wire, code)

    def run_on(self, wire: Wire, code: str) -> Json:
        """The same over a connection, which leads to one worker."""
        wire.send(request_bytes("/run", "POST", body=("local w = ...\n" + code).encode()))
        reply = wire.read_reply("POST")
        assert reply.status == 200, (reply.status, reply.body, self.error_log()[-2000:])
        values = json.loads(reply.body)
        return values[0] if isinstance(values, list) and len(values) == 1 else values

    def traffic(self, code: str) -> Json:
        """Runs Lua in a traffic worker."""
        return self.run(code, self.proxy_port)

    def match(self, path: str = "/", headers: Pairs | None = None) -> Json:
        """What a request matches in a traffic worker."""
        reply = self.ask(path, headers=headers)
        return {"status": reply.status, **json.loads(reply.body)}

    def block(self) -> Json:
        """The block of the control worker, as a traffic worker sees it."""
        return self.traffic("return w.block()")

    def zero(self) -> int:
        """The process id of worker 0."""
        return self.run("return ngx.worker.pid()")

    def upgrade(self) -> None:
        """Starts a new master beside the old one, and waits for its workers."""
        self.start_new_master()
        wait_until(self._is_complete, "its workers")

    def end(self, master: int) -> None:
        """Ends a master and its workers, gracefully."""
        os.kill(master, signal.SIGQUIT)
        wait_until(lambda: not alive(master), "a master to leave")
