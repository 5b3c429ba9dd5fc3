"""What Lua in the sandbox cannot do, whoever wrote it: get out, change what others call, take all
memory, run for ever."""

import json
from typing import Any

import pytest
from admin_client import Client
from functions import entity, on_routes, running

from sluice import Start
from upstream import Upstream
from wire import wait_until

PLUGIN = "pre-function"

# Code whose value is what it got; nil: nothing.
NOTHING = [
    "getmetatable and getmetatable('').__index",
    "setmetatable",
    "debug",
    "load or loadstring or loadfile or dofile",
    "string.dump",
    "setfenv or getfenv",
    "package or module",
    "io",
    "os.execute or os.getenv or os.exit or os.remove or os.rename or os.tmpname",
    "jit or ffi",
    "rawget or rawset or rawequal",
    "collectgarbage or gcinfo or newproxy",
    "_G.io or _G._G.debug",
    "math.randomseed",
    "kong.cache.cluster_events",
    "ngx.socket.tcp().__index",
    "kong.tracing.__index",
]

# Code that has to throw, and of what it throws.
REFUSED = {
    "require('ffi')": "require 'ffi' not allowed within sandbox",
    "require('os')": "require 'os' not allowed within sandbox",
    "require('kong.tools.sandbox')": "not allowed within sandbox",
    "string.rep = nil": "Can not modify string.rep. Protected by the sandbox.",
    "table.concat = error": "Can not modify table.concat",
    "coroutine.wrap = error": "Can not modify coroutine.wrap",
    "kong.request.get_header = error": "Can not modify kong.request.get_header",
    "kong.response.exit = error": "Can not modify kong.response.exit",
    "kong.log.err = error": "Can not modify kong.log.err",
    "kong.request = {}": "Can not modify kong.request",
    "kong.cache.get = error": "Can not modify kong.cache.get",
    "kong.configuration.plugins = {}": "Can not modify kong.configuration.plugins",
    "kong.ctx.shared = {}": "Can not modify kong.ctx.shared",
    "kong.db.consumers.select = error": "Can not modify kong.db.consumers.select",
    "ngx.req.get_headers = error": "Can not modify ngx.req.get_headers",
    "ngx.say = error": "Can not modify ngx.say",
    "ngx.re.match = error": "Can not modify ngx.re.match",
    "ngx.run_worker_thread('default', 'os', 'execute', 'true')": "not allowed within sandbox",
    "('').__index.rep = error": "attempt to index field '__index'",
    "local f = function() end f = f() + 1": "",
    "local function f() return 1 + f() end f()": "stack overflow",
}


def each(upstream: Upstream, codes: list[str]) -> dict[str, Any]:
    """A route for each code, with its number."""
    return on_routes(upstream, {f"/{n}": entity(PLUGIN, code) for n, code in enumerate(codes)})


def test_what_is_not_there(gateway: Start, upstream: Upstream) -> None:
    codes = [
        f"local ok, got = pcall(function() return {code} end) "
        "kong.response.exit(200, { got = ok and got and tostring(got) or 'nothing' })"
        for code in NOTHING
    ]
    started = gateway(each(upstream, codes))
    found = {code: json.loads(started.ask(f"/{n}").body)["got"] for n, code in enumerate(NOTHING)}
    assert found == dict.fromkeys(NOTHING, "nothing")


def test_what_is_refused(gateway: Start, upstream: Upstream) -> None:
    codes = [*REFUSED]
    inside = [
        f"local ok, err = pcall(function() {code} end) "
        "kong.response.exit(200, { ok = ok, err = tostring(err) })"
        for code in codes
    ]
    started = gateway(each(upstream, inside))
    for n, code in enumerate(codes):
        found = json.loads(started.ask(f"/{n}").body)
        assert found["ok"] is False, code
        assert REFUSED[code] in found["err"], (code, found)


def test_bytecode_is_not_taken(gateway: Start) -> None:
    """Not even for what it would be: nothing of it is looked at."""
    reply = Client(gateway(None)).ask("POST", "/plugins", entity(PLUGIN, "\x1bLJ\x02"))
    assert reply.status == 400
    words = "error parsing pre-function: attempt to load chunk with wrong mode"
    assert words in reply.json()["fields"]["config"]["access"][0]


def test_what_others_call_stays_as_it_is(gateway: Start, upstream: Upstream) -> None:
    """Whatever a function writes to its globals, and to tables that it gets."""
    evil = """
    tostring = function() return "evil" end
    kong.mine = "shared"
    local list = kong.configuration.plugins
    list[1] = "evil"
    table.insert(kong.request, "evil")
    local socket = ngx.socket.tcp()
    socket.connect = nil
    for _, room in ipairs({ kong, ngx, string, table, kong.response }) do
        for name in pairs(room) do error(name) end
    end
    """
    good = """
    local socket = ngx.socket.tcp()
    kong.response.exit(200, table.concat({
        tostring(1), kong.mine or "none", kong.configuration.plugins[1], kong.request.get_method(),
        type(socket.connect) }, " "))
    """
    started = gateway(
        on_routes(upstream, {"/evil": entity(PLUGIN, evil), "/good": entity(PLUGIN, good)})
    )
    assert started.ask("/evil").status == 200
    # What is added to kong is seen by all functions, as in Kong, and by nobody else.
    assert started.ask("/good").text == "1 shared bundled GET function"


def test_a_users_modules_and_globals(gateway: Start, upstream: Upstream) -> None:
    """The settings say what more there is."""
    code = """
    local cjson = require("cjson")
    local ok, err = pcall(require, "io")
    kong.response.exit(200, cjson.encode({ bit.band(6, 3), type(os.getenv), type(os.execute), ok }))
    """
    started = gateway(
        running(upstream, entity(PLUGIN, code)),
        env={"KONG_UNTRUSTED_LUA_SANDBOX_REQUIRES": "cjson, kong.tools.string"},
        untrusted_lua_sandbox_environment="bit, os.getenv",
    )
    assert started.ask("/").json() == [2, "function", "nil", False]


def test_it_can_be_off_and_on(gateway: Start, upstream: Upstream) -> None:
    code = "kong.response.exit(200, type(io.open) .. type(require('ffi')))"
    started = gateway(running(upstream, entity(PLUGIN, code)), untrusted_lua="on")
    assert started.ask("/").text == "functiontable"
    started = gateway(running(upstream, entity(PLUGIN, code)), untrusted_lua="off")
    started.expect_log(
        "plugin 'pre-function' failed in access: .*loading of untrusted Lua code disabled because "
        "'untrusted_lua' config option is set to 'off'",
        1,
    )
    assert started.ask("/").status == 500
    assert not upstream.requests


BOMBS = {
    "one text": 'local s = ("x"):rep(1e9)',
    "by string.rep": 'local s = string.rep("x", 1e9)',
    "doubled": 'local s = "x" for i = 1, 40 do s = s .. s end',
    "by gsub": 'local s = ("x"):rep(1e6):gsub("x", ("y"):rep(1e6))',
    "by concat": 'local t = {} for i = 1, 1e5 do t[i] = ("x"):rep(1e5) end table.concat(t)',
    "a list": "local t = {} for i = 1, 1e10 do t[i] = i end",
    "a chain": "local t for i = 1, 1e10 do t = { t } end",
    "kept over requests": 'return function() kept = (kept or "") .. ("x"):rep(2e8) end',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_memory_is_bounded(gateway: Start, upstream: Upstream, bomb: str) -> None:
    """Whoever asks for too much gets an error, and the worker goes on."""
    config = on_routes(
        upstream,
        {"/bomb": entity(PLUGIN, BOMBS[bomb]), "/good": entity(PLUGIN, "kong.ctx.shared.x = {}")},
    )
    started = gateway(config)
    started.expect_log("plugin 'pre-function' failed in access: .*not enough memory", range(1, 10))
    assert started.ask("/good").status == 200
    workers = set(started.workers())
    with started.wire(timeout=60) as wire:
        # What is kept grows with each.
        for _ in range(5):
            status = wire.ask("/bomb").status
            if status == 500:
                break
    assert status == 500
    for _ in range(3):
        assert started.ask("/good").status == 200
    assert set(started.workers()) == workers


COROUTINES = {
    "nested": """
        local function nest() return coroutine.wrap(nest)() end
        nest()
    """,
    "chained": """
        local all = {}
        for i = 1, 1e5 do
            all[i] = coroutine.create(function() return coroutine.resume(all[i + 1]) end)
        end
        coroutine.resume(all[1])
    """,
    "itself": """
        local co
        co = coroutine.create(function() coroutine.resume(co) end)
        coroutine.resume(co)
    """,
    "replaced by itself": """
        local function f() return (("x"):gsub("x", f)) end
        f()
    """,
    "replaced and resumed": """
        local function f()
            return (("x"):gsub("x", function() return coroutine.wrap(f)() end))
        end
        f()
    """,
    "sorted and resumed": """
        local function f()
            local depth = 0
            local function sort()
                depth = depth + 1
                if depth > 4000 then return coroutine.wrap(f)() end
                table.sort({ 1, 2 }, sort)
            end
            sort()
        end
        f()
    """,
    "sorted by itself": """
        local function f() return table.sort({ 1, 2 }, f) end
        f()
    """,
    "another's": """
        kept = kept or coroutine.create(function() while true do coroutine.yield() end end)
        coroutine.resume(kept)
    """,
}


@pytest.mark.parametrize("phase", ["access", "log"])
@pytest.mark.parametrize("trick", COROUTINES)
def test_coroutines(gateway: Start, upstream: Upstream, trick: str, phase: str) -> None:
    """And what else C calls back. In a phase that may wait coroutines are nginx's, in others Lua's
    own."""
    started = gateway(running(upstream, entity(PLUGIN, **{phase: COROUTINES[trick]})))
    started.expect_log("plugin 'pre-function' failed", range(10))
    workers = set(started.workers())
    for _ in range(3):
        assert started.ask("/").status in (200, 500)
    assert set(started.workers()) == workers


LOOPS = {
    "pcall": "while true do pcall(function() while true do end end) end",
    "pattern": 'local s = ("a"):rep(1e5) s:find(".-.-.-.-.-b")',
}


@pytest.mark.parametrize("loop", LOOPS)
def test_an_endless_loop_is_ended(gateway: Start, upstream: Upstream, loop: str) -> None:
    """By the watchdog, which begins to watch with the first function that runs."""
    functions = {"/loop": entity(PLUGIN, LOOPS[loop]), "/good": entity(PLUGIN, "local x")}
    started = gateway(on_routes(upstream, functions), watchdog_timeout="6s")
    long = r"worker 1 \(pid \d+\) has run plugin 'pre-function' in access for \d+ ms of CPU time"
    started.expect_log(long, 1)
    started.expect_log(r"worker 1 \(pid \d+\) is killed: it does not end plugin 'pre-function'", 1)
    started.expect_log("exited on signal 9", 1)
    assert started.ask("/good").status == 200
    (worker,) = set(started.workers()) - {started.control()}
    with started.wire(timeout=120) as wire:
        wire.send(b"GET /loop HTTP/1.1\r\nHost: h\r\n\r\n")
        wait_until(lambda: worker not in started.workers(), "the worker to be killed", 120)
    assert started.ask("/good").status == 200
