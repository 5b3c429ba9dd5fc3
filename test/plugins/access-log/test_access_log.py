"""The access log: its lines, with arbitrary bytes, which requests it has, and where it goes."""

import json
import random
import re
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from nginx import Nginx
from sluice import Gateway, Start, proxying
from upstream import DeadPort, Exchange, Upstream, self_signed
from wire import ClosedEarly, wait_until

FIELDS = [
    "time", "request_id", "client", "method", "host", "path", "status", "bytes", "source", "route",
    "service", "consumer", "tries", "tls", "total_ms", "upstream_ms", "gateway_ms",
]  # fmt: skip

UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def lines(running: Gateway, count: int, name: str = "access.log") -> list[str]:
    """The lines of a log, which are to be so many."""
    path = running.settings["prefix"] / "logs" / name

    def read() -> list[str] | None:
        found = path.read_bytes().decode().splitlines() if path.exists() else []
        return found if len(found) >= count else None

    found = wait_until(read, f"{count} lines")
    assert len(found) == count, found
    return found


def entries(running: Gateway, count: int) -> list[dict[str, Any]]:
    """The lines of the access log in JSON."""
    return [json.loads(line) for line in lines(running, count)]


def routes(upstream: Upstream, **plugins: list[dict]) -> dict[str, Any]:
    """A service with a route for each name, `/<name>`, and its plugins."""
    made = [
        {"name": name, "paths": [f"/{name}"], "plugins": found} for name, found in plugins.items()
    ]
    return {"services": [{"name": "one", "url": upstream.url, "routes": made}]}


# What a line says


def test_a_line_has_all_that_is_known_of_a_request(gateway: Start, upstream: Upstream) -> None:
    config = routes(upstream, open=[], keyed=[{"name": "key-auth"}])
    config["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}]
    config["services"][0]["routes"].append({"paths": ["/nameless"]})
    running = gateway(config, access_log_format="json")
    with running.wire() as wire:
        first = wire.ask("/open/a?apikey=k&b=/c", headers={"Host": "A.example:80"})
        wire.ask("/keyed", "POST", {"apikey": "k"}, b"body")
        wire.ask("/keyed")
        wire.ask("/nameless")
        wire.ask("/nowhere")
    opened, keyed, refused, nameless, nowhere = entries(running, 5)

    for entry in (opened, keyed, refused, nameless, nowhere):
        assert list(entry) == FIELDS
        assert entry["client"] == "127.0.0.1"
        assert entry["tls"] is None
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", entry["time"])
        assert entry["total_ms"] >= entry["gateway_ms"] >= 0

    assert opened["request_id"] == first.headers.get("x-kong-request-id")
    assert (opened["method"], opened["host"]) == ("GET", "a.example")
    assert opened["path"] == "/open/a?apikey=REDACTED&b=/c"
    assert opened["status"] == 200
    assert opened["bytes"] > len(first.body)
    assert opened["route"]["name"] == "open"
    assert opened["service"]["name"] == "one"
    assert re.fullmatch(UUID, opened["route"]["id"])
    assert re.fullmatch(UUID, opened["service"]["id"])
    assert opened["consumer"] is None
    (tried,) = opened["tries"]
    assert (tried["address"], tried["status"]) == (upstream.address, 200)
    assert tried["response_ms"] >= tried["header_ms"] >= tried["connect_ms"] >= 0
    assert opened["upstream_ms"] == tried["response_ms"]

    assert keyed["method"] == "POST"
    assert keyed["consumer"]["username"] == "ann"
    assert re.fullmatch(UUID, keyed["consumer"]["id"])
    assert (refused["status"], refused["consumer"], refused["tries"]) == (401, None, [])
    assert refused["upstream_ms"] is None
    assert refused["route"]["name"] == "keyed"
    assert nameless["route"]["name"] is None
    assert nameless["service"] == opened["service"]
    assert (nowhere["status"], nowhere["route"], nowhere["service"]) == (404, None, None)


def test_each_try_is_in_the_line(gateway: Start, upstream: Upstream) -> None:
    with DeadPort() as dead:
        config = proxying(upstream)
        targets = [{"target": dead.address}, {"target": upstream.address}]
        config["upstreams"] = [{"name": "two", "targets": targets}]
        config["services"][0] |= {"host": "two", "retries": 1}
        config["services"][0].pop("url")
        running = gateway(config, access_log_format="json")
        running.expect_log(r"connect\(\) failed", range(1, 3))
        running.ask("/")
        running.ask("/")
        found = [entry["tries"] for entry in entries(running, 2)]
        twice = next(tries for tries in found if len(tries) == 2)
        assert [tried["address"] for tried in twice] == [dead.address, upstream.address]
        assert [tried["status"] for tried in twice] == [502, 200]
        assert [tried["error"] for tried in twice] == ["connection refused", None]
        assert twice[0]["connect_ms"] is None
        assert twice[0]["header_ms"] is None


def test_a_line_is_right_whatever_bytes_a_client_sends(gateway: Start, upstream: Upstream) -> None:
    seed = time.time_ns() % 2**32
    print("seed", seed)
    chosen = random.Random(seed)
    running = gateway(proxying(upstream), access_log_format="json", log_level="crit")
    sent = 0
    for _ in range(300):
        raw = bytes(chosen.choices(range(256), k=chosen.randrange(1, 30)))
        path = raw if chosen.random() < 0.3 else raw.translate(None, b"\x00\r\n #")
        method = chosen.choice([b"GET", b"GET", b"HEAD", b"P\xc3", b"X-\xff"])
        host = chosen.choice([b"a", b"a", raw.translate(None, b"\r\n")])
        with running.wire() as wire:
            wire.send(method + b" /" + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
            wire.sock.shutdown(socket.SHUT_WR)
            try:
                wire.read_to_end()
            except (ClosedEarly, ConnectionError):
                continue
        sent += 1
    with running.wire() as wire:
        wire.ask("/" + "\u00e4\u20ac\U0001f600".encode().decode("latin-1") + '\xff\xc3/"\\')
    log = running.settings["prefix"] / "logs" / "access.log"
    wait_until(lambda: log.read_bytes().count(b'"status"') > sent // 2, "the lines")
    wait_until(lambda: "\u20ac" in log.read_bytes().decode(), "the last line")
    found = [json.loads(line) for line in log.read_bytes().decode().split("\n")[:-1]]
    assert all(list(entry) == FIELDS for entry in found)
    assert found[-1]["path"] == '/\u00e4\u20ac\U0001f600\ufffd\ufffd/"\\'


def test_tls_is_in_the_line(tmp_path: Path) -> None:
    self_signed(tmp_path)
    nginx = Nginx(f"""
        log_format line escape=none '$sluice_access_log_line';
        server {{
            listen 127.0.0.1:@port@ ssl;
            ssl_protocols TLSv1.2 TLSv1.3;
            ssl_certificate {tmp_path}/cert.pem;
            ssl_certificate_key {tmp_path}/key.pem;
            access_log @run@/logs/access.log line;
            location / {{ return 200; }}
        }}
    """)
    try:
        nginx.start()
        for version, name in (
            (ssl.TLSVersion.TLSv1_2, "b.example"),
            (ssl.TLSVersion.TLSv1_3, None),
        ):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.minimum_version = context.maximum_version = version
            plain = socket.create_connection(("127.0.0.1", nginx.proxy_port), timeout=30)
            with context.wrap_socket(plain, server_hostname=name) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                assert b" 200 " in client.recv(4096)
        found = [entry["tls"] for entry in entries(nginx, 2)]
        assert found == [
            {"version": "TLSv1.2", "sni": "b.example"},
            {"version": "TLSv1.3", "sni": None},
        ]
    finally:
        nginx.stop()


def test_a_server_name_of_any_bytes(gateway: Start) -> None:
    """OpenSSL's client sends what it is told; names with control characters get no handshake."""
    running = gateway({}, tls="ssl", access_log_format="json")
    names = [b'"', b"\\", b'"}{"a":1', b"\xff\xc3(", "\u20ac".encode(), b"\xed\xa0\x80", b"x" * 255]
    for name in names:
        at = f"127.0.0.1:{running.tls_port}"
        asked = subprocess.run(
            ["openssl", "s_client", "-quiet", "-connect", at, "-servername", name],
            input=b"GET / HTTP/1.0\r\n\r\n",
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert asked.stdout.startswith(b"HTTP/1.1 404 "), asked
    found = [entry["tls"]["sni"] for entry in entries(running, len(names))]
    # Each byte that is part of no character is one of U+FFFD.
    assert found == [
        *('"', "\\", '"}{"a":1', "\ufffd\ufffd(", "\u20ac", "\ufffd" * 3, "x" * 255),
    ]


def test_a_format_of_ones_own(gateway: Start, upstream: Upstream) -> None:
    config = routes(upstream, keyed=[{"name": "key-auth"}])
    config["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}]
    names = ("route_name", "service_name", "consumer_username", "tries", "total_ms", "tries_ms")
    form = "|".join(f"$sluice_{name}" for name in (*names, "gateway_ms"))
    ids = "$sluice_route_id $sluice_service_id $sluice_consumer_id"
    running = gateway(config, access_log_format=f"${{request_method}}|{form}|{ids}")
    running.ask("/keyed", headers={"apikey": "k"})
    running.ask("/none")
    known, unknown = lines(running, 2)
    uuids = " ".join([UUID] * 3)
    assert re.fullmatch(rf"GET\|keyed\|one\|ann\|1\|\d+\|\d+\|\d+\|{uuids}", known)
    assert re.fullmatch(r"GET\|-\|-\|-\|0\|\d+\|0\|\d+\|- - -", unknown)


def test_a_format_of_ones_own_in_json(gateway: Start, upstream: Upstream) -> None:
    form = '{"agent": "$http_user_agent", "route": "$sluice_route_name"}'
    running = gateway(proxying(upstream), access_log_format=form)
    running.ask("/", headers={"User-Agent": 'a"b\\c'})
    (entry,) = entries(running, 1)
    assert entry["agent"] == 'a"b\\c'


def test_names_are_those_that_the_request_was_routed_by(gateway: Start, upstream: Upstream) -> None:
    go_on = threading.Event()

    def slowly(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "8"})
        exchange.send(b"half")
        go_on.wait(20)
        exchange.send(b"half")

    upstream.handler = slowly
    config = routes(upstream, before=[])
    for route in config["services"][0]["routes"]:
        route["response_buffering"] = False
    running = gateway(config, access_log_format="json")
    with running.wire() as wire:
        wire.send(b"GET /before HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.read_head()
        running.write_config(routes(upstream, after=[]))
        assert running.command("reload").returncode == 0
        wait_until(lambda: running.ask("/before").status == 404, "the change")
        go_on.set()
        assert wire.read_exactly(8) == b"halfhalf"
    wait_until(lambda: '"status":200' in running.access_log(), "the line")
    found = [json.loads(line) for line in running.access_log().splitlines()]
    (entry,) = [entry for entry in found if entry["status"] == 200]
    assert (entry["route"]["name"], entry["service"]["name"]) == ("before", "one")


# Which requests it has


def test_a_route_may_be_off(gateway: Start, upstream: Upstream) -> None:
    upstream.handler = lambda e: e.reply(int(e.request.headers.get("x-status") or 200))
    config = routes(
        upstream,
        loud=[],
        quiet=[{"name": "access-log", "config": {"sample": 0}}],
        silent=[{"name": "access-log", "config": {"sample": 0, "errors": False}}],
        keyed=[
            {"name": "access-log", "config": {"sample": 0, "errors": False}},
            {"name": "key-auth"},
        ],
    )
    running = gateway(config, access_log_format="$sluice_route_name $status")
    with running.wire() as wire:
        for path in ("/quiet", "/silent", "/keyed", "/loud"):
            wire.ask(path)
            wire.ask(path, headers={"X-Status": "404"})
            wire.ask(path, headers={"X-Status": "500"})
    assert lines(running, 5) == ["quiet 404", "quiet 500", "loud 200", "loud 404", "loud 500"]


def test_a_share_of_the_requests(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200)
    config = routes(upstream, all=[{"name": "access-log", "config": {"sample": 1}}], some=[])
    config["plugins"] = [{"name": "access-log", "config": {"sample": 0.25}}]
    running = gateway(config, access_log_format="$sluice_route_name")
    with running.wire() as wire:
        for _ in range(1000):
            wire.ask("/some")
        for _ in range(10):
            wire.ask("/all")
    wait_until(lambda: running.access_log().split().count("all") == 10, "the lines of the log")
    found = running.access_log().split()
    # Six standard deviations.
    assert 165 < found.count("some") < 335


def test_what_the_plugin_refuses(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    for config in ({"sample": 1.5}, {"sample": -1}, {"sample": "x"}, {"share": 1}):
        running.write_config(
            proxying(upstream) | {"plugins": [{"name": "access-log", "config": config}]}
        )
        done = running.command("check")
        assert done.returncode == 1, config
    ann = {"username": "ann", "plugins": [{"name": "access-log"}]}
    running.write_config(proxying(upstream) | {"consumers": [ann]})
    assert running.command("check").returncode == 1


def test_what_a_format_may_not_say(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    running.expect_log('unknown "no_such_thing" variable')
    for form, words in (
        ("$no_such_thing", "access_log_format: nginx has no variable $no_such_thing"),
        ("costs 5$", "a name after each $"),
        ("${status", "a name after each $"),
        ("classic", "combined"),
    ):
        done = running.command("reload", "--access-log-format", form)
        assert done.returncode in (1, 2)
        assert words in done.stderr, done.stderr
    assert running.ask("/").status == 200
