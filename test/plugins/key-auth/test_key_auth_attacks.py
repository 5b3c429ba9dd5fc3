"""Attacks on key-auth: spellings, repetitions, sizes, boundaries and orders that a client may try
so that it is let in without a key, hides one from the gateway, or has it work for long; slow and
aborting clients, revoked keys."""

import json
import time
from functools import partial
from typing import Any

import pytest
from changes import document, post

from processes import check_cost
from sluice import Start, proxying
from upstream import Upstream
from wire import Pairs, Wire, wait_until

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
PARTS = {"Content-Type": "multipart/form-data; boundary=xx"}

NONE = "No API key found in request"
TWICE = "Duplicate API key found"

CONSUMERS = [
    {"username": "alice", "keyauth_credentials": [{"key": "right"}]},
    {"username": "nobody"},
]


def protected(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route behind key-auth, and who has a key."""
    plugin = {"name": "key-auth", "config": config}
    return proxying(upstream) | {"consumers": CONSUMERS, "plugins": [plugin]}


def told(wire: Wire, target: str, headers: Pairs, method: str = "GET", body: bytes = b"") -> str:
    """What the client is told: "ok", or why not."""
    lines = [*dict(headers).items()] if isinstance(headers, dict) else headers
    lines = [*lines, ("Accept", "application/json")]
    reply = wire.ask(target, method, lines, body or None)
    return "ok" if reply.status == 200 else reply.json()["message"]


def part(name: str, value: str) -> bytes:
    """A part of a form with the boundary xx."""
    return f'--xx\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()


SPELLINGS = [
    ("My_Key", "ok"),
    ("MY_KEY", "ok"),
    ("my-key", "ok"),
    ("mY-kEy", "ok"),
    ("mykey", NONE),
    ("my--key", NONE),
    ("my__key", NONE),
    ("my_key_", NONE),
    ("-my-key", NONE),
    ("my-keys", NONE),
    ("x-my-key", NONE),
    ("my%5fkey", NONE),
]


def test_spellings_of_a_header(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, key_names=["my_key"], hide_credentials=True))
    with running.wire() as wire:
        for header, expected in SPELLINGS:
            assert told(wire, "/", [(header, "right")]) == expected, header
            assert expected != "ok" or header not in upstream.last.headers


def test_both_spellings_of_a_header(serving: Start, upstream: Upstream) -> None:
    """The one that is configured counts, and none of them passes."""
    running = serving(protected(upstream, key_names=["my_key"], hide_credentials=True))
    with running.wire() as wire:
        assert told(wire, "/", [("my-key", "wrong"), ("my_key", "right")]) == "ok"
        assert not {"my_key", "my-key"} & upstream.last.headers.names()
        assert told(wire, "/", [("my-key", "right"), ("my_key", "wrong")]) == "Unauthorized"
        assert told(wire, "/", [("my-key", "right"), ("My-Key", "right")]) == TWICE
        assert told(wire, "/", [("my-key", "right"), ("my_key", "")]) == NONE


@pytest.mark.parametrize("hide", [False, True])
def test_hundreds_of_lines(gateway: Start, upstream: Upstream, hide: bool) -> None:
    config = protected(upstream, key_names=["k", "x_y", "apikey"], hide_credentials=hide)
    running = gateway(config, large_client_header_buffers="4 128k")
    (worker,) = running.workers()
    others: Pairs = [("x-y-z", "v")] * 450

    def ask() -> None:
        with running.wire() as wire:
            assert told(wire, "/", [("apikey", "right")] * 900) == TWICE
            assert told(wire, "/", [("x-y", "right")] * 900) == TWICE
            assert told(wire, "/", [*others, ("apikey", "right"), *others]) == "ok"
            too_many: Pairs = [("apikey", "right")] * 1000
            assert wire.ask("/", headers=too_many).status == 400

    check_cost(worker, 0.3, ask)
    assert ("apikey" in upstream.last.headers) != hide
    assert len(upstream.last.headers.all("x-y-z")) == 900


@pytest.mark.parametrize("name", ["authorization", "cookie", "x-forwarded-for", "user-agent"])
def test_headers_that_nginx_knows_are_hidden(serving: Start, upstream: Upstream, name: str) -> None:
    config = protected(upstream, key_names=[name], hide_credentials=True)
    running = serving(config, access_log_format="$http_user_agent|$http_cookie|$remote_user|end")
    with running.wire() as wire:
        assert told(wire, "/", [("X-A", "1"), (name, "right"), ("X-B", "2")]) == "ok"
    assert "right" not in str(upstream.last.headers)
    assert upstream.last.headers.get("X-A") == "1"
    assert upstream.last.headers.get("X-B") == "2"
    wait_until(lambda: running.access_log().endswith("|end\n"), "the line")
    assert "right" not in running.access_log()


def test_a_query_of_a_megabyte(gateway: Start, upstream: Upstream) -> None:
    config = protected(upstream, hide_credentials=True)
    running = gateway(config, large_client_header_buffers="4 2m")
    (worker,) = running.workers()

    def ask(filling: str) -> None:
        with running.wire() as wire:
            query = filling * (1_000_000 // len(filling))
            expected = TWICE if "apikey=" in filling or "%61" in filling else NONE
            assert told(wire, f"/?{query}", {}) == expected

    for filling in ("&", "=", "%", "a&", "%61pikey&", "apikey=&"):
        check_cost(worker, 0.5, partial(ask, filling))
    query = "&" * 500_000
    with running.wire() as wire:
        assert told(wire, f"/?{query}apikey=right{query}", {}) == "ok"
    assert upstream.last.target == f"/?{query}{query[2:]}"


HIDDEN: list[tuple[str, Pairs, bytes, str]] = [
    ("/?token=KEY", {"apikey": "KEY"}, b"", "/"),
    ("/?a=1&token=KEY&b", {"apikey": "KEY"}, b"", "/?a=1&b"),
    ("/?a=1;apikey=KEY;b=2", {"apikey": "KEY"}, b"", "/?a=1;b=2"),
    ("/?a=1;apikey=KEY&b;%61pikey=KEY&token=KEY;", {"apikey": "KEY"}, b"", "/?a=1&b"),
    ("/?apikey=KEY&token=KEY;KEY&c=3;token=KEY;d", {}, b"", "/?c=3;d"),
    ("/?apikey=KEY", [("token", "KEY"), ("Token", "KEY"), ("x_y", "KEY")], b"", "/"),
    ("/?b", [("X-Y", "KEY"), ("x_y", "KEY")], b"", "/?b"),
    ("/?%61%70%69%6b%65%79=KEY&t%6Fken=KEY&b", {"APIKEY": "KEY", "ToKeN": "KEY"}, b"", "/?b"),
    ("/", {"apikey": "KEY"}, b"token=KEY&c=3;apikey=KEY", "/"),
    ("/", JSON, b'{"api\\u006bey": "KEY", "c": 3, "t\\u006Fken": "KEY"}', "/"),
    ("/?token=KEY", FORM, b"apikey=KEY&x_y=KEY&c=3", "/"),
    (
        "/?apikey=KEY",
        JSON,
        b'{"token": "KEY", "c": 3, "apikey": ["KEY"], "x_y": {"k": "KEY"}}',
        "/",
    ),
    ("/?apikey=KEY", PARTS, part("token", "KEY") + part("c", "3") + b"--xx--", "/"),
]

REPEATED: list[tuple[str, Pairs, bytes, str]] = [
    ("/?apikey=KEY&apikey=KEY", {}, b"", "/"),
    ("/?apikey=KEY;KEY&b=2", {}, b"", "/?b=2"),
    ("/?apikey=;KEY;b&b=2", {}, b"", "/?b=2"),
    ("/?apikey&token=KEY", {}, b"", "/"),
    ("/?apikey=&token=KEY", {}, b"", "/"),
    ("/", [("apikey", "KEY"), ("ApiKey", "KEY")], b"", "/"),
    ("/", [("apikey", ""), ("token", "KEY")], b"", "/"),
    ("/?b", [("X-Y", "KEY"), ("x_y", "KEY"), ("X_y", "KEY")], b"", "/?b"),
    ("/?b;token=KEY", {}, b"", "/?b"),
    ("/?apikey=KEY&%61pikey=KEY&b", {"X-Y": "KEY"}, b"", "/?b"),
    ("/", FORM, b"apikey=KEY&apikey=KEY&c=3", "/"),
    ("/", JSON, b'{"apikey": "KEY", "c": 3, "\\u0061pikey": "KEY"}', "/"),
    ("/", JSON, b'{"apikey": ["KEY"], "c": 3}', "/"),
    ("/", JSON, b'{"apikey": 7, "token": "KEY", "c": 3}', "/"),
]


def sees(upstream: Upstream, secret: str) -> bool:
    """Whether any of the latest request has it."""
    last = upstream.last
    return secret in f"{last.target} {list(last.headers)} {last.body.decode()}"


@pytest.mark.parametrize("key", ["right", "wrong"])
@pytest.mark.parametrize("anonymous", [None, "nobody"])
def test_no_copy_of_a_key_reaches_the_upstream(
    serving: Start, upstream: Upstream, anonymous: str | None, key: str
) -> None:
    """Whatever name, place and divider; also of a key that is wrong, or repeated, and passes as
    nobody's."""
    names = ["apikey", "token", "x_y"]
    running = serving(
        protected(
            upstream, key_names=names, key_in_body=True, hide_credentials=True, anonymous=anonymous
        )
    )
    passes = anonymous or key == "right"
    with running.wire() as wire:
        for case in HIDDEN + (REPEATED if anonymous else []):
            target, given, body, expected = case
            pairs = list(given.items()) if isinstance(given, dict) else given
            headers = [(name, value.replace("KEY", key)) for name, value in pairs]
            if body and "content-type" not in {name.lower() for name, _ in headers}:
                headers += FORM.items()
            sent = body.replace(b"KEY", key.encode())
            method = "POST" if body else "GET"
            reply = wire.ask(target.replace("KEY", key), method, headers, sent or None)
            assert reply.status == (200 if passes else 401), case
            if passes:
                assert not sees(upstream, key), case
                assert upstream.last.target in (expected, f"{expected}?"), case
                assert not body or b"c" in upstream.last.body, case
    assert passes or not upstream.requests


def test_a_request_that_needs_no_key_hides_it(serving: Start, upstream: Upstream) -> None:
    """OPTIONS where it is not asked for, and what another plugin has authenticated."""
    own = """
        local pdk = require("gateway.pdk")
        return {
            VERSION = "1", PRIORITY = 2000,
            schema = { name = "own", fields = { { config = { type = "record", fields = {} } } } },
            access = function()
                if ngx.req.get_method() == "GET" then
                    pdk.authenticate({ id = "own", username = "own" }, { id = "credential" })
                end
            end,
        }
    """
    more = {"key_in_body": True, "hide_credentials": True, "run_on_preflight": False}
    config = protected(upstream, anonymous="nobody", **more)
    config["plugins"].append({"name": "own"})
    running = serving(config, plugins={"own": own})
    with running.wire() as wire:
        for method, who in (("GET", "own"), ("OPTIONS", None)):
            headers = {"apikey": "right"} | FORM
            body = b"c=3&apikey=right"
            assert wire.ask("/?apikey=right&b", method, headers, body).status == 200
            assert not sees(upstream, "right")
            assert (upstream.last.target, upstream.last.body) == ("/?b", b"c=3")
            assert upstream.last.headers.get("x-consumer-username") == who


BODIES = [
    (FORM, b"\0&apikey=right", "ok"),
    (FORM, b"apikey=right\0", "Unauthorized"),
    (FORM, b"apikey\0=right", NONE),
    (FORM, b"apikey%00=right", NONE),
    (FORM, b"apikey=right%00", "Unauthorized"),
    (FORM, b"apikey=%72ight", "ok"),
    (FORM, b"apikey", NONE),
    (FORM, b"apikey=", NONE),
    (FORM, b"apikey=&apikey=right", TWICE),
    (FORM, b"apikey;apikey=right", NONE),
    (JSON, b'{"apikey": "right"}\0{', "ok"),
    (JSON, b'{"apikey": "right"}x', NONE),
    (JSON, b'\0{"apikey": "right"}', NONE),
    (JSON, b'{"apikey": "right\0"}', NONE),
    (JSON, b'{"apikey": "right\\u0000"}', "Unauthorized"),
    (JSON, b'{"apikey\\u0000": "right"}', NONE),
    (JSON, b'{"\\u0061pikey": "\\u0072ight"}', "ok"),
    (JSON, b'{"apikey": "wrong", "\\u0061pikey": "right"}', TWICE),
    (JSON, b'{"a": {"apikey": "right"}}', NONE),
    (JSON, b'{"a": "\\",\\"apikey\\":\\"right"}', NONE),
    (JSON, b'[{"apikey": "right"}]', NONE),
    (JSON, b'{"apikey": ["right"]}', TWICE),
    (JSON, b'{"apikey": {"a": "right"}}', TWICE),
    (JSON, b'{"apikey": null}', NONE),
    (JSON, b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b', "apikey": "right"}', NONE),
    (JSON, b'{"a": ' + b"[" * 999 + b"]" * 999 + b', "apikey": "right"}', "ok"),
    (JSON, b'{"a":' * 100_000, NONE),
    (PARTS, part("apikey", "right") + b"--xx--", "ok"),
    (PARTS, part("apikey", "right"), NONE),
    (PARTS, part("apikey", "right") + part("apikey", "right") + b"--xx--", TWICE),
    (PARTS, b"--xx--" + part("apikey", "right") + b"--xx--", NONE),
    (PARTS, b"--xxx\r\n" + part("apikey", "right") + b"--xx--", "ok"),
    (PARTS, part("filename", "x") + b"--xx--", NONE),
    (PARTS, part('a"; name="apikey', "right") + b"--xx--", NONE),
    (PARTS, part("apikey", "right\r\n--x") + b"--xx--", "Unauthorized"),
    (PARTS, b"--xx\r\n\r\nname=apikey\r\n--xx--", NONE),
]


def test_bodies(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream, key_in_body=True), client_body_buffer_size="1m")
    (worker,) = running.workers()
    with running.wire() as wire:

        def ask(headers: Pairs, body: bytes, expected: str) -> None:
            assert told(wire, "/", headers, "POST", body) == expected, (headers, body[:200])
            # The connection is as good as before.
            assert told(wire, "/?apikey=right", {}) == "ok"

        for each in BODIES:
            check_cost(worker, 0.3, partial(ask, *each))


BOUNDARIES = [
    ('multipart/form-data; boundary="xx"', "xx", "ok"),
    ("MULTIPART/Form-Data; BOUNDARY=xx; charset=utf-8", "xx", "ok"),
    ("multipart/form-data; boundary=xx; boundary=yy", "xx", "ok"),
    ("multipart/form-data; boundary=xx; boundary=yy", "yy", NONE),
    ('multipart/form-data; boundary=yy; boundary="xx"', "xx", "ok"),
    ("multipart/form-data; boundary=", "xx", NONE),
    ('multipart/form-data; boundary=""', "xx", NONE),
    ("multipart/form-data", "xx", NONE),
    ("multipart/mixed; boundary=xx", "xx", NONE),
    (" multipart/form-data; boundary=xx", "xx", "ok"),
    ("x; multipart/form-data; boundary=xx", "xx", NONE),
    ("multipart/form-data; boundary=" + "-" * 3000, "-" * 3000, "ok"),
]


def test_boundaries(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, key_in_body=True))
    body = part("a", "b") + part("apikey", "right") + b"--xx--"
    with running.wire() as wire:
        for content_type, boundary, expected in BOUNDARIES:
            headers = {"Content-Type": content_type}
            sent = body.replace(b"xx", boundary.encode())
            assert told(wire, "/", headers, "POST", sent) == expected, content_type


def test_two_places(serving: Start, upstream: Upstream) -> None:
    """The first place that has the name counts; with hide_credentials no place keeps it."""
    running = serving(protected(upstream, key_in_body=True, hide_credentials=True))
    form = list(FORM.items())
    with running.wire() as wire:

        def ask(header: str | None, query: str, body: bytes) -> str:
            lines = form + ([("apikey", header)] if header is not None else [])
            return told(wire, query, lines, "POST", body)

        assert ask("right", "/?apikey=wrong&a", b"apikey=wrong&b=1") == "ok"
        assert "apikey" not in upstream.last.headers
        assert upstream.last.target == "/?a"
        assert upstream.last.body == b"b=1"
        assert upstream.last.headers.get("content-length") == "3"
        assert ask("wrong", "/?apikey=right", b"apikey=right") == "Unauthorized"
        assert ask("", "/?apikey=right", b"apikey=right") == NONE
        assert ask(None, "/?apikey=right&apikey=right", b"apikey=right") == TWICE
        assert ask(None, "/?apikey", b"apikey=right") == NONE
        assert ask(None, "/?apikey=right", b"apikey=a&apikey=b&c") == "ok"
        assert upstream.last.body == b"c"
        assert ask(None, "/?b", b"a&apikey=right") == "ok"
        assert (upstream.last.target, upstream.last.body) == ("/?b", b"a")


def in_pieces(wire: Wire, pieces: list[bytes]) -> None:
    """Each in a packet of its own."""
    for piece in pieces:
        wire.send(piece)
        time.sleep(0.02)


@pytest.mark.parametrize("hide", [False, True])
def test_a_body_in_chunks(serving: Start, upstream: Upstream, hide: bool) -> None:
    running = serving(protected(upstream, key_in_body=True, hide_credentials=hide))
    head = "POST /?a=1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
    head += f"Content-Type: {FORM['Content-Type']}\r\n\r\n"
    with running.wire() as wire:
        for _ in range(3):
            pieces = [
                b"3\r\nb=1\r\n",
                b"5\r\n&api",
                b"k\r\n6;x=y\r\ney=rig\r\n2\r\nht\r\n",
                b"0\r\n\r\n",
            ]
            in_pieces(wire, [head.encode(), *pieces])
            assert wire.read_reply().status == 200
            assert upstream.last.body == (b"b=1" if hide else b"b=1&apikey=right")
            assert told(wire, "/", {"apikey": "right"}) == "ok"


@pytest.mark.parametrize("hide", [False, True])
def test_a_client_that_asks_first(serving: Start, upstream: Upstream, hide: bool) -> None:
    """Expect: 100-continue. Without a key in the body nobody asks for it, unless all is hidden."""
    running = serving(protected(upstream, key_in_body=True, hide_credentials=hide))
    body = b"a=1&apikey=right"
    head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
    head += f"Content-Type: {FORM['Content-Type']}\r\nContent-Length: {len(body)}\r\n\r\n"
    with running.wire() as wire:
        for _ in range(3):
            wire.send(head.encode())
            assert wire.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
            in_pieces(wire, [body[:9], body[9:]])
            assert wire.read_reply().status == 200
            assert upstream.last.body == (b"a=1" if hide else body)
            assert upstream.last.headers.get("expect") is None


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_old_and_closing_clients(serving: Start, upstream: Upstream, version: str) -> None:
    running = serving(protected(upstream, key_in_body=True, hide_credentials=True))
    body = b"apikey=right&a=1"
    lines = f"Content-Type: {FORM['Content-Type']}\r\nContent-Length: {len(body)}\r\n"
    host = "Host: a\r\nConnection: close\r\n" if version == "1.1" else ""
    for head, sent, status in (
        (f"GET / HTTP/{version}\r\n{host}apikey: right\r\n\r\n", b"", 200),
        (f"GET /?apikey=right HTTP/{version}\r\n{host}\r\n", b"", 200),
        (f"GET / HTTP/{version}\r\n{host}\r\n", b"", 401),
        (f"POST / HTTP/{version}\r\n{host}{lines}\r\n", body, 200),
        (f"POST / HTTP/{version}\r\n{host}{lines}\r\n", body[::-1], 401),
    ):
        with running.wire() as wire:
            in_pieces(wire, [head.encode(), sent[:4], sent[4:]])
            reply = wire.read_head()
            wire.read_to_end()
        assert reply.status == status
        assert b"apikey" not in upstream.last.body


def test_a_request_from_before_headers(serving: Start, upstream: Upstream) -> None:
    """HTTP/0.9 has no header to carry a key, but the upstream is told who asks."""
    running = serving(protected(upstream, hide_credentials=True))
    for line in ("GET /?apikey=right", "GET /"):
        with running.wire() as wire:
            wire.send(f"{line}\r\n".encode())
            wire.read_to_end()
    (request,) = upstream.requests
    assert (request.target, request.headers.get("x-consumer-username")) == ("/", "alice")
    assert running.ask("/?apikey=right").status == 200
    assert (upstream.last.target, upstream.last.headers.get("apikey")) == ("/", None)


def test_clients_that_leave_in_the_body(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, key_in_body=True, hide_credentials=True))
    head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n"
    head += f"Content-Type: {FORM['Content-Type']}\r\n\r\n"
    for leave in (Wire.close, Wire.abort):
        for sent in (b"", b"apikey=right&"):
            with running.wire() as wire:
                in_pieces(wire, [head.encode() + sent])
                leave(wire)
    assert running.ask("/", "POST", FORM, b"apikey=right").status == 200
    assert len(upstream.requests) == 1


def test_a_revoked_key_on_an_open_connection(serving: Start, upstream: Upstream) -> None:
    config = protected(upstream)
    running = serving(config)
    with running.wire() as wire:
        for _ in range(3):
            assert told(wire, "/", {"apikey": "right"}) == "ok"
        changed = json.loads(json.dumps(config))
        changed["consumers"][0]["keyauth_credentials"] = [{"key": "other"}]
        assert post(running, document(changed)).status_code == 201
        assert told(wire, "/", {"apikey": "right"}) == "Unauthorized"
        assert told(wire, "/", {"apikey": "other"}) == "ok"
        assert post(running, document(config)).status_code == 201
        assert told(wire, "/", {"apikey": "right"}) == "ok"
        assert told(wire, "/", {"apikey": "other"}) == "Unauthorized"


def test_a_key_that_is_revoked_while_its_body_comes(serving: Start, upstream: Upstream) -> None:
    config = protected(upstream, key_in_body=True)
    running = serving(config)
    body = b"apikey=right"
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
    head += f"Content-Type: {FORM['Content-Type']}\r\n\r\n"
    with running.wire() as wire:
        assert told(wire, "/?apikey=right", {}) == "ok"
        in_pieces(wire, [head.encode() + body[:5]])
        changed = json.loads(json.dumps(config))
        changed["consumers"][0]["keyauth_credentials"] = []
        assert post(running, document(changed)).status_code == 201
        wire.send(body[5:])
        assert wire.read_reply().status == 401
    assert len(upstream.requests) == 1


def test_many_keys(serving: Start, upstream: Upstream) -> None:
    """More than a worker keeps the digests of, long and short, right and wrong, in turns."""
    config = protected(upstream)
    keys = [f"{'k' * (n % 120)}-{n}" for n in range(2500)]
    config["consumers"] = [
        {"username": f"c{n}", "keyauth_credentials": [{"key": key}]} for n, key in enumerate(keys)
    ]
    running = serving(config)
    with running.wire() as wire:
        for turn in range(2):
            for n, key in enumerate(keys):
                asked = key if n % 5 else key + "x"
                reply = wire.ask("/", headers={"apikey": asked})
                assert reply.status == (200 if n % 5 else 401), (turn, n)
                if n % 5:
                    assert upstream.last.headers.get("x-consumer-username") == f"c{n}"
