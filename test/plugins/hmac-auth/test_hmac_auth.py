"""The hmac-auth plugin: which signatures of requests are accepted, and what they cover."""

import hashlib
import hmac
import socket
from base64 import b64encode
from email.utils import formatdate
from time import time
from typing import Any

import pytest
from admin_client import Client

from processes import cpu_seconds
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Pairs, Reply, chunk

JSON = {"Accept": "application/json"}
SECRET = "alices-secret"
NOT_VALID = "HMAC signature cannot be verified"
NOT_SAME = "HMAC signature does not match"
NO_DATE = (
    "HMAC signature cannot be verified, a valid date or x-date header is required for "
    "HMAC Authentication"
)

CONSUMERS = [
    {"username": "alice", "hmacauth_credentials": [{"username": "alice", "secret": SECRET}]},
    {"username": "nobody"},
]


def protected(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route behind hmac-auth."""
    plugin = {"name": "hmac-auth", "config": config}
    return proxying(upstream) | {"consumers": CONSUMERS, "plugins": [plugin]}


def signed(
    lines: list[tuple[str, str]],
    algorithm: str = "sha256",
    secret: str = SECRET,
    username: str = "alice",
    scheme: str = "hmac",
) -> str:
    """A header's value: of names, and what the text to sign has of each."""
    text = "\n".join(line for _, line in lines)
    digest = hmac.new(secret.encode(), text.encode(), algorithm).digest()
    names = " ".join(name for name, _ in lines)
    return (
        f'{scheme} username="{username}", algorithm="hmac-{algorithm}", headers="{names}", '
        f'signature="{b64encode(digest).decode()}"'
    )


def dated(**more: Any) -> Pairs:
    """A request's headers: with a date, signed."""
    date = formatdate(time(), usegmt=True)
    return JSON | {"Date": date, "Authorization": signed([("date", f"date: {date}")], **more)}


def assert_refused(reply: Reply, message: str, challenge: str = "hmac") -> None:
    """Kong's 401."""
    assert reply.status == 401
    assert reply.headers.all("www-authenticate") == [challenge]
    assert reply.json()["message"] == message


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
def test_algorithms(gateway: Start, upstream: Upstream, algorithm: str) -> None:
    running = gateway(protected(upstream))
    headers = dated(algorithm=algorithm)
    assert running.ask("/", headers=headers).status == 200
    assert upstream.last.headers.get("X-Consumer-Username") == "alice"
    assert upstream.last.headers.get("X-Credential-Identifier") == "alice"
    proxied = headers | {"Proxy-Authorization": headers["Authorization"], "Authorization": "x"}
    assert running.ask("/", headers=proxied).status == 200
    assert_refused(running.ask("/", headers=dated(algorithm=algorithm, secret="x")), NOT_SAME)
    others = gateway(protected(upstream, algorithms=["hmac-sha256"]))
    reply = others.ask("/", headers=headers)
    assert (reply.status == 200) == (algorithm == "sha256")
    for other in ("hmac-md5", "hmac-", "", "none", "hmac-sha2567"):
        changed = headers["Authorization"].replace(f"hmac-{algorithm}", other)
        assert_refused(running.ask("/", headers=headers | {"Authorization": changed}), NOT_VALID)


def test_what_a_signature_covers(gateway: Start, upstream: Upstream) -> None:
    """Headers by any name, the first line of each; the request line; what is not there."""
    running = gateway(protected(upstream))
    date = formatdate(time(), usegmt=True)
    target = "/a%2Fb/?x=1&y"
    lines = [
        ("x-date", f"x-date: {date}"),
        ("X-One", "X-One: 1"),
        ("x-none", "x-none:"),
        ("request-line", f"GET {target} HTTP/1.1"),
        ("@request-target", f"@request-target: get {target}"),
        ("host", "host: localhost"),
    ]
    headers: Pairs = [
        ("X-Date", date),
        ("x-one", "1"),
        ("X-One", "2"),
        ("Authorization", signed(lines)),
        *JSON.items(),
    ]
    assert running.ask(target, headers=headers).status == 200
    assert upstream.last.target == target
    for other in ("/a%2fb/?x=1&y", "/a/b/?x=1&y", "/a%2Fb/?x=1", "/a%2Fb/?x=1&y#z"):
        assert_refused(running.ask(other, headers=headers), NOT_SAME)
    assert_refused(running.ask(target, "POST", headers=headers), NOT_SAME)
    assert_refused(running.ask(target, headers=[("X-None", "x"), *headers]), NOT_SAME)
    assert_refused(running.ask(target, headers=[("X-One", "0"), *headers]), NOT_SAME)


DATES = [
    ("Sun, 06 Nov 1994 08:49:37 GMT", False),
    (0, True),
    ("", False),
    (20, True),
    (-250, True),
    (-400, False),
    (400, False),
    (str(int(time())), False),
    ("Tue, 99 Nov 2099 99:99:99 GMT", False),
]


@pytest.mark.parametrize("name", ["Date", "X-Date"])
def test_dates(gateway: Start, upstream: Upstream, name: str) -> None:
    """Either of the two may be right."""
    running = gateway(protected(upstream))
    other = "X-Date" if name == "Date" else "Date"
    for text, is_right in DATES:
        date = formatdate(time() + text, usegmt=True) if isinstance(text, int) else text
        value = signed([("host", "host: localhost")])
        headers = JSON | {name: date, "Authorization": value}
        reply = running.ask("/", headers=headers)
        if is_right:
            assert reply.status == 200, text
        else:
            assert_refused(reply, NO_DATE)
            right = {other: formatdate(time(), usegmt=True)}
            assert running.ask("/", headers=headers | right).status == 200


def test_enforced_headers(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream, enforce_headers=["date", "host"]))
    date = formatdate(time(), usegmt=True)
    both = [("date", f"date: {date}"), ("host", "host: localhost")]
    headers = JSON | {"Date": date}
    assert running.ask("/", headers=headers | {"Authorization": signed(both)}).status == 200
    for lines in (both[:1], both[1:], [("Date", f"Date: {date}"), both[1]]):
        reply = running.ask("/", headers=headers | {"Authorization": signed(lines)})
        assert_refused(reply, NOT_VALID)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
def test_secrets_around_the_blocks_of_hashes(
    serving: Start, upstream: Upstream, algorithm: str
) -> None:
    """What is longer than a block is a key as its hash: 64 bytes, or 128."""
    config = protected(upstream)
    secrets = {f"alice{size}": "k" * size for size in (1, 63, 64, 65, 127, 128, 129, 1000)}
    credentials = [{"username": name, "secret": secret} for name, secret in secrets.items()]
    config["consumers"] = [{"username": "alice", "hmacauth_credentials": credentials}]
    running = serving(config)
    for name, secret in secrets.items():
        more = {"username": name, "algorithm": algorithm}
        assert running.ask("/", headers=dated(secret=secret, **more)).status == 200, name
        assert_refused(running.ask("/", headers=dated(secret=secret + "k", **more)), NOT_SAME)


def test_a_secret_of_more_than_a_megabyte(gateway: Start, upstream: Upstream) -> None:
    """It has no limit of its own: what requests need of it is short."""
    secret = "s" * ((1 << 20) + 1)
    config = protected(upstream)
    credential: dict[str, Any] = {"username": "alice", "secret": secret}
    config["consumers"] = [{"username": "alice", "hmacauth_credentials": [credential]}]
    running = gateway(config)
    assert running.ask("/", headers=dated(secret=secret)).status == 200
    assert_refused(running.ask("/", headers=dated(secret=secret[1:])), NOT_SAME)


def digest_of(body: bytes) -> str:
    """The value of the header Digest."""
    return "SHA-256=" + b64encode(hashlib.sha256(body).digest()).decode()


def test_the_body(gateway: Start, upstream: Upstream) -> None:
    running = gateway(
        protected(upstream, validate_request_body=True), client_body_buffer_size="16k"
    )

    def ask(body: bytes | None, digest: str | None) -> Reply:
        headers = dated() | ({"Digest": digest} if digest is not None else {})
        return running.ask("/", "POST", headers=headers, body=body)

    for body in (b"x", b"xy", b"xyz", b"x" * 5000, b""):
        assert ask(body, digest_of(body)).status == 200
        assert upstream.last.body == body
        assert_refused(ask(body, digest_of(body + b"x")), NOT_SAME)
        assert_refused(ask(body, digest_of(body).replace("SHA-256", "sha-256")), NOT_SAME)
        assert_refused(ask(body, ""), NOT_SAME)
    assert ask(b"", None).status == 200
    assert ask(None, None).status == 200
    assert_refused(ask(b"x", None), NOT_SAME)
    large = b"x" * 100_000
    assert_refused(ask(large, digest_of(large)), NOT_SAME)


def posted(said: str, digest: str) -> bytes:
    """The head of a request that is signed, which says how long its body is."""
    lines = {"Host": "localhost"} | dated() | {"Digest": digest}
    return (
        f"POST / HTTP/1.1\r\n{said}\r\n".encode()
        + b"".join(f"{name}: {value}\r\n".encode() for name, value in lines.items())
        + b"\r\n"
    )


BODY = b"one two three"
CHUNKED = "Transfer-Encoding: chunked"
WHOLE = chunk(BODY[:5]) + chunk(BODY[5:]) + chunk(b"")


def test_a_body_in_chunks(gateway: Start, upstream: Upstream) -> None:
    """The digest is of what they carry; what is none of them reaches no upstream."""
    running = gateway(protected(upstream, validate_request_body=True))

    def ask(sent: bytes, digest: str) -> Reply:
        with running.wire() as wire:
            wire.send(posted(CHUNKED, digest) + sent)
            return wire.read_reply()

    assert ask(WHOLE, digest_of(BODY)).status == 200
    assert upstream.last.body == BODY
    assert ask(chunk(b""), digest_of(b"")).status == 200
    assert_refused(ask(WHOLE, digest_of(BODY + b"x")), NOT_SAME)
    assert_refused(ask(WHOLE, digest_of(WHOLE)), NOT_SAME)
    assert_refused(ask(chunk(BODY[:5]) + chunk(b""), digest_of(BODY)), NOT_SAME)
    running.expect_log("client sent invalid chunked body")
    assert ask(chunk(BODY) + b"no chunk\r\n", digest_of(BODY)).status == 400
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (CHUNKED, chunk(BODY)),
        (CHUNKED, chunk(BODY)[:-4]),
        (f"Content-Length: {len(BODY) + 1}", BODY),
        (f"Content-Length: {len(BODY)}", b""),
    ],
)
def test_a_body_that_does_not_end(
    gateway: Start, upstream: Upstream, ends: bool, said: str, sent: bytes
) -> None:
    """Whether the client waits, and is cut, or leaves: the upstream hears of nothing."""
    config = protected(upstream, validate_request_body=True)
    running = gateway(config, client_body_timeout="1s")
    with running.wire() as wire:
        wire.send(posted(said, digest_of(BODY)) + sent)
        if ends:
            wire.sock.shutdown(socket.SHUT_WR)
        assert b" 200 " not in wire.read_to_end()
    assert running.ask("/", headers=dated()).status == 200
    assert len(upstream.requests) == 1


def test_a_body_longer_than_it_is_said_to_be(gateway: Start, upstream: Upstream) -> None:
    """What follows is another request, that is signed for itself."""
    running = gateway(protected(upstream, validate_request_body=True))
    said = f"Content-Length: {len(BODY)}"
    after = b"GET /after HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
    for digest, status in ((digest_of(BODY), 200), (digest_of(BODY + after), 401)):
        with running.wire() as wire:
            wire.send(posted(said, digest) + BODY + after)
            assert wire.read_reply().status == status
            assert_refused(wire.read_reply(), "Unauthorized")
    [request] = upstream.requests
    assert request.body == BODY


MALFORMED = [
    "hmac",
    "hmac x",
    'hmac username="alice"',
    'hmac username="alice", algorithm="hmac-sha256", headers="date"',
    'hmac username="", algorithm="hmac-sha256", headers="date", signature="eA=="',
    'hmac username="alice", algorithm="hmac-sha256", headers="", signature="eA=="',
    'hmac username="alice" algorithm="hmac-sha256" headers="date" signature="eA=="',
    'hmac algorithm="hmac-sha256", username="alice", headers="date", signature="eA=="',
    'hmac username="alice", algorithm="hmac-sha256", headers="date", signature="eA==',
    'HMAC username="alice", algorithm="hmac-sha256", headers="date", signature="eA=="',
    "Basic YWxpY2U6YQ==",
]


def test_malformed_headers(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream))
    for text in MALFORMED:
        reply = running.ask("/", headers=dated() | {"Authorization": text})
        assert_refused(reply, NOT_VALID)
    assert_refused(running.ask("/", headers=JSON), "Unauthorized")
    assert_refused(running.ask("/", headers=dated(username="ghost")), NOT_VALID)
    for signature in ("!", "eA", "x" * 200, "A" * 43 + "="):
        text = dated()["Authorization"].split('signature="')[0] + f'signature="{signature}"'
        reply = running.ask("/", headers=dated() | {"Authorization": text})
        assert_refused(reply, NOT_SAME)
    assert running.ask("/", headers=dated(scheme="x y, Hmac  ")).status == 200
    assert len(upstream.requests) == 1


def test_long_headers_named_often_cost_little(gateway: Start, upstream: Upstream) -> None:
    """The product of names and bytes is bounded."""
    running = gateway(protected(upstream), workers=1, large_client_header_buffers="8 32k")
    date = formatdate(time(), usegmt=True)
    [worker] = running.workers()
    before = cpu_seconds(worker)
    for count, message in ((101, NOT_VALID), (10_000, NOT_VALID), (100, NOT_SAME)):
        names = " ".join(["x"] * count)
        text = (
            f'hmac username="alice", algorithm="hmac-sha256", headers="{names}", signature="eA=="'
        )
        headers = JSON | {"Date": date, "X": "y" * 30_000, "Authorization": text}
        for _ in range(10):
            assert_refused(running.ask("/", headers=headers), message)
    assert cpu_seconds(worker) - before < 2


def test_hidden_and_anonymous(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream, hide_credentials=True, anonymous="nobody", realm="r"))
    for headers, who in ((dated(), "alice"), (dated(secret="x"), "nobody"), ({}, "nobody")):
        assert running.ask("/", headers=headers).status == 200
        assert upstream.last.headers.get("X-Consumer-Username") == who
        assert "Authorization" not in upstream.last.headers
    refusing = gateway(protected(upstream, realm='my "api"'))
    assert_refused(refusing.ask("/", headers=JSON), "Unauthorized", r'hmac realm="my \"api\""')


def test_credentials(client: Client, upstream: Upstream) -> None:
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "hmac-auth"})
    client.must(201, "POST", "/consumers", {"username": "alice"})
    at = "/consumers/alice/hmac-auth"
    made = client.must(201, "POST", at, {"username": "alice"})
    assert len(made["secret"]) == 32
    assert client.running.ask("/", headers=dated(secret=made["secret"])).status == 200
    client.must(200, "PATCH", f"{at}/alice", {"secret": "two"})
    assert_refused(client.running.ask("/", headers=dated(secret=made["secret"])), NOT_SAME)
    assert client.running.ask("/", headers=dated(secret="two")).status == 200
    assert client.ask("DELETE", f"{at}/alice").status == 204
    assert_refused(client.running.ask("/", headers=dated(secret="two")), NOT_VALID)


@pytest.mark.parametrize("line", [b"GET /\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_requests_without_headers(gateway: Start, upstream: Upstream, line: bytes) -> None:
    running = gateway(protected(upstream))
    with running.wire() as wire:
        wire.send(line)
        assert b"Unauthorized" in wire.read_to_end()
    assert upstream.requests == []


def test_bad_settings_are_refused(upstream: Upstream) -> None:
    broken = Gateway(protected(upstream, clock_skew=0, algorithms=["hmac-md5"]))
    done = broken.command("check")
    broken.close()
    assert done.returncode == 1
    assert "clock_skew" in done.stdout + done.stderr
    assert "algorithms" in done.stdout + done.stderr
