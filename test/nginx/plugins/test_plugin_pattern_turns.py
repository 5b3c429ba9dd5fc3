"""Patterns of plugins are compiled beforehand, and in turns: a request waits, and others do not."""

import os
import re
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client
from changes import document, post
from slow_routes import told_apart

from sluice import Gateway, Start
from upstream import Upstream
from wire import Wire, wait_until

# Half a millisecond each to compile.
SLOW = "(?J)" + "(?<a>)" * 99 + r"\k<a>" * 600
MANY = 12
ROUTES = 8
LONG_WORDS = "|".join(f"w@n@x{i:03}" for i in range(400))
FIELDS = {"cors": "origins", "bot-detection": "deny"}
ORIGIN = "https://a.com"

PLUGIN = """return {
    VERSION = "1", PRIORITY = 3000,
    schema = { name = "before", fields = { { config = { type = "record", fields = {} } } } },
    access = function() end,
}"""
IN_LUA = pytest.mark.parametrize("plugins", [{}, {"before": PLUGIN}], ids=["native", "Lua"])


def plugin(name: str, patterns: list[str]) -> dict[str, Any]:
    """A configuration."""
    return {"name": name, "config": {FIELDS[name]: [ORIGIN, *patterns]}}


def begun(gateway: Start, upstream: Upstream, plugins: dict[str, str]) -> Gateway:
    """One whose plugins have just come, so that no worker has compiled their patterns."""
    config = told_apart(upstream, ROUTES + 1, paths=["/@n@/"])
    config["plugins"] = [{"name": name} for name in plugins]
    running = gateway(None, plugins=plugins)
    assert post(running, document(config)).status_code == 201
    client = Client(running)
    for n in range(1, ROUTES + 1):
        slow = [f"{n}{SLOW}x{i}" for i in range(MANY)]
        name = "cors" if n % 2 else "bot-detection"
        client.must(201, "POST", f"/routes/r{n}/plugins", plugin(name, slow))
    # Every worker has this revision.
    assert running.ask(f"/{ROUTES + 1}/").status == 200
    return running


def begin_all(running: Gateway, stack: ExitStack, *numbers: int) -> list[Wire]:
    """Has a request of each plugin waiting, and one of a route without any behind them; or those of
    some routes."""
    paths = numbers or range(1, ROUTES + 2)
    (worker,) = running.workers()
    wires = [stack.enter_context(running.wire()) for _ in paths[:-1]]
    assert {wire.ask("/").status for wire in wires} == {404}
    os.kill(worker, signal.SIGSTOP)
    try:
        # The last one is accepted in their first turn, and read after that.
        wires.append(stack.enter_context(running.wire()))
        for n, wire in zip(paths, wires, strict=True):
            wire.send(
                f"GET /{n}/some HTTP/1.1\r\nHost: a\r\nOrigin: {ORIGIN}\r\nUser-Agent: b\r\n"
                "Connection: close\r\n\r\n".encode()
            )
    finally:
        os.kill(worker, signal.SIGCONT)
    return wires


@IN_LUA
def test_others_have_their_turn(
    gateway: Start, upstream: Upstream, plugins: dict[str, str]
) -> None:
    running = begun(gateway, upstream, plugins)
    with ExitStack() as stack:
        replies = [wire.read_reply() for wire in begin_all(running, stack)]
    assert [reply.status for reply in replies] == [200] * (ROUTES + 1)
    told = [reply.headers.get("Access-Control-Allow-Origin") for reply in replies]
    assert told == [ORIGIN, None] * (ROUTES // 2) + [None]
    wait_until(lambda: running.access_log().count("/some ") == ROUTES + 1, "each is logged")
    ended = re.findall(r"/(\d)/some ", running.access_log())
    assert ended.index(str(ROUTES + 1)) < ROUTES // 2, ended


@IN_LUA
def test_a_client_that_leaves_waits_no_longer(
    gateway: Start, upstream: Upstream, plugins: dict[str, str]
) -> None:
    running = begun(gateway, upstream, plugins)
    with ExitStack() as stack:
        begin_all(running, stack)
    wait_until(lambda: running.access_log().count("/some ") == ROUTES + 1, "each is logged")
    # Another one finds what they have left.
    for n in range(1, ROUTES + 1):
        assert running.ask(f"/{n}/", headers={"Origin": ORIGIN}).status == 200


def test_a_body_that_waits_with_its_request_is_sent(gateway: Start, upstream: Upstream) -> None:
    running = begun(gateway, upstream, {})
    for n in range(1, ROUTES + 1):
        body = os.urandom(100_000)
        assert running.ask(f"/{n}/", "POST", headers={"Origin": ORIGIN}, body=body).status == 200
        assert upstream.requests[-1].body == body


def test_heads_of_refused_requests_wait_too(gateway: Start, upstream: Upstream) -> None:
    """One plugin refuses before another's turn, which looks at the response all the same."""
    running = begun(gateway, upstream, {})
    client = Client(running)
    for n in range(1, ROUTES + 1):
        if n % 2:
            client.must(201, "POST", f"/routes/r{n}/plugins", plugin("bot-detection", ["."]))
    routes = [n for n in range(1, ROUTES + 1) if n % 2]
    with ExitStack() as stack:
        replies = [wire.read_reply() for wire in begin_all(running, stack, *routes, ROUTES + 1)]
    assert [reply.status for reply in replies] == [403] * len(routes) + [200]
    told = [reply.headers.get("Access-Control-Allow-Origin") for reply in replies]
    assert told == [ORIGIN] * len(routes) + [None]
    wait_until(lambda: running.access_log().count("/some ") == len(replies), "each is logged")
    ended = re.findall(r"/(\d)/some ", running.access_log())
    assert ended.index(str(ROUTES + 1)) < len(routes) // 2, ended


def test_global_plugins_look_at_the_head_without_a_route(
    gateway: Start, upstream: Upstream
) -> None:
    running = begun(gateway, upstream, {})
    slow = [f"0{SLOW}x{i}" for i in range(MANY)]
    config = {"origins": [*slow, ORIGIN]}
    Client(running).must(201, "POST", "/plugins", {"name": "cors", "config": config})
    for _ in range(2):
        reply = running.ask("/none", headers={"Origin": ORIGIN})
        assert reply.status == 404
        assert reply.headers.get("Access-Control-Allow-Origin") == ORIGIN


def test_what_is_refused_before_it_is_routed_waits_too(gateway: Start) -> None:
    """Its client leaves while it waits: it was not answered in its first turn."""
    running = gateway(None, client_max_body_size="1k")
    running.expect_log("client intended to send too large body")
    slow = [f"0{SLOW}x{i}" for i in range(4 * MANY)]
    config = {"origins": [*slow, ORIGIN]}
    (worker,) = running.workers()
    with running.wire() as wire:
        assert wire.ask("/").status == 404
        Client(running).must(201, "POST", "/plugins", {"name": "cors", "config": config})
        os.kill(worker, signal.SIGSTOP)
        try:
            wire.send(
                f"POST /large HTTP/1.1\r\nHost: a\r\nOrigin: {ORIGIN}\r\n"
                "Content-Length: 2000\r\n\r\n".encode()
            )
            wire.close()
        finally:
            os.kill(worker, signal.SIGCONT)
    wait_until(lambda: "/large " in running.access_log(), "it is logged")
    assert re.findall(r'/large [^"]*" (\d+)', running.access_log()) == ["499"]
    reply = running.ask("/large", "POST", headers={"Origin": ORIGIN}, body=b"x" * 2000)
    assert (reply.status, reply.headers.get("Access-Control-Allow-Origin")) == (413, ORIGIN)


@pytest.mark.parametrize("is_patched", [False, True], ids=["deleted", "patched"])
def test_a_plugin_that_changes_while_requests_wait(
    gateway: Start, upstream: Upstream, is_patched: bool
) -> None:
    """They go by what is there then."""
    running = begun(gateway, upstream, {})
    client = Client(running)
    (found,) = client.must(200, "GET", "/routes/r1/plugins")["data"]
    config = {"origins": ["https://b.com"]}
    with ExitStack() as stack:
        wires = begin_all(running, stack, *[1] * 20)
        if is_patched:
            client.must(200, "PATCH", f"/plugins/{found['id']}", {"config": config})
        else:
            client.must(204, "DELETE", f"/plugins/{found['id']}")
        assert {wire.read_reply().status for wire in wires} == {200}
    reply = running.ask("/1/", headers={"Origin": "https://b.com"})
    told = reply.headers.get("Access-Control-Allow-Origin")
    assert told == ("https://b.com" if is_patched else None)


TWICE = """return {
    VERSION = "1", PRIORITY = @priority@,
    schema = { name = "@name@", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        local name = ngx.req.is_internal() and "x-second" or "x-first"
        ngx.req.set_header(name, "yes")
        if @sends@ and name == "x-first" then
            return ngx.exec("/1/some")
        end
    end,
}"""


@pytest.mark.parametrize("names", [["twice"], ["twice", "behind"]])
def test_who_waited_is_sent_to_the_beginning_as_any_other(
    gateway: Start, upstream: Upstream, names: list[str]
) -> None:
    sources = {
        name: TWICE.replace("@name@", name)
        .replace("@priority@", str(1500 - i))
        .replace("@sends@", str(i == 0).lower())
        for i, name in enumerate(names)
    }
    running = begun(gateway, upstream, sources)
    with ExitStack() as stack:
        wires = begin_all(running, stack, *[1] * 6)
        assert [wire.read_reply().status for wire in wires] == [200] * 6
    asked = [request.headers.get("x-second") for request in upstream.requests[-6:]]
    assert asked == ["yes"] * 6


def test_a_worker_that_quits_answers_who_waits(gateway: Start, upstream: Upstream) -> None:
    running = begun(gateway, upstream, {})
    (worker,) = running.workers()
    with ExitStack() as stack:
        wires = begin_all(running, stack)
        assert wires.pop().read_reply().status == 200
        os.kill(worker, signal.SIGQUIT)
        assert {wire.read_reply().status for wire in wires} == {200}
    wait_until(lambda: worker not in running.workers(), "it has quit")


def test_a_fresh_worker_compiles_before_it_is_asked(gateway: Start, upstream: Upstream) -> None:
    """Some 30 KB each, in memory of its own."""
    config = told_apart(upstream, 10, paths=["/@n@/"])
    for n, route in enumerate(config["services"][0]["routes"]):
        words = [LONG_WORDS.replace("@n@", f"{n}-{i}") for i in range(90)]
        name = "cors" if n % 2 else "bot-detection"
        route["plugins"] = [plugin(name, [f"https://(?:{text})" for text in words])]
    running = gateway(config)

    def grown() -> bool:
        (worker,) = running.workers()
        status = Path(f"/proc/{worker}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) > 25_000

    wait_until(grown, "it has compiled")
    running.reload()
    wait_until(grown, "its successor has")
    assert running.ask("/1/", headers={"User-Agent": ORIGIN}).status == 403
