"""Who may use the admin listener: the names it goes by, web pages, the token."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from admin_ask import ask, send

from instance import Instance, is_untouched
from sluice import Gateway, Start
from wire import DEADLINE, Pairs, Reply, Wire, request_bytes

KEY = "key-of-a-consumer"
CONFIG = {"consumers": [{"username": "alice", "keyauth_credentials": [{"key": KEY}]}]}

NAME = "admin.example"

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """A gateway whose admin listener has a name beside its addresses."""
    with Gateway(CONFIG, admin_hosts=f"Sluice.internal, {NAME}") as gateway:
        yield gateway


@pytest.fixture(scope="module")
def guarded() -> Iterator[Gateway]:
    """A gateway whose admin listener wants a token."""
    with Gateway(CONFIG, admin_token=TOKEN) as gateway:
        yield gateway


def post(running: Gateway, headers: Pairs) -> Reply:
    """Posts a configuration without anything in it."""
    return ask(running, "/config", "POST", headers=headers, body=b'_format_version: "3.0"')


def is_refused(reply: Reply, status: int) -> bool:
    """Whether an answer says no in the listener's form, and nothing of what the gateway holds."""
    assert KEY not in reply.text
    assert not [name for name in reply.headers.names() if name.startswith("access-control-")]
    return (
        reply.status == status
        and reply.headers.get("content-type") == "application/json; charset=utf-8"
        and list(reply.json()) == ["message"]
    )


def with_port(running: Gateway, text: str) -> str:
    """Text with the admin listener's port put in."""
    return text.replace("PORT", str(running.admin_port))


# Host ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:PORT",
        "LocalHost:1",
        "127.0.0.1",
        "127.0.0.1:PORT",
        "127.8.9.10",
        "10.1.2.3:80",
        "203.0.113.9",
        "[::1]",
        "[::1]:PORT",
        "[2001:DB8::a]:8001",
        "[::ffff:127.0.0.1]",
        NAME,
        f"{NAME}:PORT",
        "ADMIN.Example",
        "sluice.internal:8001",
    ],
)
def test_a_name_of_the_listener_is_answered(running: Gateway, host: str) -> None:
    reply = ask(running, "/key-auths", headers={"Host": with_port(running, host)})
    assert (reply.status, KEY in reply.text) == (200, True)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "localhost.evil.example",
        f"{NAME}.evil.example",
        f"evil.{NAME}",
        "evil.localhost",
        "localhost.",
        f"{NAME}.",
        "127.0.0.1.evil.example",
        "127.0.0.1.nip.io",
        "127.0.0.1.",
        "a",
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "127.0.0.256",
        "localhost@evil.example",
        "evil.example@localhost",
        "evil:x@localhost",
        "localhost:evil.example",
        "localhost:80@evil.example",
        "localhost:",
        "localhost:-1",
        "localhost:65536",
        "localhost:80:80",
        "localhost, evil.example",
        "evil.example localhost",
        "localhost\tevil.example",
        "local_host",
        "[::1",
        "::1",
        "1::2",
        "2001:db8::a",
        "fe80::1:80",
        "[::1]evil.example",
        "[::1%25lo]",
        "[localhost]",
        "[::1]:",
        "localhos\u0167",
        "%6cocalhost",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_any_other_name_is_misdirected(running: Gateway, method: str, host: str) -> None:
    head = f"{method} /key-auths HTTP/1.1\r\nHost: {with_port(running, host)}\r\n\r\n"
    reply = send(running, head.encode(), method)
    if method == "HEAD":
        assert reply.status in (400, 421)
    else:
        # nginx itself refuses what is no Host by its rules.
        assert is_refused(reply, 421) or is_refused(reply, 400)
        if reply.status == 421:
            assert "admin_hosts" in reply.json()["message"]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /key-auths HTTP/1.0\r\n\r\n", 421),
        (b"GET /key-auths HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET /key-auths HTTP/1.0\r\nX-Host: localhost\r\n\r\n", 421),
        (b"GET /key-auths HTTP/1.1\r\n\r\n", 400),
        (b"GET /key-auths HTTP/1.1\r\nHost:\r\n\r\n", 400),
        (b"GET /key-auths HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /key-auths HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET http://evil.example/key-auths HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET http://localhost/key-auths HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        # The authority of an absolute target takes the place of Host (RFC 9112, 3.2.2).
        (b"GET http://evil.example/key-auths HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
        (b"GET http://localhost@evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://127.0.0.1/key-auths HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
        (b"GET http://evil.example/key-auths HTTP/1.0\r\n\r\n", 421),
    ],
)
def test_how_many_names_a_request_has(running: Gateway, head: bytes, status: int) -> None:
    assert is_refused(send(running, head), status)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "[::1]:1", "127.0.0.1:PORT"])
def test_a_whole_address_as_target(running: Gateway, host: str) -> None:
    host = with_port(running, host)
    reply = ask(running, f"http://{host}/key-auths", headers={"Host": host})
    assert (reply.status, KEY in reply.text) == (200, True)


def test_a_request_without_a_header_at_all(running: Gateway) -> None:
    with Wire(running.admin_port) as wire:
        wire.send(b"GET /key-auths\r\n")
        said = wire.read_to_end()
    assert KEY.encode() not in said
    assert b"admin_hosts" in said


# Web pages ----------------------------------------------------------------------


@pytest.mark.parametrize("media_type", [None, "text/plain", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "https://localhost:PORT",
        "http://localhost",
        "http://localhost:1",
        "http://127.0.0.1:PORT",
        f"http://{NAME}:PORT",
        "http://localhost:PORT/",
        "http://localhost:PORT.evil.example",
        "http://evil.example http://localhost:PORT",
        "localhost:PORT",
        "//localhost:PORT",
        "http:localhost:PORT",
    ],
)
def test_a_page_of_another_origin_is_refused(
    running: Gateway, origin: str, media_type: str | None
) -> None:
    headers = {
        "Host": with_port(running, "localhost:PORT"),
        "Origin": with_port(running, origin),
    } | ({"Content-Type": media_type} if media_type else {})
    assert is_refused(post(running, headers), 403)
    for method in ("GET", "OPTIONS"):
        assert is_refused(ask(running, "/key-auths", method, headers=headers), 403)
    assert ask(running, "/status").json()["configuration_version"] == 1


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "None", "same-origin, none", "x"])
def test_a_request_that_another_site_began_is_refused(running: Gateway, site: str) -> None:
    headers = {"Sec-Fetch-Site": site}
    assert is_refused(post(running, headers), 403)
    for method in ("GET", "OPTIONS"):
        assert is_refused(ask(running, "/key-auths", method, headers=headers), 403)


@pytest.mark.parametrize(
    "lines",
    [
        [("Origin", "http://localhost"), ("Origin", "http://localhost")],
        [("Origin", "http://localhost"), ("origin", "http://evil.example")],
        [("Sec-Fetch-Site", "none"), ("sec-fetch-site", "none")],
        [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")],
        # The table that Lua makes of a header has 100 lines unless it is asked for all.
        [*[(f"X-{n}", "") for n in range(200)], ("Origin", "http://evil.example")],
        [*[(f"X-{n}", "") for n in range(200)], ("Sec-Fetch-Site", "cross-site")],
    ],
)
def test_several_lines_and_late_ones(running: Gateway, lines: list[tuple[str, str]]) -> None:
    assert is_refused(post(running, lines), 403)
    assert is_refused(ask(running, "/key-auths", headers=lines), 403)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost:PORT", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "HTTP://LocalHost:PORT"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin"},
    ],
)
def test_its_own_pages_and_typed_addresses_are_answered(
    running: Gateway, headers: dict[str, str]
) -> None:
    headers = {name: with_port(running, value) for name, value in headers.items()}
    headers["Host"] = with_port(running, "localhost:PORT")
    assert ask(running, "/key-auths", headers=headers).status == 200
    options = ask(running, "/key-auths", "OPTIONS", headers=headers)
    assert (options.status, options.headers.get("allow")) == (204, "GET, HEAD, OPTIONS")
    assert not [name for name in options.headers.names() if name.startswith("access-control-")]


def test_a_strangers_body_is_not_read(running: Gateway) -> None:
    head = b"POST /config HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n"
    for body in (b"Content-Length: 100000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"):
        assert is_refused(send(running, head + body), 403)  # and it has not been sent yet
    with Wire(running.admin_port) as wire:
        for _ in range(2):
            wire.send(
                request_bytes("/config", "POST", {"Sec-Fetch-Site": "cross-site"}, b"x" * 100_000)
            )
            assert is_refused(wire.read_reply(), 403)
    folder = Path(running.settings["prefix"]) / "tmp" / "client_body"
    assert not [path for path in folder.rglob("*") if path.is_file()]


# The control socket -------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
def test_the_control_socket_asks_nobody(guarded: Gateway, headers: dict[str, str]) -> None:
    path = str(guarded.settings["prefix"] / "run" / "control" / "socket")
    with httpx.Client(transport=httpx.HTTPTransport(uds=path), timeout=DEADLINE) as client:
        reply = client.get("http://control/key-auths", headers=headers)
    assert (reply.status_code, isinstance(reply.json()["data"], list)) == (200, True)


@pytest.mark.parametrize(
    "lines",
    [
        {"Host": "control"},
        {"Host": "unix"},
        {"Host": "control", "X-Forwarded-For": "unix:", "X-Real-IP": "unix:"},
        {"Host": "unix:/run/control/socket"},
    ],
)
def test_no_client_makes_itself_the_control_socket(gateway: Start, lines: dict[str, str]) -> None:
    running = gateway(CONFIG, trusted_ips="127.0.0.1", admin_token=TOKEN)
    with Wire(running.admin_port) as wire:
        assert wire.ask("/key-auths", headers=lines).status in (400, 421)


# The token ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Kong-Admin-Token": TOKEN},
        {"kong-admin-token": TOKEN},
        {"Authorization": f"Bearer {TOKEN}"},
        {"Authorization": f"bearer   {TOKEN}"},
        # A proxy in front may have its own use for the other.
        {"Kong-Admin-Token": TOKEN, "Authorization": "Basic YTpi"},
    ],
)
def test_who_has_the_token_is_answered(guarded: Gateway, headers: dict[str, str]) -> None:
    headers = {f"X-{n}": "" for n in range(150)} | headers
    assert KEY in ask(guarded, "/key-auths", headers=headers).text
    assert ask(guarded, "/key-auths", "OPTIONS", headers=headers).status == 204
    assert post(guarded, headers | {"Content-Type": "text/html"}).status == 415


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [("Kong-Admin-Token", "")],
        [("Kong-Admin-Token", TOKEN[:-1])],
        [("Kong-Admin-Token", TOKEN + "y")],
        [("Kong-Admin-Token", TOKEN.upper())],
        [("Kong-Admin-Token", "x" * len(TOKEN))],
        [("Kong-Admin-Token", "x" * 7000)],
        [("Kong-Admin-Token", f"Bearer {TOKEN}")],
        [("Kong_Admin_Token", TOKEN)],
        [("Kong-Admin-Token", TOKEN), ("Kong-Admin-Token", TOKEN)],
        [("Kong-Admin-Token", TOKEN), ("kong-admin-token", "x")],
        [("Kong-Admin-Token", "x"), ("Authorization", f"Bearer {TOKEN}")],
        [("Authorization", TOKEN)],
        [("Authorization", "Bearer")],
        [("Authorization", f"Bearer{TOKEN}")],
        [("Authorization", f"Basic {TOKEN}")],
        [("Authorization", f"Bearer {TOKEN} {TOKEN}")],
        [("Authorization", f"Bearer x, Bearer {TOKEN}")],
        [("Authorization", f"Bearer {TOKEN}"), ("Authorization", f"Bearer {TOKEN}")],
        [("Cookie", f"Kong-Admin-Token={TOKEN}")],
        [(f"X-{n}", TOKEN) for n in range(150)],
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_who_has_not_is_refused(
    guarded: Gateway, method: str, lines: list[tuple[str, str]]
) -> None:
    reply = ask(guarded, "/key-auths", method, headers=lines)
    # nginx itself refuses two lines of Authorization.
    assert is_refused(reply, 401) or is_refused(reply, 400)
    if reply.status == 401:
        assert reply.headers.get("www-authenticate") == 'Bearer realm="sluice"'
    assert ask(guarded, f"/key-auths?token={TOKEN}&apikey={TOKEN}", method).status == 401
    assert ask(guarded, "/nothing", method, headers=lines).status == reply.status


def test_the_token_spares_no_other_rule(guarded: Gateway) -> None:
    has = {"Kong-Admin-Token": TOKEN}
    assert is_refused(ask(guarded, "/", headers=has | {"Host": "evil.example"}), 421)
    assert is_refused(ask(guarded, "/", headers=has | {"Origin": "null"}), 403)


def test_a_reload_changes_token_and_names(gateway: Start) -> None:
    running = gateway(CONFIG, admin_token=TOKEN)
    new = {"Kong-Admin-Token": "another-token-of-it", "Host": NAME}
    assert ask(running, "/", headers=new).status == 421
    running.settings |= {"admin_token": new["Kong-Admin-Token"], "admin_hosts": NAME}
    running.reload()
    assert ask(running, "/", headers=new).status == 200
    assert ask(running, "/", headers={"Kong-Admin-Token": TOKEN}).status == 401
    running.settings["admin_token"] = ""
    running.reload()
    assert ask(running, "/").status == 200


def test_the_token_is_shown_nowhere(gateway: Start) -> None:
    running = gateway(CONFIG, admin_token=TOKEN, log_level="info", access_log_format="json")
    has = {"Kong-Admin-Token": TOKEN}
    for target in ("/", "/status", "/events", "/timers", "/plugins/enabled", "/services"):
        reply = ask(running, target, headers=has)
        assert (reply.status, TOKEN in reply.text) == (200, False)
    assert "admin_hosts" in ask(running, "/", headers=has).json()["configuration"]
    ask(running, "/", headers={"Authorization": f"Bearer {TOKEN}x"})
    for verb in ("status", "status --json", "events", "timers", "reload", "reload --new-workers"):
        done = running.command(*verb.split())
        assert (done.returncode, TOKEN in done.stdout + done.stderr) == (0, False)
    for pid in (running.master(), *running.workers()):
        assert TOKEN not in Path(f"/proc/{pid}/cmdline").read_text()
    prefix = Path(running.settings["prefix"])
    holders = {
        p.name for p in prefix.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()
    }
    assert holders == {"settings.json", "start.json"}


# What a start refuses -----------------------------------------------------------


@pytest.mark.parametrize("address", ["0.0.0.0", "[::]", "*"])
def test_a_listener_for_all_wants_a_token(instance: Instance, address: str) -> None:
    listen = f"{address}:{instance.admin_port}"
    (line,) = instance.refuse("start", code=2, admin_listen=listen)
    assert line.startswith(f"sluice: admin_listen: {listen} is not on loopback")
    assert "admin_token" in line
    assert "admin_insecure" in line
    assert is_untouched(instance)
    instance.environment["SLUICE_ADMIN_TOKEN"] = TOKEN
    instance.succeed("start", admin_listen=listen)
    del instance.environment["SLUICE_ADMIN_TOKEN"]
    # What start was given is remembered.
    instance.succeed("reload", "--new-workers")
    for verb in ("reload", "restart"):
        instance.environment["SLUICE_ADMIN_TOKEN"] = ""
        assert "is not on loopback" in instance.refuse(verb, code=2)[0]
        instance.environment["SLUICE_ADMIN_TOKEN"] = "short"
        line = instance.refuse(verb, code=2)[0]
        assert "admin_token (environment SLUICE_ADMIN_TOKEN) is not valid" in line
        assert "short" not in line
    assert instance.status()["running"]
    instance.environment["SLUICE_ADMIN_TOKEN"] = ""
    instance.succeed("reload", admin_insecure="on")
    host = "::1" if address == "[::]" else "127.0.0.1"
    with Wire(instance.admin_port, host) as wire:
        assert wire.ask("/").status == 200


def test_a_token_is_no_flag(instance: Instance) -> None:
    lines = instance.refuse("start", code=2, admin_token=TOKEN)
    assert not any(TOKEN in line for line in lines)
    assert "admin_token has no flag" in lines[0]
    assert is_untouched(instance)
