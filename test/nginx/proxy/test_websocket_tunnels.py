"""What the gateway does around a tunnel: plugins, logs, timeouts, peers, changes, reloads."""

import resource
import time
from pathlib import Path

import pytest
from changes import document, post
from soaks import soak
from tunnels import echo, opened
from websocket import ASKING

from sluice import Start, proxying
from upstream import DeadPort, Upstream, self_signed
from wire import Wire, wait_until

TUNNELS = soak(200, 2000)
CHANGES = soak(50, 500)


def test_plugins_run_before_it(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {
        "consumers": [{"username": "c", "keyauth_credentials": [{"key": "good"}]}],
        "plugins": [
            {"name": "key-auth"},
            {"name": "rate-limiting", "config": {"year": 1, "policy": "local"}},
        ],
    }
    running = gateway(config)
    upstream.handler = echo
    assert running.ask("/", headers=ASKING).status == 401
    assert upstream.requests == []
    key = [*ASKING, ("apikey", "good")]
    with opened(running, key) as wire:
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello"
        assert running.ask("/", headers=key).status == 429
    assert len(upstream.requests) == 1
    assert upstream.last.headers.get("x-consumer-username") == "c"


CLEARS = """
return {
    VERSION = "1", PRIORITY = 1, schema = { name = "clears", fields = {
        { config = { type = "record", fields = {} } } } },
    access = function()
        local how = ngx.req.get_headers()["X-How"]
        if how == "clear" then
            ngx.req.clear_header("Upgrade")
        else
            ngx.req.set_header("Upgrade", how)
        end
    end,
}
"""


@pytest.mark.parametrize("how", ["clear", "h2c", "websocket"])
def test_a_plugin_may_take_it_away_and_not_give_it(
    gateway: Start, upstream: Upstream, how: str
) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "clears"}]}
    running = gateway(config, plugins={"clears": CLEARS})
    for headers in (ASKING, []):
        assert running.ask("/", headers=[*headers, ("X-How", how)]).status == 200
        assert not upstream.last.headers.names() & {"connection", "upgrade"}


def test_it_is_logged_at_its_end(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), access_log_format="$status $upstream_status")
    upstream.handler = echo
    with opened(running) as wire:
        wire.send(b"x" * 1000)
        wire.read_exactly(1000)
        assert running.access_log() == ""
    wait_until(lambda: running.access_log() == "101 101\n", "the line of the log")


def test_an_idle_one_ends_after_the_read_timeout(gateway: Start, upstream: Upstream) -> None:
    """Either side's bytes begin the time anew."""
    running = gateway(proxying(upstream, service={"read_timeout": 2500}))
    upstream.handler = echo
    with opened(running) as wire:
        begun = time.monotonic()
        for _ in range(5):
            time.sleep(0.6)
            wire.send(b"x")
            assert wire.read_exactly(1) == b"x"
        assert wire.ended()
        assert time.monotonic() - begun > 5 * 0.6 + 2.4


def test_its_connection_is_no_other_requests(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    for _ in range(3):
        upstream.handler = echo
        opened(running).close()
        upstream.answer(200, [], b"plain")
        assert running.ask("/").body == b"plain"
    last = {request.connection: request for request in upstream.requests}
    for request in upstream.requests:
        assert "upgrade" not in request.headers or last[request.connection] is request


@pytest.mark.parametrize("names", [("localhost", "localhost"), ("localhost", "127.0.0.1")])
def test_the_next_peer_is_asked_for_it_too(
    gateway: Start, upstream: Upstream, names: tuple[str, str]
) -> None:
    """Also where its name is another, and nginx writes the request anew."""
    with DeadPort() as dead:
        ports = (dead.port, upstream.port)
        targets = [{"target": f"{n}:{p}"} for n, p in zip(names, ports, strict=True)]
        running = gateway(
            {
                "upstreams": [{"name": "pool", "targets": targets}],
                "services": [
                    {"name": "s", "host": "pool", "routes": [{"name": "r", "paths": ["/"]}]}
                ],
            }
        )
        running.expect_log(r"connect\(\) failed", range(1, 9))
        upstream.handler = echo
        for _ in range(4):
            with opened(running) as wire:
                wire.send(b"hello")
                assert wire.read_exactly(5) == b"hello"
            assert upstream.last.headers.all("upgrade") == ["websocket"]
            assert upstream.last.headers.all("connection") == ["upgrade"]
            assert upstream.last.headers.get("host") == f"{names[1]}:{upstream.port}"


def test_an_upstream_with_tls(gateway: Start, tmp_path: Path) -> None:
    with Upstream(echo, tls=self_signed(tmp_path)) as secure:
        running = gateway(proxying(secure))
        with opened(running) as wire:
            wire.send(b"hello" * 10_000)
            assert wire.read_exactly(50_000) == b"hello" * 10_000


# Changes


def say(tunnels: list[Wire], text: bytes) -> None:
    """Each carries this there and back."""
    for wire in tunnels:
        wire.send(text)
    for wire in tunnels:
        assert wire.read_exactly(len(text)) == text


def changed(upstream: Upstream, number: int) -> str:
    """Another configuration each time; every other one has no route for the tunnels."""
    config = proxying(upstream, paths=["/"] if number % 2 else ["/other"])
    config["services"][0]["read_timeout"] = 60000 + number
    config["consumers"] = [{"username": f"c-{number}"}]
    return document(config)


def test_open_tunnels_live_through_changes_and_a_reload(gateway: Start, upstream: Upstream) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * TUNNELS + 1000)), hard))
    running = gateway(proxying(upstream), worker_connections=2 * TUNNELS + 500)
    upstream.handler = echo
    tunnels = [opened(running) for _ in range(TUNNELS)]
    workers = running.workers()
    for number in range(CHANGES):
        assert post(running, changed(upstream, number)).is_success
        if number % 10 == 0:
            say(tunnels, b"after change %d" % number)
    assert running.workers() == workers
    say(tunnels, b"after all changes")
    running.reload()
    wait_until(lambda: running.retiring() == workers, "the old control worker to leave")
    say(tunnels, b"after the reload")
    with opened(running) as another:
        say([another], b"new")
    for wire in tunnels:
        wire.close()
    wait_until(lambda: not running.retiring(), "the old worker to go with its last tunnel")
    assert upstream.connections == TUNNELS + 1


def test_a_reload_ends_tunnels_after_the_shutdown_timeout(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(proxying(upstream), shutdown_timeout="2s")
    upstream.handler = echo
    with opened(running) as wire:
        running.reload()
        say([wire], b"still")
        begun = time.monotonic()
        assert wire.ended()
        assert time.monotonic() - begun < 10
