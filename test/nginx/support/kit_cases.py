"""One gateway for many small plugins: a route for each, whose plugin runs the Lua it is given."""

from __future__ import annotations

from typing import Any

from upstream import Upstream

PHASES = ("rewrite", "access", "response", "header_filter", "body_filter", "log")

CONFIG = "\n".join(f'{{ {phase} = {{ type = "string" }} }},' for phase in PHASES)

HANDLER = """
local phases = { %s }
local handler = { PRIORITY = 1000, VERSION = "1.0.0" }
local known = {}
for _, phase in ipairs(phases) do
    handler[phase] = function(_, conf)
        local code = conf[phase]
        if type(code) == "string" then
            known[code] = known[code] or assert(loadstring(code, phase))
            known[code]()
        end
    end
end
return handler
"""


def doing(phases: str) -> dict[str, str]:
    """The files of a plugin in Kong's layout that runs its configuration in these phases."""
    listed = ", ".join(f'"{phase}"' for phase in phases.split())
    return {"handler": HANDLER % listed, "config": CONFIG}


FILTERS = "access header_filter body_filter log"
BUFFERED = "access response log"

PLUGINS = {
    "filters": doing(FILTERS),
    "buffered": doing(BUFFERED),
    "asking": doing("access"),
}


def cases(
    upstream: Upstream,
    codes: dict[str, dict[str, str]],
    *,
    plugin: str = "filters",
    service: dict[str, Any] | None = None,
    **route: object,
) -> dict[str, Any]:
    """A service with a route `/<case>` for each, which has the plugin with that case's Lua."""
    routes = [
        {
            "name": name,
            "paths": [f"/{name}"],
            "strip_path": False,
            "plugins": [{"name": plugin, "config": code}],
        }
        | route
        for name, code in codes.items()
    ]
    own = {"name": f"of-{plugin}", "url": upstream.url, "routes": routes}
    return {"services": [own | (service or {})]}
