"""Configurations with Lua in them: pre-function, post-function."""

from typing import Any

from sluice import proxying
from upstream import Upstream

PHASES = ("certificate", "rewrite", "access", "header_filter", "body_filter", "log")


def entity(plugin: str, *access: str, **phases: str | list[str]) -> dict[str, Any]:
    """A plugin with functions of the access phase, and of others by name."""
    config: dict[str, Any] = {"access": [*access]} if access else {}
    for phase, code in phases.items():
        config[phase] = [code] if isinstance(code, str) else code
    return {"name": plugin, "config": config}


def running(upstream: Upstream, *plugins: dict[str, Any]) -> dict[str, Any]:
    """One route with these plugins, which all requests run."""
    return proxying(upstream) | {"plugins": [*plugins]}


def on_routes(upstream: Upstream, plugins: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A route for each of some paths, with a plugin of its own."""
    routes = [
        {"name": path.strip("/"), "paths": [path], "plugins": [plugin]}
        for path, plugin in plugins.items()
    ]
    return {"services": [{"name": "service", "url": upstream.url, "routes": routes}]}
