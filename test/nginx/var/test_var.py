"""Variables by number: the directive, the library, and the same table of cases on a server that
knows nothing of them.
"""

import json
import re

import pytest
from var_servers import both

from nginx import LIB, Nginx
from sluice import ROOT

# Each is the body of a function (get, set) and answers with one value; run in the content phase.
CASES = {
    "present": "return get('host')",
    "upper case": "return get('HOST')",
    "absent": "return tostring(get('http_none'))",
    "absent argument": "return tostring(get('arg_none'))",
    "argument": "return get('arg_a')",
    "empty argument": "return get('arg_empty')",
    "header": "return get('http_x_thing')",
    "cookie": "return get('cookie_sid')",
    "not indexed": "return get('server_name')",
    "unknown": "return tostring(get('there_is_none'))",
    "unknown prefix": "return tostring(get('upstream_http_none'))",
    "empty name": "return tostring(get(''))",
    "number of values": "return select('#', get('host')) + select('#', get('http_none'))",
    "type": "return type(get('request_length'))",
    "capture": "ngx.re.match('ab', 'a') return tostring(get(1))",
    "captures": "return tostring(get(0)) .. tostring(get(1)) .. tostring(get(99))",
    "negative capture": "return tostring(get(-1))",
    "nil name": "return get(nil)",
    "boolean name": "return get(true)",
    "table name": "return get({})",
    "write nil name": "set(nil, 'x')",
    "write number name": "set(1, 'x')",
    "write": "set('made', 'x') return get('made')",
    "write empty": "set('made', '') return get('made')",
    "write nil": "set('made', nil) return tostring(get('made'))",
    "write nil again": "set('made', nil) set('made', 'y') return get('made')",
    "write integer": "set('made', 12) return get('made')",
    "write large number": "set('made', 2^53) return get('made')",
    "write fraction": "set('made', 0.1) return get('made')",
    "write infinity": "set('made', 1/0) return get('made')",
    "write boolean": "set('made', false) return get('made')",
    "write null": "set('made', ngx.null) return get('made')",
    "write cdata": "set('made', 12LL) return get('made')",
    "write a null pointer": """
        set('made', require('ffi').new('void *'))
        return tostring(get('made'))""",
    "write with __tostring": """
        set('made', setmetatable({}, { __tostring = function() return 'told' end }))
        return get('made')""",
    "write with bad __tostring": """
        set('made', setmetatable({}, { __tostring = function() return {} end }))""",
    "write huge": "set('made', ('x'):rep(5000000)) return #get('made')",
    "write binary": "set('made', '\\0\\255\\0') return ngx.encode_base64(get('made'))",
    "write upper case": "set('MADE', 'z') return get('made')",
    "write twice": """
        set('made', 'one')
        local one = get('made')
        set('made', 'two')
        return one .. get('made')""",
    "write args": "set('args', 'a=9&b=8') return get('arg_b') .. get('query_string')",
    "write no args": "set('args', nil) return tostring(get('args')) .. get('is_args')",
    "write empty args": "set('args', '') return tostring(get('args')) .. get('is_args')",
    "write a number to args": "set('args', 5) return get('args') .. get('request_uri')",
    "write limit_rate": "set('limit_rate', '10k') return get('limit_rate')",
    "write bad limit_rate": "set('limit_rate', 'x') return get('limit_rate')",
    "not changeable": "set('host', 'x')",
    "prefix not changeable": "set('http_x_thing', 'x')",
    "write unknown": "set('there_is_none', 'x')",
    "write not indexed": "set('server_name', 'x')",
    "set_uri": "ngx.req.set_uri('/new') return get('uri') .. get('request_uri')",
    "set_uri_args": "ngx.req.set_uri_args('a=7') return get('arg_a') .. get('args')",
    "set_header": "ngx.req.set_header('X-Thing', 'n') return get('http_x_thing')",
    "clear_header": "ngx.req.clear_header('X-Thing') return tostring(get('http_x_thing'))",
    "set_header Host": "ngx.req.set_header('Host', 'n') return get('http_host') .. get('host')",
    "set_method": "ngx.req.set_method(ngx.HTTP_PUT) return get('request_method')",
    "many in a loop": """
        local sum = 0
        for i = 1, 300 do
            set('made', i)
            sum = sum + get('made') + #get('host')
        end
        return sum""",
    "in a coroutine": """
        local co = coroutine.wrap(function() return get('host') end)
        return co()""",
    "in a light thread": """
        local thread = ngx.thread.spawn(function() return get('host') end)
        local _, value = ngx.thread.wait(thread)
        return value""",
}

RUN = """
    local list = {
        %s
    }
    -- The cases, each in its own request: /<way>?<case>, counted from 1.
    package.loaded.run = function()
        local way = require("ways")[ngx.req.get_headers()["x-way"]]
        local case = list[tonumber(ngx.req.get_headers()["x-case"])]
        ngx.say(require("cjson").encode({ pcall(case, way.get, way.set) }))
    end
    -- What an error says where there is no request, or not a whole one.
    package.loaded.refusals = {}
    package.loaded.refuse = function(phase)
        for name, way in pairs(require("ways")) do
            local list = package.loaded.refusals
            local _, get = pcall(way.get, "host")
            local _, set = pcall(way.set, "made", "x")
            list[#list + 1] = name .. " " .. phase .. " get " .. get
            list[#list + 1] = name .. " " .. phase .. " set " .. set
        end
    end
    require("refuse")("init")
"""

HTTP = """
    @index@
    init_by_lua_block { @init@ @run_cases@ }
    init_worker_by_lua_block {
        require("refuse")("init_worker")
        ngx.timer.at(0, function() require("refuse")("timer") end)
    }
    server {
        listen 127.0.0.1:@port@;
        server_name cases.example;
        set $made "as made";
        location /run { content_by_lua_block { require("run")() } }
        location /refusals {
            content_by_lua_block {
                table.sort(require("refusals"))
                ngx.say(require("cjson").encode(require("refusals")))
            }
        }
    }
"""

INDEX = "default $made $arg_a $arg_empty $arg_none $cookie_sid $http_none $http_x_thing $limit_rate"


def configuration() -> str:
    """With every case as a function."""
    cases = ",\n".join(f"function(get, set) {code} end" for code in CASES.values())
    return HTTP.replace("@run_cases@", RUN % cases)


def result(server: Nginx, way: str, number: int) -> object:
    """What a case answers."""
    headers = {"X-Way": way, "X-Case": str(number), "X-Thing": "thing", "Cookie": "a=b; sid=12"}
    reply = server.ask("/run?a=1&empty=&b=2", headers=headers)
    assert reply.status == 200, reply.body
    fine, *values = json.loads(reply.body)
    if not fine:
        # The line, where each way has its own, is another test's.
        values = [re.sub(r"^init_by_lua\S+ ", "", value) for value in values]
    return fine, values


def test_every_way_does_what_ngx_var_does_without_the_module() -> None:
    with both(configuration(), INDEX) as (ours, plain):
        for server in (ours, plain):
            server.expect_log(r"invalid \$limit_rate", range(10))
        for number, name in enumerate(CASES, 1):
            expected = result(plain, "plain", number)
            for way in ("library", "handle", "installed", "original"):
                assert result(ours, way, number) == expected, (name, way)


def refusals(server: Nginx) -> list[str]:
    """What was refused in which phase, without the way and its line."""
    lines = json.loads(server.text("/refusals"))
    return sorted(re.sub(r"init_by_lua\S+ ", "", line.partition(" ")[2]) for line in lines)


def test_where_there_is_no_request_the_errors_are_those_of_ngx_var() -> None:
    with both(configuration(), INDEX) as (ours, plain):
        expected = refusals(plain)
        assert len(expected) == 6
        assert refusals(ours) == sorted(expected * 4)


API = """
    sluice_var_index $host $arg_a
        $made;
    sluice_var_index default;
    init_by_lua_block {
        local var = require("sluice.var")
        package.loaded.handles = { host = var.handle("host"), made = var.handle("MADE"),
            name = var.handle("server_name") }
        package.loaded.bulk = var.bulk({ "host", "arg_a", "server_name", "http_none", "made" })
    }
    server {
        listen 127.0.0.1:@port@;
        server_name api.example;
        set $made "as made";
        location / { content_by_lua_block {
            local var, handles, bulk = require("sluice.var"), require("handles"), require("bulk")
            %s
        } }
    }
"""


def api(code: str) -> str:
    """What a snippet says, on a server with some variables indexed."""
    with Nginx(API % code, workers=1) as server:
        return server.text("/?a=1").strip()


def test_handles_of_indexed_and_other_variables() -> None:
    said = api("""
        handles.made:set("new")
        ngx.say(handles.host:get(), " ", handles.made:get(), " ", handles.name:get(), " ",
            ngx.var.made)
        local indexed = var.indexed()
        ngx.say(indexed.made ~= nil, " ", indexed.server_addr ~= nil, " ", indexed.tcpinfo_rtt)
    """)
    assert said.splitlines() == ["localhost new api.example new", "true true nil"]


def test_bulk_reads_fill_a_table() -> None:
    said = api("""
        local into = { http_none = "left from before", other = "stays" }
        local values = bulk:get(into)
        ngx.say(tostring(values == into), " ", values.host, " ", values.arg_a, " ",
            values.server_name, " ", tostring(values.http_none), " ", values.made, " ",
            values.other)
        var.set("made", "changed")
        ngx.req.set_uri_args("a=22")
        for i = 1, 200 do values = bulk:get() end
        ngx.say(values.made, " ", values.arg_a, " ", values.host, " ", tostring(values.other))
    """)
    assert said.splitlines() == [
        "true localhost 1 api.example nil as made stays",
        "changed 22 localhost nil",
    ]


def test_bulk_of_nothing_and_of_many() -> None:
    said = api("""
        local names = {}
        for i = 1, 100 do names[i] = i % 2 == 0 and "host" or "arg_a" end
        local many = var.bulk(names):get()
        ngx.say(next(var.bulk({}):get()) == nil, " ", many.host, " ", many.arg_a)
    """)
    assert said == "true localhost 1"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("var.handle()", "bad argument #1 to 'handle' (string expected, got nil)"),
        ("var.handle(1)", "bad argument #1 to 'handle' (string expected, got number)"),
        ("var.bulk('host')", "bad argument #1 to 'bulk' (table expected, got string)"),
        (
            "var.bulk({1})",
            "bad argument #1 to 'bulk' (names that are strings expected, got number)",
        ),
    ],
)
def test_misuse_throws_at_the_callers_line(call: str, message: str) -> None:
    said = api(f"local ok, err = pcall(function() {call} end) ngx.say(err)")
    assert said.startswith("content_by_lua(nginx.conf:")
    assert said.endswith(message)


@pytest.mark.parametrize("call", ["var.set('host', 1)", "handles.host:set(1)", "ngx.var.host = 1"])
def test_an_error_has_the_callers_line(call: str) -> None:
    said = api(f"""var.install()
        local ok, err = pcall(function()
            local before = 1
            {call}
        end)
        ngx.say(err, " ", debug.getinfo(1, "l").currentline)
    """)
    where, _, rest = said.partition(": ")
    message, _, line = rest.rpartition(" ")
    assert message == 'variable "host" not changeable'
    assert where.startswith("content_by_lua(nginx.conf:")
    assert int(where.rpartition(":")[2]) == int(line) - 2


def test_install_is_taken_back() -> None:
    said = api("""
        local mt = getmetatable(ngx.var)
        local before = mt.__index
        var.install() var.install()
        local during, value = mt.__index, ngx.var.host
        var.uninstall()
        ngx.say(before ~= during, " ", mt.__index == before, " ", value, " ", ngx.var.host)
    """)
    assert said == "true true localhost localhost"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("sluice_var_index host;", 'invalid variable name "host" in "sluice_var_index"'),
        ("sluice_var_index $;", 'invalid variable name "$" in "sluice_var_index"'),
        ("sluice_var_index $ho-st;", 'invalid variable name "$ho-st" in "sluice_var_index"'),
        ("lua_kong_load_var_index x;", 'invalid variable name "x" in "lua_kong_load_var_index"'),
        ("sluice_var_index;", 'invalid number of arguments in "sluice_var_index" directive'),
        ("sluice_var_index $there_is_none;", 'unknown variable "$there_is_none" to be indexed'),
        ("sluice_var_index default $bad_one;", 'unknown variable "$bad_one" to be indexed'),
    ],
)
def test_a_bad_name_is_an_error_with_file_and_line(line: str, message: str) -> None:
    server = Nginx(f"\n{line}\n")
    lines = (server.prefix / "nginx.conf").read_text().split("\n")
    said = server.refuses()
    assert message in said
    assert f"nginx.conf:{lines.index(line) + 1}" in said


def test_a_name_may_be_defined_later_and_come_twice() -> None:
    http = """
        lua_kong_load_var_index default;
        lua_kong_load_var_index $made;
        sluice_var_index $MADE $mapped $http2 $made;
        map $uri $mapped { default "at $uri"; }
        server {
            listen 127.0.0.1:@port@;
            set $made "m";
            location / { content_by_lua_block {
                local var = require("sluice.var")
                ngx.say(var.get("made"), " ", var.get("mapped"), " ", tostring(var.get("http2")))
            } }
        }
    """
    with Nginx(http, workers=1) as server:
        assert server.text("/x") == "m at /x \n"


def test_a_map_may_have_the_name_of_a_prefix() -> None:
    http = """
        sluice_var_index $mapped $arg_ $arg_a;
        map $uri $arg_ { default "at $uri"; }
        map $uri $mapped { default "mapped $uri"; }
        server {
            listen 127.0.0.1:@port@;
            location / { content_by_lua_block {
                local var = require("sluice.var")
                ngx.say(var.get("mapped"), ", ", var.get("arg_"), ", ", var.get("arg_a"))
            } }
        }
    """
    with Nginx(http, workers=1) as server:
        assert server.text("/x?a=1") == "mapped /x, at /x, 1\n"


def test_without_the_module_the_library_says_what_is_missing() -> None:
    http = """
        init_by_lua_block {
            local ok, err = pcall(require, "sluice.var")
            package.loaded.said = err
        }
        server {
            listen 127.0.0.1:@port@;
            location / { content_by_lua_block { ngx.say(package.loaded.said) } }
        }
    """
    with Nginx(http, workers=1, module=None) as server:
        assert "the Sluice module is not loaded: put 'load_module" in server.text("/")


def test_a_module_of_another_version_is_refused() -> None:
    http = """
        sluice_var_index $host;
        init_by_lua_block {
            package.path = "@run@/other/?.lua;" .. package.path
            local _, err = pcall(require, "sluice.var")
            package.loaded.said = err
        }
        server {
            listen 127.0.0.1:@port@;
            location / { content_by_lua_block { ngx.say(package.loaded.said) } }
        }
    """
    server = Nginx(http, workers=1)
    text = (LIB / "sluice" / "ffi" / "hashes.lua").read_text()
    other = re.sub(r'(\["lib/var"\]) = \d+', r"\1 = 1000", text)
    assert other != text
    path = server.prefix / "other" / "sluice" / "ffi" / "hashes.lua"
    path.parent.mkdir(parents=True)
    path.write_text(other)
    with server:
        assert "of another version than its Lua files (lib/var)" in server.text("/")


def documented_defaults() -> set[str]:
    """The names in the table of docs/var.md; "`http_` with ..." is a prefix of those behind it."""
    text = (ROOT / "docs" / "var.md").read_text()
    table = text.partition("| of | variables |")[2].partition("## Functions")[0]
    names: set[str] = set()
    for line in table.splitlines():
        prefix, _, rest = line.rpartition(" with ")
        first = prefix.split("`")[1] if prefix else ""
        names.update(first + name for name in re.findall(r"`(\w+)`", rest))
    return names


def test_default_is_what_the_docs_say() -> None:
    http = """
        sluice_var_index default;
        server {
            listen 127.0.0.1:@port@;
            location / { content_by_lua_block {
                for name in pairs(require("sluice.var").indexed()) do ngx.say(name) end
            } }
        }
    """
    with Nginx(http, workers=1) as server:
        assert set(server.text("/").split()) == documented_defaults()


def test_a_failed_reload_and_a_good_one() -> None:
    http = """
        sluice_var_index $host $made;
        init_by_lua_block { require("sluice.var").install() }
        server {
            listen 127.0.0.1:@port@;
            set $made "m";
            location / { content_by_lua_block { ngx.say(ngx.var.host, " ", ngx.var.made) } }
        }
    """
    with Nginx(http, workers=2) as server:
        server.expect_log(r"unknown variable \"\$bad\" to be indexed")
        good = (server.prefix / "nginx.conf").read_text()
        server.write(good.replace("$host", "$bad"))
        assert server.nginx("-s", "reload").returncode == 1
        assert server.text("/") == "localhost m\n"
        server.write(good.replace("$host $made", "$made $arg_x $uri $host"))
        server.restart_workers()
        assert server.text("/") == "localhost m\n"
