"""Reload under load: no request that was read fails, and the new configuration is everywhere."""

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable

import pytest
from reload_client import Client
from soaks import soak
from versions import VERSION, ask_every_worker, versioned

from sluice import Start, proxying
from upstream import Exchange, Upstream
from wire import DEADLINE, ClosedEarly, request_bytes, wait_until

RELOADS = soak(6, 30)


@pytest.mark.parametrize("kind", ["plain", "bodies", "streamed"])
def test_no_request_that_was_read_fails(
    gateway: Start, upstream: Upstream, kind: str, record_property: Callable[[str, object], None]
) -> None:
    route = {"request_buffering": False, "response_buffering": False} if kind == "streamed" else {}
    body = b"" if kind == "plain" else os.urandom(30_000)
    answer = b"answer" * (1 if kind == "plain" else 5000)
    upstream.answer(200, body=answer)
    running = gateway(versioned(upstream, 0, **route), workers=2, plugins=VERSION)
    clients = [Client(running, upstream, f"c{number}", body) for number in range(8)]
    for client in clients:
        client.start()
    try:
        for version in range(1, RELOADS + 1):
            before = sum(client.tally.answered for client in clients)
            running.reload(versioned(upstream, version, **route))
            assert set(ask_every_worker(running).values()) == {str(version)}
            wait_until(
                lambda before=before: sum(c.tally.answered for c in clients) > before + 50,
                "traffic between the reloads",
            )
    finally:
        for client in clients:
            client.done.set()
        for client in clients:
            client.join(DEADLINE)
    tallies = [client.tally for client in clients]
    failed = [text for tally in tallies for text in tally.failed]
    answered = sum(tally.answered for tally in tallies)
    idle_closed = sum(tally.idle_closed for tally in tallies)
    record_property("answered", answered)
    record_property("idle_closed", idle_closed)
    print(
        f"{kind}: {answered} answered, {idle_closed} idle connections closed by {RELOADS} reloads"
    )
    assert failed == []
    assert answered > RELOADS * 50
    versions = set().union(*(tally.versions for tally in tallies))
    assert versions == {str(version) for version in range(RELOADS + 1)}


@pytest.mark.skipif(not shutil.which("wrk"), reason="needs wrk")
def test_wrk_at_full_speed_sees_only_closed_idle_connections(gateway: Start) -> None:
    """wrk cannot tell the two kinds of errors apart; the access log can.

    Every request that a worker has read is in it with the status that it was answered with. The
    gateway answers by itself here, as that is the fastest upstream.
    """
    source = VERSION["version"].replace(
        'ngx.header["X-Version"]',
        'if conf.text then require("gateway.pdk").exit(200, "ok") end --',
    )
    config = {
        "routes": [{"paths": ["/"]}],
        "plugins": [{"name": "version", "config": {"text": "x"}}],
    }
    running = gateway(
        config, plugins={"version": source}, workers=2, access_log_format="$status $connection"
    )
    load = subprocess.Popen(
        ["wrk", "-t1", "-c16", "-d4s", running.proxy], stdout=subprocess.PIPE, text=True
    )
    for _ in range(RELOADS):
        running.reload(config)
    output, _ = load.communicate(timeout=DEADLINE)
    assert "Non-2xx" not in output, output
    statuses = Counter(line.split()[0] for line in running.access_log().splitlines())
    assert set(statuses) == {"200"}, statuses
    print(output)


def test_long_requests_outlive_the_reload(gateway: Start, upstream: Upstream) -> None:
    go_on = upstream.hold(b"from before")
    running = gateway(versioned(upstream, 1), plugins=VERSION)
    with running.wire() as wire:
        wire.send(request_bytes("/old"))
        upstream.wait_for(1)
        upstream.handler = upstream.echo
        running.reload(versioned(upstream, 2))
        assert running.retiring()
        assert running.ask("/new").headers.get("x-version") == "2"
        go_on.set()
        reply = wire.read_reply()
        assert (reply.body, reply.headers.get("x-version")) == (b"from before", "1")
        assert wire.ended()
    wait_until(lambda: not running.retiring(), "the old worker to leave")


def test_upload_in_progress_outlives_the_reload(gateway: Start, upstream: Upstream) -> None:
    running = gateway(versioned(upstream, 1), plugins=VERSION)
    with running.wire() as wire:
        wire.send(request_bytes("/up", "POST", {"Content-Length": "200000"}) + b"a" * 100_000)
        running.reload(versioned(upstream, 2))
        wire.send(b"b" * 100_000)
        reply = wire.read_reply()
    assert (reply.status, reply.json()["length"]) == (200, 200_000)


def test_shutdown_timeout_cuts_what_takes_too_long(gateway: Start, upstream: Upstream) -> None:
    def hang(exchange: Exchange) -> None:
        exchange.ended()
        exchange.keep = False

    upstream.handler = hang
    running = gateway(versioned(upstream, 1), plugins=VERSION, shutdown_timeout="1s")
    with running.wire() as wire:
        wire.send(request_bytes("/"))
        upstream.wait_for(1)
        begun = time.monotonic()
        running.reload(versioned(upstream, 2))
        with pytest.raises((ClosedEarly, OSError)):
            wire.read_reply()
        assert time.monotonic() - begun < DEADLINE / 2, "before the upstream gives up"


@pytest.mark.parametrize(
    "bad",
    [
        '{"_format_version": "3.0", "services": [{"name": "s", "url": "nonsense"}]}',
        '{"_format_version": "3.0", "unknown": 1}',
        "not: [valid",
        '{"_format_version": "3.0", "routes": [{"paths": ["~/("]}]}',
    ],
)
def test_a_bad_file_keeps_the_running_configuration(
    gateway: Start, upstream: Upstream, bad: str
) -> None:
    running = gateway(versioned(upstream, 1), plugins=VERSION, workers=2)
    before = running.workers()
    running.write_config(bad)
    done = running.command("reload")
    assert done.returncode != 0
    assert done.stderr.strip()
    assert running.workers() == before
    assert set(ask_every_worker(running).values()) == {"1"}
    running.reload(versioned(upstream, 2))
    assert set(ask_every_worker(running).values()) == {"2"}


def test_reload_adds_and_removes_routes(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, paths=["/a"]), workers=2)
    assert [running.ask(target).status for target in ("/a", "/b")] == [200, 404]
    running.reload(proxying(upstream, paths=["/b"]))
    for _ in range(20):
        assert [running.ask(target).status for target in ("/a", "/b")] == [404, 200]


def test_reload_takes_new_settings(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    assert "x-kong-request-id" in running.ask("/").headers
    running.settings |= {"headers": "off", "workers": 2}
    done = running.command("reload")
    assert done.returncode == 0, done.stderr
    wait_until(lambda: len(running.workers()) == 2, "two workers")
    assert "x-kong-request-id" not in running.ask("/").headers
