"""The same nginx configuration twice: with the module and its directive, and without either."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from asan import MODULE, check_nothing_to_report

from nginx import Nginx

# `ways` has, for each way to reach a variable, how to read and how to write it. On the plain
# server there is one, ngx.var, and that is the yardstick.
PLAIN_WAYS = """
    package.loaded.ways = {
        plain = {
            get = function(name) local value = ngx.var[name] return value end,
            set = function(name, value) ngx.var[name] = value end,
        },
    }
"""

OUR_WAYS = """
    local var = require("sluice.var")
    local plain = getmetatable(ngx.var)
    local get, set = plain.__index, plain.__newindex
    assert(var.install())
    package.loaded.ways = {
        library = {
            get = function(name) local value = var.get(name) return value end,
            set = function(name, value) var.set(name, value) end,
        },
        -- which is made of a string
        handle = {
            get = function(name)
                local value
                if type(name) == "string" then
                    value = var.handle(name):get()
                else
                    value = var.get(name)
                end
                return value
            end,
            set = function(name, value)
                if type(name) == "string" then
                    var.handle(name):set(value)
                else
                    var.set(name, value)
                end
            end,
        },
        installed = {
            get = function(name) local value = ngx.var[name] return value end,
            set = function(name, value) ngx.var[name] = value end,
        },
        -- what other readers of a variable see
        original = {
            get = function(name) local value = get(ngx.var, name) return value end,
            set = function(name, value) set(ngx.var, name, value) end,
        },
    }
"""


class Server(Nginx):
    """One of the two. In `http`, `@init@` stands for the Lua that makes `ways`, within
    init_by_lua, and `@index@` for the directive.
    """

    def __init__(self, http: str, index: str | None, **more: Any) -> None:
        texts = {"init": OUR_WAYS, "index": f"sluice_var_index {index};"}
        if index is None:
            texts, more["module"] = {"init": PLAIN_WAYS}, None
        texts = {name: text for name, text in texts.items() if f"@{name}@" in http}
        super().__init__(http, **{"workers": 1} | texts | more)


@contextmanager
def both(http: str, index: str) -> Iterator[tuple[Server, Server]]:
    """Our server and the plain one, running."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(Server(http, index)),
            stack.enter_context(Server(http, None)),
        )


@contextmanager
def sanitized(http: str, index: str, environment: dict[str, str], **texts: str) -> Iterator[Server]:
    """A running server with the module that has the sanitizers; in the end it has nothing to
    report."""
    with Server(http, index, module=MODULE, environment=environment, **texts) as server:
        yield server
        server.restart_workers()
        check_nothing_to_report(server, 2)
