"""`kong.service.request`: what the upstream is asked, on HTTP/1.1 and HTTP/2, over retries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from kit_cases import PLUGINS, cases

from sluice import Gateway
from upstream import Upstream
from wire import DEADLINE, Reply

SET = "local set = kong.service.request\n"

CASES = {
    "path": SET + 'set.set_path("/other/a b\\r\\nX-Evil: 1\\0")',
    "path-and-query": SET + 'set.set_path("/p") set.set_raw_query("x=1&y=%20")',
    "variable": 'ngx.var.upstream_uri = "/var iable?q=1\\r\\nX-Evil: 1"',
    "variable-read": """
        local before = ngx.var.upstream_uri
        kong.service.request.set_path("/now")
        kong.service.request.set_header("X-Seen", before .. " " .. ngx.var.upstream_uri)
    """,
    "raw-query": SET + 'set.set_raw_query("a=b c")',
    "args-variable": 'ngx.var.args = "a=1\\r\\nX-Evil: 1"',
    "query": SET + "set.set_query({ b = { 2, 3 }, a = true, c = 'x y&z' })",
    "uri-args": "ngx.req.set_uri_args({ a = 1 })",
    "clear-arg": SET + 'set.clear_query_arg("a b")',
    "method": SET + 'set.set_method("PATCH")',
    "method-nginx": "ngx.req.set_method(ngx.HTTP_PUT)",
    "to-get": SET + 'set.set_method("GET")',
    "to-head": SET + 'set.set_method("HEAD")',
    "head-exit": SET + 'set.set_method("HEAD") kong.response.exit(418, "teapot")',
    "get-exit": SET + 'set.set_method("GET") kong.response.exit(418, "teapot")',
    "header": SET
    + """
        set.set_header("X-One", "1")
        set.set_header("X-One", "2")
        set.set_header("X-Many", { "a", "b" })
        set.set_header("X-Number", 7)
        set.set_header("X-Boolean", true)
        set.set_header("X-Empty", "")
        set.set_header("X-Inject", "a\\r\\nX-Evil: 1")
        set.set_header("X-\\r\\nX-Evil", "1")
    """,
    "headers": SET + 'set.set_headers({ ["X-A"] = "1", ["X-B"] = { "2", "3" } })',
    "add": SET + 'set.add_header("X-Client", "more") set.add_header("X-New", { "1", "2" })',
    "clear": SET + 'set.clear_header("X-Client")',
    "nginx-header": 'ngx.req.set_header("X-Own", "1") ngx.req.clear_header("X-Client")',
    "host": SET + 'set.set_header("Host", "other.example")',
    "host-inject": SET + 'set.set_header("Host", "a\\r\\nX-Evil: 1")',
    "authority": """
        local _, err = kong.service.request.set_header(":authority", "x")
        kong.service.request.set_header("X-Error", err)
    """,
    "framing": SET
    + """
        set.set_header("Content-Length", "3")
        set.set_header("Transfer-Encoding", "chunked")
        set.add_header("content_length", "3")
    """,
    "framing-cleared": SET + 'set.clear_header("Content-Length")',
    "framing-nginx": 'ngx.req.read_body() ngx.req.set_header("Content-Length", "3")',
    "framing-unread": 'ngx.req.set_header("Content-Length", "3")',
    "framing-unread-cleared": 'ngx.req.clear_header("Content-Length")',
    "hop": SET
    + """
        set.set_header("Connection", "X-Client")
        set.set_header("Upgrade", "h2c")
        set.set_header("TE", "trailers")
        set.set_header("Keep-Alive", "1")
        set.set_header("X-Forwarded-For", "6.6.6.6")
        set.set_header("X-Real-IP", "6.6.6.6")
    """,
    "raw-body": SET + 'set.set_raw_body("another body")',
    "body-nginx": 'ngx.req.read_body() ngx.req.set_body_data("from nginx")',
    "empty-body": SET + 'set.set_raw_body("")',
    "large-body": SET + 'set.set_raw_body(("x"):rep(300000))',
    "form": SET + 'set.set_body({ b = 1, a = "x y" }, "application/x-www-form-urlencoded")',
    "json": SET + 'set.set_body({ a = "b" }, "application/json; charset=utf-8")',
    "multipart": SET + 'set.set_body({ b = 1, ["a\\r\\n"] = "v" }, "multipart/form-data")',
    "body-of-type": SET
    + """
        local ok, err = set.set_body({ a = "b" })
        if not ok then set.set_header("X-Error", err) end
    """,
    "upvalue": "local f = kong.service.request.set_header f('X-Upvalue', '1')",
    "yielding": SET + 'set.set_path("/late") ngx.sleep(0) set.set_header("X-Late", "1")',
}

WRONG = {
    "set_scheme(1)": "scheme must be a string",
    "set_scheme('ftp')": "invalid scheme: ftp",
    "set_path()": "path must be a string",
    "set_path('x')": "path must start with /",
    "set_raw_query()": "query must be a string",
    "set_query('x')": "args must be a table",
    "set_query({ 1 })": "arg keys must be strings",
    "clear_query_arg()": "query argument name must be a string",
    "set_method(1)": "method must be a string",
    "set_method('get')": "invalid method: get",
    "set_header(1, 'x')": "invalid header name",
    "set_header('X')": "got nil, expected array of string, string, number or boolean",
    "set_header('X', { 1 })": "invalid header value in array",
    "add_header('X', print)": "got function",
    "clear_header()": "header must be a string",
    "set_headers()": "headers must be a table",
    "set_headers({ X = print })": "got function",
    "set_raw_body()": "body must be a string",
    "set_body('x')": "args must be a table",
    "set_body({}, 1)": "mime must be a string",
    "set_body({}, 'text/plain')": "unsupported content type text/plain",
    "set_body({ a = print }, 'application/json')": "",
    "set_body({ a = {} }, 'multipart/form-data')": "expected string, number or boolean",
}


@pytest.fixture(scope="module")
def asked() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def changing(asked: Upstream) -> Iterator[Gateway]:
    """Each case is a route of its own."""
    checks = "\n".join(
        f"try(function() kong.service.request.{call} end, {json.dumps(words)})"
        for call, words in WRONG.items()
    )
    wrong = f"""
        local bad = {{}}
        local function try(fn, words)
            local ok, err = pcall(fn)
            if ok or not tostring(err):find(words, 1, true) then bad[#bad + 1] = tostring(err) end
        end
        {checks}
        kong.response.exit(200, {{ bad = #bad > 0 and bad or nil }})
    """
    codes = {name: {"access": code} for name, code in (CASES | {"wrong": wrong}).items()}
    codes["late"] = {"header_filter": 'kong.service.request.set_header("X", "1")'}
    config = cases(asked, codes)
    with Gateway(config, kong_plugins=PLUGINS, tls="ssl http2") as running:
        yield running


def ask(running: Gateway, upstream: Upstream, case: str, **how: object) -> Reply:
    """Asks, and says what the client got; the upstream remembers the rest."""
    upstream.handler = upstream.echo
    reply = running.ask(f"/{case}", **how)
    assert reply.status == 200, reply.body
    assert "x-evil" not in upstream.last.headers
    return reply


def test_what_the_upstream_is_asked(changing: Gateway, asked: Upstream) -> None:
    targets = {
        "path": "/other/a%20b%0D%0AX-Evil:%201%00?q=1",
        "path-and-query": "/p?x=1&y=%20",
        "variable": "/var%20iable?q=1%0D%0AX-Evil:%201?q=1",
        "raw-query": "/raw-query?a=b%20c",
        "args-variable": "/args-variable?a=1%0D%0AX-Evil:%201",
        "query": "/query?a&b=2&b=3&c=x%20y%26z",
        "uri-args": "/uri-args?a=1",
        "yielding": "/late?q=1",
    }
    for case, target in targets.items():
        ask(changing, asked, f"{case}?q=1")
        assert asked.last.target == target
    ask(changing, asked, "path?")
    assert asked.last.target.endswith("%00?")
    ask(changing, asked, "variable-read?q=1")
    assert asked.last.headers.get("x-seen") == "/variable-read /now"


def test_an_argument_is_taken_out(changing: Gateway, asked: Upstream) -> None:
    for query, left in {
        "a%20b=1&c=%2f&a+b=2&a": "c=%2f&a",
        "a+b": "",
        "c=1&&d": "c=1&&d",
    }.items():
        ask(changing, asked, f"clear-arg?{query}")
        assert asked.last.target == ("/clear-arg?" + left if left else "/clear-arg")


def test_methods(changing: Gateway, asked: Upstream) -> None:
    ask(changing, asked, "method", method="POST", body=b"x")
    assert (asked.last.method, asked.last.body) == ("PATCH", b"x")
    ask(changing, asked, "method-nginx")
    assert asked.last.method == "PUT"


def test_the_client_gets_a_body_by_its_own_method(changing: Gateway, asked: Upstream) -> None:
    """A body behind the answer to a HEAD would be read as the next answer of the connection."""
    asked.answer(200, {"X-A": "1"}, b"twelve bytes")
    with changing.wire() as wire:
        reply = wire.ask("/to-get", "HEAD")
        assert (asked.last.method, reply.status, reply.body) == ("GET", 200, b"")
        assert reply.headers.get("content-length") == "12"
        reply = wire.ask("/to-head", "GET")
        assert (asked.last.method, reply.status, reply.body) == ("HEAD", 200, b"")
        assert reply.headers.get("content-length") == "0"
        reply = wire.ask("/head-exit", "GET")
        assert (reply.status, reply.body) == (418, b"teapot")
        reply = wire.ask("/get-exit", "HEAD")
        assert (reply.status, reply.body) == (418, b"")
        assert wire.ask("/clear").status == 200


def test_headers(changing: Gateway, asked: Upstream) -> None:
    ask(changing, asked, "header")
    headers = asked.last.headers
    assert headers.all("x-one") == ["2"]
    assert headers.all("x-many") == ["a", "b"]
    assert headers.get("x-number") == "7"
    assert headers.get("x-boolean") == "true"
    assert headers.get("x-empty", "") == ""
    assert headers.get("x-inject") == "a%0D%0AX-Evil: 1"
    ask(changing, asked, "headers")
    headers = asked.last.headers
    assert (headers.all("x-a"), headers.all("x-b")) == (["1"], ["2", "3"])
    client = [("X-Client", "1"), ("X-Client", "2")]
    ask(changing, asked, "add", headers=client)
    assert asked.last.headers.all("x-client") == ["1", "2", "more"]
    assert asked.last.headers.all("x-new") == ["1", "2"]
    for case in ("clear", "nginx-header"):
        ask(changing, asked, case, headers=client)
        assert asked.last.headers.all("x-client") == []
    assert asked.last.headers.get("x-own") == "1"
    ask(changing, asked, "upvalue")
    assert asked.last.headers.get("x-upvalue") == "1"


def test_the_host(changing: Gateway, asked: Upstream) -> None:
    ask(changing, asked, "host")
    assert asked.last.headers.all("host") == ["other.example"]
    ask(changing, asked, "host-inject")
    assert asked.last.headers.all("host") == ["a%0D%0AX-Evil: 1"]
    ask(changing, asked, "authority")
    assert asked.last.headers.get("x-error", "").startswith("cannot set :authority")


@pytest.mark.parametrize(
    "case",
    [
        "framing",
        "framing-cleared",
        "framing-nginx",
        "framing-unread",
        "framing-unread-cleared",
    ],
)
def test_no_plugin_says_how_long_a_body_is(changing: Gateway, asked: Upstream, case: str) -> None:
    """Else the rest of the body would be a request of its own, ours or the upstream's."""
    with changing.wire() as wire:
        for body in (b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", b"", b"xyz"):
            before = len(asked.requests)
            reply = wire.ask(f"/{case}", "POST", body=body)
            assert reply.status == 200
            assert len(asked.requests) == before + 1
            last = asked.last
            assert (last.body, last.headers.all("content-length")) == (body, [str(len(body))])
            assert last.headers.all("transfer-encoding") == []
        assert wire.ask(f"/{case}").status == 200
        assert asked.last.body == b""


def test_lines_of_this_hop_are_the_gateways(changing: Gateway, asked: Upstream) -> None:
    ask(changing, asked, "hop", headers={"X-Client": "stays"})
    headers = asked.last.headers
    for name in ("connection", "upgrade", "te", "keep-alive"):
        assert headers.all(name) == []
    assert headers.get("x-client") == "stays"
    assert headers.get("x-forwarded-for") == headers.get("x-real-ip") == "127.0.0.1"


def test_bodies(changing: Gateway, asked: Upstream) -> None:
    for body in (None, b"short", b"x" * 200_000):
        for case, sent in {
            "raw-body": b"another body",
            "body-nginx": b"from nginx",
            "empty-body": b"",
            "large-body": b"x" * 300_000,
        }.items():
            ask(changing, asked, case, method="POST", body=body)
            assert asked.last.body == sent
            assert int(asked.last.headers.get("content-length") or 0) == len(sent)
    chunks = (
        "/raw-body HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    )
    with changing.wire() as wire:
        wire.send(b"POST " + chunks.encode())
        assert wire.read_reply().status == 200
    assert asked.last.body == b"another body"


def test_bodies_by_their_types(changing: Gateway, asked: Upstream) -> None:
    ask(changing, asked, "form", method="POST", body=b"x")
    assert asked.last.body == b"a=x%20y&b=1"
    assert asked.last.headers.get("content-type") == "application/x-www-form-urlencoded"
    ask(changing, asked, "json", method="POST", body=b"x")
    assert json.loads(asked.last.body) == {"a": "b"}
    assert asked.last.headers.get("content-type") == "application/json; charset=utf-8"
    ask(changing, asked, "multipart", method="POST", body=b"x")
    content_type = asked.last.headers.get("content-type") or ""
    boundary = re.fullmatch(r"multipart/form-data; boundary=(\d+)", content_type)
    assert boundary
    assert asked.last.body.split(b"--" + boundary[1].encode())[1:] == [
        b'\r\nContent-Disposition: form-data; name="a%0D%0A"\r\n\r\nv\r\n',
        b'\r\nContent-Disposition: form-data; name="b"\r\n\r\n1\r\n',
        b"--\r\n",
    ]
    ask(changing, asked, "body-of-type", method="POST", body=b"x")
    assert "neither explicitly given" in (asked.last.headers.get("x-error") or "")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    ask(changing, asked, "body-of-type", method="POST", body=b"x", headers=form)
    assert asked.last.body == b"a=b"


def test_misuse_is_told_in_kongs_words(changing: Gateway) -> None:
    assert changing.ask("/wrong").json() == {}


def test_other_phases_are_refused(changing: Gateway) -> None:
    words = (
        r"function cannot be called in header_filter phase \(only in: rewrite, access, balancer\)"
    )
    changing.expect_log(words, 1)
    assert changing.ask("/late").status == 200


def test_over_http2(changing: Gateway, asked: Upstream) -> None:
    asked.handler = asked.echo
    base = f"https://127.0.0.1:{changing.tls_port}"
    with httpx.Client(
        base_url=base, http2=True, verify=False, trust_env=False, timeout=DEADLINE
    ) as client:
        for case, sent in {"raw-body": b"another body", "framing": b"y" * 70_000}.items():
            answer = client.post(f"/{case}", content=b"y" * 70_000)
            assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
            assert asked.last.body == sent
        assert client.get("/path?q=1").status_code == 200
        assert asked.last.target == "/other/a%20b%0D%0AX-Evil:%201%00?q=1"
        asked.answer(200, {"X-A": "1"}, b"twelve bytes")
        assert client.head("/to-get").headers["content-length"] == "12"
        assert client.get("/to-head").content == b""
        assert client.get("/head-exit").content == b"teapot"


def test_what_was_changed_is_sent_with_each_try(changing: Gateway, asked: Upstream) -> None:
    """A connection that the upstream has closed: nginx tries again, with the same."""
    asked.handler = asked.echo
    ask(changing, asked, "json", method="GET")
    asked.drop_connections()
    ask(changing, asked, "json", method="GET")
    assert json.loads(asked.last.body) == {"a": "b"}
