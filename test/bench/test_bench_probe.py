"""The slow client and the recording upstream."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from probe import Client, ProbeError, Recorder, difference
from sides import free_address

REQUEST = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def canned(*answers: bytes) -> Iterator[str]:
    """A server that sends each answer for one read, and closes after the last."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            for answer in answers:
                connection.recv(65536)
                connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        thread.join()
        listener.close()


def test_client_keeps_its_connection_and_sees_the_whole_answer() -> None:
    first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nX-A: 2\r\n\r\nok"
    second = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    with canned(first, second) as address, Client(address) as client:
        answer = client.ask(REQUEST)
        assert (answer.status, answer.body, answer.size) == (200, b"ok", len(first))
        assert answer.headers["x-a"] == "1, 2"
        assert client.ask(REQUEST).status == 404


def test_client_reads_chunks() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
    with canned(answer) as address, Client(address) as client:
        found = client.ask(REQUEST)
        assert (found.body, found.size) == (b"abcd", len(answer))


def test_client_says_what_was_wrong() -> None:
    stranger = pytest.raises(ProbeError, match="not an HTTP answer: '220 mail ready'")
    with canned(b"220 mail ready\r\n\r\n") as address, Client(address) as client, stranger:
        client.ask(REQUEST)
    short = pytest.raises(ProbeError, match="closed instead")
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"
    with canned(half) as address, Client(address) as client, short:
        client.ask(REQUEST)


def test_recorder_keeps_the_head_and_frees_its_address() -> None:
    address = free_address()
    with Recorder(address, b"body") as recorder, Client(address) as client:
        for path in (b"/one", b"/two"):
            head = b"GET %s HTTP/1.1\r\nHost: x\r\nX-Case: Kept\r\n\r\n" % path
            assert client.ask(head).body == b"body"
            assert recorder.head == head
    socket.create_server(("127.0.0.1", int(address.split(":")[1]))).close()


def head(line: str, **headers: str) -> bytes:
    lines = [line, *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def test_difference_of_heads() -> None:
    same = head("GET / HTTP/1.1", Host="a", X_Real_IP="1")
    assert difference(same, head("GET / HTTP/1.1", x_real_ip="1", host="a"), []) is None
    assert "request line" in (difference(same, head("GET /b HTTP/1.1"), []) or "")
    # More headers of ours only where that was declared; never fewer, never others.
    more = head("GET / HTTP/1.1", Host="a", X_Real_IP="1", Via="1.1 me")
    assert difference(more, same, ["via"]) is None
    assert "via: 1.1 me" in (difference(more, same, []) or "")
    assert "via: 1.1 me" in (difference(same, more, []) or "")
    other = head("GET / HTTP/1.1", Host="a", X_Real_IP="2")
    assert "x-real-ip: 1" in (difference(same, other, []) or "")
    twice = same.replace(b"\r\n\r\n", b"\r\nHost: a\r\n\r\n")
    assert difference(twice, same, []) is not None
