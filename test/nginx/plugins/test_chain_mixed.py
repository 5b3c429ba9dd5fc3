"""Chains of plugins in both languages: the order of priorities holds across them, what one says of
the consumer holds for all behind it, and `ngx.ctx` is the plugins' own.

key-auth and rate-limiting are native; the Lua plugins here run before, between and behind them.
"""

import socket
import time
from functools import partial
from typing import Any

import pytest
from threads import beside

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import DEADLINE

# Above key-auth (1250), between it and rate-limiting (910), below.
PRIORITIES = {"before": 1300, "between": 1000, "behind": 1}

NOTE = """
local pdk = require("gateway.pdk")
return {
    name = "%(name)s", VERSION = "1", PRIORITY = %(priority)d,
    schema = { name = "%(name)s", fields = { { config = { type = "record", fields = {
        { tag = { type = "string", default = "global" } },
        { fail = { type = "boolean", default = false } },
    } } } } },
    access = function(self, conf)
        if conf.fail then error("failed on purpose") end
        local consumer, credential = pdk.consumer(), pdk.credential()
        local seen = pdk.header("X-Seen")
        local mine = table.concat({
            self.name, conf.tag, consumer and consumer.username or "-",
            credential and "key" or "-", ngx.header["RateLimit-Limit"] or "-",
        }, ":")
        ngx.req.set_header("X-Seen", seen and seen .. " " .. mine or mine)
        ngx.ctx.count = (ngx.ctx.count or 0) + 1
    end,
    header_filter = function(self)
        ngx.header["X-Count-" .. self.name] = ngx.ctx.count
        ngx.header["X-Who-" .. self.name] = (pdk.consumer() or {}).username
    end,
}
"""

SOURCES = {
    name: NOTE % {"name": name, "priority": priority} for name, priority in PRIORITIES.items()
}


def mixed(upstream: Upstream, **key_auth: object) -> dict[str, Any]:
    """All of them on one route; ann has a limit and a tag of her own."""
    plugins: list[dict[str, Any]] = [{"name": name} for name in SOURCES]
    plugins.append({"name": "key-auth", "config": key_auth})
    plugins.append({"name": "rate-limiting", "config": {"hour": 100, "limit_by": "consumer"}})
    consumers: list[dict[str, Any]] = [
        {"username": name, "keyauth_credentials": [{"key": f"{name}-key"}]}
        for name in ("ann", "ben")
    ]
    consumers[0]["plugins"] = [
        {"name": "rate-limiting", "config": {"hour": 7, "limit_by": "consumer"}},
        {"name": "behind", "config": {"tag": "hers"}},
        {"name": "before", "config": {"tag": "too early"}},
    ]
    return proxying(upstream) | {"plugins": plugins, "consumers": consumers}


def seen(upstream: Upstream) -> list[str]:
    """What the Lua plugins have noted in the latest request."""
    return (upstream.last.headers.get("x-seen") or "").split()


def test_priorities_hold_across_languages(gateway: Start, upstream: Upstream) -> None:
    running = gateway(mixed(upstream), plugins=SOURCES)
    for name, limit, tag in (("ann", "7", "hers"), ("ben", "100", "global")):
        reply = running.ask("/", headers={"apikey": f"{name}-key"})
        assert reply.status == 200
        assert seen(upstream) == [
            "before:global:-:-:-",
            f"between:global:{name}:key:-",
            f"behind:{tag}:{name}:key:{limit}",
        ]
        assert upstream.last.headers.get("x-consumer-username") == name
        # Three have counted in one ngx.ctx, and each sees the same consumer at the end.
        for plugin in SOURCES:
            assert reply.headers.get(f"x-count-{plugin}") == "3"
            assert reply.headers.get(f"x-who-{plugin}") == name


def test_a_native_refusal_passes_the_late_phases(gateway: Start, upstream: Upstream) -> None:
    running = gateway(mixed(upstream), plugins=SOURCES)
    accept = {"Accept": "application/json"}
    reply = running.ask("/", headers=accept)
    assert (reply.status, reply.json()["message"]) == (401, "No API key found in request")
    assert reply.headers.get("www-authenticate") == "Key"
    assert reply.headers.get("x-count-before") == "1"
    assert reply.headers.get("x-who-before") is None
    for _ in range(7):
        assert running.ask("/", headers={"apikey": "ann-key"}).status == 200
    reply = running.ask("/", headers=accept | {"apikey": "ann-key"})
    assert (reply.status, reply.json()["message"]) == (429, "API rate limit exceeded")
    assert reply.headers.get("x-count-behind") == "2"
    assert reply.headers.get("x-who-behind") == "ann"
    assert len(upstream.requests) == 7


@pytest.mark.parametrize("name", SOURCES)
def test_what_lua_throws_stops_the_native_ones_behind_it(
    gateway: Start, upstream: Upstream, name: str
) -> None:
    config = mixed(upstream)
    for plugin in config["plugins"]:
        if plugin["name"] == name:
            plugin["config"] = {"fail": True}
    config["consumers"][0]["plugins"] = []
    running = gateway(config, plugins=SOURCES)
    running.expect_log("failed on purpose", 2)
    for _ in range(2):
        reply = running.ask("/", headers={"apikey": "ann-key"})
        assert reply.status == 500
        # Who is limited has been counted only where that came first.
        limited = reply.headers.get("ratelimit-remaining")
        assert (limited is not None) == (name == "behind")
    assert not upstream.requests


def connect(running: Gateway) -> socket.socket:
    """A connection to the proxy."""
    host, _, port = running.proxy.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=DEADLINE)


BODY = b"apikey=ann-key&more=" + b"x" * 2000
FORM = "Content-Type: application/x-www-form-urlencoded"


def send(running: Gateway, head: list[str], *pieces: bytes) -> bytes:
    """A request whose body comes in pieces; the answer to the end of the connection."""
    with connect(running) as client:
        lines = ["POST /x HTTP/1.1", "Host: a", "Connection: close", FORM, *head]
        client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        for piece in pieces:
            time.sleep(0.02)
            client.sendall(piece)
        answer = b""
        while data := client.recv(65536):
            answer += data
        return answer


def chunk(data: bytes) -> bytes:
    """As one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("with_lua", [False, True])
def test_a_body_that_a_native_plugin_reads(
    gateway: Start, upstream: Upstream, with_lua: bool
) -> None:
    """In pieces, chunked, after a 100, from a client that goes away, in front of Lua and not."""
    config = mixed(upstream, key_in_body=True)
    if not with_lua:
        config["plugins"] = config["plugins"][3:]
        config["consumers"][0]["plugins"] = []
    running = gateway(config, plugins=SOURCES)
    length = f"Content-Length: {len(BODY)}"
    for head, pieces in (
        ([length], [BODY]),
        ([length], [BODY[:9], BODY[9:500], BODY[500:]]),
        (["Transfer-Encoding: chunked"], [chunk(BODY[:9]), chunk(BODY[9:]), b"0\r\n\r\n"]),
        ([length, "Expect: 100-continue"], [BODY[:9], BODY[9:]]),
    ):
        answer = send(running, head, *pieces)
        if "Expect: 100-continue" in head:
            assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
            answer = answer.partition(b"\r\n\r\n")[2]
        assert answer.startswith(b"HTTP/1.1 200"), answer
        assert upstream.last.body == BODY
        assert upstream.last.headers.get("x-consumer-username") == "ann"
    requests = len(upstream.requests)
    # Goes away in the middle; nothing of it goes upstream, and the worker lives on.
    with connect(running) as client:
        lines = ["POST /x HTTP/1.1", "Host: a", FORM, length]
        client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + BODY[:100])
        time.sleep(0.05)
    answer = send(running, ["Content-Length: 10"], b"apikey=bad")
    assert answer.startswith(b"HTTP/1.1 401"), answer
    assert len(upstream.requests) == requests


def test_bodies_of_many_clients_at_once(gateway: Start, upstream: Upstream) -> None:
    config = mixed(upstream, key_in_body=True)
    running = gateway(config | {"consumers": config["consumers"][1:]}, plugins=SOURCES)
    body = BODY.replace(b"ann", b"ben")
    answers: list[bytes] = []

    def ask(cut: int) -> None:
        head = [f"Content-Length: {len(body)}"]
        answers.append(send(running, head, body[:cut], body[cut:])[:12])

    cuts = range(1, 2000, 100)
    with beside(*[partial(ask, cut) for cut in cuts]):
        pass
    assert answers == [b"HTTP/1.1 200"] * len(cuts)


def with_early_plugin(upstream: Upstream, phase: str, body: str) -> tuple[dict[str, Any], dict]:
    """A configuration where a plugin with one phase stands before key-auth; its source."""
    plugins = [{"name": "early"}, {"name": "key-auth", "config": {"key_in_body": True}}]
    consumers = [{"username": "ann", "keyauth_credentials": [{"key": "ann-key"}]}]
    config = proxying(upstream) | {"plugins": plugins, "consumers": consumers}
    source = f"""return {{
        VERSION = "1", PRIORITY = 2000,
        schema = {{ name = "early", fields = {{ {{ config = {{
            type = "record", fields = {{}} }} }} }} }},
        {phase} = function() {body} end,
    }}"""
    return config, {"early": source}


def test_a_body_that_comes_late_is_waited_for_behind_a_rewrite(
    gateway: Start, upstream: Upstream
) -> None:
    """Lua has begun the access phase for the rewrite: it has to end it, too."""
    config, sources = with_early_plugin(upstream, "rewrite", "")
    running = gateway(config, plugins=sources, workers=1)
    assert running.ask("/", headers={"apikey": "ann-key"}).status == 200  # all is compiled
    body = b"apikey=ann-key"
    assert send(running, ["Content-Length: 14"], body)[:12] == b"HTTP/1.1 200"
    assert upstream.last.headers.get("x-consumer-username") == "ann"
    assert upstream.last.body == body


def test_a_body_that_a_plugin_has_thrown_away_has_no_key(
    gateway: Start, upstream: Upstream
) -> None:
    config, sources = with_early_plugin(upstream, "access", "ngx.req.discard_body()")
    running = gateway(config, plugins=sources, workers=1)
    answer = send(running, ["Content-Length: 14"], b"apikey=ann-key")
    assert answer[:12] == b"HTTP/1.1 401"
    assert not upstream.requests
