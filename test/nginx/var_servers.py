"""The same nginx configuration twice: with the module and its directive, and without either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bare import Bare

MODULE = "ngx_sluice_module.so"

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


class Server(Bare):
    """One of the two. In `http`, `@init@` stands for the Lua that makes `ways`, within
    init_by_lua, and `@index@` for the directive.
    """

    def __init__(self, http: str, index: str | None, *, workers: int = 1) -> None:
        self.ours = index is not None
        directive = f"sluice_var_index {index};" if index is not None else ""
        http = http.replace("@index@", directive)
        http = http.replace("@init@", OUR_WAYS if self.ours else PLAIN_WAYS)
        super().__init__(http, workers=workers)

    def write(self, text: str) -> None:
        """Without the module in one of them."""
        if not self.ours:
            text = "\n".join("" if MODULE in line else line for line in text.split("\n"))
        super().write(text)


@contextmanager
def both(http: str, index: str) -> Iterator[tuple[Server, Server]]:
    """Our server and the plain one, running."""
    with ExitStack() as stack:
        yield (
            stack.enter_context(Server(http, index)),
            stack.enter_context(Server(http, None)),
        )
