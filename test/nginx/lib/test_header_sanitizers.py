"""Headers of refused requests, and of upstreams, with ASan, UBSan and LSan in nginx."""

import random

import refused
from var_servers import sanitized

from upstream import Exchange, Upstream


def test_refused_requests_leave_nothing_to_report(asan: dict[str, str]) -> None:
    with sanitized(refused.HTTP, refused.INDEX, asan) as server:
        refused.expect(server)
        for data in (*refused.REFUSED.values(), *refused.mutations(random.Random(8), 40)):
            refused.answer(server, data)


HEADS = """
    @index@
    sluice_via "1.1 here";
    init_by_lua_block { @init@ }
    upstream up { server @upstream@; least_conn; sluice_upstream; }
    server {
        listen 127.0.0.1:@port@;
        underscores_in_headers on;
        sluice_drop_headers X-Gone-*;
        sluice_guard_headers Some-Name;
        location / {
            access_by_lua_block {
                local header = require("sluice.header")
                header.own("X-Own"):set_response("mine")
                header.new("X-More"):set_request("more")
            }
            add_header Via $sluice_response_via always;
            proxy_hide_header Via;
            proxy_http_version 1.1;
            proxy_buffer_size 4k;
            proxy_pass http://up;
        }
    }
"""

LINES = ["X-Gone-1", "x_gone_2", "Some_Name", "Some-Name", "A", "B_c", "Connection"]

HEAD_LINES = [
    "X-Own: theirs",
    "Connection: X-Named, close",
    "Connection: keep-alive",
    "X-Named: 1",
    "X-Long: " + "l" * 900,
    "Via: 1.1 inner",
    "X-Rest: 1",
]


def a_head(chosen: random.Random, status: str, more: str = "") -> str:
    """A response's head with any of the lines, some of them often."""
    lines = chosen.choices(HEAD_LINES, k=chosen.randrange(12))
    lines = [line for line in lines if "Long" not in line or chosen.randrange(3) == 0]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, more + "\r\n"])


def test_heads_leave_nothing_to_report(asan: dict[str, str]) -> None:
    chosen = random.Random(9)

    def answer(exchange: Exchange) -> None:
        interim = [a_head(chosen, status) for status in chosen.choices(["103", "100"], k=4)]
        final = a_head(chosen, "200 OK", "Content-Length: 4\r\n") + "body"
        if exchange.request.target == "/bad":
            final = chosen.choice(["", "SSH-2.0\r\n\r\n", "HTTP/1.1 000 x\r\n\r\n"])
            interim *= chosen.choice([1, 5])
        said = "".join([*interim[: chosen.randrange(21)], final]).encode()
        while said:
            size = chosen.choice([1, 7, 300, 5000])
            exchange.send(said[:size])
            said = said[size:]
        exchange.keep = exchange.request.target != "/bad"

    with (
        Upstream(answer) as upstream,
        sanitized(HEADS, "$args", asan, upstream=upstream.address) as server,
    ):
        server.expect_log("upstream (sent|prematurely)|no valid HTTP/1.0", range(1000))
        for i in range(120):
            sent = [(name, "v") for name in chosen.choices(LINES, k=chosen.randrange(40))]
            sent = [(n, "Some-Name, A" if n == "Connection" else "v") for n, _ in sent]
            reply = server.ask("/bad" if i % 4 == 0 else "/", headers=sent)
            if i % 4:
                assert (reply.status, reply.body) == (200, b"body")
                assert reply.headers.all("x-own") == ["mine"]
