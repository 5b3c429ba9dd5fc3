"""`kong.request`: what plugins are told of a request, hostile ones included."""

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from http2 import speaking
from kit_asking import ASKING, Json, ask, headers, read

from sluice import Gateway, proxying
from upstream import Upstream
from wire import Wire

REFUSED = "request body did not fit into client body buffer, consider raising"


@pytest.fixture(scope="module")
def shared() -> Iterator[Gateway]:
    """One for most tests: routes with and without patterns."""
    with Upstream() as upstream:
        config = proxying(upstream)
        config["services"][0]["routes"] += [
            {"name": "v", "paths": [r"~/v(?<version>\d+)/(\w+)(/x)?"]},
            {"name": "plain", "paths": ["/plain"]},
        ]
        config["plugins"] = [{"name": "asking"}]
        with Gateway(
            config,
            kong_plugins=ASKING,
            client_body_buffer_size="8k",
            client_max_body_size="8m",
            tls="ssl http2",
        ) as running:
            yield running


def value(shared: Gateway, call: str, target: str = "/", **more: Any) -> Json:
    """What a call returns first."""
    return ask(shared, f"return {call}", target, **more).value


def test_what_a_plain_request_is(shared: Gateway) -> None:
    code = """
        local r = kong.request
        return r.get_scheme(), r.get_host(), r.get_port(), r.get_http_version(), r.get_method(),
            r.get_path(), r.get_raw_path(), r.get_path_with_query(), r.get_raw_query()
    """
    target = "/t/Abc%20123%C3%B8%2f/parent/..//test/./?movie=foo&x=%20"
    answer = ask(shared, code, target, headers={"Host": "My.Example.com:1234"})
    assert answer.ok, answer.values
    assert answer.values == [
        "http",
        "my.example.com",
        shared.proxy_port,
        1.1,
        "GET",
        "/t/Abc 123<c3><b8>%2F/test/",
        "/t/Abc%20123%C3%B8%2f/parent/..//test/./",
        target,
        "movie=foo&x=%20",
    ]


def test_functions_are_good_as_upvalues_and_need_no_query(shared: Gateway) -> None:
    code = """
        local get_raw_query, get_query = kong.request.get_raw_query, kong.request.get_query
        return get_raw_query(), get_query(), kong.request.get_query_arg("a")
    """
    assert ask(shared, code).values == ["", {}, None]


def test_http_1_0_without_a_host(shared: Gateway) -> None:
    lines = [f"{n}: {v}" for n, v in headers("return kong.request.get_host()").items()]
    with shared.wire() as wire:
        wire.send("\r\n".join(["GET / HTTP/1.0", *lines, "", ""]).encode())
        reply = wire.read_reply()
    assert read(reply.body).value == "sluice"


def test_http_2(shared: Gateway) -> None:
    code = """
        local r = kong.request
        return r.get_http_version(), r.get_scheme(), r.get_host(), r.get_header("Host"),
            r.get_method(), r.get_path(), r.get_port(), r.get_header("x-a"),
            #r.get_headers()["x-a"]
    """
    sent = [(n.lower(), v) for n, v in headers(code).items()]
    with speaking(shared) as h:
        stream = h.ask("/p?q", host="Some.Example", headers=[*sent, ("x-a", "1"), ("x-a", "2")])
        _, body = h.answers([stream])[stream]
    assert read(body).values == [
        2, "https", "some.example", "some.example", "GET", "/p", shared.tls_port, "1", 2,
    ]  # fmt: skip


# Headers


def test_a_header_by_any_spelling(shared: Gateway) -> None:
    code = """
        local get = kong.request.get_header
        return get("X-Custom"), get("x-custom"), get("X_CUSTOM"), get("x-none"), get("X-Empty"),
            get("X-Two"), get(""), get("x-custo"), get("Host")
    """
    sent = [("X-Custom", "bla, b"), ("X-Empty", ""), ("X-Two", "first"), ("x-two", "second")]
    assert ask(shared, code, headers=sent).values == [
        "bla, b", "bla, b", "bla, b", None, "", "first", None, None, "localhost",
    ]  # fmt: skip


def test_a_header_in_its_own_spelling_goes_first(shared: Gateway) -> None:
    code = 'return kong.request.get_header("x-key"), kong.request.get_header("x_key")'
    sent = [("X_Key", "underscore"), ("X-Key", "dash")]
    assert ask(shared, code, headers=sent).values == ["dash", "underscore"]


def test_a_header_that_a_plugin_has_set(shared: Gateway) -> None:
    code = """
        ngx.req.set_header("X-Set", "by a plugin")
        ngx.req.clear_header("X-Sent")
        return kong.request.get_header("x-set"), kong.request.get_header("x-sent")
    """
    assert ask(shared, code, headers={"X-Sent": "1"}).values == ["by a plugin", None]


def test_many_headers(shared: Gateway) -> None:
    """A table of them has its bound; one is found wherever it stands."""
    code = """
        local function count(limit)
            local found, err = kong.request.get_headers(limit)
            local n = 0
            for _ in pairs(found) do n = n + 1 end
            return n, err
        end
        local a, b = count()
        local c, d = count(1000)
        return a, b, c >= 300, d, count(2), kong.request.get_header("x-h-299")
    """
    sent = [(f"X-H-{i}", str(i)) for i in range(300)]
    assert ask(shared, code, headers=sent).values == [100, "truncated", True, None, 2, "299"]


@pytest.mark.parametrize("name", ["headers", "query"])
def test_limits_are_checked(shared: Gateway, name: str) -> None:
    word = {"headers": "max_headers", "query": "max_args"}[name]
    for limit, message in {
        "0": f"{word} must be >= 1",
        "1001": f"{word} must be <= 1000",
        '"1"': f"{word} must be a number",
    }.items():
        answer = ask(shared, f"local found = kong.request.get_{name}({limit})")
        assert not answer.ok
        assert answer.values[0].endswith(message), answer.values
        assert answer.values[0].startswith('[string "asked"]:1: '), "the caller is told"


def test_names_have_to_be_texts(shared: Gateway) -> None:
    for call, message in {
        "get_header(1)": "header name must be a string",
        "get_header()": "header name must be a string",
        "get_query_arg({})": "query argument name must be a string",
    }.items():
        answer = ask(shared, f"return kong.request.{call}")
        assert (answer.ok, message in answer.values[0]) == (False, True), answer


# The query


def test_arguments(shared: Gateway) -> None:
    code = """
        local get = kong.request.get_query_arg
        return get("foo"), get("bar"), get("zzz"), get("blo"), get("none"), get("a b"),
            get("\\xc3\\xa9"), kong.request.get_query()
    """
    target = "/?foo=hello%20world&bar=baz&zzz&blo=&bar=bla&bar&a+b=c+d&%C3%A9=%C3%A9"
    *single, whole = ask(shared, code, target).values
    assert single == ["hello world", "baz", True, "", None, "c d", "<c3><a9>"]
    assert whole["foo"] == "hello world"
    assert whole["bar"] == ["baz", "bla", True]


def test_a_huge_query(shared: Gateway) -> None:
    """A table has its bound; one argument is found wherever it stands."""
    target = "/?" + "&".join(f"a{i}={i}" for i in range(700)) + "&last=1"
    code = """
        local some, truncated = kong.request.get_query()
        local all = kong.request.get_query(1000)
        return some.a99, some.a100, truncated, all.last, kong.request.get_query_arg("last"),
            kong.request.get_query(1)
    """
    answer = ask(shared, code, target)
    assert answer.values == ["99", None, "truncated", "1", "1", {"a0": "0"}, "truncated"]


@pytest.mark.parametrize("query", ["%zz=%", "%00=%00", "=", "&&&", "%ff%fe=%c3%28", "a=%e2%82"])
def test_strange_queries(shared: Gateway, query: str) -> None:
    """Whatever nginx's own function makes of them, one argument is what the table has."""
    code = """
        local wrong = {}
        for name, value in pairs(ngx.req.get_uri_args()) do
            local one = kong.request.get_query_arg(name)
            local first = type(value) == "table" and value[1] or value
            if one ~= first then
                wrong[#wrong + 1] = name .. "=" .. tostring(one)
            end
        end
        return wrong
    """
    assert ask(shared, code, "/?" + query).values == [{}]


def test_arguments_that_a_plugin_has_set(shared: Gateway) -> None:
    code = """
        ngx.req.set_uri_args({ mine = "1" })
        return kong.request.get_query_arg("mine"), kong.request.get_query_arg("theirs"),
            kong.request.get_path_with_query()
    """
    assert ask(shared, code, "/?theirs=1").values == ["1", None, "/?theirs=1"]


# Bodies


def test_a_body_in_memory(shared: Gateway) -> None:
    assert value(shared, "kong.request.get_raw_body()", body=b"hello", method="POST") == "hello"
    assert value(shared, "kong.request.get_raw_body()") == ""


def test_a_body_in_a_file(shared: Gateway) -> None:
    """It is read from the file up to the bound, for which Kong's default is none."""
    body = bytes(range(1, 128)) * 2000
    code = """
        local body, err = kong.request.get_raw_body(LIMIT)
        return body and ngx.md5(body) == ngx.var.http_sum, err
    """
    sent = {"Sum": hashlib.md5(body).hexdigest()}
    for limit in ("", "0", str(len(body)), "10000000"):
        told = ask(shared, code.replace("LIMIT", limit), body=body, method="POST", headers=sent)
        assert told.values == [True, None], limit
    told = ask(shared, code.replace("LIMIT", "-1"), body=body, method="POST", headers=sent)
    assert told.values[0] is None
    assert told.values[1].startswith(REFUSED)
    told = ask(shared, code.replace("LIMIT", "1000"), body=body, method="POST", headers=sent)
    assert told.values == [None, f"request body file too big: {len(body)} > 1000"]


def test_a_large_body_has_a_bound_by_default(shared: Gateway) -> None:
    body = b"x" * (1 << 20) + b"y"
    code = "local body, err = kong.request.get_raw_body() return body and #body, err"
    told = ask(shared, code, body=body, method="POST").values
    assert told == [None, f"request body file too big: {len(body)} > {1 << 20}"]
    told = ask(shared, code.replace("()", "(0)", 1), body=body, method="POST").values
    assert told == [len(body), None]


def test_bodies_by_their_types(shared: Gateway) -> None:
    code = "return kong.request.get_body()"
    form = "application/x-www-form-urlencoded"

    def body(kind: str | None, text: bytes) -> list[Any]:
        sent = {"Content-Type": kind} if kind else {}
        return ask(shared, code, body=text, method="POST", headers=sent).values

    assert body(form + "; charset=utf-8", b"a=1&b=%20&b&c=") == [
        {"a": "1", "b": [" ", True], "c": ""}, None, form,
    ]  # fmt: skip
    assert body("application/json", b'{"a":[1,2],"b":{"c":true}}') == [
        {"a": [1, 2], "b": {"c": True}}, None, "application/json",
    ]  # fmt: skip
    assert body("application/json", b"[1]") == [[1], None, "application/json"]
    for text in (b"1", b'"x"', b"{", b"", b"\xff"):
        assert body("application/json", text) == [None, "invalid json body", "application/json"]
    assert body("text/xml; x=y", b"<a/>") == [
        None, "unsupported content type 'text/xml; x=y'", "text/xml",
    ]  # fmt: skip
    assert body(None, b"x") == [None, "missing content type"]
    parts = b'--b\r\nContent-Disposition: form-data; name="n"\r\n\r\nv\r\n--b--\r\n'
    assert body("multipart/form-data; boundary=b", parts) == [
        {"n": "v"}, None, "multipart/form-data",
    ]  # fmt: skip


def test_the_arguments_of_get_body(shared: Gateway) -> None:
    form = b"&".join(b"a%d=1" % i for i in range(200))
    count = """
        local n = 0
        for _ in pairs(kong.request.get_body("application/x-www-form-urlencoded"LIMIT)) do
            n = n + 1
        end
        return n
    """
    for limit, found in {"": 100, ", 3": 3, ", 1000": 200}.items():
        told = ask(shared, count.replace("LIMIT", limit), body=form, method="POST")
        assert told.value == found
    told = ask(shared, count.replace("LIMIT", ", 1001"), body=form, method="POST")
    assert told.values[0].endswith("max_args must be <= 1000")
    # One that the request does not say, and a bound for the file.
    code = 'return kong.request.get_body("application/json", nil, 100)'
    body = b'{"a":"' + b"x" * 20_000 + b'"}'
    told = ask(shared, code, body=body, method="POST")
    assert told.values[:2] == [None, f"request body file too big: {len(body)} > 100"]


# Routes


def test_captures(shared: Gateway) -> None:
    found = value(shared, "kong.request.get_uri_captures()", "/v12/some")
    assert found["named"] == {"version": "12"}
    assert found["unnamed"] == {"0": "/v12/some", "1": "12", "2": "some"}
    for target in ("/plain/x", "/"):
        found = value(shared, "kong.request.get_uri_captures()", target)
        assert (found["named"], found["unnamed"]) == ({}, {})


def test_captures_of_a_table_that_a_plugin_has(shared: Gateway) -> None:
    code = "kong.request.get_uri_captures({ router_matches = { uri_captures = { 'a', n = 'b' } } })"
    assert value(shared, code) == {"named": {"n": "b"}, "unnamed": ["a"]}


def test_the_start(shared: Gateway) -> None:
    assert value(
        shared,
        "kong.request.get_start_time() == ngx.req.start_time() * 1000 "
        "and ngx.now() * 1000 - kong.request.get_start_time() < 60000",
    )


# Trust


TOLD = {
    "X-Forwarded-Proto": "HTTPS",
    "X-Forwarded-Host": "user@Public.Example:99",
    "X-Forwarded-Path": "/outer",
    "X-Forwarded-Prefix": "/pre",
}
FORWARDED = """
    local r = kong.request
    return r.get_forwarded_scheme(), r.get_forwarded_host(), r.get_forwarded_port(),
        r.get_forwarded_path(), r.get_forwarded_prefix()
"""


def test_a_client_that_is_not_trusted(shared: Gateway) -> None:
    sent = TOLD | {"Host": "here"}
    assert ask(shared, FORWARDED, "/a//b", headers=sent).values == [
        "http", "here", shared.proxy_port, "/a/b", None,
    ]  # fmt: skip


def test_a_trusted_proxy() -> None:
    with Upstream() as upstream:
        config = proxying(upstream) | {"plugins": [{"name": "asking"}]}
        with Gateway(config, kong_plugins=ASKING, trusted_ips="127.0.0.0/8,::1") as running:
            told = ask(running, FORWARDED, headers=TOLD)
            assert told.values == ["https", "public.example", 99, "/outer", "/pre"]
            for port, found in {"8443": 8443, "0": 99, "65536": 99, "x": 99}.items():
                told = ask(running, FORWARDED, headers=TOLD | {"X-Forwarded-Port": port})
                assert told.values[2] == found, port
            code = """
                return kong.ip.is_trusted("127.1.2.3"), kong.ip.is_trusted("::1"),
                    kong.ip.is_trusted("128.0.0.1"), kong.ip.is_trusted("x"),
                    kong.ip.is_trusted(nil)
            """
            assert ask(running, code).values == [True, True, False, False, False]


# Other phases


LATE = """
    local r = kong.request
    return r.get_method(), r.get_path(), r.get_header("x-a"), r.get_query_arg("b"), r.get_scheme()
"""


@pytest.mark.parametrize("phase", ["rewrite", "header_filter"])
def test_other_phases(shared: Gateway, phase: str) -> None:
    reply = shared.ask("/p/../q?b=1", headers=headers(LATE, phase) | {"X-A": "1"})
    told = reply.body if phase == "rewrite" else base64.b64decode(reply.headers.get("answer") or "")
    assert read(told).values == ["GET", "/q", "1", "1", "http"]


def test_a_body_is_not_read_in_late_phases(shared: Gateway) -> None:
    code = "return kong.request.get_raw_body()"
    reply = shared.ask("/", headers=headers(code, "header_filter"))
    told = read(base64.b64decode(reply.headers.get("answer") or ""))
    assert not told.ok
    assert "function cannot be called in header_filter phase (only in: " in told.values[0]


def test_a_request_that_nginx_refuses(shared: Gateway) -> None:
    """Plugins see it, and what it was."""
    code = """
        local r = kong.request
        return r.get_method(), r.get_path(), r.get_raw_path(), r.get_query_arg("a"),
            r.get_header("ask-phase")
    """
    lines = [f"{n}: {v}" for n, v in headers(code, "header_filter").items()]
    bad = ["PUT /some/../path?a=1 HTTP/1.1", *lines, "Host: a", "Host: b", "", ""]
    with Wire(shared.proxy_port) as wire:
        wire.send("\r\n".join(bad).encode())
        reply = wire.read_reply()
    assert reply.status == 400
    told = read(base64.b64decode(reply.headers.get("answer") or ""))
    assert told.values == ["PUT", "/path", "/some/../path", "1", "header_filter"]
