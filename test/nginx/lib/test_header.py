"""Header handles do what ngx.header and ngx.req.set_header do."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from nginx import Nginx

# Two servers do the same steps, by handles and by the Lua module's own functions; behind each, a
# server answers with the request as it came and headers of its own.
CONF = """
    init_by_lua_block {
        local header = require("sluice.header")
        require("cjson")

        local early = header.new("X-Early")
        EARLY = {
            { pcall(early.set_response, early, "v") },
            { pcall(early.set_response, early, 1) },
            { pcall(early.set_request, early, "v") },
            { early:get_request() },
            { early:clear_request() },
        }

        BY = {
            handles = {
                to_response = function(name, value) header.new(name):set_response(value) end,
                to_request = function(name, value) header.new(name):set_request(value) end,
                from_request = function(name) header.new(name):clear_request() end,
                of_request = function(name) return { header.new(name):get_request() } end,
            },
            functions = {
                to_response = function(name, value) ngx.header[name] = value end,
                to_request = function(name, value) ngx.req.set_header(name, value) end,
                from_request = function(name) ngx.req.clear_header(name) end,
                of_request = function(name)
                    local value = rawget(ngx.req.get_headers(0), name:lower())
                    if type(value) == "table" then
                        return { value[1], #value }
                    end
                    return { value, value and 1 or 0 }
                end,
            },
        }

        function run(way)
            local steps = require("cjson").decode(ngx.unescape_uri(ngx.var.arg_steps))
            local said = {}
            for i, step in ipairs(steps) do
                local done, result = pcall(BY[way][step[1]], step[2], step[3])
                said[i] = { done, done and result or nil }
            end
            ngx.req.set_uri_args("")
            ngx.ctx.said = require("cjson").encode(said)
        end
    }
    server {
        listen 127.0.0.1:@port@;
        location / { content_by_lua_block { ngx.say("here") } }
        location /early { content_by_lua_block { ngx.say(require("cjson").encode(EARLY)) } }
        location /through {
            access_by_lua_block { run(ngx.var.arg_way) }
            header_filter_by_lua_block { ngx.header["X-Said"] = ngx.ctx.said }
            proxy_pass http://127.0.0.1:@port@/echo;
        }
        location = /content {
            content_by_lua_block {
                run(ngx.var.arg_way)
                ngx.say("answered")
            }
        }
        location = /sent {
            content_by_lua_block {
                ngx.say("sent")
                ngx.flush(true)
                local done, why = pcall(function()
                    require("sluice.header").new("X-Late"):set_response("1")
                end)
                ngx.say(done, " ", why)
            }
        }
        location = /echo {
            content_by_lua_block {
                ngx.header["X-Of-Upstream"] = "up"
                ngx.print((ngx.req.raw_header():gsub("^[^\\n]+", "")))
            }
        }
    }
"""

NAMES = [
    "X-A",
    "x-a",
    "X-B",
    "X-Of-Upstream",
    "Content-Type",
    "Via",
    "Cookie",
    "User-Agent",
    "X-C_D",
]
VALUES: list[Any] = [
    *(
        "1",
        "two words",
        "",
        "x" * 300,
        "line\r\nX-Injected: yes",
        "nul\0",
        "del\x7f",
        "\u00e9",
        "\t",
    ),
    *(0, 7, -3, 1.5, 12345678901, 1e14, 1e300, -0.25, None, ["a", "b"], []),
]
SENT = [
    ("X-A", "client"),
    ("x-A", "again"),
    ("X-B", ""),
    ("X_C-D", "c"),
    ("Via", "v"),
    ("Cookie", "k"),
]


@pytest.fixture(scope="module")
def nginx() -> Iterator[Nginx]:
    with Nginx(CONF, workers=1) as running:
        yield running


def outcome(
    nginx: Nginx, path: str, steps: list[Any], sent: list[tuple[str, str]]
) -> tuple[int, list[tuple[str, str]], bytes]:
    text = json.dumps(steps).encode().hex()
    escaped = "".join("%" + text[i : i + 2] for i in range(0, len(text), 2))
    reply = nginx.ask(f"{path}&steps={escaped}", headers=sent)
    headers = [(n, v) for n, v in reply.headers if n.lower() not in ("date", "connection")]
    return reply.status, headers, reply.body


def steps_of(dice: random.Random) -> list[Any]:
    def step() -> list[Any]:
        kind = dice.choice(["to_response", "to_request", "from_request", "of_request"])
        value = [dice.choice(VALUES)] if kind.startswith("to_") else []
        return [kind, dice.choice(NAMES), *value]

    return [step() for _ in range(dice.randint(1, 8))]


@pytest.mark.parametrize("seed", range(20))
def test_handles_do_what_functions_do(nginx: Nginx, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(25):
        steps = steps_of(dice)
        sent = dice.sample(SENT, dice.randint(0, len(SENT)))
        check_same_outcome(nginx, steps, sent)


def check_same_outcome(nginx: Nginx, steps: list[Any], sent: list[tuple[str, str]]) -> None:
    by_handles = outcome(nginx, "/through?way=handles", steps, sent)
    assert by_handles == outcome(nginx, "/through?way=functions", steps, sent), steps
    assert b"\nX-Injected" not in by_handles[2]


@pytest.mark.parametrize("value", [v for v in VALUES if v is not None])
def test_an_answer_of_ones_own(nginx: Nginx, value: object) -> None:
    steps = [["to_response", name, value] for name in NAMES[:4]]
    by_handles = outcome(nginx, "/content?way=handles", steps, [])
    assert by_handles == outcome(nginx, "/content?way=functions", steps, [])


def test_too_late(nginx: Nginx) -> None:
    nginx.expect_log("attempt to set ngx.header.HEADER after sending out response headers")
    assert "sent" in nginx.text("/sent")


def test_too_early(nginx: Nginx) -> None:
    """In init_by_lua there is no request."""
    said = json.loads(nginx.text("/early"))
    assert [step[0] for step in said[:3]] == [False] * 3, said
    assert said[3] == [None, 0], said
