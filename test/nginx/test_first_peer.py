"""`sluice_first_peer`: the access phase names the first peer, the balancer those after it."""

from __future__ import annotations

import pytest

from bare import Bare
from sluice import ROOT
from upstream import DeadPort, Upstream

REFUSED = "Connection refused"

HTTP = """
    init_by_lua_block { package.path = package.path .. ";@root@/?.lua" }
    upstream named { server @second@; server @third@; sluice_first_peer; @keepalive@ }
    server {
        listen 127.0.0.1:@port@;
        location / {
            access_by_lua_block {
                local first = ngx.var.arg_first
                local use = require("gateway.proxy.peer").use
                if first and not use({ name = first }, { retries = 1 }) then
                    return ngx.exit(400)
                end
            }
            proxy_pass http://named;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            add_header X-Tried $upstream_addr always;
        }
    }
"""


def http(second: str, third: str, keepalive: str = "") -> str:
    """The configuration: what is not named goes by nginx's own round robin."""
    text = HTTP.replace("@root@", str(ROOT)).replace("@keepalive@", keepalive)
    return text.replace("@second@", second).replace("@third@", third)


@pytest.mark.parametrize("keepalive", ["", "sluice_keepalive 10;"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_first_peer_is_the_named_one(host: str, keepalive: str) -> None:
    with Upstream() as other, Upstream(host=host) as named:
        with Bare(http(other.address, other.address, keepalive)) as running:
            for _ in range(10):
                reply = running.ask(f"/?first={named.address}")
                assert (reply.status, reply.headers.get("x-tried")) == (200, named.address)
        assert not other.requests


@pytest.mark.parametrize("keepalive", ["", "sluice_keepalive 10;"])
def test_after_a_failure_the_balancer_is_asked(keepalive: str) -> None:
    with (
        Upstream() as other,
        DeadPort() as dead,
        Bare(http(other.address, other.address, keepalive)) as running,
    ):
        running.expect_log(REFUSED, 10)
        for _ in range(10):
            reply = running.ask(f"/?first={dead.address}")
            tried = f"{dead.address}, {other.address}"
            assert (reply.status, reply.headers.get("x-tried")) == (200, tried)


def test_tries_are_those_that_were_asked_for() -> None:
    with (
        DeadPort() as one,
        DeadPort() as two,
        DeadPort() as three,
        Bare(http(two.address, three.address)) as running,
    ):
        running.expect_log(REFUSED, 2)
        reply = running.ask(f"/?first={one.address}")
        assert reply.status == 502
        assert (reply.headers.get("x-tried") or "").count(",") == 1


def test_without_a_named_peer_all_is_the_balancers() -> None:
    with Upstream() as one, Upstream() as two, Bare(http(one.address, two.address)) as running:
        tried = {running.ask("/").headers.get("x-tried") for _ in range(10)}
        assert tried == {one.address, two.address}


@pytest.mark.parametrize(
    "name", ["", "127.0.0.1", "localhost:80", "127.0.0.1:0", "127.0.0.1:65536", "[::1]", "unix:/a"]
)
def test_what_is_no_address_and_port_is_refused(name: str) -> None:
    with Upstream() as other, Bare(http(other.address, other.address)) as running:
        assert running.ask(f"/?first={name}").status == 400


def test_the_directive_stands_once() -> None:
    text = http("127.0.0.1:1", "127.0.0.1:2").replace(
        "sluice_first_peer;", "sluice_first_peer; sluice_first_peer;"
    )
    bare = Bare(text)
    try:
        done = bare.nginx("-t")
        assert done.returncode != 0
        assert '"sluice_first_peer" directive is duplicate' in done.stderr
    finally:
        bare.discard()
