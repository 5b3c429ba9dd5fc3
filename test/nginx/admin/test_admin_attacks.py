"""Clients of the admin listener that hold connections, smuggle, or forge lines of the audit log."""

import contextlib
import json
import socket
from pathlib import Path

import pytest
from admin_client import Client
from floods import CONNECTIONS, Flood

from sluice import Gateway, Start
from wire import Stream, Wire, chunk, request_bytes, wait_until


def control_socket(running: Gateway) -> Stream:
    """A connection to the control socket."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(running.settings["prefix"] / "run" / "control" / "socket"))
    return Stream(connection)


def test_slow_bodies_leave_room_for_the_control_socket(gateway: Start) -> None:
    """Who keeps bodies coming a byte at a time gets half of the connections, and no more."""
    running = gateway(None, worker_connections=CONNECTIONS)
    head = b"POST /consumers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    slow = [Wire(running.admin_port) for _ in range(CONNECTIONS // 2)]
    try:
        for client in slow:
            client.send(head)
        # Each has been read of when one more is refused.
        late: list[Wire] = []

        def is_refused() -> bool:
            late.append(Wire(running.admin_port))
            return late[-1].read_reply("POST").status == 503

        wait_until(is_refused, "one too many")
        slow += late
        for client in slow[: CONNECTIONS // 2]:
            client.send(b'"')
        asked = control_socket(running)
        asked.send(request_bytes("/services", headers={"Connection": "close"}))
        assert asked.read_to_end().startswith(b"HTTP/1.1 200 ")
    finally:
        for client in slow:
            client.close()
    wait_until(lambda: Client(running).ask("GET", "/services").status == 200, "the listener")


def test_the_fewest_connections(gateway: Start) -> None:
    """The control worker needs some for itself, such as for its timers: then half is too many."""
    running = gateway(None, worker_connections=32)
    line = 'connections refused: the admin listener has 8 open, its most of 32 "worker_connections"'
    running.expect_log(line, range(1, 1000))
    head = b"POST /consumers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with contextlib.ExitStack() as slow:

        def is_refused() -> bool:
            # One whose head has not been read yet gives way to the next instead.
            with contextlib.suppress(ConnectionError):
                slow.enter_context(Wire(running.admin_port)).send(head)
            return line in running.error_log()

        wait_until(is_refused, "one too many")
        for arguments in (["get", "services"], ["status"]) * 3:
            done = running.command(*arguments)
            assert done.returncode == 0, done.stderr


SLOW = {"head": b"GET / HTTP/1.1\r\nHost: loc", "nothing": b""}


@pytest.mark.parametrize(("what", "count"), [("head", 20000), ("nothing", 4000)])
def test_slow_heads_leave_room_for_the_control_socket(
    gateway: Start, what: str, count: int
) -> None:
    """They need no token. The control socket works on, and the listener when they have had their
    time; who sends nothing does not even keep others from the listener."""
    running = gateway(None, worker_connections=CONNECTIONS)
    running.expect_log("connections refused: the admin listener has 128 open", range(1000))
    flood = Flood(running, SLOW[what])
    try:
        # New workers are flooded, too.
        renewing = ["reload", "--new-workers"]
        for arguments in (["get", "services"], ["status"], renewing, ["get", "routes"]):
            flood.add(count // 4)
            done = running.command(*arguments)
            assert done.returncode == 0, done.stderr
        wait_until(lambda: flood.open() <= CONNECTIONS // 2, "the last ones to be accepted")
        if what == "nothing":
            assert flood.refused == 0
            Client(running).must(200, "GET", "/services")
        else:
            # Some have had their time meanwhile, and made place.
            assert flood.refused > count / 2
        wait_until(lambda: flood.open() == 0, "the ends of their time")
    finally:
        flood.close()
    Client(running).must(200, "GET", "/services")


# More than the kernel takes of a response that nobody reads.
PAGE_BYTES = 2 * int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])
PAGE = "/consumers?size=1000"


def slow_reader(running: Gateway) -> Wire:
    """A client that has asked for a page of consumers and reads nothing."""
    client = Wire(running.admin_port)
    client.send(request_bytes(PAGE))
    return client


def test_slow_readers_leave_the_copy_for_the_next_start(gateway: Start) -> None:
    """Few reads at a time have a thread and its Lua VM, and none once its answer is on its way."""
    running = gateway(None)
    client, copy = Client(running), running.settings["prefix"] / "store" / "base"
    large = [{"username": f"c{n}", "custom_id": f"{n:0{PAGE_BYTES // 1000}}"} for n in range(1000)]
    client.must(200, "POST", "/apply", {"_format_version": "3.0", "consumers": large})
    wait_until(copy.is_file, "the first copy")
    # So many that a new base is made of them, which is copied.
    many = [{"name": f"s{n}", "host": "h.test"} for n in range(6000)]
    document = {"_format_version": "3.0", "services": many}
    before = copy.stat().st_ino
    with contextlib.ExitStack() as slow:
        readers = [slow.enter_context(slow_reader(running)) for _ in range(16)]
        client.must(200, "POST", "/apply", document)
        readers += [slow.enter_context(slow_reader(running)) for _ in range(16)]
        wait_until(lambda: copy.stat().st_ino != before, "the copy of the new base")
        for reader in readers:
            reply = reader.read_reply()
            assert reply.status == 200
            assert len(reply.body) > PAGE_BYTES


def test_pipelined_requests(running: Gateway) -> None:
    """Each sees what those before it have made; a body is no request."""
    inner = request_bytes("/consumers/inner", "DELETE")
    requests = [
        ("PUT", request_bytes("/consumers/a", "PUT", {"Content-Type": "application/json"}, b"{}")),
        ("GET", request_bytes("/consumers/a")),
        ("POST", request_bytes("/consumers", "POST", {"Content-Type": "text/plain"}, inner)),
        ("DELETE", request_bytes("/consumers/a", "DELETE")),
        ("GET", request_bytes("/consumers/a")),
    ]
    with Wire(running.admin_port) as wire:
        wire.send(b"".join(data for _, data in requests))
        found = [wire.read_reply(method).status for method, _ in requests]
    assert found == [200, 200, 415, 204, 404]


def test_chunked_bodies(running: Gateway) -> None:
    headers = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
    text = json.dumps({"tags": ["x" * 100] * 30}).encode()
    body = b"".join(chunk(text[n : n + 7]) for n in range(0, len(text), 7)) + chunk(b"")
    with Wire(running.admin_port) as wire:
        wire.send(request_bytes("/consumers/chunks", "PUT", headers) + body)
        assert wire.read_reply("PUT").status == 200
        large = chunk(b" " * 3_000_000) + chunk(b"")
        wire.send(request_bytes("/consumers/chunks", "PUT", headers) + large)
        assert wire.read_reply("PUT").status == 413


@pytest.mark.parametrize(
    "lines",
    [
        [("Content-Length", "2"), ("Content-Length", "2")],
        [("Content-Length", "2"), ("Content-Length", "40")],
        [("Content-Length", "2"), ("Transfer-Encoding", "chunked")],
        [("Content-Length", "+2")],
        [("Content-Length", "2, 2")],
        [("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
        [("Transfer-Encoding", "xchunked")],
    ],
)
def test_a_body_of_two_lengths(running: Gateway, lines: list[tuple[str, str]]) -> None:
    """Refused, and nothing that follows on the connection is a request."""
    head = [("Content-Type", "application/json"), *lines]
    with Wire(running.admin_port) as wire:
        wire.send(request_bytes("/consumers/two", "PUT", head) + b"{}")
        wire.send(request_bytes("/consumers/smuggled", "PUT"))
        assert wire.read_reply("PUT").status in (400, 501)
        assert wire.ended()
    for name in ("two", "smuggled"):
        assert Client(running).ask("GET", f"/consumers/{name}").status == 404


def test_large_bodies_are_refused_unread(running: Gateway) -> None:
    """By their length alone, with words."""
    running.expect_log("client intended to send too large body", 1)
    for target, length in (("/consumers", 2 * 1024 * 1024 + 1), ("/config", 2**27 + 1)):
        headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        with Wire(running.admin_port) as wire:
            wire.send(request_bytes(target, "POST", headers))
            reply = wire.read_reply("POST")
        assert reply.status == 413
        assert f"the body is larger than {length - 1} bytes" in reply.json()["message"]


def test_forged_lines_of_the_audit_log(gateway: Start) -> None:
    """One line a request, each JSON, whatever stands in path and headers."""
    running = gateway(None, audit_log="logs/audit.log")
    forged = '","by":"admin_token","x":"'
    targets = [
        "/consumers/a%0a%7B%22by%22%3A%22admin_token%22%7D",
        f"/consumers/{forged}",
        "/consumers/\\n{}",
        "/consumers/%ff",
        "/consumers/x?tags=%0d%0aa",
        "/consumers/\xff\xc3\xbc",
    ]
    for target in targets:
        with Wire(running.admin_port) as wire:
            headers = {"Kong-Admin-Token": forged, "X-Forwarded-For": forged, "User-Agent": forged}
            wire.send(request_bytes(target, "PUT", headers, b""))
            wire.read_reply("PUT")
    path = Path(running.settings["prefix"]) / "logs" / "audit.log"
    wait_until(lambda: path.read_bytes().count(b"\n") >= len(targets), "the lines", 5)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == len(targets), lines
    assert {line["by"] for line in lines} == {"anyone"}
    assert {line["from"] for line in lines} == {"127.0.0.1"}
    assert lines[-1]["path"] == "/consumers/\ufffd\u00fc"


def test_writes_that_nginx_refuses_have_their_line(gateway: Start) -> None:
    """Whatever in them was wrong; what no method was said of is none."""
    running = gateway(None, audit_log="logs/audit.log", workers=1)
    running.expect_log("client intended to send too large body", 1)
    head = b"Host: localhost\r\nContent-Length: 9999999999\r\n\r\n"
    for request in (
        b"PUT /key-auths/a\x7fb HTTP/1.1\r\n\r\n",
        b"DELETE /consumers/a HTTP/x\r\n\r\n",
        b"POST /config?apikey=secret HTTP/1.1\r\n" + head,
        b"PATCH /consumers/a HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"PUT " + b"/" * 40000,
        b"\x16\x03\x01\r\n\r\n",
        b"GET /\x7f HTTP/1.1\r\n\r\n",
        b"POST /last HTTP/1.0\r\n\r\n",
    ):
        with Wire(running.admin_port) as wire:
            wire.send(request)
            wire.read_to_end()
    path = Path(running.settings["prefix"]) / "logs" / "audit.log"
    wait_until(lambda: b"/last" in path.read_bytes(), "the last line")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {(line["by"], line["from"]) for line in lines[:-1]} == {("-", "127.0.0.1")}
    assert [(line["method"], line["path"][:40], line["status"]) for line in lines] == [
        ("PUT", "/key-auths/REDACTED", 400),
        ("DELETE", "/consumers/a", 400),
        ("POST", "/config?apikey=REDACTED", 413),
        ("PATCH", "/consumers/a", 400),
        ("PUT", "/" * 40, 414),
        ("POST", "/last", 421),
    ]
