"""What a request may cost the router: beyond it requests are refused, counted and logged."""

import os
import re
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client
from changes import document, post
from slow_routes import slow_to_compile, told_apart

from sluice import Gateway, Start
from upstream import Upstream
from wire import Wire, wait_until

TOO_MANY = r'\[error\] .*route "r\d+": one of too many to look at for a request'
REFUSED = r'\[error\] .*route "r\d+": a regular expression gave up on a request.*limit exceeded'


def refused(running: Gateway, why: str = "unrouted") -> int:
    """How many requests `/metrics` has counted."""
    text = Client(running).ask("GET", "/metrics").body.decode()
    found = re.search(rf"^sluice_http_{why}_requests_total (\d+)$", text, re.M)
    assert found
    return int(found[1])


def test_patterns_of_one_beginning_share_what_a_request_has(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(told_apart(upstream, 100, paths=["~/api/(.+)/(.+)/x@n@$"]))
    running.expect_log(REFUSED, 3)
    path = "/api/" + "a/" * 300 + "x0123456789!"
    for _ in range(3):
        reply = running.ask(path, headers={"Accept": "application/json"})
        assert (reply.status, reply.json()["message"]) == (500, "An unexpected error occurred")
    assert running.ask("/api/a/b/x77").status == 200
    assert running.ask("/api/a/b/x101").status == 404
    wait_until(lambda: refused(running) == 3, "each is counted")
    assert refused(running, "unmatched") == 1


def test_routes_of_one_path_share_it(gateway: Start, upstream: Upstream) -> None:
    """Without a pattern among them: 2,000 whose values are compared to their last byte."""
    running = gateway(told_apart(upstream, 2000, paths=["/p"], headers={"x-t": ["a" * 4000]}))
    running.expect_log(TOO_MANY, 1)
    assert running.ask("/p", headers={"X-T": "a" * 4000}).status == 200
    assert running.ask("/p", headers={"X-T": "a"}).status == 404
    assert running.ask("/q").status == 404
    assert running.ask("/p", headers=[("X-T", "a" * 3999 + end) for end in "bcd"]).status == 500
    wait_until(lambda: refused(running) == 1, "it is counted")


PLUGIN = """return {
    VERSION = "1", PRIORITY = 2000,
    schema = { name = "before", fields = { { config = { type = "record", fields = {} } } } },
    rewrite = function() end,
}"""
LONG_WORDS = "|".join(f"w@n@x{i:03}" for i in range(450))


def begun(gateway: Start, config: dict[str, Any], plugins: dict[str, str]) -> Gateway:
    """One whose routes have just come, so that no worker has compiled their patterns."""
    config = config | {"plugins": [{"name": name} for name in plugins]}
    first = config | {"services": [config["services"][0] | {"routes": []}]}
    running = gateway(first, plugins={name: PLUGIN for name in plugins})
    assert post(running, document(config)).status_code == 201
    return running


@pytest.mark.parametrize("plugins", [{}, {"before": "rewrite"}], ids=["native", "rewrite in Lua"])
def test_a_fresh_worker_compiles_in_turns(
    gateway: Start, upstream: Upstream, plugins: dict[str, str]
) -> None:
    """More than a request has time for: it waits, and is not refused."""
    config = told_apart(upstream, 40, paths=[f"~/x/(?:{LONG_WORDS})$"])
    running = begun(gateway, config, plugins)
    with running.wire() as other:
        with running.wire() as leaving:
            leaving.send(b"GET /x/w1x000 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert other.ask("/x/w40x449").status == 200
    for n in range(1, 41):
        assert running.ask(f"/x/w{n}x001").status == 200
    assert running.ask("/x/w1x450").status == 404


def begin_all(running: Gateway, stack: ExitStack) -> list[Wire]:
    """Has one request of each route waiting for its turns, and one of none behind them."""
    (worker,) = running.workers()
    wires = [stack.enter_context(running.wire()) for _ in range(8)]
    assert {wire.ask("/").status for wire in wires} == {404}
    os.kill(worker, signal.SIGSTOP)
    try:
        # The last one is accepted in their first turn, and read after that.
        wires.append(stack.enter_context(running.wire()))
        for n, wire in enumerate(wires, 1):
            head = f"GET /{n}/none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            wire.send(head.encode())
    finally:
        os.kill(worker, signal.SIGCONT)
    return wires


@pytest.mark.parametrize("plugins", [{}, {"before": "rewrite"}], ids=["native", "rewrite in Lua"])
def test_others_have_their_turn(
    gateway: Start, upstream: Upstream, plugins: dict[str, str]
) -> None:
    running = begun(gateway, slow_to_compile(upstream), plugins)
    with ExitStack() as stack:
        assert {wire.read_reply().status for wire in begin_all(running, stack)} == {404}
    wait_until(lambda: running.access_log().count("/none ") == 9, "each is logged")
    ended = re.findall(r"/(\d)/none ", running.access_log())
    assert ended.index("9") < 8, ended


def test_a_client_that_leaves_waits_no_longer(gateway: Start, upstream: Upstream) -> None:
    running = begun(gateway, slow_to_compile(upstream), {})
    with ExitStack() as stack:
        begin_all(running, stack)
    wait_until(lambda: running.access_log().count("/none ") == 9, "each is logged")
    statuses = re.findall(r"/\d/none HTTP/1.1\" (\d+)", running.access_log())
    # The first one may be answered before it leaves; the last one has no route.
    assert statuses.count("499") >= 6, statuses


def test_a_worker_that_quits_answers_who_waits_for_a_turn(
    gateway: Start, upstream: Upstream
) -> None:
    """Nothing else would keep it: there is no other timer, and no upstream."""
    running = begun(gateway, slow_to_compile(upstream), {})
    (worker,) = running.workers()
    with ExitStack() as stack:
        wires = begin_all(running, stack)
        assert wires.pop().read_reply().status == 404
        os.kill(worker, signal.SIGQUIT)
        assert {wire.read_reply().status for wire in wires} == {404}
    wait_until(lambda: worker not in running.workers(), "it has quit")


def test_a_fresh_worker_compiles_before_it_is_asked(gateway: Start, upstream: Upstream) -> None:
    """Some 30 KB each, in memory of its own."""
    running = gateway(told_apart(upstream, 900, paths=[f"~/x/(?:{LONG_WORDS})$"]))

    def grown() -> bool:
        (worker,) = running.workers()
        status = Path(f"/proc/{worker}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) > 25_000

    wait_until(grown, "it has compiled")
    running.reload()
    wait_until(grown, "its successor has")


def test_a_thousand_patterns_on_a_fresh_worker(gateway: Start, upstream: Upstream) -> None:
    running = gateway(told_apart(upstream, 1100, paths=["~/api/[^/]+/x@n@/(?<id>\\d+)$"]))
    for n in (1100, 1, 550, 1100):
        assert running.ask(f"/api/a/x{n}/7").status == 200
    assert running.ask("/api/a/x0/7").status == 404
    running.reload()
    assert running.ask("/api/a/x1100/7").status == 200


def test_check_names_routes_that_take_too_long_together(gateway: Start, upstream: Upstream) -> None:
    running = gateway(told_apart(upstream, 400, paths=["~/api/.+/x@n@$"]))
    warning = "sluice: warning: .*400 patterns of routes begin with '/api/': "
    assert len(re.findall(warning, running.warned)) == 1
    done = running.command("check")
    assert done.returncode == 0
    assert len(re.findall(warning.replace(".*", ""), done.stderr)) == 1
