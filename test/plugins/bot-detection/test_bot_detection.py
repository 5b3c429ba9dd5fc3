"""The bot-detection plugin: who is a bot, who passes all the same, patterns that burn."""

import time
from typing import Any

import pytest
from admin_client import Client
from http2 import speaking
from plugin_pages import example

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Pairs, outcome, request_bytes

BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
PASSES = (200, None)
FORBIDDEN = (403, "Forbidden")
TWICE = (400, "Only one User-Agent header allowed")


def guarded(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route without bots."""
    return proxying(upstream) | {"plugins": [{"name": "bot-detection", "config": config}]}


def agent(*values: str) -> Pairs:
    """Headers of a request."""
    return [("Accept", "application/json"), *(("User-Agent", value) for value in values)]


def test_the_example_of_the_page(serving: Start, upstream: Upstream) -> None:
    running = serving(example("bot-detection", upstream.url))
    for value, expected in {
        BROWSER: PASSES,
        "Googlebot/2.1": FORBIDDEN,
        "Twitterbot/1.0": PASSES,
        "curl/7.88.1": FORBIDDEN,
        "curl/8.5.0": PASSES,
        "": FORBIDDEN,
    }.items():
        assert outcome(running.ask("/orders", headers=agent(value))) == expected, value


BOTS = [
    "Googlebot/2.1",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "Pingdom.com_bot_version_1.4_(http://www.pingdom.com/)",
    "Mozilla/5.0 (Google; http://x/+/web/snippet)",
    "Twitterbot/1.0",
    "aws-cli/2.1.0 Python/3.7",
    "aws-sdk-dotnet-45/3.3",
    "Mozilla/5.0 PTST/180607.1",
    "a/my-bot-1 /somebot-7",
    "EDI/1.6.5 (Edacious)",
    "Y!J-BRJ/1 (YATS)",
    "okhttp",
    "Python-urllib/3.9",
    "my cRaWLer",
    "SPIDER",
    "scrape",
    "NING/1.0",
    "mywww_favicon_x",
    "archive.1234.org_bot",
    "Yandex1",
    "Somebody's Bot/1",
]

NO_BOTS = [
    BROWSER,
    "curl/8.5.0",
    "",
    "facebookexternalhit",
    "aws-cli/2",
    "aws-sdk-dotnet-456/3.3",
    "PTST/180607.1",
    "a PTST/1",
    "somebot",
    "not NING",
    "xEDI/1.6",
    "googlebot",
    "Y!J-BR/1",
    "Yandex",
    "x" * 31 + "favicon",
    "CUBOT",
]


def test_names(serving: Start, upstream: Upstream) -> None:
    running = serving(guarded(upstream))
    assert outcome(running.ask("/", headers=agent())) == PASSES
    for values, expected in ((BOTS, FORBIDDEN), (NO_BOTS, PASSES)):
        for value in values:
            for padded in (value, f" \t{value}  "):
                assert outcome(running.ask("/", headers=agent(padded))) == expected, value


PATTERNS = [
    ({"allow": ["^Good"]}, "Goodbot/1", PASSES),
    ({"allow": ["^Good"]}, "goodbot/1", FORBIDDEN),
    ({"allow": ["^ood"]}, "Goodbot/1", FORBIDDEN),
    ({"allow": ["Good"], "deny": ["Good"]}, "Good", PASSES),
    ({"deny": ["Mozilla"]}, BROWSER, FORBIDDEN),
    ({"deny": ["mozilla"]}, BROWSER, PASSES),
    ({"deny": ["(?i)mozilla"]}, BROWSER, FORBIDDEN),
    ({"deny": ["!|Firefox"]}, BROWSER, FORBIDDEN),
    ({"deny": ["!|firefox"]}, BROWSER, PASSES),
    ({"deny": ["^a$"]}, " a ", FORBIDDEN),
    ({"deny": ["no", "(?<=M)o(?=z)"]}, BROWSER, FORBIDDEN),
    ({"deny": [r"\xe4"]}, "b\xe4r", FORBIDDEN),
]


@pytest.mark.parametrize(("config", "value", "expected"), PATTERNS)
def test_patterns(
    serving: Start,
    upstream: Upstream,
    config: dict[str, Any],
    value: str,
    expected: tuple[int, str | None],
) -> None:
    running = serving(guarded(upstream, **config))
    for _ in range(20):
        assert outcome(running.ask("/", headers=agent(value))) == expected


def test_many_patterns_on_a_fresh_worker(serving: Start, upstream: Upstream) -> None:
    """More than the router compiles in a turn: nobody waits for another one here."""
    running = serving(guarded(upstream, deny=[f"^never{n}x[0-9]+$" for n in range(800)]))
    for _ in range(3):
        assert outcome(running.ask("/", headers=agent(BROWSER))) == PASSES
    assert outcome(running.ask("/", headers=agent("never799x1"))) == FORBIDDEN


def test_two_lines(serving: Start, upstream: Upstream) -> None:
    """Not to be judged by one and read by the other; whatever their case."""
    running = serving(guarded(upstream, allow=[".*"]))
    assert outcome(running.ask("/", headers=agent(BROWSER, BROWSER))) == TWICE
    twice = [*agent(BROWSER), ("USER-AGENT", "Googlebot")]
    assert outcome(running.ask("/", headers=twice)) == TWICE
    assert outcome(running.ask("/", headers=[*agent(BROWSER), ("User_Agent", "x")])) == PASSES
    assert len(upstream.requests) == 1


LONG = ["a" * 7000, "Google" * 1100, "/" * 7000, "1" * 7000, "_favicon" * 800, "archive" * 900]


@pytest.mark.parametrize("value", LONG)
def test_long_values(serving: Start, upstream: Upstream, value: str) -> None:
    """A long header costs time that is linear in its length."""
    running = serving(guarded(upstream))
    began = time.monotonic()
    assert outcome(running.ask("/", headers=agent(value))) == PASSES
    assert time.monotonic() - began < 1


def test_a_pattern_that_burns_has_a_bound(gateway: Start, upstream: Upstream) -> None:
    """It is no match, and none that is missing; others are not held up."""
    running = gateway(guarded(upstream, deny=["(a+)+$", "Firefox"]))
    checked = running.command("check", str(running.file))
    warning = "\"bot-detection\": a client can make the pattern '(a+)+$' exceed"
    assert (checked.returncode, checked.stderr.count("warning: ")) == (0, 1)
    assert warning in checked.stderr
    running.expect_log(r"bot-detection: a pattern takes too long: \(\?-i\)\(a\+\)\+\$", 3)
    for _ in range(3):
        began = time.monotonic()
        reply = running.ask("/", headers=agent("a" * 5000 + "!"))
        assert outcome(reply) == (500, "An unexpected error occurred")
        assert time.monotonic() - began < 1
        assert outcome(running.ask("/", headers=agent("Firefox"))) == FORBIDDEN
        assert outcome(running.ask("/", headers=agent("aaaa"))) == FORBIDDEN
        assert outcome(running.ask("/", headers=agent("Opera!"))) == PASSES
    assert len(upstream.requests) == 3


def test_a_pattern_ends_no_line_of_the_log(serving: Start, upstream: Upstream) -> None:
    running = serving(guarded(upstream, deny=["(a+)+$|\n2026/01/01 [emerg] forged"]))
    running.expect_log(r"bot-detection: a pattern .*\$\|\?2026/01/01 \[emerg\] forged")
    assert running.ask("/", headers=agent("a" * 5000 + "!")).status == 500


@pytest.mark.parametrize("line", [b"GET /\r\n", b"GET / HTTP/1.0\r\nUser-Agent: okhttp\r\n\r\n"])
def test_old_requests(serving: Start, upstream: Upstream, line: bytes) -> None:
    running = serving(guarded(upstream))
    with running.wire() as wire:
        wire.send(line)
        assert (b"Forbidden" in wire.read_to_end()) == (b"okhttp" in line)
    assert len(upstream.requests) == (b"okhttp" not in line)


def test_a_body_that_does_not_end(serving: Start, upstream: Upstream) -> None:
    running = serving(guarded(upstream))
    chunked = [*agent("okhttp"), ("Transfer-Encoding", "chunked")]
    with running.wire() as wire:
        wire.send(request_bytes("/", "POST", chunked) + b"1\r\na\r\n")
        assert outcome(wire.read_reply()) == FORBIDDEN


def test_upgrades_and_http2(upstream: Upstream) -> None:
    headers = [
        *agent("okhttp"),
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "MDEyMzQ1Njc4OTAxMjM0NQ=="),
    ]
    with Gateway(guarded(upstream), tls="ssl http2") as running, speaking(running) as client:
        assert outcome(running.ask("/", headers=headers)) == FORBIDDEN
        field = [(":method", "GET"), (":scheme", "https"), (":authority", "h"), (":path", "/")]
        stream = client.send([*field, ("user-agent", "Googlebot")])
        assert client.answers([stream])[stream][0] == 403
    assert upstream.requests == []


REFUSED = [
    (
        {"allow": ["("]},
        "config.allow.1: not a valid regex: ( (missing closing parenthesis at ",
    ),
    ({"deny": ["a", "[z-a]"]}, "config.deny.2: not a valid regex: [z-a]"),
    ({"deny": ["(*UTF)a"]}, "not a valid regex: (*UTF)a"),
    ({"deny": ["a" * 5000]}, "not a valid regex"),
]


@pytest.mark.parametrize(("config", "words"), REFUSED)
def test_what_is_refused(client: Client, config: dict[str, Any], words: str) -> None:
    reply = client.ask("POST", "/plugins", {"name": "bot-detection", "config": config})
    assert reply.status == 400
    assert words in reply.json()["message"]


def test_its_schema(client: Client) -> None:
    fields = client.must(200, "GET", "/schemas/plugins/bot-detection")["fields"]
    (config,) = [field["config"]["fields"] for field in fields if "config" in field]
    assert [name for entry in config for name in entry] == ["allow", "deny"]
    for entry in config:
        (field,) = entry.values()
        assert field["default"] == []
        assert field["elements"] == {"type": "string", "is_regex": True}
