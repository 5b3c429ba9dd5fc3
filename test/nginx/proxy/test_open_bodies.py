"""Bodies of both directions that stay open over many changes of the configuration."""

from contextlib import ExitStack
from typing import Any

from changes import document, post

from sluice import Start, proxying
from upstream import Exchange, Upstream
from wire import Wire, chunk

EPOCHS = 50
HALF = b"h" * 20_000

LATE = """
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "late", fields = { { config = { type = "record", fields = {
        { tag = { type = "string" } },
    } } } } },
    header_filter = function(self, conf) ngx.header["X-Late"] = conf.tag end,
    log = function(self, conf) ngx.log(ngx.NOTICE, "ended in ", conf.tag, ".") end,
}
"""


def halves(exchange: Exchange) -> None:
    """Sends half of a response, and the rest after a byte of the request's body has come."""
    if exchange.request.method == "PUT":
        exchange.reply(200, {"X-Length": str(len(exchange.read_body()))})
        return
    exchange.head(200, {"Content-Length": str(2 * len(HALF))})
    exchange.send(HALF)
    exchange.body_part()
    exchange.send(HALF)


def numbered(number: int, server: Upstream) -> dict[str, Any]:
    """Another configuration each time: all of a request's entities are others."""
    config = proxying(
        server,
        service={"read_timeout": 60_000 + number},
        name=f"route-{number}",
        request_buffering=False,
        response_buffering=False,
    )
    config["plugins"] = [
        {"name": "rate-limiting", "config": {"hour": 1000 + number, "limit_by": "ip"}},
        {"name": "key-auth", "config": {"realm": f"r{number}"}},
    ]
    if number % 2:
        config["plugins"].append({"name": "late", "config": {"tag": f"t{number}"}})
    keys = [{"key": "right"}]
    config["consumers"] = [{"username": f"c{number}", "keyauth_credentials": keys}]
    return config


def test_bodies_held_open_over_fifty_epochs(gateway: Start) -> None:
    """What has begun goes on with what it began with."""
    head = b"%s / HTTP/1.1\r\nHost: a\r\napikey: right\r\nTransfer-Encoding: chunked\r\n\r\n"
    with ExitStack() as stack:
        servers = [stack.enter_context(Upstream(halves)) for _ in range(2)]
        running = gateway(numbered(0, servers[0]), plugins={"late": LATE})
        uploads: list[Wire] = []
        downloads: list[Wire] = []
        for number in range(EPOCHS):
            server = servers[number % 2]
            assert post(running, document(numbered(number, server))).status_code < 300
            for wires, method in ((uploads, b"PUT"), (downloads, b"POST")):
                wire = stack.enter_context(running.wire())
                wires.append(wire)
                wire.send(head % method + (chunk(HALF) if method == b"PUT" else b""))
            server.wait_for(2 * (number // 2 + 1))
        for number, (upload, download) in enumerate(zip(uploads, downloads, strict=True)):
            reply = download.read_head()
            download.send(chunk(b"1") + chunk(b""))
            assert download.read_exactly(2 * len(HALF)) == 2 * HALF
            upload.send(chunk(HALF) + chunk(b""))
            sent = upload.read_reply()
            assert (reply.status, sent.status) == (200, 200)
            assert sent.headers.get("x-length") == str(2 * len(HALF))
            for one in (reply, sent):
                assert one.headers.get("x-ratelimit-limit-hour") == str(1000 + number)
                assert one.headers.get("x-late") == (f"t{number}" if number % 2 else None)
        for number in range(EPOCHS):
            names = [r.headers.get("x-consumer-username") for r in servers[number % 2].requests]
            assert names.count(f"c{number}") == 2
        assert sum(server.connections for server in servers) <= 2 * EPOCHS
