"""Plugins as Kong's users have them: a folder kong/plugins/<name> on lua_package_path."""

from admin_ask import ask

from sluice import Gateway, Start, proxying
from upstream import Upstream

HANDLER = """
local http = require("resty.http")  -- nginx's, where the command line loads this file, too
local semaphore = require("ngx.semaphore")
local split = require("ngx.re").split
local host = require("sluice.var").handle("host")
for name in ([[
    ngx.balancer ngx.base64 ngx.errlog ngx.ocsp ngx.process ngx.req ngx.resp ngx.ssl
    ngx.ssl.clienthello ngx.ssl.session resty.core resty.core.base resty.core.regex
    resty.core.shdict resty.core.time resty.core.var resty.core.worker
]]):gmatch("%S+") do
    require(name)
end
local log = kong.log  -- whole before the first file of a plugin
local _M = { VERSION = "1.0.0", PRIORITY = 10 }
function _M:access(conf)
    log.notice("greeting is ", conf.greeting)
    assert(http.new() and semaphore.new(1):wait(0) and host:get())
    local greeting = split("no," .. conf.greeting, ",")[2]
    ngx.req.set_header("X-Trace", greeting .. " " .. kong.version)
end
return _M
"""
CONFIG = '{ greeting = { type = "string", default = "hi" } }'


def test_a_plugin_is_found_and_runs(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "mine"}]}
    files = {"handler": HANDLER, "config": CONFIG}
    running = gateway(config, kong_plugins={"mine": files})
    running.expect_log(r"\[kong\] handler\.lua:\d+ \[mine\] greeting is hi", 1)
    assert running.ask("/").status == 200
    assert upstream.last.headers.get("x-trace") == "hi 3.9.3"
    assert ask(running, "/schemas/plugins/mine").status == 200
    assert running.command("reload", "--new-workers").returncode == 0


def test_an_owners_folder_wins_over_a_bundled_plugin(gateway: Start, upstream: Upstream) -> None:
    """It is said once at start; its configurations are the owner's schema's."""
    files = {"handler": HANDLER, "config": CONFIG, "migrations/init": "error('never loaded')"}
    config = proxying(upstream) | {"plugins": [{"name": "cors", "config": {"greeting": "ho"}}]}
    running = gateway(config, kong_plugins={"cors": files}, plugins=None)
    place = "kong/plugins/cors/handler.lua is used in the place of the bundled one"
    running.expect_log(f"plugin 'cors': .*{place}", 1)
    running.expect_log("plugin 'cors': its migrations are not run", 1)
    running.expect_log(r"\[cors\] greeting is ho", 1)
    assert place in running.warned
    assert running.ask("/").status == 200
    assert upstream.last.headers.get("x-trace") == "ho 3.9.3"


def test_a_plugin_that_is_not_there_is_named_with_where_it_was_looked_for() -> None:
    with_files = {"handler": HANDLER, "config": CONFIG}
    stopped = Gateway(None, kong_plugins={"mine": with_files}, plugins=None)
    stopped.settings["plugins"] = ["bundled", "mine", "another"]
    try:
        done = stopped.command("start")
        assert done.returncode != 0
        assert "plugin 'another': not found; these files were looked for:" in done.stderr
        folder = stopped.prefix / "lua"
        for base in ("kong/plugins", "plugins"):
            assert f"{folder}/{base}/another/handler.lua\n" in done.stderr + "\n"
    finally:
        stopped.close()


def test_a_class_of_kong_2_runs(gateway: Start, upstream: Upstream) -> None:
    source = """
        local BasePlugin = require("kong.plugins.base_plugin")
        local Old = BasePlugin:extend()
        Old.PRIORITY = 1
        function Old:new() Old.super.new(self, "old") end
        function Old:access(conf)
            Old.super.access(self)
            ngx.req.set_header("X-Trace", self._name)
        end
        return Old
    """
    config = proxying(upstream) | {"plugins": [{"name": "old"}]}
    running = gateway(config, kong_plugins={"old": {"handler": source}})
    assert running.ask("/").status == 200
    assert upstream.last.headers.get("x-trace") == "old"
