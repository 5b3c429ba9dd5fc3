"""Subrequests through the gateway's upstream blocks: auth_request, mirror, and those of plugins.

nginx.conf has none of these directives. Here they are written into it by hand.
"""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sluice import Gateway, Start, proxying
from upstream import DeadPort, Exchange, Request, Upstream
from wire import wait_until

BESIDE = """
    location = /asked {
        internal;
        proxy_method GET;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
        proxy_set_header X-For $request_uri;
        proxy_pass http://sluice_upstream/asked;
    }
    location = /mirrored {
        internal;
        proxy_set_header X-For $request_uri;
        proxy_pass http://sluice_upstream/mirrored;
    }
"""
SUBS = ("", "/asked ", "/mirrored ")
BOTH = " auth_request /asked; mirror /mirrored;"


def patched(running: Gateway) -> None:
    """Writes into the location of requests without Lua, and beside it; new workers take it."""
    conf = running.settings["prefix"] / "nginx.conf"
    head, first, rest = conf.read_text().partition("sluice_location native 0;")
    before, location, _ = head.rpartition("location / {")
    assert location
    conf.write_text(before + BESIDE + location + first + BOTH + rest)
    old = set(running.workers())
    os.kill(running.master(), signal.SIGHUP)
    wait_until(lambda: (now := set(running.workers())) and not now & old, "new workers")


def balanced(*addresses: str) -> dict[str, Any]:
    """A service at these targets, each with a Host header of its own."""
    targets = [{"target": address} for address in addresses]
    return proxying("http://some") | {"upstreams": [{"name": "some", "targets": targets}]}


def names_of(requests: list[Request]) -> list[str]:
    """What was asked for, on whose behalf."""
    return sorted(f"{r.target} {r.headers.get('x-for', '')}".strip() for r in requests)


def test_each_has_its_own_way_to_the_upstream(gateway: Start, upstream: Upstream) -> None:
    """Two of three targets are dead: the request and both of its subrequests are tried again."""
    with DeadPort() as one, DeadPort() as two:
        running = gateway(balanced(one.address, upstream.address, two.address))
        running.expect_log(r"connect\(\) failed \(111: ", range(1, 1000))
        patched(running)

        def ask(client: int) -> None:
            with running.wire() as wire:
                for number in range(10):
                    path = f"/{client}-{number}"
                    body = path.encode() * 4000
                    reply = wire.ask(path, "PUT", body=body)
                    assert (reply.status, reply.json()["target"]) == (200, path)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(8)))
        seen = upstream.wait_for(240)
    paths = [f"/{client}-{number}" for client in range(8) for number in range(10)]
    wanted = [*paths, *(f"/asked {path}" for path in paths), *(f"/mirrored {p}" for p in paths)]
    assert names_of(seen) == sorted(wanted)
    for request in seen:
        path = request.headers.get("x-for") or request.target
        wait_until(
            lambda request=request, path=path: (
                request.body == (b"" if request.target == "/asked" else path.encode() * 4000)
            ),
            f"the body of {request.target} for {path}",
        )
        if request.target == path:
            assert request.headers.get("host") == upstream.address


def test_what_one_is_answered_ends_no_other(gateway: Start, upstream: Upstream) -> None:
    def answer(exchange: Exchange) -> None:
        request = exchange.request
        path = request.headers.get("x-for") or request.target
        refused = {"/asked": "no", "/mirrored": "cut"}.get(request.target, "-")
        if refused in path and refused == "cut":
            exchange.abort()
        exchange.reply(403 if refused in path else 200, body=request.target.encode())

    upstream.handler = answer
    running = gateway(proxying(upstream, service={"retries": 0}))
    running.expect_log("reset by peer", range(1, 20))
    patched(running)
    with running.wire() as wire:
        for _ in range(5):
            assert wire.ask("/yes").body == b"/yes"
            assert wire.ask("/no").status == 403
            assert wire.ask("/cut").body == b"/cut"
    wanted = ["/asked /no", *(f"{sub}{path}" for path in ("/yes", "/cut") for sub in SUBS)]
    assert names_of(upstream.wait_for(35)) == sorted(wanted * 5)


CAPTURE = """
local pdk = require("gateway.pdk")
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "capture", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        local reply = ngx.location.capture("/sub")
        ngx.req.set_header("X-Captured", tostring(reply.status))
    end,
}
"""


def test_one_that_a_plugin_makes_has_no_peer(gateway: Start, upstream: Upstream) -> None:
    """It runs before the request has chosen one. It fails, and nothing else does."""
    config = proxying(upstream) | {"plugins": [{"name": "capture"}]}
    running = gateway(config, plugins={"capture": CAPTURE})
    running.expect_log("a plugin has ended the access phase before the request had a peer", 3)
    with running.wire() as wire:
        for _ in range(3):
            assert wire.ask("/").status == 200
    assert [r.headers.get("x-captured") for r in upstream.requests] == ["500"] * 3


EXEC = """
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "exec", fields = { { config = { type = "record", fields = {} } } } },
    PHASE = function()
        ngx.req.set_header("X-Runs", (ngx.req.get_headers()["x-runs"] or "") .. "x")
        if not ngx.req.is_internal() then
            ngx.exec("/other", "b=2")
        end
    end,
}
"""


@pytest.mark.parametrize(
    ("phase", "status", "seen"),
    [("access", 200, [("/first?b=2", "xx")]), ("rewrite", 404, [])],
)
def test_one_that_a_plugin_sends_elsewhere(
    gateway: Start, upstream: Upstream, phase: str, status: int, seen: list[tuple[str, str]]
) -> None:
    """It begins again by its own path; before its route is known there is no way back."""
    upstream.answer(200)
    config = proxying(upstream) | {"plugins": [{"name": "exec"}]}
    running = gateway(config, plugins={"exec": EXEC.replace("PHASE", phase)})
    with running.wire() as wire:
        assert wire.ask("/first?a=1").status == status
    assert [(r.target, r.headers.get("x-runs")) for r in upstream.requests] == seen
