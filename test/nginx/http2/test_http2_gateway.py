"""All that a gateway does for requests, for those of HTTP/2: plugins, logs, changes, reloads."""

import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import h2.events
import httpx
import pytest
from changes import document, post
from http2 import Client, served, speaking, speaking_plainly
from log_server import LogServer, logging_to
from versions import VERSION, versioned

from certificates import make
from sluice import Gateway, Start, proxying
from upstream import Exchange, Upstream
from wire import DEADLINE, wait_until

TLS = "ssl http2"

ROOT_ID = "00000000-0000-4000-8000-000000000001"


# Both protocols at once


def is_echo(text: bytes, target: str, body: bytes) -> bool:
    """Whether an answer of the upstream is to just this request."""
    told = json.loads(text)
    return (told["target"], told["sha256"]) == (target, hashlib.sha256(body).hexdigest())


def over_http1(base: str, name: str, http2: bool = False) -> int:
    with httpx.Client(
        base_url=base, http2=http2, verify=False, trust_env=False, timeout=DEADLINE
    ) as client:
        for i in range(40):
            target, body = f"/{name}/{i}", name.encode() * i * 40
            answer = client.post(target, content=body)
            assert answer.http_version == ("HTTP/2" if http2 else "HTTP/1.1")
            assert is_echo(answer.content, target, body)
    return 40


def over_http2(client: Client, name: str) -> int:
    for batch in range(4):
        asked = {}
        for i in range(20):
            target, body = f"/{name}/{batch}/{i}", name.encode() * i * 40
            stream = client.ask(target, method="POST", end=False)
            client.h2.send_data(stream, body, end_stream=True)
            asked[stream] = target, body
        answers = client.answers(list(asked))
        for stream, (target, body) in asked.items():
            status, text = answers[stream]
            assert status == 200
            assert is_echo(text, target, body)
    return 80


def test_both_protocols_at_once(upstream: Upstream) -> None:
    """With TLS and without, many streams and one after the other: each gets its own answers."""
    running = Gateway(served(upstream), tls=TLS, workers=2)
    plain = running.ports.take()
    running.settings["proxy_listen"] += f", 127.0.0.1:{plain} http2"

    def with_tls() -> int:
        with speaking(running) as client:
            return over_http2(client, "streams")

    def without() -> int:
        with speaking_plainly(plain) as client:
            return over_http2(client, "plain")

    with running, ThreadPoolExecutor(8) as pool:
        secure = f"https://127.0.0.1:{running.tls_port}"
        kinds: list[Callable[[], int]] = [
            with_tls,
            without,
            lambda: over_http1(running.proxy, "one"),
            lambda: over_http1(secure, "one-tls"),
            lambda: over_http1(secure, "two", http2=True),
        ]
        counts = [each.result() for each in [pool.submit(kind) for kind in kinds * 2]]
        assert sum(counts) == len(upstream.requests)
    assert max(Counter(seen.target for seen in upstream.requests).values()) == 2


# One connection, several names


def test_a_coalesced_connection(gateway: Start, upstream: Upstream) -> None:
    """A certificate of two names: browsers ask for both on one connection. There the route that
    wants to know the client answers 421; on a connection of its own name it looks."""
    root = make("root", is_ca=True)
    known = make("known client", issuer=root)
    both = make("both", names=("DNS:a.example", "DNS:b.example"))
    snis = [{"name": "a.example"}, {"name": "b.example"}]
    plugin = {"name": "mtls-auth", "config": {"ca_certificates": [ROOT_ID]}}
    routes = [
        {"name": "open", "hosts": ["a.example"], "paths": ["/"]},
        {"name": "guarded", "hosts": ["b.example"], "paths": ["/"], "plugins": [plugin]},
    ]
    config = {
        "certificates": [{"cert": both.cert, "key": both.key, "snis": snis}],
        "ca_certificates": [{"id": ROOT_ID, "cert": root.cert}],
        "services": [{"name": "s", "url": upstream.url, "routes": routes}],
    }
    running = gateway(config, tls=TLS, ask_client_certificate=True)
    for shown in (known, None):
        with speaking(running, "a.example", shown) as client:
            for host, status in [
                ("a.example", 200),
                ("b.example", 421),
                ("B.example:443", 421),
                ("a.example", 200),
            ]:
                stream = client.ask("/", host)
                assert client.answers([stream])[stream][0] == status, host
        assert not [n for n, _ in upstream.last.headers if n.lower().startswith("x-client-cert")]
        with speaking(running, "b.example", shown) as client:
            streams = [client.ask("/", host) for host in ("b.example", "a.example")]
            found = [status for status, _ in client.answers(streams).values()]
        assert found == [200 if shown else 401, 200]
    guarded = [r.headers.get("x-client-cert-dn") for r in upstream.requests]
    assert guarded.count("CN=known client") == 1


# Plugins and logs

TELLS = """
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "tells", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        ngx.req.read_body()
        ngx.req.set_header("X-Length", tostring(#(ngx.req.get_body_data() or "")))
        ngx.req.set_header("X-Asked", ngx.req.get_method() .. " " .. ngx.var.uri)
    end,
    header_filter = function() ngx.header["X-Filtered"] = "yes" end,
    body_filter = function() ngx.ctx.bytes = (ngx.ctx.bytes or 0) + #(ngx.arg[1] or "") end,
    log = function() ngx.log(ngx.NOTICE, "told of ", ngx.ctx.bytes, " bytes") end,
}
"""


def without_times(entry: object) -> object:
    """An entry of http-log, but for what differs between any two requests, or two protocols."""
    own = {"latencies", "started_at", "id", "size", "url", "tls", "date", "reset", "connection"}
    own |= {"content-length", "x-kong-request-id", "ratelimit-reset", "host", "user-agent"}
    own |= {"x-kong-proxy-latency", "x-kong-upstream-latency", "ratelimit-remaining"}
    own |= {"x-ratelimit-remaining-year", "transfer-encoding"}
    if isinstance(entry, dict):
        return {k: without_times(v) for k, v in entry.items() if k not in own}
    return entry


def test_plugins(gateway: Start, upstream: Upstream) -> None:
    """Native ones and one in Lua, and the entry of the log: as of requests of HTTP/1.1."""
    with LogServer() as log:
        config = logging_to(upstream, log.port)
        config["plugins"] += [
            {"name": "key-auth", "config": {"key_in_body": True}},
            {"name": "rate-limiting", "config": {"year": 5, "limit_by": "service"}},
            {"name": "tells"},
        ]
        config["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}]
        running = gateway(config, tls=TLS, plugins={"tells": TELLS})
        running.expect_log(r"told of \d+ bytes", 8)
        form = [("content-type", "application/x-www-form-urlencoded")]
        asked: list[tuple[str, list[tuple[str, str]], bytes, int]] = [
            ("/a?n=1", [("apikey", "k"), ("x-a", "b")], b"x" * 1000, 200),
            ("/a?n=2", form, b"apikey=k", 200),
            ("/a?n=3", [("apikey", "wrong")], b"", 401),
        ]
        seen = []
        for kind in (over_one, over_two):
            upstream.requests.clear()
            answers = [kind(running, *each[:3]) for each in asked]
            assert [status for status, _ in answers] == [each[3] for each in asked]
            seen.append(
                [
                    {n: each.headers.get(n) for n in ("x-consumer-username", "x-length", "x-asked")}
                    for each in upstream.requests
                ]
            )
            assert [head.get("x-filtered") for _, head in answers[:2]] == ["yes", "yes"]
            assert "ratelimit-remaining" in answers[1][1]
        assert seen[0] == seen[1]
        assert seen[0][1]["x-length"] == "8"
        assert over_two(running, "/a?n=4", [("apikey", "k")], b"")[0] == 200
        assert over_two(running, "/a?n=5", [("apikey", "k")], b"")[0] == 429
        log.wait_for_marks(set("12345"))
        wait_until(lambda: len(log.entries) == 8, "entries of all requests")
        entries = sorted(log.entries, key=lambda each: each["request"]["querystring"]["n"])[:6]
        for one, two in zip(entries[::2], entries[1::2], strict=True):
            assert without_times(one) == without_times(two)


def over_one(
    running: Gateway, target: str, fields: list[tuple[str, str]], body: bytes
) -> tuple[int, dict[str, str]]:
    """A request of HTTP/1.1 with TLS: its status and head."""
    with httpx.Client(verify=False, trust_env=False, timeout=DEADLINE) as client:
        url = f"https://127.0.0.1:{running.tls_port}{target}"
        for name in ("accept", "accept-encoding", "connection"):
            del client.headers[name]
        answer = client.post(url, content=body, headers=fields)
        return answer.status_code, {k.lower(): v for k, v in answer.headers.items()}


def over_two(
    running: Gateway, target: str, fields: list[tuple[str, str]], body: bytes
) -> tuple[int, dict[str, str]]:
    """The same of HTTP/2, without a length."""
    with speaking(running) as client:
        stream = client.ask(target, "127.0.0.1", "POST", headers=fields, end=False)
        client.h2.send_data(stream, body, end_stream=True)
        status, _ = client.answers([stream])[stream]
        return status, client.heads[stream]


def test_the_access_log(gateway: Start, upstream: Upstream) -> None:
    """Each stream has its line, those that are reset or refused too."""
    upstream.handler = lambda exchange: (
        exchange.reply(200, body=b"fine") if exchange.request.path == "/fine" else exchange.fill()
    )
    running = gateway(served(upstream), tls=TLS, access_log_format="json")
    with speaking(running, "a.example") as client:
        fine = client.ask("/fine?apikey=k", "A.example:8443")
        assert client.answers([fine])[fine][0] == 200
        held = client.ask("/held", "a.example")
        client.flush()
        upstream.wait_for(2)
        client.h2.reset_stream(held)
        wrong = client.ask("", "a.example")
        assert client.answers([wrong])[wrong][0] == 400

    def read() -> list[dict[str, Any]]:
        found = [json.loads(line) for line in running.access_log().splitlines()]
        return found if len(found) == 3 else []

    lines = wait_until(read, "three lines")
    by_status = {line["status"]: line for line in lines}
    fine_line, held_line, wrong_line = (by_status[status] for status in (200, 499, 400))
    assert fine_line["path"] == "/fine?apikey=REDACTED"
    assert (fine_line["host"], fine_line["method"]) == ("a.example", "GET")
    assert fine_line["tls"] == {"version": "TLSv1.3", "sni": "a.example"}
    assert fine_line["request_id"] == client.heads[fine]["x-kong-request-id"]
    assert fine_line["bytes"] >= len(b"fine")
    assert (held_line["path"], held_line["bytes"]) == ("/held", 0)
    assert wrong_line["route"] is None


def test_the_classic_line_names_the_protocol(gateway: Start, upstream: Upstream) -> None:
    running = gateway(served(upstream), tls=TLS)
    with speaking(running) as client:
        stream = client.ask("/a", headers=[("user-agent", "two")])
        assert client.answers([stream])[stream][0] == 200
    line = wait_until(running.access_log, "a line")
    assert '"GET /a HTTP/2.0" 200 ' in line
    assert "two" in line


# Changes and reloads


def test_streams_go_on_while_the_configuration_changes(gateway: Start, upstream: Upstream) -> None:
    """What is in flight keeps what it began with; the next stream of the connection has the new."""
    go_on = threading.Event()

    def hold(exchange: Exchange) -> None:
        if exchange.request.path != "/quick":
            go_on.wait(DEADLINE)
        exchange.reply(200, body=exchange.request.path.encode())

    with Upstream(hold) as before:
        running = gateway(versioned(before, 1), tls=TLS, plugins=VERSION)
        with speaking(running) as client:
            held = [client.ask(f"/{i}") for i in range(10)]
            upload = client.ask("/upload", method="POST", end=False)
            client.h2.send_data(upload, b"first ")
            quick = client.ask("/quick")
            assert client.answers([quick])[quick] == (200, b"/quick")
            before.wait_for(11)
            assert post(running, document(versioned(upstream, 2))).status_code == 201
            new = client.ask("/new")
            assert client.answers([new])[new][0] == 200
            assert (upstream.last.target, client.heads[new]["x-version"]) == ("/new", "2")
            client.h2.send_data(upload, b"second", end_stream=True)
            go_on.set()
            answers = client.answers([*held, upload])
            assert [answers[stream] for stream in held] == [
                (200, f"/{i}".encode()) for i in range(10)
            ]
            assert answers[upload] == (200, b"/upload")
            assert {client.heads[stream]["x-version"] for stream in held} == {"1"}
        assert before.last.body == b"first second"


def test_streams_outlive_a_reload(gateway: Start, upstream: Upstream) -> None:
    """GOAWAY names the last stream that was taken. Those end; the connection with them."""
    running = gateway(proxying(upstream), tls=TLS, workers=2)
    go_on = upstream.hold(b"from before")
    with speaking(running) as client:
        held = [client.ask(f"/{i}") for i in range(10)]
        client.flush()
        upstream.wait_for(10)
        running.reload()
        go_on.set()
        answers = client.answers(held)
        assert set(answers.values()) == {(200, b"from before")}
        assert not client.receive()
        list(client.frames())
        assert client.last_stream is not None
        assert client.last_stream >= held[-1]
    wait_until(lambda: not running.retiring(), "the old workers to leave")
    with speaking(running) as client:
        stream = client.ask()
        assert client.answers([stream])[stream][0] == 200


def test_a_worker_that_leaves_serves_an_idle_connection_once_more(
    gateway: Start, upstream: Upstream
) -> None:
    """Else a client who asks again and again would keep it as long as it likes."""
    running = gateway(served(upstream), tls=TLS)
    with speaking(running) as client:
        first = client.ask("/first")
        assert client.answers([first])[first][0] == 200
        running.reload()
        more = [client.ask(f"/{i}") for i in range(3)]
        assert {status for status, _ in client.answers(more).values()} == {200}
        for _ in client.events():
            pass
        assert client.last_stream == more[-1]
    wait_until(lambda: not running.retiring(), "the old worker to leave")


class Steady(threading.Thread):
    """Asks ten at a time, again and again. What GOAWAY says was not taken is asked once more on a
    new connection; all else has to be answered."""

    def __init__(self, running: Gateway, name: str) -> None:
        super().__init__(daemon=True)
        self.running, self.mark = running, name
        self.answered: list[str] = []
        self.lost: list[str] = []
        self.again = 0
        self.enough = threading.Event()
        self.start()

    def run(self) -> None:
        number, todo = 0, []
        while todo or not self.enough.is_set():
            with speaking(self.running) as client:
                while client.last_stream is None and (todo or not self.enough.is_set()):
                    while len(todo) < 10:
                        todo.append(f"/{self.mark}-{number}")
                        number += 1
                    todo = self.ask(client, todo)

    def ask(self, client: Client, targets: list[str]) -> list[str]:
        """What is to be asked again."""
        asked = {client.ask(target): target for target in targets}
        ended: dict[int, bool] = {}
        with contextlib.suppress(OSError):
            client.flush()
        for event in client.events():
            if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                ended[event.stream_id] = isinstance(event, h2.events.StreamEnded)
            if len(ended) == len(asked):
                break
        taken = client.last_stream if client.last_stream is not None else max(asked)
        refused = [target for stream, target in asked.items() if stream > taken]
        self.answered += [asked[stream] for stream, whole in ended.items() if whole]
        self.lost += [
            f"{target} on {stream}, last {client.last_stream}"
            for stream, target in asked.items()
            if stream <= taken and not ended.get(stream)
        ]
        self.again += len(refused)
        return refused


@pytest.mark.parametrize("grace", ["0", "5s"])
def test_nothing_is_lost_in_reloads(gateway: Start, upstream: Upstream, grace: str) -> None:
    """Under load, with posted changes between: each request is answered, by an upstream that has
    seen it once."""
    running = gateway(versioned(upstream, 0), tls=TLS, workers=2, plugins=VERSION, idle_grace=grace)
    clients = [Steady(running, f"c{i}") for i in range(3)]
    for number in range(1, 3):
        running.reload(versioned(upstream, 2 * number))
        assert post(running, document(versioned(upstream, 2 * number + 1))).status_code == 201
        before = [len(client.answered) for client in clients]
        wait_until(
            lambda before=before: all(
                len(c.answered) > n + 20 for c, n in zip(clients, before, strict=True)
            ),
            "clients to go on",
        )
    for client in clients:
        client.enough.set()
    for client in clients:
        client.join(DEADLINE)
        assert not client.is_alive()
        assert client.lost == []
    seen = Counter(request.target for request in upstream.requests)
    assert set(seen.values()) == {1}
    assert set(seen) == {target for client in clients for target in client.answered}
