"""Clients that we write, and servers whose responses have no end."""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_server import OK, RESPONSES, SWITCH, Endless
from log_server import logging_to

from nginx import Nginx
from processes import ran
from sluice import ROOT, Gateway, Start
from upstream import Exchange, Upstream
from wire import DEADLINE, wait_until

TIMEOUT_MS = 700

PATIENCE_MS = 30_000
"""Where something else is to end it: nobody else is slow then, on whatever machine."""

GROWTH_KB = 16 * 1024
"""By which a client's memory may grow; what is read without bound takes FULL at once."""


def peak_kb(pid: int) -> int:
    """The most memory that a process has had."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", text)[1])


class HostileLog(Upstream):
    """A log server that answers at the path /{name} with the response of this name."""

    def __init__(self) -> None:
        self.left: set[str] = set()
        """Names of responses whose client has closed the connection before their bound."""
        super().__init__(self.take, "log")

    def take(self, exchange: Exchange) -> None:
        """Sends until the client has enough."""
        exchange.read_body()
        exchange.keep = False
        name = exchange.request.path[1:].replace("-", " ")
        try:
            for piece in RESPONSES[name].pieces():
                exchange.send(piece)
        except OSError:
            self.left.add(name)


@pytest.fixture(scope="module")
def log() -> Iterator[HostileLog]:
    with HostileLog() as server:
        yield server


def timeout_ms(response: Endless) -> int:
    """Of a client of the log server."""
    if response.error == "timeout":
        return TIMEOUT_MS
    # Its status comes in that time, and its body has no end.
    return 5 * TIMEOUT_MS if response.error is None else PATIENCE_MS


def plugin_id(name: str) -> str:
    """Of the plugin whose log server sends this response."""
    return f"00000000-0000-4000-8000-{list(RESPONSES).index(name):012d}"


@pytest.fixture(scope="module")
def logging(log: HostileLog) -> Iterator[Gateway]:
    """A gateway with a route /{name} for each response of the log server."""
    with Upstream() as upstream:
        config = logging_to(upstream, log.port)
        (plugin,) = config.pop("plugins")
        config["services"][0]["routes"] = []
        for name in RESPONSES:
            path = "/" + name.replace(" ", "-")
            own = {
                "http_endpoint": f"{log.url}{path}",
                "timeout": timeout_ms(RESPONSES[name]),
                "queue": plugin["config"]["queue"] | {"max_retry_time": -1},
            }
            logs = plugin | {"id": plugin_id(name), "instance_name": path[1:], "config": own}
            config["services"][0]["routes"].append(
                {"name": path[1:], "paths": [path], "plugins": [logs]}
            )
        with Gateway(config) as running:
            yield running


@pytest.mark.parametrize("name", RESPONSES)
def test_a_log_server_without_end(logging: Gateway, log: HostileLog, name: str) -> None:
    wanted = RESPONSES[name]
    before = {pid: peak_kb(pid) for pid in logging.workers()}
    said = rf"http-log {plugin_id(name)} to \S+: "
    if wanted.error:
        logging.expect_log(said + rf".*dropped, not delivered in time: \S+ {wanted.error}")
    assert logging.ask("/" + name.replace(" ", "-")).status == 200
    wait_until(lambda: name in log.left, "the client to close the connection")
    if wanted.error:
        wait_until(lambda: re.search(said + ".*dropped", logging.error_log()), "what is said")
    grown = {pid: peak_kb(pid) - before[pid] for pid in before}
    assert max(grown.values()) < GROWTH_KB, grown
    assert logging.workers() == list(before)


def test_a_log_server_that_reads_slowly(gateway: Start) -> None:
    """The deadline stands over sending, too: a server that takes a little each time gains none."""
    taken: list[int] = []
    batch, long = 600, {f"X-{number}": "a" * 7000 for number in range(3)}

    def take(exchange: Exchange) -> None:
        exchange.keep = False
        while taken[-1:] != [0]:
            taken.append(len(exchange.sock.recv(16384)))
            time.sleep(0.004)

    with Upstream() as upstream, Upstream(take, "log") as log:
        queue = {"max_batch_size": batch, "max_coalescing_delay": 60, "max_retry_time": -1}
        running = gateway(logging_to(upstream, log.port, queue, timeout=TIMEOUT_MS))
        running.expect_log(rf"http-log \S+ to \S+: {batch} .*dropped, .* \S+ timeout")
        with running.wire() as wire:
            for _ in range(batch):
                assert wire.ask("/", headers=long).status == 200
        wait_until(lambda: "dropped" in running.error_log(), "the end of the attempt")
        wait_until(lambda: taken[-1:] == [0], "the end of the connection")
    # Of 12.6 MB what the sockets hold, and what was taken in time.
    assert 0 < sum(taken) < 10_000_000


@contextlib.contextmanager
def serving(path: Path, response: Endless) -> Iterator[threading.Event]:
    """A server at a UNIX socket that answers with this response, again and again; the event is
    set when a client has closed the connection before the response's bound.
    """
    left = threading.Event()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    try:
                        for piece in response.pieces():
                            connection.sendall(piece)
                    except OSError:
                        left.set()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield left
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


CONTROL = """
    local before = {{ require("cli.instance.control").ask("{path}", "GET", "/", nil, {seconds}) }}
    local peak = io.open("/proc/self/status"):read("*a"):match("VmHWM:%s*(%d+)")
    print(tostring(before[1]) .. " " .. tostring(before[2]))
    print(peak)
"""


@pytest.mark.parametrize("name", [name for name in RESPONSES if name not in ("body", "length")])
def test_a_gateway_without_end(tmp_path: Path, name: str) -> None:
    """The command reads up to a gigabyte of a body: what the gateway says is trusted so far."""
    path = tmp_path / "control.sock"
    bodies = {"slow body": "timeout", "slow chunks": "timeout", "chunks": "timeout"}
    bodies |= {"chunk size": "the size of a chunk is too long"}
    bodies |= {"trailer": "the trailer of the response is too long"}
    error = RESPONSES[name].error or bodies[name]
    timeout = TIMEOUT_MS if error == "timeout" else PATIENCE_MS
    lua = CONTROL.format(path=path, seconds=timeout / 1000)
    with serving(path, RESPONSES[name]) as left:
        done = ran(
            ["luajit", "-e", lua], cwd=ROOT, env={"LUA_PATH": "./?.lua;./lib/?.lua;;"}, check=True
        )
        assert left.wait(DEADLINE)
    said, peak = done.stdout.splitlines()
    assert said == f"nil the gateway did not answer: {error}"
    assert int(peak) < 4 * GROWTH_KB


BROKER = """
    server {
        listen 127.0.0.1:@port@;
        location / {
            content_by_lua_block {
                local opts = {
                    address = "unix:@socket@", path = "/", worker = 0, max_payload = 65536,
                    is_raw = ngx.var.arg_raw == "1",
                }
                local connection = require("sluice.events.client").new(opts, {}, {}, print)
                ngx.say(select(2, connection:connect()))
            }
        }
    }
"""

# The head of a welcome whose source has 32,767 bytes.
WELCOME = bytes.fromhex("ff7f0000 d5 02 ffff ff7f 0000 00000000 00000000")

BROKERS = {name: case for name, case in RESPONSES.items() if case.error} | {
    "refusal": Endless(OK + b"\r\n", b"body", error="the response is 200"),
    "welcome": Endless(SWITCH + b"\r\n" + WELCOME, b"a", error="oversized"),
    "slow welcome": Endless(SWITCH + b"\r\n", b"", slow=True, error="timeout"),
}


@pytest.fixture(scope="module")
def bare() -> Iterator[Nginx]:
    with Nginx(BROKER) as running:
        yield running


@pytest.mark.parametrize("name", BROKERS)
def test_a_broker_without_end(bare: Nginx, name: str) -> None:
    before = {pid: peak_kb(pid) for pid in bare.workers()}
    bare.socket.unlink(missing_ok=True)
    with serving(bare.socket, BROKERS[name]) as left:
        assert bare.ask("/").body.decode().strip() == BROKERS[name].error
        assert left.wait(DEADLINE)
    grown = {pid: peak_kb(pid) - before[pid] for pid in before}
    assert max(grown.values()) < GROWTH_KB, grown
