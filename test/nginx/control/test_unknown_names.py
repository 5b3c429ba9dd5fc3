"""Names that come up late, name servers that are silent: who waits for whom."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from admin_client import Client
from log_server import LogServer, logging_to
from name_server import NameServer, library
from plugin_files import rounds

from sluice import Gateway, Start, alive
from upstream import Blackhole, Upstream
from wire import wait_until

FIRST, WANTED = 0.2, 1.0
"""Seconds of gateway/upstream/unresolved.lua."""

WAITED = 5
"""Seconds that a file waits for its names."""

ROUND = 5
"""Seconds that a round waits for a page of names."""

SILENCE = 1
"""Seconds that libc's resolver waits for a silent name server, twice: a thousand names take two
threads a thousand seconds."""


@pytest.fixture(scope="module")
def preload() -> Path:
    return library()


@pytest.fixture
def server() -> Iterator[NameServer]:
    with NameServer() as running:
        yield running


def service(name: str, port: int) -> dict:
    """A service at {name}.example, with a route /{name}."""
    return {
        "name": name,
        "url": f"http://{name}.example:{port}",
        "routes": [{"name": name, "paths": [f"/{name}"]}],
    }


def document(*services: dict) -> dict:
    return {"_format_version": "3.0", "services": list(services)}


def test_a_name_that_comes_up_late_is_asked_for_soon_and_seldomer(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path
) -> None:
    running = gateway(document(service("late", upstream.port)), env=server.environment(preload))
    assert "late.example: cannot be resolved" in running.warned
    # One at the start, and then without a request.
    wait_until(lambda: len(server.times("late.example")) >= 5, "four more questions")
    times = server.times("late.example")[1:5]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    for doubled, gap in enumerate(gaps):
        assert gap >= 0.9 * 2**doubled * FIRST, gaps
    server.addresses["late.example"] = ["127.0.0.1"]
    wait_until(lambda: running.ask("/late").status == 200, "the name's addresses")
    # Known: it is left alone until the period.
    count = len(server.times("late.example"))
    time.sleep(2 * WANTED)
    assert len(server.times("late.example")) == count


def test_the_log_says_once_which_host_cannot_be_resolved_and_when_it_can(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path
) -> None:
    """A change by the Admin API is answered before that is known, and requests are not logged."""
    running = gateway(None, env=server.environment(preload))
    Client(running).must(200, "PUT", "/services/s", {"host": "late.example"})
    Client(running).must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})

    def lines() -> list[str]:
        return [line for line in running.error_log().splitlines() if "late.example" in line]

    wait_until(lambda: len(server.times("late.example")) >= 5, "four more questions")
    assert running.ask("/").status == 503
    wait_until(lambda: len(server.times("late.example")) >= 6, "one question more")
    [line] = lines()
    assert "[warn]" in line
    assert "names: late.example: cannot be resolved: " in line
    assert "; requests for it are answered 503; services: s" in line
    server.addresses["late.example"] = ["127.0.0.1"]
    wait_until(lambda: lines()[1:], "the line that it can be resolved")
    [_, line] = lines()
    assert "[notice]" in line
    assert "names: late.example: has addresses now" in line


def check_a_request_has_it_asked_for(
    config: dict, server: NameServer, preload: Path, name: str, path: str
) -> str:
    """That a name is asked for once as a request needs it, which is not held; what it is told."""

    def asked_for_at_once() -> str:
        """Nothing also where all was so slow that the name was asked for by itself meanwhile, or
        that a second request came before its answer."""
        server.addresses.pop(name, None)
        known = len(server.times(name))
        with Gateway(config, env=server.environment(preload)) as running:
            # The next question but for requests comes 3.2 seconds after the last of these.
            wait_until(lambda: len(server.times(name)) >= known + 5, "questions")
            time.sleep(1.1 * WANTED)
            before = server.times(name)
            server.addresses[name] = ["127.0.0.1"]
            reply = running.ask(path, headers={"Accept": "application/json"})
            wait_until(lambda: running.ask(path).status == 200, "the name's addresses")
            asked = server.times(name)[len(before) :]
            if [at < before[-1] + 0.9 * 2**4 * FIRST for at in asked] != [True]:
                return ""
        assert reply.status == 503
        return reply.json()["message"]

    return wait_until(asked_for_at_once, "one question, for a request")


def test_the_first_request_has_a_name_asked_for_and_is_not_held(
    upstream: Upstream, server: NameServer, preload: Path
) -> None:
    config = document(service("late", upstream.port))
    told = check_a_request_has_it_asked_for(config, server, preload, "late.example", "/late")
    assert told == "name resolution failed"


def test_requests_do_not_have_it_asked_for_all_the_time(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path
) -> None:
    running = gateway(document(service("late", upstream.port)), env=server.environment(preload))
    wait_until(lambda: len(server.times("late.example")) >= 5, "questions")
    begun, before = time.monotonic(), len(server.times("late.example"))

    def asked() -> int:
        return len(server.times("late.example")) - before

    while time.monotonic() < begun + 2.5 or not asked():
        assert running.ask("/late").status == 503
    # By requests once a second, and once without.
    assert asked() <= 2 + (time.monotonic() - begun) / WANTED


def test_targets_that_come_up_late_are_asked_for_by_a_request_as_well(
    upstream: Upstream, server: NameServer, preload: Path
) -> None:
    targets = [{"target": f"{name}.example:{upstream.port}"} for name in ("one", "two")]
    config = document(service("pool", upstream.port))
    config["services"][0]["url"] = "http://pool"
    config["upstreams"] = [{"name": "pool", "targets": targets}]
    check_a_request_has_it_asked_for(config, server, preload, "two.example", "/pool")


def test_a_thousand_unknown_names_and_a_silent_server_delay_no_known_one(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path
) -> None:
    """The known one moves in each round; no round waits for those that nobody answers."""
    server.silent = (".silent.example",)
    server.addresses["known.example"] = ["127.0.0.1"]
    running = gateway(
        None, plugins={"rounds": rounds(0.1)}, env=server.environment(preload, SILENCE)
    )
    client = Client(running)
    client.must(200, "PUT", "/services/known", {"host": "known.example", "port": upstream.port})
    client.must(200, "PUT", "/services/known/routes/known", {"paths": ["/known"]})
    silent = [
        {"method": "PUT", "path": f"/services/s{n}", "body": {"host": f"n{n}.silent.example"}}
        for n in range(1000)
    ]
    client.must(200, "POST", "/batch", silent)
    assert running.ask("/known").status == 200
    with Upstream(name="moved", host="127.0.0.2", port=upstream.port) as moved:
        for address, name in (("127.0.0.2", moved.name), ("127.0.0.1", upstream.name)):
            server.addresses["known.example"] = [address]
            wait_until(
                lambda name=name: running.ask("/known").json()["upstream"] == name,
                "the known name's new address",
            )
    # A new name is not known yet, and not silent: a change or a request has it asked for soon.
    server.addresses["new.example"] = ["127.0.0.1"]
    new = {"host": "new.example", "port": upstream.port}
    client.must(200, "PUT", "/services/new", new)
    client.must(200, "PUT", "/services/new/routes/new", {"paths": ["/new"]})
    wait_until(lambda: running.ask("/new").status == 200, "the new name")
    # So is one that came to have no addresses, and now has some.
    late = {"host": "late.example", "port": upstream.port}
    client.must(200, "PUT", "/services/late", late)
    client.must(200, "PUT", "/services/late/routes/late", {"paths": ["/late"]})
    assert running.ask("/late").status == 503
    server.addresses["late.example"] = ["127.0.0.1"]
    wait_until(lambda: running.ask("/late").status == 200, "the late name")


def test_a_silent_name_is_waited_for_once(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path
) -> None:
    """Not by each file that has it; names that are said not to be there are asked for each time."""
    server.silent = (".silent.example",)
    running = gateway(None, env=server.environment(preload, 60))
    client = Client(running)

    def push(*names: str) -> float:
        """Seconds that it took."""
        begun = time.monotonic()
        config = document(*(service(name, upstream.port) for name in names))
        client.must(201, "POST", "/config", config)
        return time.monotonic() - begun

    assert push("lost.silent") > WAITED
    server.addresses |= {f"new{n}.example": ["127.0.0.1"] for n in range(3)}
    assert min(push("lost.silent", f"new{n}") for n in range(3)) < WAITED
    assert running.ask("/new2").status == 200
    push("gone")
    server.addresses["gone.example"] = ["127.0.0.1"]
    push("gone")
    assert running.ask("/gone").status == 200


@pytest.mark.parametrize("how", ["stop", "quit", "reload"])
def test_a_worker_that_exits_waits_for_no_name_server(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path, how: str
) -> None:
    """Nor is it killed: that would be in the log, and the store would not be closed."""
    server.silent = (".silent.example",)
    running = gateway(None, env=server.environment(preload, 60))
    Client(running).must(200, "PUT", "/services/s", {"host": "s.silent.example"})
    assert server.asked
    control = running.control()
    begun = time.monotonic()
    if how == "reload":
        running.reload()
    else:
        running.stop(how)
    wait_until(lambda: not alive(control), "the control worker to exit")
    assert time.monotonic() - begun < 60


def test_a_worker_that_exits_waits_for_no_round(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path
) -> None:
    """A round of the names that are known begins with the worker, and waits for them."""
    server.addresses["known.example"] = ["127.0.0.1"]
    running = gateway(None, env=server.environment(preload, 60))
    Client(running).must(200, "PUT", "/services/s", {"host": "known.example"})
    count = len(server.times("known.example"))
    server.silent = ("known.example",)
    running.reload()
    wait_until(lambda: len(server.times("known.example")) > count, "the round")
    control = running.control()
    begun = time.monotonic()
    running.stop("quit")
    wait_until(lambda: not alive(control), "the control worker to exit")
    assert time.monotonic() - begun < ROUND


def test_an_address_that_does_not_answer_leaves_others_their_share(
    gateway: Start, upstream: Upstream, server: NameServer, preload: Path
) -> None:
    """http-log's deadline, over several addresses of a log server."""
    with LogServer() as log, Blackhole("127.0.0.2", log.port):
        server.addresses["log.example"] = ["127.0.0.2", "127.0.0.1"]
        url = f"http://log.example:{log.port}/in"
        config = logging_to(upstream, log.port, http_endpoint=url, timeout=2000)
        running = gateway(config, env=server.environment(preload))
        running.ask("/?n=1")
        log.wait_for_marks({"1"})
