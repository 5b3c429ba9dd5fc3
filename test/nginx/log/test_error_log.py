"""Lines of the error log end with the id of their request."""

import json

from sluice import Start, proxying
from upstream import DeadPort, Upstream
from wire import wait_until


def test_lines_of_the_error_log_have_the_id(gateway: Start) -> None:
    with DeadPort() as dead:
        config = proxying(dead, service={"retries": 0})
        running = gateway(config, access_log_format="json", log_level="info")
        running.expect_log(r"connect\(\) failed", 3)
        with running.wire() as wire:
            replies = [
                wire.ask("/"),
                wire.ask("/?apikey=" + "x" * 6000),
                wire.ask("/" + "y" * 6000, headers={"Referer": "http://a/?apikey=" + "z" * 500}),
            ]
        with running.wire() as wire:
            wire.send(b"GET / HTTP/1.1\r\nbad\x01header: a\r\nHost: a\r\n\r\n")
            refused = wire.read_reply()
    assert refused.status == 400
    ids = [reply.headers.get("x-kong-request-id") for reply in (*replies, refused)]
    wait_until(lambda: running.access_log().count("\n") == 4, "the lines")
    logged = [json.loads(line)["request_id"] for line in running.access_log().splitlines()]
    assert logged == ids
    for identity, message in zip(
        ids, ["connect() failed"] * 3 + ["client sent invalid header"], strict=True
    ):
        assert any(
            message in line and line.endswith(f', request_id: "{identity}"')
            for line in running.error_log().splitlines()
        ), (identity, running.error_log())
    assert "xxx" not in running.error_log()


def test_lua_logs_with_the_id(gateway: Start, upstream: Upstream) -> None:
    source = """
        return {
            VERSION = "1", PRIORITY = 1,
            schema = { name = "says", fields = { { config = { type = "record", fields = {} } } } },
            access = function() ngx.log(ngx.WARN, "said it") end,
        }
    """
    config = proxying(upstream) | {"plugins": [{"name": "says"}]}
    running = gateway(config, plugins={"says": source})
    running.expect_log("said it")
    reply = running.ask("/")
    identity = reply.headers.get("x-kong-request-id")
    line = next(line for line in running.error_log().splitlines() if "said it" in line)
    assert line.endswith(f', request_id: "{identity}"')
