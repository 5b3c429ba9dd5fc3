"""Whatever the admin listener is asked, it answers with words: no address, no error, no stack."""

import json
import random
import re
from collections.abc import Iterator

import pytest
from seeds import seed_of

from sluice import Gateway
from wire import Reply, Wire, request_bytes

CONFIG = {
    "services": [
        {"name": "orders", "url": "http://127.0.0.1:1", "tags": ["blue"],
         "routes": [{"name": f"r{n}", "paths": [f"/{n}"], "tags": ["blue"]} for n in range(3)]},
        {"name": "stock", "url": "http://127.0.0.1:1", "tags": ["blue"]},
    ],
    "upstreams": [{"name": "pool", "targets": [{"target": "127.0.0.1:1"}]}],
    "consumers": [{"username": "alice", "keyauth_credentials": [{"key": "a"}, {"key": "b"}]}],
}  # fmt: skip

DOCUMENT = json.dumps({"_format_version": "3.0"} | CONFIG).encode()

PAGES = [
    "/", "/status", "/events", "/timers", "/plugins/enabled", "/services", "/routes", "/upstreams",
    "/consumers", "/plugins", "/key-auths", "/certificates", "/snis", "/services/orders",
    "/services/orders/routes", "/upstreams/pool/targets", "/upstreams/pool/targets/all",
    "/consumers/alice/key-auth", "/services/orders/routes/r1",
]  # fmt: skip

ARGUMENTS = [
    "unit", "scale", "size", "offset", "tags", "workers", "wait", "check_hash", "__index", "",
]  # fmt: skip

VALUES = [
    "", "=", "=-0", "=0", "=1", "=2", "=+1", "=%201", "=1%0a", "=-1", "=1.0", "=1e0", "=0x1",
    "=0b1", "=0x1p1", "=1LL", "=nan", "=inf", "=1e308", "=99999999999999999999", "=" + "9" * 3000,
    "=%00", "=%ff", "=%25s%25n%25d", "=%22%5c", "=true", "=b", "=all", "=blue", "=a,b/c", "=,",
    "=/",
]  # fmt: skip

INTERNAL = re.compile(
    r"0x[0-9a-f]{6,}|(?:table|userdata|function|thread): |cdata<|\.lua:\d|stack traceback"
)
"""What only a program's own memory and source have."""

SEED = seed_of("admin_arguments")


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """A gateway with something in each list."""
    with Gateway(CONFIG) as gateway:
        yield gateway


def check_answer(asked: object, reply: Reply) -> None:
    """Fails on an answer that shows what is inside, and on one that is no JSON."""
    # Timers are told by the places of their creation.
    text = re.sub(r"/[\w/.-]+\.lua:\d+", "", reply.body.decode("latin-1"))
    assert not INTERNAL.search(text if "/timers" in str(asked) else reply.body.decode("latin-1")), (
        f"{asked!r}: {reply}"
    )
    # nginx's own: a method, a version of HTTP that it does not have.
    assert reply.status < 500 or reply.status in (501, 505), f"{asked!r}: {reply}"
    if reply.body:
        json.loads(reply.body)


def ask(running: Gateway, target: str, method: str = "GET", body: bytes | None = None) -> Reply:
    """One request, its answer looked at."""
    with Wire(running.admin_port) as wire:
        reply = wire.ask(target, method, body=body)
    check_answer((method, target), reply)
    return reply


@pytest.mark.parametrize("argument", ARGUMENTS)
@pytest.mark.parametrize("page", PAGES)
def test_each_argument_of_each_page(running: Gateway, page: str, argument: str) -> None:
    for value in VALUES:
        one = argument + value
        for query in (one, f"{one}&{one}", f"{one}&{argument}=1"):
            reply = ask(running, f"{page}?{query}")
            assert reply.status in (200, 400), f"{page}?{query}"
            following = reply.json().get("next")
            if following:
                assert re.fullmatch(r"[!-~]+", following), f"{page}?{query}"
                assert ask(running, following).status == 200


@pytest.mark.parametrize("argument", ["wait", "check_hash", "flatten_errors"])
@pytest.mark.parametrize("value", VALUES)
def test_each_argument_of_a_change(running: Gateway, argument: str, value: str) -> None:
    is_right = value in ("=0", "=1")
    one = argument + value
    assert ask(running, f"/config?{one}", "POST", b"{").status == 400
    reply = ask(running, f"/config?{one}", "POST", DOCUMENT)
    assert reply.status in ((201, 304) if is_right else (400,))
    if not is_right:
        assert argument in reply.json()["message"]
    twice = ask(running, f"/config?{one}&{one}", "POST", DOCUMENT)
    assert (twice.status, argument in twice.json()["message"]) == (400, True)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("/status?unit=a&unit=b", "unit must be 'b', 'k', 'm' or 'g', given once"),
        ("/status?unit", "unit must be 'b', 'k', 'm' or 'g', given once"),
        ("/status?scale=-0", "scale must be a whole number between 0 and 20"),
        ("/status?scale=1&scale=2", "scale must be a whole number between 0 and 20"),
        ("/timers?workers=all&workers=all", "workers must be 'all', given once"),
        ("/services?size=0x1", "size must be an integer between 1 and 1000"),
        ("/services?" + "&".join(f"x{n}=1" for n in range(20)), None),
        ("/services?" + "x&" * 20 + "size=many", "more than 20 query arguments"),
        ("/status?" + "x=1&" * 20 + "unit=z", "more than 20 query arguments"),
    ],
)
def test_what_is_said_about_an_argument(running: Gateway, target: str, message: str | None) -> None:
    reply = ask(running, target)
    assert (reply.status, reply.json().get("message")) == (400 if message else 200, message)


PIECES = [
    b"/", b"//", b"services", b"orders", b"upstreams", b"pool", b"targets", b"all", b"consumers",
    b"key-auth", b"plugins", b"enabled", b"config", b"_stub_status", b"sluice_refused", b"__index",
    b"%00", b"%ff", b"%2f", b"%2e", b"%", b"%zz", b"%25", b"?", b"#", b"&", b"=", b"size", b"tags",
    b"..", b".", b";", b"\\", b"*", b"+", b"{", b"a", b"\x80", b"\xff", b"http://", b"localhost",
]  # fmt: skip

METHODS = [
    b"GET", b"GET", b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"TRACE",
    b"CONNECT", b"FOO", b"PROPFIND", b"allowed", b"GET_", b"__INDEX",
]  # fmt: skip

HOSTS = [
    b"localhost", b"127.0.0.1", b"[", b"]", b":", b"::", b"1", b"80", b".", b"@", b",", b"%", b"a",
    b" ", b"\xff",
]  # fmt: skip

NAMES = [b"Origin", b"Sec-Fetch-Site", b"Authorization", b"Kong-Admin-Token", b"Content-Type", b"X"]

OCTETS = bytes(c for c in range(32, 256) if c != 127)


def random_request(source: random.Random) -> tuple[bytes, bytes]:
    """A method, and the whole request."""
    method = source.choice(METHODS)
    slash = b"/" * (source.random() < 0.9)
    target = slash + b"".join(source.choices(PIECES, k=source.randrange(9)))
    version = source.choice([b"HTTP/1.1"] * 8 + [b"HTTP/1.0", b"HTTP/2.0"])
    host = b"".join(source.choices(HOSTS, k=source.randrange(5)))
    lines = [b"Host: " + (host if source.random() < 0.2 else b"localhost")]
    for _ in range(source.randrange(3)):
        value = bytes(source.choices(OCTETS, k=source.randrange(9)))
        lines.append(source.choice(NAMES) + b": " + value)
    lines.append(b"Connection: close")
    return method, b"\r\n".join([b"%s %s %s" % (method, target, version), *lines, b"", b""])


def test_random_requests(running: Gateway) -> None:
    print(f"SEED={SEED}")
    source = random.Random(SEED)
    for _ in range(3000):
        method, request = random_request(source)
        with Wire(running.admin_port) as wire:
            wire.send(request)
            check_answer(request, wire.read_reply(method.decode()))


def test_random_bodies(running: Gateway) -> None:
    print(f"SEED={SEED}")
    source = random.Random(SEED)
    pieces = [
        "_format_version", '"3.0"', "services", "plugins", "config", "name", "null", "true", "1",
        ".nan", "1e400", "~", "[", "]", "{", "}", ":", ": ", ", ", "\n", "\n  ", "- ", "? ", "&a ",
        "*a", "<<", "!!set ", "|", '"', "'", "#", "\t", "\0", "\xff", "=", "%41", "--x\r\n",
    ]  # fmt: skip
    kinds = [
        "application/json", "application/yaml", "text/plain", "application/x-www-form-urlencoded",
        "multipart/form-data", "multipart/form-data; boundary=x",
        'multipart/form-data; boundary=""', "", ";", "x",
    ]  # fmt: skip
    for _ in range(2000):
        body = "".join(source.choices(pieces, k=source.randrange(14))).encode("latin-1")
        kind = source.choice(kinds)
        head = b""
        if source.random() < 0.5:
            head = b'_format_version: "3.0"\n' if "json" not in kind else b'{"services": ['
        if "boundary=x" in kind:
            head = b'--x\r\nContent-Disposition: form-data; name="config"\r\n\r\n' + head
            body += b"\r\n--x--\r\n"
        request = request_bytes("/config", "POST", {"Content-Type": kind}, head + body)
        with Wire(running.admin_port) as wire:
            wire.send(request)
            reply = wire.read_reply()
        check_answer(request, reply)
        assert reply.status in (201, 400, 415)
