"""`kong.response` and `kong.service.response`: what the client gets, and what the upstream said."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

import httpx
import pytest
from kit_cases import PLUGINS, cases

from sluice import Gateway
from upstream import Upstream
from wire import DEADLINE

RESPONSE = "local response, service = kong.response, kong.service.response\n"

NOTE = """
    local function note(name, value)
        response.set_header("X-" .. name, tostring(value))
    end
"""

CODES: dict[str, dict[str, str]] = {
    "exit": {"access": "response.exit(201, 'done', { ['X-A'] = { '1', '2' }, ['X-B'] = 3 })"},
    "exit-table": {"access": "response.exit(200, { a = 1 })"},
    "exit-typed": {"access": "response.exit(200, { a = 1 }, { ['content-type'] = 'x/y' })"},
    "exit-empty": {"access": "response.exit(204)"},
    "exit-set": {
        "access": """
            response.set_header("Content-Type", "text/x")
            response.set_header("Transfer-Encoding", "chunked")
            response.exit(200, "text", { ["transfer-encoding"] = "chunked" })
        """
    },
    "exit-inject": {"access": "response.exit(200, '', { ['X-A'] = 'a\\r\\nX-Evil: 1' })"},
    "exit-late": {
        "header_filter": "response.exit(403, { refused = service.get_status() }, { ['X-L'] = 1 })"
    },
    "exit-late-empty": {"header_filter": "response.exit(403)"},
    "exit-late-filtered": {
        "header_filter": "response.exit(200, 'own') response.clear_header('Content-Length')",
        "body_filter": """
            local body = response.get_raw_body()
            if body then response.set_raw_body(body .. "!") end
        """,
    },
    "exit-yielded": {"access": "ngx.sleep(0) response.exit(200, 'late')"},
    "error": {"access": "response.error(403)"},
    "error-message": {"access": "response.error(500, 'my <words>')"},
    "error-table": {"access": "response.error(400, { a = 1 })"},
    "error-typed": {"access": "response.error(400, 'm', { ['Content-Type'] = 'text/html' })"},
    "error-late": {"header_filter": "response.error(502, 'late')"},
    "status": {"header_filter": "response.set_status(299)"},
    "headers": {
        "access": "response.set_header('X-Early', '1')",
        "header_filter": NOTE
        + """
            note("One", response.get_header("x_many"))
            note("Type", response.get_header("content-type"))
            note("Count", #response.get_headers()["X-Many"])
            note("Missing", response.get_header("X-None"))
            note("Connection", response.get_header("Connection"))
            note("Of-Service", service.get_header("X_Many"))
            note("Services", #service.get_headers()["x-many"])
            note("Early", service.get_header("X-Early"))
            local _, err = service.get_headers(1)
            note("Truncated", err)
            note("Status", service.get_status() .. response.get_status())
            response.add_header("X-Many", { "3", "4" })
            response.add_header("X-New", "n")
            response.set_headers({ ["X-S"] = { "1", "2" }, ["X-Bool"] = false, ["X-Empty"] = "" })
            response.clear_header("X-Gone")
        """,
    },
    "source": {"header_filter": "response.set_header('X-Source', response.get_source())"},
    "source-exit": {
        "access": "response.exit(200)",
        "header_filter": "response.set_header('X-Source', response.get_source())",
    },
    "source-error": {
        "access": "kong.service.set_target('127.0.0.1', 1) kong.service.set_retries(0)",
        "header_filter": "response.set_header('X-Source', response.get_source())",
    },
    "body": {
        "header_filter": "response.clear_header('Content-Length')",
        "body_filter": """
            local body = response.get_raw_body()
            if body then response.set_raw_body(body:upper() .. #body) end
        """,
    },
    "body-empty": {
        "header_filter": "response.clear_header('Content-Length')",
        "body_filter": "if response.get_raw_body() then response.set_raw_body('') end",
    },
    "sent": {"body_filter": "response.set_header('X', '1')"},
    "wrong": {
        "access": """
            local bad = {}
            local function try(words, name, ...)
                local ok, err = pcall(response[name], ...)
                if ok or not tostring(err):find(words, 1, true) then
                    bad[#bad + 1] = name .. " " .. tostring(err)
                end
            end
            try("code must be a number between 100 and 599", "exit", 99)
            try("code must be a number", "exit", "200")
            try("body must be a nil, string or table", "exit", 200, 1)
            try("headers must be a nil or table", "exit", 200, "", 1)
            try("invalid header value", "exit", 200, "", { X = print })
            try("code must be a number between 400 and 599", "error", 200)
            try("message must be a nil, a string or a table", "error", 400, 1)
            try("code must be a number", "set_status")
            try("code must be a number between 100 and 599", "set_status", 600)
            try("got nil", "set_header", "X")
            try("invalid header name", "add_header", 1, "x")
            try("header name must be a string", "clear_header", 1)
            try("headers must be a table", "set_headers", 1)
            try("function cannot be called in access phase (only in: ", "get_status")
            try("(only in: body_filter)", "get_raw_body")
            response.exit(200, { bad = #bad > 0 and bad or nil })
        """
    },
}


@pytest.fixture(scope="module")
def asked() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def answering(asked: Upstream) -> Iterator[Gateway]:
    codes = {
        name: {phase: RESPONSE + code for phase, code in phases.items()}
        for name, phases in CODES.items()
    }
    with Gateway(cases(asked, codes), kong_plugins=PLUGINS, tls="ssl http2") as running:
        yield running


def test_exits(answering: Gateway, asked: Upstream) -> None:
    seen = len(asked.requests)
    reply = answering.ask("/exit")
    assert (reply.status, reply.body) == (201, b"done")
    assert reply.headers.all("x-a") == ["1", "2"]
    assert reply.headers.get("x-b") == "3"
    assert reply.headers.get("content-length") == "4"
    assert reply.headers.get("content-type") is None
    reply = answering.ask("/exit-table")
    assert reply.json() == {"a": 1}
    assert reply.headers.get("content-type") == "application/json; charset=utf-8"
    reply = answering.ask("/exit-typed")
    assert (reply.json(), reply.headers.get("content-type")) == ({"a": 1}, "x/y")
    assert answering.ask("/exit-empty").status == 204
    assert answering.ask("/exit-yielded").body == b"late"
    answering.expect_log("manually setting Transfer-Encoding. Ignored.", 2)
    reply = answering.ask("/exit-set")
    assert (reply.headers.get("content-type"), reply.chunked, reply.body) == (
        "text/x",
        False,
        b"text",
    )
    reply = answering.ask("/exit-inject")
    assert "x-evil" not in reply.headers
    assert len(asked.requests) == seen


def test_an_exit_before_the_head_is_sent(answering: Gateway, asked: Upstream) -> None:
    """The upstream's body is gone, whatever its length."""
    with answering.wire() as wire:
        for body in (b"", b"short", b"x" * 500_000):
            for chunked in {False, body != b""}:
                asked.answer(200, {"X-Up": "1"}, body, chunked=chunked)
                reply = wire.ask("/exit-late")
                assert (reply.status, reply.json()) == (403, {"refused": 200})
                assert reply.headers.get("x-l") == "1"
                assert reply.headers.get("x-up") == "1"
                assert reply.headers.all("content-length") == [str(len(reply.body))]
                reply = wire.ask("/exit-late-empty")
                assert (reply.status, reply.body) == (403, b"")
                reply = wire.ask("/exit-late-filtered")
                assert (reply.status, reply.body) == (200, b"own!")
                reply = wire.ask("/exit-late", "HEAD")
                assert (reply.status, reply.body) == (403, b"")
        asked.answer(204)
        assert wire.ask("/exit-late").json() == {"refused": 204}
        asked.answer(304)
        assert wire.ask("/error-late").json()["message"] == "late"


def test_errors(answering: Gateway) -> None:
    reply = answering.ask("/error")
    assert (reply.status, reply.json()["message"]) == (403, "Forbidden")
    assert reply.json()["request_id"]
    for accept, words in {
        "text/html": "<p>my &lt;words&gt;.</p>",
        "application/xml": "<message>my &lt;words&gt;</message>",
        "text/plain": "my <words>",
    }.items():
        reply = answering.ask("/error-message", headers={"Accept": accept})
        assert reply.status == 500
        assert (reply.headers.get("content-type") or "").startswith(accept)
        assert words in reply.text
    reply = answering.ask("/error-table")
    assert json.loads(reply.json()["message"]) == {"a": 1}
    reply = answering.ask("/error-typed", headers={"Accept": "text/plain"})
    assert reply.headers.get("content-type") == "text/html"
    assert "<html" in reply.text


def test_heads(answering: Gateway, asked: Upstream) -> None:
    asked.answer(200, [("X-Many", "1"), ("X-Many", "2"), ("X-Gone", "1"), ("Content-Type", "a/b")])
    assert answering.ask("/status").status == 299
    headers = answering.ask("/headers").headers
    told = {
        "one": "1",
        "type": "a/b",
        "count": "2",
        "missing": "nil",
        "connection": "keep-alive",
        "of-service": "1",
        "services": "2",
        "truncated": "truncated",
        "status": "200200",
    }
    assert {name: headers.get(f"x-{name}") for name in told} == told
    assert headers.all("x-early")[-1] == "nil"
    assert headers.all("x-many") == ["1", "2", "3", "4"]
    assert headers.get("x-new") == "n"
    assert headers.all("x-s") == ["1", "2"]
    assert headers.get("x-bool") == "false"
    assert "x-gone" not in headers


def test_whose_response_it_is(answering: Gateway, asked: Upstream) -> None:
    asked.answer(500)
    assert answering.ask("/source").headers.get("x-source") == "service"
    assert answering.ask("/source-exit").headers.get("x-source") == "exit"
    answering.expect_log(r"connect\(\) failed", range(1, 10))
    assert answering.ask("/source-error").headers.get("x-source") == "error"


def test_bodies_are_rewritten(answering: Gateway, asked: Upstream) -> None:
    for size in (5, 300_000):
        for chunked in (False, True):
            asked.answer(200, body=b"x" * size, chunked=chunked)
            assert answering.ask("/body").body == b"X" * size + str(size).encode()
    assert answering.ask("/body-empty").body == b"\n"
    asked.answer(200, {"Content-Encoding": "gzip"}, gzip.compress(b"x"))
    assert answering.ask("/source").body == gzip.compress(b"x")


def test_over_http2(answering: Gateway, asked: Upstream) -> None:
    asked.answer(200, {"X-Up": "1"}, b"x" * 200_000)
    base = f"https://127.0.0.1:{answering.tls_port}"
    with httpx.Client(
        base_url=base, http2=True, verify=False, trust_env=False, timeout=DEADLINE
    ) as client:
        for _ in range(2):
            assert client.get("/exit-late").json() == {"refused": 200}
            assert client.get("/body").content == b"X" * 200_000 + b"200000"
            assert client.get("/exit").content == b"done"
            assert client.head("/exit-late").status_code == 403


def test_misuse_is_told_in_kongs_words(answering: Gateway) -> None:
    assert answering.ask("/wrong").json() == {}


def test_a_head_that_was_sent(answering: Gateway, asked: Upstream) -> None:
    asked.answer(200, body=b"x")
    answering.expect_log(r"\(only in: .*header_filter, admin_api\)", range(1, 9))
    assert answering.ask("/sent").body == b"x"
