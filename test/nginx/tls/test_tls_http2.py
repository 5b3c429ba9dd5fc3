"""HTTP/2 of real clients: streams, bodies, names, headers that mean harm, and without TLS."""

import json
import os
import socket

import httpx
import pytest
from http2 import served, speaking, speaking_plainly

from processes import ran
from sluice import Start
from upstream import Upstream


def test_clients_of_all_kinds(gateway: Start, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls="ssl http2")
    url = f"https://127.0.0.1:{running.tls_port}/x?y=1"
    with httpx.Client(http2=True, verify=False, trust_env=False) as client:
        answer = client.post(url, content=b"b" * 200_000, headers={"x-a": "1"})
        assert (answer.status_code, answer.http_version) == (200, "HTTP/2")
    seen = upstream.last
    assert (seen.version, seen.method, seen.target) == ("HTTP/1.1", "POST", "/x?y=1")
    assert seen.body == b"b" * 200_000
    assert seen.headers.get("x-forwarded-proto") == "https"
    assert seen.headers.get("x-forwarded-host") == "127.0.0.1"
    # curl hangs with a sanitizer before it.
    alone = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    for flag in ("--http2", "--http1.1"):
        done = ran(
            ["curl", "-sk", "-o", "/dev/null", "-w", "%{http_version} %{http_code}", flag, url],
            env=alone,
            check=True,
        )
        assert done.stdout == ("2 200" if flag == "--http2" else "1.1 200")


def test_many_streams(serving: Start, upstream: Upstream) -> None:
    running = serving(served(upstream), tls="ssl http2")
    with speaking(running) as client:
        streams = [client.ask(f"/{i}") for i in range(100)]
        answers = client.answers(streams)
    for i, stream in enumerate(streams):
        status, body = answers[stream]
        assert status == 200
        assert json.loads(body)["target"] == f"/{i}"


def test_authority_routes(serving: Start, upstream: Upstream) -> None:
    """:authority is the host, one connection has many."""
    routes = [{"name": n, "hosts": [n], "paths": ["/"]} for n in ("a.example", "b.example")]
    services = [
        {"name": r["name"], "url": f"{upstream.url}/{r['name'][0]}", "routes": [r]} for r in routes
    ]
    running = serving({"services": services}, tls="ssl http2")
    with speaking(running, "a.example") as client:
        for host, status, path in [
            ("a.example", 200, "/a"),
            ("b.example:99", 200, "/b"),
            ("A.Example", 200, "/a"),
            ("c.example", 404, ""),
        ]:
            stream = client.ask("/", host)
            assert client.answers([stream])[stream][0] == status, host
            assert not path or upstream.last.path == path


@pytest.mark.parametrize(
    "bad",
    [
        ("connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("x-consumer-username", "root"),
        ("x_forwarded_for", "1.2.3.4"),
    ],
)
def test_headers_that_mean_harm(serving: Start, upstream: Upstream, bad: tuple[str, str]) -> None:
    """What HTTP/1.1 loses on its way, HTTP/2 does: framing, and what only the gateway says."""
    running = serving(served(upstream), tls="ssl http2")
    with speaking(running) as client:
        stream = client.ask(headers=[bad])
        status, _ = client.answers([stream])[stream]
    if status == 200:
        assert upstream.last.headers.get(bad[0]) in (None, "")


def test_without_tls(serving: Start, upstream: Upstream) -> None:
    """An address with http2 alone is for clients who know; others are for HTTP/1.1."""
    running = serving(served(upstream), tls="http2")
    with speaking_plainly(running.tls_port) as client:
        streams = [client.ask(f"/{i}") for i in range(3)]
        assert [status for status, _ in client.answers(streams).values()] == [200] * 3
    assert upstream.last.headers.get("x-forwarded-proto") == "http"
    assert running.get("/").status_code == 200
    with socket.create_connection(("127.0.0.1", running.proxy_port), timeout=20) as plain:
        plain.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert b"HTTP/2" not in plain.recv(65536)
