"""An admin listener that others than this machine reach: which names it takes, and from whom."""

from collections.abc import Iterator

import pytest
from admin_ask import ask, send

from sluice import Gateway

KEY = "key-of-a-consumer"
CONFIG = {"consumers": [{"username": "alice", "keyauth_credentials": [{"key": KEY}]}]}

NAME = "admin.example"


def with_port(running: Gateway, text: str) -> str:
    """Text with the admin listener's port put in."""
    return text.replace("PORT", str(running.admin_port))


@pytest.fixture(scope="module")
def reachable() -> Iterator[Gateway]:
    """A gateway whose admin listener is not for this machine alone."""
    gateway = Gateway(CONFIG, admin_insecure=True, admin_hosts=NAME)
    gateway.settings["admin_listen"] = f"0.0.0.0:{gateway.admin_port}"
    with gateway:
        yield gateway


@pytest.mark.parametrize(
    "host", ["kong", "kong:PORT", "KONG", "kong_admin:8001", "kong-1", "xn--p1ai", "a", NAME]
)
def test_a_reachable_listener_takes_names_without_a_dot(reachable: Gateway, host: str) -> None:
    host = with_port(reachable, host)
    reply = ask(reachable, "/key-auths", headers={"Host": host})
    assert (reply.status, KEY in reply.text) == (200, True)
    own = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    assert ask(reachable, "/key-auths", headers=own).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "kong.evil.example",
        "kong.default.svc",
        "kong.",
        "kong.:PORT",
        ".kong",
        "kong-",
        "-.kong",
        "kong@evil.example",
        "kong evil.example",
        "kong:evil.example",
        "kong%2eevil.example",
        "2130706433",
        "[kong]",
        "kong\u3002evil",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_and_no_other_name(reachable: Gateway, method: str, host: str) -> None:
    head = f"{method} /key-auths HTTP/1.1\r\nHost: {with_port(reachable, host)}\r\n\r\n"
    reply = send(reachable, head.encode(), method)
    # nginx itself refuses what is no Host by its rules.
    assert reply.status in (400, 421)
    assert KEY not in reply.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://evil"},
        {"Origin": "null"},
        {"Origin": "http://kong.evil.example:PORT"},
        {"Origin": "http://kong"},
        {"Origin": "https://kong:PORT"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://kong:PORT"},
    ],
)
def test_and_no_page_of_another_site(reachable: Gateway, headers: dict[str, str]) -> None:
    headers = {name: with_port(reachable, value) for name, value in headers.items()}
    headers["Host"] = with_port(reachable, "kong:PORT")
    assert ask(reachable, "/config", "POST", headers=headers, body=b"{}").status == 403
    for method in ("GET", "OPTIONS"):
        reply = ask(reachable, "/key-auths", method, headers=headers)
        assert (reply.status, KEY in reply.text) == (403, False)
