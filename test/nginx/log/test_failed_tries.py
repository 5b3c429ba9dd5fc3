"""Why tries have failed, and whose answer a response is: what the logs say."""

import json
import re
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sluice import Gateway, Start, proxying
from upstream import Blackhole, DeadPort, Exchange, Upstream, saying, self_signed
from wire import ClosedEarly, Wire, wait_until


def entry(running: Gateway) -> dict[str, Any]:
    """The one line of the access log in JSON."""
    (line,) = wait_until(lambda: running.access_log().splitlines(), "the line")
    return json.loads(line)


def tell(running: Gateway, error: str, address: str, log: str, status: int = 502) -> None:
    """Fails unless both logs say so of each try, and by which address."""
    running.expect_log(log, range(1, 10))
    found = entry(running)
    assert (found["status"], found["source"]) == (status, "gateway")
    assert {(tried["address"], tried["error"]) for tried in found["tries"]} == {(address, error)}
    (line, *_) = [line for line in running.error_log().splitlines() if re.search(log, line)]
    assert address in line
    assert found["request_id"] in line
    wanted = f'sluice_upstream_failures_total{{address="{address}",reason="{error}"}} '
    (sample,) = wait_until(lambda: failures(running), "the sample")
    assert sample == wanted + str(len(found["tries"]))


def failures(running: Gateway) -> list[str]:
    """The samples of tries that have failed."""
    with Wire(running.admin_port) as wire:
        text = wire.ask("/metrics").text
    return [line for line in text.splitlines() if line.startswith("sluice_upstream_failures_t")]


def test_one_that_refuses(gateway: Start) -> None:
    with DeadPort() as dead:
        running = gateway(proxying(dead, service={"retries": 2}), access_log_format="json")
        running.ask("/")
        tell(running, "connection refused", dead.address, r"connect\(\) failed \(111: Connection r")
        assert len(entry(running)["tries"]) == 3


def test_one_that_refuses_tls(gateway: Start) -> None:
    with DeadPort() as dead:
        config = proxying(dead.url.replace("http", "https"), service={"retries": 0})
        running = gateway(config, access_log_format="json")
        running.ask("/")
        tell(running, "connection refused", dead.address, r"connect\(\) failed \(111: Connection r")


def test_one_that_no_way_leads_to(gateway: Start) -> None:
    """The kernel says so at once: connect() itself fails."""
    address = "224.0.0.1:80"
    config = proxying(f"http://{address}", service={"retries": 0})
    running = gateway(config, access_log_format="json")
    running.ask("/")
    log = rf"connect\(\) to {address} failed \(101: Network is unreachable"
    tell(running, "host unreachable", address, log)


def test_one_that_does_not_take_the_connection(gateway: Start) -> None:
    with Blackhole() as hole:
        service = {"connect_timeout": 100, "retries": 0}
        running = gateway(proxying(hole, service=service), access_log_format="json")
        running.ask("/")
        log = r"upstream timed out \(110: .* while connecting"
        tell(running, "connect timeout", hole.address, log, 504)


def hang(exchange: Exchange) -> None:
    """Answers nothing."""
    exchange.ended()
    exchange.keep = False


def reset(exchange: Exchange) -> None:
    """Ends the connection by RST."""
    exchange.abort()


@pytest.mark.parametrize(
    ("handler", "error", "log"),
    [
        (hang, "read timeout", r"upstream timed out \(110: "),
        (reset, "connection reset", r"recv\(\) failed \(104: "),
        (saying(b""), "connection closed", "prematurely closed"),
        (saying(b"HTTP/1.1 200"), "connection closed", "prematurely closed"),
        (saying(b"SSH-2.0-a\r\n\r\n"), "invalid response", "no valid HTTP/1.0 header"),
        (saying(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000), "invalid response", "too big header"),
    ],
    ids=["hangs", "resets", "closes", "closes in a head", "rubbish", "huge"],
)
def test_one_that_does_not_answer(
    gateway: Start,
    upstream: Upstream,
    handler: Callable[[Exchange], None],
    error: str,
    log: str,
) -> None:
    upstream.handler = handler
    config = proxying(upstream, service={"retries": 0, "read_timeout": 300})
    running = gateway(config, access_log_format="json")
    running.ask("/")
    tell(running, error, upstream.address, log, 504 if handler is hang else 502)


def test_one_that_does_not_read(gateway: Start, upstream: Upstream) -> None:
    upstream.handler = hang
    upstream.reads_little()
    config = proxying(upstream, service={"retries": 0, "write_timeout": 100})
    running = gateway(config, access_log_format="json")
    running.ask("/", "POST", body=b"x" * 20_000_000)
    tell(running, "write timeout", upstream.address, r"upstream timed out \(110: ", 504)


def test_one_that_wants_another_tls(gateway: Start, tmp_path: Path) -> None:
    context = self_signed(tmp_path)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    with Upstream(tls=context) as upstream:
        running = gateway(proxying(upstream, service={"retries": 0}), access_log_format="json")
        running.ask("/")
        tell(running, "TLS handshake failed", upstream.address, r"SSL_do_handshake\(\) failed")


def test_one_that_does_not_speak_tls(gateway: Start, upstream: Upstream) -> None:
    """It waits for the end of a head."""
    url = upstream.url.replace("http", "https")
    service = {"retries": 0, "connect_timeout": 300}
    running = gateway(proxying(url, service=service), access_log_format="json")
    running.ask("/")
    tell(running, "connect timeout", upstream.address, r"upstream timed out \(110: ", 504)


def test_one_that_nobody_vouches_for(gateway: Start, tmp_path: Path) -> None:
    with Upstream(tls=self_signed(tmp_path)) as upstream:
        service = {"retries": 0, "tls_verify": True}
        running = gateway(proxying(upstream, service=service), access_log_format="json")
        running.ask("/")
        running.expect_log("handshake rejected", 1)
        log = "upstream SSL certificate verify error"
        tell(running, "certificate not verified", upstream.address, log)


@pytest.mark.parametrize("is_buffered", [True, False])
@pytest.mark.parametrize(
    ("handler", "error", "log"),
    [
        (hang, "read timeout", r"upstream timed out \(110: "),
        (saying(b"12"), "connection closed", "prematurely closed"),
        (lambda exchange: exchange.reply(200), None, None),
    ],
    ids=["hangs", "closes", "does not"],
)
def test_one_that_cuts_its_answer(
    gateway: Start,
    upstream: Upstream,
    handler: Callable[[Exchange], None],
    error: str | None,
    log: str | None,
    is_buffered: bool,
) -> None:
    """The status is the upstream's, and so is the answer."""

    def begin(exchange: Exchange) -> None:
        if error:
            exchange.head(200, {"Content-Length": "10"})
            exchange.send(b"12345")
        handler(exchange)

    upstream.handler = begin
    config = proxying(upstream, service={"read_timeout": 300})
    config["services"][0]["routes"][0]["response_buffering"] = is_buffered
    running = gateway(config, access_log_format="json")
    if log:
        running.expect_log(log, 1)
    try:
        running.ask("/")
    except (ClosedEarly, ConnectionError):
        assert error
    found = entry(running)
    assert (found["status"], found["source"]) == (200, "upstream")
    assert [tried["error"] for tried in found["tries"]] == [error]


def test_a_client_that_leaves_is_no_failure(gateway: Start, upstream: Upstream) -> None:
    upstream.handler = hang
    running = gateway(proxying(upstream), access_log_format="json")
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        upstream.wait_for(1)
    found = entry(running)
    assert (found["status"], found["source"]) == (499, "gateway")
    assert [tried["error"] for tried in found["tries"]] == [None]
    assert failures(running) == []


def test_more_addresses_than_a_worker_counts(gateway: Start) -> None:
    """The latest are there; two workers' are added."""
    with ExitStack() as stack:
        dead = [stack.enter_context(DeadPort()) for _ in range(40)]
        config = {
            "services": [
                {"url": one.url, "retries": 0, "routes": [{"paths": [f"/{n}/"]}]}
                for n, one in enumerate(dead)
            ]
        }
        running = gateway(config, workers=1)
        running.expect_log("Connection refused", 80)
        for n in range(40):
            running.ask(f"/{n}/")
        found = wait_until(lambda: len(failures(running)) == 32 and failures(running), "32")
        assert any(dead[39].address in line for line in found)
        running.settings["workers"] = 2
        assert running.command("reload").returncode == 0
        for n in range(40):
            running.ask(f"/{n}/")
    for line in failures(running):
        assert line.endswith(('"} 1', '"} 2')), line


def test_a_log_without_errors_does_not_know_which(gateway: Start) -> None:
    with DeadPort() as dead:
        config = proxying(dead, service={"retries": 0})
        running = gateway(config, access_log_format="json", log_level="crit")
        running.ask("/")
    assert [tried["error"] for tried in entry(running)["tries"]] == ["connect failed"]


def test_the_default_format_tells_whose_answer_it_is(gateway: Start, upstream: Upstream) -> None:
    """A 404 of the gateway, one of the upstream, a refusal, and a target that is down."""
    with DeadPort() as dead:
        config = proxying(upstream, paths=["/there"])
        (service,) = config["services"]
        service["routes"][0]["name"] = "there"
        service["routes"].append({"paths": ["/nameless"]})
        service["routes"].append(
            {"name": "keyed", "paths": ["/keyed"], "plugins": [{"name": "key-auth"}]}
        )
        down = {"name": "down", "url": dead.url, "retries": 1}
        config["services"].append(down | {"routes": [{"name": "down", "paths": ["/down"]}]})
        upstream.answer(404)
        running = gateway(config)
        running.expect_log("Connection refused", 2)
        ids = []
        for path in ("/nowhere", "/there", "/nameless", "/keyed", "/down"):
            reply = running.ask(path)
            ids.append(reply.headers.get("x-kong-request-id"))
            assert (reply.headers.get("server") or "").startswith("sluice/") == (
                path not in ("/there", "/nameless")
            )
            assert bool(reply.headers.get("via")) == (path in ("/there", "/nameless"))
    wait_until(lambda: running.access_log().count("\n") == 5, "the lines")
    told = [re.sub(r"^.*?HTTP/1.1\" ", "", line) for line in running.access_log().splitlines()]
    uuid = r"[0-9a-f-]{36}"
    refused = f"{dead.address} connection refused"
    for line, expected, number in zip(
        told,
        [
            '404 .* from=gateway route=- failed="-"',
            '404 .* from=upstream route=there failed="-"',
            f'404 .* from=upstream route={uuid} failed="-"',
            '401 .* from=gateway route=keyed failed="-"',
            f'502 .* from=gateway route=down failed="{refused}, {refused}"',
        ],
        ids,
        strict=True,
    ):
        assert re.fullmatch(rf"{expected} request_id={number}", line), line
