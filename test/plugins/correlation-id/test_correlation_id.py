"""The correlation-id plugin: which id a request has, the same for the upstream, the client (in
every kind of response) and log entries."""

import re
import threading
import time
from typing import Any

import pytest
from admin_client import Client
from changes import document, post
from http2 import speaking
from log_server import LogServer, logging_to
from plugin_pages import example

from sluice import Start, proxying
from upstream import Exchange, Upstream
from wire import DEADLINE, request_bytes

NAME = "Kong-Request-ID"
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
FORMS = {
    "uuid": UUID,
    "uuid#counter": UUID + "#[1-9][0-9]*",
    "tracker": r"127\.0\.0\.1-(\d+)-(\d+)-(\d+)-(\d+)-(\d+\.\d{3})",
}


def correlated(upstream: Upstream, *more: dict[str, Any], **config: Any) -> dict[str, Any]:
    """One route with the plugin."""
    return proxying(upstream) | {"plugins": [{"name": "correlation-id", "config": config}, *more]}


def told(upstream: Upstream, name: str = NAME) -> str:
    """The id of the last request that the upstream got."""
    (value,) = upstream.last.headers.all(name)
    return value


@pytest.mark.parametrize("generator", FORMS)
def test_forms(serving: Start, upstream: Upstream, generator: str) -> None:
    running = serving(correlated(upstream, generator=generator))
    seen = []
    with running.wire() as wire:
        for _ in range(40):
            assert NAME not in wire.ask("/").headers
            seen.append(told(upstream))
    assert all(re.fullmatch(FORMS[generator], value) for value in seen), seen[0]
    assert len(set(seen)) == len(seen)


def test_a_counter_counts(gateway: Start, upstream: Upstream) -> None:
    """One uuid a worker, and its requests one after another; Kong's default."""
    running = gateway(correlated(upstream))
    seen = []
    for _ in range(3):
        running.ask("/")
        seen.append(told(upstream).split("#"))
    assert len({uuid for uuid, _ in seen}) == 1
    assert [int(count) for _, count in seen] == [1, 2, 3]


def test_where_a_tracker_comes_from(gateway: Start, upstream: Upstream) -> None:
    running = gateway(correlated(upstream, generator="tracker"))
    with running.wire() as wire:
        for nth in range(1, 4):
            wire.ask("/")
            match = re.fullmatch(FORMS["tracker"], told(upstream))
            port, pid, connection, requests, when = match.groups() if match else ("",) * 5
            assert (int(port), int(requests)) == (running.proxy_port, nth)
            assert int(pid) in running.workers()
            assert int(connection) > 0
            assert abs(float(when) - time.time()) < 60


@pytest.mark.parametrize("value", ["mine", "x" * 4000, "a\tb", "\u00e9", '"; drop'])
def test_the_clients_own_is_kept(serving: Start, upstream: Upstream, value: str) -> None:
    running = serving(correlated(upstream, echo_downstream=True))
    sent = value.encode("latin-1").decode("latin-1")
    reply = running.ask("/", headers={"kong-request-id": sent})
    assert reply.headers.all(NAME) == [sent]
    assert told(upstream) == sent


def test_control_characters_of_a_client_come_back_escaped(
    serving: Start, upstream: Upstream
) -> None:
    """Of those that nginx takes: a terminal or a log would obey some."""
    running = serving(correlated(upstream, echo_downstream=True))
    taken = bytes(n for n in [*range(1, 0x20), 0x7F] if n not in b"\t\r\n")
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n%s: a%s\tb\r\n\r\n" % (NAME.encode(), taken))
        reply = wire.read_reply()
    assert reply.status == 200
    escaped = "".join(f"%{byte:02X}" for byte in taken)
    assert reply.headers.all(NAME) == [f"a{escaped}\tb"]


def test_an_empty_one_is_none(serving: Start, upstream: Upstream) -> None:
    running = serving(correlated(upstream, echo_downstream=True))
    reply = running.ask("/", headers={NAME: ""})
    assert re.fullmatch(FORMS["uuid#counter"], told(upstream))
    assert reply.headers.all(NAME) == [told(upstream)]


def test_of_several_the_first_is_echoed(serving: Start, upstream: Upstream) -> None:
    running = serving(correlated(upstream, echo_downstream=True))
    reply = running.ask("/", headers=[(NAME, "one"), (NAME, "two")])
    assert reply.headers.all(NAME) == ["one"]
    assert upstream.last.headers.all(NAME) == ["one", "two"]


def test_another_name(serving: Start, upstream: Upstream) -> None:
    running = serving(correlated(upstream, header_name="X_My-Id", echo_downstream=True))
    reply = running.ask("/", headers={"X-My-Id": "other", NAME: "other"})
    assert re.fullmatch(FORMS["uuid#counter"], told(upstream, "X_My-Id"))
    assert reply.headers.all("X_My-Id") == [told(upstream, "X_My-Id")]
    assert "X_My-Id" in [name for name, _ in reply.headers]


def test_the_upstreams_own_echo_is_replaced(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(headers=[(NAME, "upstream's"), (NAME.lower(), "upstream's")])
    running = gateway(correlated(upstream, echo_downstream=True))
    assert running.ask("/").headers.all(NAME) == [told(upstream)]
    running = gateway(correlated(upstream))
    assert running.ask("/").headers.all(NAME) == ["upstream's", "upstream's"]


# Answers that no upstream gives


REFUSES = """
return {
    VERSION = "1", PRIORITY = %d,
    schema = { name = "refuses", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        if %s then
            return require("gateway.pdk").error(403, "no")
        end
        error("a mistake")
    end,
}
"""


@pytest.mark.parametrize("priority", [2000000, 5])
@pytest.mark.parametrize(("is_told", "status"), [("true", 403), ("false", 500)])
def test_what_plugins_answer(
    serving: Start, upstream: Upstream, priority: int, is_told: str, status: int
) -> None:
    """Whether they run before or behind."""
    config = correlated(upstream, {"name": "refuses"}, echo_downstream=True)
    running = serving(config, plugins={"refuses": REFUSES % (priority, is_told)})
    if status == 500:
        running.expect_log("a mistake", range(1, 3))
    reply = running.ask("/", headers={NAME: "mine"})
    assert (reply.status, reply.headers.all(NAME)) == (status, ["mine"])
    if status == 403:
        assert len(running.ask("/").headers.all(NAME)) == 1


def test_what_native_plugins_answer(serving: Start, upstream: Upstream) -> None:
    running = serving(correlated(upstream, {"name": "key-auth"}, echo_downstream=True))
    reply = running.ask("/")
    assert reply.status == 401
    assert re.fullmatch(FORMS["uuid#counter"], reply.headers.get(NAME) or "")


def test_what_the_gateway_answers(serving: Start, upstream: Upstream) -> None:
    """Without a route, without an upstream, and where nginx refuses the request."""
    config = correlated(upstream, echo_downstream=True)
    config["services"][0]["routes"][0]["paths"] = ["/there"]
    config["services"].append(
        {"name": "dead", "url": "http://127.0.0.1:1", "routes": [{"paths": ["/dead"]}]}
    )
    config["routes"] = [{"name": "none", "paths": ["/none"]}]
    running = serving(config, client_max_body_size="1m")
    running.expect_log("Connection refused|connect\\(\\) failed", range(1, 20))
    running.expect_log("too large body", range(3))
    for path, status in (("/", 404), ("/dead", 502), ("/none", 503)):
        reply = running.ask(path, headers={NAME: "mine"})
        assert (reply.status, reply.headers.all(NAME)) == (status, ["mine"])
        assert re.fullmatch(FORMS["uuid#counter"], running.ask(path).headers.get(NAME) or "")
    for bad, status in (
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (request_bytes("/there", "POST", {"Content-Length": str(2**40)}), 413),
        (request_bytes("/" + "x" * 40000), 414),
    ):
        with running.wire() as wire:
            wire.send(bad)
            reply = wire.read_reply()
        assert reply.status == status
        assert re.fullmatch(FORMS["uuid#counter"], reply.headers.get(NAME) or "")


def test_a_route_has_its_own(serving: Start, upstream: Upstream) -> None:
    """Of an upstream that fails, too; a route without any has none."""
    config = proxying(upstream)
    plugin = {"name": "correlation-id", "config": {"header_name": "X-Id", "echo_downstream": True}}
    config["services"][0]["routes"] = [
        {"name": "with", "paths": ["/with"], "plugins": [plugin]},
        {"name": "without", "paths": ["/without"]},
    ]
    running = serving(config)
    assert "X-Id" in running.ask("/with").headers
    assert "X-Id" not in running.ask("/without").headers
    assert "X-Id" not in running.ask("/nowhere").headers
    upstream.close()
    running.expect_log("connect\\(\\) failed", range(1, 20))
    assert running.ask("/with", headers={"X-Id": "mine"}).headers.all("X-Id") == ["mine"]


# Logs


def test_the_entry_has_it(serving: Start, upstream: Upstream, log: LogServer) -> None:
    config = logging_to(upstream, log.port)
    config["plugins"] += [
        {"name": "correlation-id", "config": {"generator": "uuid"}},
        {"name": "key-auth"},
    ]
    running = serving(config)
    sent = ["", "mine", 'quoted", "correlation_id": "forged', "\xff\xfe", "\\", "x" * 3000]
    for n, value in enumerate(sent):
        assert running.ask(f"/?n={n}", headers={NAME: value}).status == 401
    log.wait_for_marks({str(n) for n in range(len(sent))})
    seen = {entry["request"]["querystring"]["n"]: entry["correlation_id"] for entry in log.entries}
    assert re.fullmatch(UUID, seen["0"])
    expected = [value if value.isascii() else "??" for value in sent]
    assert [seen[str(n)] for n in range(1, len(sent))] == expected[1:]


def test_an_entry_without_it(serving: Start, upstream: Upstream, log: LogServer) -> None:
    running = serving(logging_to(upstream, log.port))
    running.ask("/?n=0", headers={NAME: "mine"})
    log.wait_for_marks({"0"})
    assert "correlation_id" not in log.entries[0]


def test_the_entry_of_a_long_response_has_it(
    serving: Start, upstream: Upstream, log: LogServer
) -> None:
    """The configuration that has made it is gone when the log is written."""
    end = threading.Event()

    def begin(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "4"})
        end.wait(DEADLINE)
        exchange.send(b"done")

    upstream.handler = begin
    config = logging_to(upstream, log.port)
    config["services"][0]["routes"][0]["response_buffering"] = False
    plugin = {"name": "correlation-id", "config": {"header_name": "X-Long"}}
    config["plugins"].append(plugin)
    running = serving(config)
    with running.wire() as wire:
        wire.send(request_bytes("/?n=0"))
        assert wire.read_head().status == 200
        for number in range(3):
            plugin["config"] = {"header_name": f"X-Other-{number}"}
            assert post(running, document(config)).status_code == 201
            upstream.handler = upstream.echo
            assert running.ask(f"/?n=o{number}").status == 200
        end.set()
        assert wire.read_exactly(4) == b"done"
    log.wait_for_marks({"0"})
    (entry,) = [each for each in log.entries if each["request"]["querystring"]["n"] == "0"]
    assert entry["request"]["headers"]["x-long"] == entry["correlation_id"]


# Protocols


def test_the_pages_example(serving: Start, upstream: Upstream) -> None:
    running = serving(example("correlation-id", upstream.url))
    reply = running.ask("/orders")
    assert re.fullmatch(UUID, told(upstream, "X-Correlation-ID"))
    assert reply.headers.all("X-Correlation-ID") == [told(upstream, "X-Correlation-ID")]


def test_http2(serving: Start, upstream: Upstream) -> None:
    running = serving(correlated(upstream, echo_downstream=True), tls="ssl http2")
    with speaking(running) as client:
        streams = [client.ask(), client.ask(headers=[(NAME.lower(), "mine")])]
        client.answers(streams)
        heads = [client.heads[stream] for stream in streams]
    assert re.fullmatch(FORMS["uuid#counter"], heads[0][NAME.lower()])
    assert heads[1][NAME.lower()] == "mine"


@pytest.mark.parametrize("line", [b"GET /\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_requests_without_headers(serving: Start, upstream: Upstream, line: bytes) -> None:
    """HTTP/0.9 has none, and none to the client."""
    running = serving(correlated(upstream, echo_downstream=True))
    with running.wire() as wire:
        wire.send(line)
        wire.read_to_end()
    assert re.fullmatch(FORMS["uuid#counter"], told(upstream))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"header_name": "X Id"}, "header_name"),
        ({"header_name": "X-Id\r\nX-Evil: 1"}, "header_name"),
        ({"header_name": ""}, "header_name"),
        ({"header_name": "Content-Length", "echo_downstream": True}, "header_name"),
        ({"header_name": "transfer_encoding"}, "header_name"),
        ({"header_name": "CONNECTION"}, "header_name"),
        ({"generator": "random"}, "generator"),
    ],
)
def test_configurations_that_are_none(client: Client, config: dict[str, Any], field: str) -> None:
    reply = client.ask("POST", "/plugins", {"name": "correlation-id", "config": config})
    assert reply.status == 400
    assert field in reply.json()["message"]
