"""What a client cannot say in the gateway's name, however it writes it."""

import itertools
import re
from collections.abc import Iterator

import pytest

from nginx import Nginx
from sluice import Gateway, Start, proxying
from upstream import Upstream

FORGED = "forged"

IDENTITY = [
    "X-Consumer-ID",
    "X-Consumer-Custom-ID",
    "X-Consumer-Username",
    "X-Consumer-Groups",
    "X-Credential-Identifier",
    "X-Credential-Username",
    "X-Anonymous-Consumer",
]

OWN = [
    "Content-Length",
    "Content-Type",
    "Keep-Alive",
    "Proxy-Authorization",
    "Proxy-Connection",
    "Transfer-Encoding",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Path",
    "X-Forwarded-Prefix",
    "X-Forwarded-Client-Cert",
    "X-Real-IP",
    "X-Kong-Request-Id",
    "X-Kong-Proxy-Latency",
]

WITH_KEY = {
    "plugins": [{"name": "key-auth"}],
    "consumers": [{"username": "ann", "custom_id": "7", "keyauth_credentials": [{"key": "k"}]}],
}


# PHP takes the second for the first, and other makers of variables all for it.
MARKS = "_.!#$%&'*+^`|~"


def spellings(name: str) -> list[str]:
    """The name; each way to write some dashes as underscores, or all as another mark; and some of
    the letters."""
    parts = name.split("-")
    ways = [
        "".join(itertools.chain(*zip(parts, (*marks, ""), strict=True)))
        for marks in itertools.product("-_", repeat=len(parts) - 1)
    ]
    ways += [name.replace("-", mark) for mark in MARKS if len(parts) > 1]
    ways += [name.replace("-", mark, 1) for mark in MARKS if len(parts) > 2]
    return [way for written in ways for way in (written, written.upper(), written.lower())]


def cgi(name: str) -> str:
    """The variable that CGI and its like make of a header."""
    return re.sub("[^A-Z0-9]", "_", name.upper())


def told(upstream: Upstream) -> dict[str, list[str]]:
    """What an upstream that makes such variables of the latest request knows."""
    found: dict[str, list[str]] = {}
    for name, value in upstream.last.headers:
        found.setdefault(cgi(name), []).append(value)
    return found


@pytest.fixture(scope="module")
def plain() -> Iterator[tuple[Gateway, Upstream]]:
    """A route without plugins."""
    with Upstream() as upstream, Gateway(proxying(upstream)) as running:
        yield running, upstream


@pytest.mark.parametrize("name", IDENTITY)
def test_identity_of_a_client_never_arrives(plain: tuple[Gateway, Upstream], name: str) -> None:
    running, upstream = plain
    for way in spellings(name):
        sent = [("X-Before", "1"), (way, FORGED), ("X-After", "2")]
        assert running.ask("/", headers=sent).status == 200
        assert cgi(name) not in told(upstream), way
        assert told(upstream)["X_BEFORE"] == ["1"]
        assert told(upstream)["X_AFTER"] == ["2"]


@pytest.mark.parametrize("name", OWN)
def test_own_headers_have_no_second_spelling(plain: tuple[Gateway, Upstream], name: str) -> None:
    running, upstream = plain
    assert running.ask("/", "POST", body=b"body").status == 200
    usual = told(upstream)
    for way in spellings(name):
        if way.lower() == name.lower():
            continue
        assert running.ask("/", "POST", headers={way: FORGED}, body=b"body").status == 200, way
        assert upstream.last.body == b"body"
        seen = told(upstream)
        if name == "X-Kong-Request-Id":
            assert len(seen[cgi(name)]) == 1
            assert FORGED not in seen[cgi(name)]
        else:
            assert seen.get(cgi(name)) == usual.get(cgi(name)), way


def test_other_marks_pass(plain: tuple[Gateway, Upstream]) -> None:
    running, upstream = plain
    names = ["api_key", "X_Api_Key", "X_Forwarded", "XX_Consumer_ID", "X_ConsumerID", "_", "A_"]
    names += [name.replace("_", mark) for name in names for mark in MARKS]
    assert running.ask("/", headers=[(name, "v") for name in names]).status == 200
    assert {name for name, _ in upstream.last.headers} >= set(names)


@pytest.mark.parametrize("position", range(0, 45, 4))
def test_nothing_else_is_lost(plain: tuple[Gateway, Upstream], position: int) -> None:
    """nginx keeps lists of headers in parts of 20: the first, the last, and all of one."""
    running, upstream = plain
    rest = [(f"X-Line-{i}", str(i)) for i in range(45)]
    for count in (1, 2, 20, 41):
        sent = list(rest)
        for i in range(count):
            sent.insert(min(position + 2 * i, len(sent)), ("X_Forwarded_For", FORGED))
        assert running.ask("/", headers=sent).status == 200
        assert [(n, v) for n, v in upstream.last.headers if n.startswith("X-Line-")] == rest
        assert "X_Forwarded_For" not in upstream.last.headers


def test_nothing_but_forged_lines(plain: tuple[Gateway, Upstream]) -> None:
    """The list is empty then, and the gateway writes into it."""
    running, upstream = plain
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.0\r\n" + b"X_Forwarded_For: forged\r\n" * 25 + b"\r\n")
        assert wire.read_reply().status == 200
    assert told(upstream)["X_FORWARDED_FOR"] == ["127.0.0.1"]


def test_identity_behind_authentication(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream) | WITH_KEY)
    for name in IDENTITY:
        for way in spellings(name):
            assert running.ask("/", headers={"apikey": "k", way: FORGED}).status == 200
            seen = told(upstream)
            assert FORGED not in seen.get(cgi(name), []), way
            assert seen["X_CONSUMER_USERNAME"] == ["ann"]
            assert seen["X_CONSUMER_CUSTOM_ID"] == ["7"]


def test_kongs_way_without_authentication(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), client_identity_headers="pass")
    for name in IDENTITY:
        for way in spellings(name):
            assert running.ask("/", headers={way: FORGED}).status == 200
            assert told(upstream).get(cgi(name)) == (
                [FORGED] if way.lower() == name.lower() else None
            ), way


def test_a_trusted_proxy_writes_dashes(gateway: Start, upstream: Upstream) -> None:
    running = gateway(
        proxying(upstream), trusted_ips="127.0.0.1", real_ip_header="X-Client-Address"
    )
    sent = {"X_Forwarded_Host": FORGED, "X_Client_Address": "203.0.113.1", "X-Forwarded-Port": "7"}
    sent |= {"X.Forwarded.Host": FORGED, "X-Client~Address": "203.0.113.1"}
    assert running.ask("/", headers=sent).status == 200
    seen = told(upstream)
    assert seen["X_FORWARDED_HOST"] == ["localhost"]
    assert seen["X_FORWARDED_PORT"] == ["7"]
    assert seen["X_REAL_IP"] == ["127.0.0.1"]
    assert "X_CLIENT_ADDRESS" not in seen


def test_header_prefix_is_the_gateways(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream), header_prefix="X-Edge")
    assert running.ask("/", headers={"X_Edge_Request_Id": FORGED, "X_Kong_A": "v"}).status == 200
    assert FORGED not in told(upstream)["X_EDGE_REQUEST_ID"]
    assert told(upstream)["X_KONG_A"] == ["v"]


def test_plugins_do_not_see_what_is_dropped(gateway: Start, upstream: Upstream) -> None:
    plugin = """
        return { VERSION = "1", PRIORITY = 1, schema = { name = "sees", fields = {
            { config = { type = "record", fields = {} } } } },
            access = function()
                ngx.req.set_header("X-Seen", tostring(ngx.req.get_headers()["x-consumer-id"])
                    .. " " .. tostring(ngx.var.http_x_forwarded_host))
            end }
    """
    running = gateway(
        proxying(upstream) | {"plugins": [{"name": "sees"}]}, plugins={"sees": plugin}
    )
    sent = {"X_Consumer_ID": FORGED, "X-Consumer_ID": FORGED, "X_Forwarded_Host": FORGED}
    assert running.ask("/", headers=sent).status == 200
    assert upstream.last.headers.get("x-seen") == "nil nil"


CONF = """
    server {
        listen 127.0.0.1:@port@;
        underscores_in_headers on;
        sluice_drop_headers X-Gone Y-Gone-*;
        sluice_guard_headers Some-Name;
        location / {
            content_by_lua_block {
                for i = 1, 30 do ngx.req.set_header("X-More-" .. i, i) end
                local names = {}
                for name in pairs(ngx.req.get_headers(0)) do names[#names + 1] = name end
                table.sort(names)
                ngx.say(table.concat(names, " "))
            }
        }
    }
"""


def test_headers_can_be_added_to_what_is_left() -> None:
    more = {f"x-more-{i}" for i in range(1, 31)}
    with Nginx(CONF) as running:
        for sent, left in (
            ([], {"host"}),
            ([("X-Gone", "1")], {"host"}),
            ([("y_GONE_by", "1"), ("A", "1"), ("x_gone", "1")], {"host", "a"}),
            ([("Some_Name", "1"), ("Some-Name", "1")], {"host", "some-name"}),
            ([("X-Gone", "1")] * 60, {"host"}),
        ):
            names = running.ask("/", headers=sent).text.split()
            assert set(names) == left | more
