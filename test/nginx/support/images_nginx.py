"""An nginx with images: worker 0 runs Lua of the test's, the others match requests."""

import json
from typing import Any, ClassVar

from nginx import COMPAT, LIB, Json, Nginx
from sluice import ROOT, SUPPORT
from wire import Pairs, Wire

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
        @runs@
    }
    server {
        listen 127.0.0.1:@port@;
        underscores_in_headers on;
        server_name some.name;
        location / { content_by_lua_block { require("images_writer").serve() } }
        @runs@
    }
    @more@
"""

ACCEPT = 'ngx.timer.at(0, function() require("sluice.ffi.images").C.sluice_control_accept() end)'
"""Worker 0 has the role at once."""


class Images(Nginx):
    """`role` is Lua that worker 0 runs in init_worker; `more` is added to the http block, where
    `@other@` stands for another port. Worker 0 is one of the `workers`."""

    lua: ClassVar = (LIB, COMPAT, SUPPORT, ROOT)
    given: ClassVar = {"w": 'require("images_writer")'}

    def __init__(
        self,
        http: str = HTTP,
        *,
        role: str = ACCEPT,
        control: str = "sluice_control on;",
        main: str = "",
        **more: Any,
    ) -> None:
        super().__init__(http, role=role, main=f"{control}\n{main}", **more)

    def places(self) -> dict[str, str]:
        self.control_port, self.other_port = self.ports.take(), self.ports.take()
        self.images = self.prefix / "images"
        self.images.mkdir(mode=0o700)
        own = {"control": self.control_port, "other": self.other_port, "images": self.images}
        return super().places() | {name: str(value) for name, value in own.items()}

    def workers(self) -> list[int]:
        """All that have not begun to leave, worker 0 among them."""
        titles = ("worker process", "control process")
        return [
            pid
            for pid, title in self._children()
            if any(part in title for part in titles) and "is shutting down" not in title
        ]

    def run(self, code: str, port: int | None = None) -> Json:
        """Runs Lua in worker 0, or in one that accepts on the port, with `w` for the writer."""
        with Wire(port or self.control_port) as wire:
            return self.run_on(wire, code)

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
