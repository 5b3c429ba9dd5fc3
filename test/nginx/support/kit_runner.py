"""A plugin that runs the Lua of each request."""

from __future__ import annotations

import base64
import json
from typing import Any

from sluice import Gateway, proxying
from upstream import Upstream
from wire import Wire

HANDLER = """
local cjson = require("cjson")
local config = { type = "record", fields = {} }
local Runner = { VERSION = "1", PRIORITY = 1 }
Runner.schema = { name = "runner", fields = { { config = config } } }
function Runner:access()
    local code = ngx.req.get_headers()["X-Run"]
    if not code then return end
    local chunk = assert(loadstring(ngx.decode_base64(code)))
    local found = { pcall(chunk) }
    local values = {}
    for i = 2, 5 do
        values[i - 1] = found[i] == nil and cjson.null or found[i]
    end
    ngx.status = found[1] and 200 or 500
    ngx.print(cjson.encode({ worker = ngx.worker.id(), pid = ngx.worker.pid(), values = values }))
    return ngx.exit(ngx.status)
end
return Runner
"""

RUNNER = {"runner": HANDLER}
"""For `plugins` of a gateway."""


def running(upstream: Upstream, **more: Any) -> dict[str, Any]:
    """A configuration with the plugin."""
    return proxying(upstream) | {"plugins": [{"name": "runner"}]} | more


def head(code: str) -> dict[str, str]:
    """The header of a request that runs this."""
    return {"X-Run": base64.b64encode(code.encode()).decode()}


class Worker:
    """A connection, and with it a worker."""

    def __init__(self, gateway: Gateway) -> None:
        self.wire = Wire(gateway.proxy_port)
        self.id = self.ask("return 1")["worker"]

    def ask(self, code: str) -> dict[str, Any]:
        """What the code has returned, four values at most, and who ran it."""
        reply = self.wire.ask("/", headers=head(code))
        return json.loads(reply.body) | {"status": reply.status}

    def run(self, code: str) -> list[Any]:
        """The four values; nil is None."""
        reply = self.ask(code)
        assert reply["status"] == 200, reply
        return reply["values"]


def workers(gateway: Gateway) -> list[Worker]:
    """A connection to each traffic worker."""
    count = gateway.settings["workers"]
    found: dict[int, Worker] = {}
    for _ in range(200 * count):
        one = Worker(gateway)
        if one.id in found:
            one.wire.close()
        found.setdefault(one.id, one)
        if len(found) == count:
            return list(found.values())
    raise AssertionError(f"{len(found)} of {count} workers took a connection")
