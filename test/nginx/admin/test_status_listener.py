"""The status listener: what probes and monitoring are answered, and nothing else."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from admin_client import Client
from changes import document, post
from floods import CONNECTIONS, Flood
from ports import Ports

import guard
from certificates import connect, context, get, make, shown
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Reply, Wire, wait_until

READY = (200, {"message": "ready"})


@pytest.fixture
def port() -> Iterator[int]:
    """Of the status listener."""
    ports = Ports()
    yield ports.take()
    ports.release()


def ask(port: int, target: str, method: str = "GET") -> Reply:
    """One request on a connection of its own."""
    with Wire(port) as wire:
        return wire.ask(target, method)


def ready(port: int) -> tuple[int, dict]:
    """What a probe is answered."""
    reply = ask(port, "/status/ready")
    return reply.status, reply.json()


def test_what_it_answers(gateway: Start, upstream: Upstream, port: int) -> None:
    running = gateway(proxying(upstream), status_listen=f"127.0.0.1:{port}", workers=2)
    assert ready(port) == READY
    status = ask(port, "/status?unit=k")
    assert status.status == 200
    assert set(status.json()) == {"server", "memory", "configuration_hash"}
    assert len(status.json()["configuration_hash"]) == 32
    assert status.json()["server"]["connections_active"] >= 1
    pids = [worker["pid"] for worker in status.json()["memory"]["workers_lua_vms"]]
    assert set(pids) == {running.control(), *running.workers()}
    assert ask(port, "/status?unit=x").status == 400
    assert running.get("/").status_code == 200
    metrics = ask(port, "/metrics")
    assert metrics.status == 200
    assert metrics.headers.get("Content-Type", "").startswith("text/plain; version=0.0.4")
    assert "\nsluice_http_requests_total{" in metrics.text
    assert running.command("status").stdout.count(f"status   127.0.0.1:{port}") == 1
    listeners = Client(running).must(200, "GET", "/")["configuration"]["status_listeners"]
    assert [each["port"] for each in listeners] == [port]


def test_the_store_is_a_database(gateway: Start, port: int) -> None:
    gateway(None, status_listen=f"127.0.0.1:{port}")
    assert ready(port) == READY
    assert ask(port, "/status").json()["database"] == {"reachable": True}
    assert "configuration_hash" not in ask(port, "/status").json()


def test_nothing_else_is_there(gateway: Start, port: int) -> None:
    """Nor does it write, or hold what a token keeps."""
    running = gateway(
        None, status_listen=f"127.0.0.1:{port}", admin_token="t" * 16, audit_log="logs/audit.log"
    )
    for target in ("/", "/services", "/config", "/events", "/timers", "/status/x", "//status"):
        reply = ask(port, target)
        assert (reply.status, reply.json()) == (404, {"message": "Not found"}), target
    for target in ("/status", "/status/ready", "/metrics"):
        for method in ("POST", "PUT", "PATCH", "DELETE", "TRACE"):
            reply = ask(port, target, method)
            assert reply.status == 405, (method, target)
        reply = ask(port, target, "OPTIONS")
        assert (reply.status, reply.headers.get("Allow")) == (204, "GET, HEAD, OPTIONS")
        reply = ask(port, target, "HEAD")
        assert (reply.status, reply.body) == (200, b"")
        assert ask(port, target + "/").status == 200
    with Wire(port) as wire:
        wire.send(b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert wire.read_reply("GET").json() == {"message": "Bad request"}
    # The admin listener has its token, and no more than before.
    assert Client(running).ask("GET", "/status").status == 401
    assert (running.settings["prefix"] / "logs" / "audit.log").read_text() == ""


def test_not_ready_before_the_first_configuration(gateway: Start, port: int) -> None:
    running = gateway(None, database="off", status_listen=f"127.0.0.1:{port}")
    why = "no configuration available (empty configuration present)"
    assert ready(port) == (503, {"message": why})
    assert ask(port, "/status").json()["configuration_hash"] == "0" * 32
    assert post(running, "services: 1").status_code == 400
    assert ready(port)[0] == 503
    assert post(running, document(proxying("http://127.0.0.1:9"))).status_code == 201
    assert ready(port) == READY
    assert ask(port, "/status").json()["configuration_hash"] != "0" * 32
    # It is kept.
    done = running.command("restart", "--yes")
    assert done.returncode == 0, done.stderr
    assert ready(port) == READY


def test_a_store_that_cannot_be_opened_is_not_empty(gateway: Start, port: int) -> None:
    """Zeros would have a controller post its configuration again; what is live is served."""
    running = gateway(None, database="off", status_listen=f"127.0.0.1:{port}")
    assert post(running, document(proxying("http://127.0.0.1:9"))).status_code == 201
    found = ask(port, "/status").json()["configuration_hash"]
    running.expect_log("exited on signal 9")
    running.expect_log("the store cannot be opened", range(1, 100))
    old, store = running.control(), running.settings["prefix"] / "store"
    store.rename(store.with_name("away"))
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: running.control() != old, "another control worker")
    with Wire(port) as wire:
        assert "configuration_hash" not in wire.ask("/status").json()
    assert ready(port) == READY
    store.with_name("away").rename(store)
    hashes = (ask(port, "/status").json().get("configuration_hash") for _ in iter(int, 1))
    wait_until(lambda: next(hashes) == found, "the store to be open")


HELD = """
-- Before a traffic worker has a place in the events' log.
local events = require("sluice.events")
local new = events.new
events.new = function(...)
    while ngx.worker.id() > 0 and io.open("%s") do
        os.execute("sleep 0.01")
    end
    return new(...)
end
return {
    VERSION = "1", PRIORITY = 1,
    schema = { name = "held", fields = { { config = { type = "record", fields = {} } } } },
}
"""


def test_not_ready_without_all_workers(gateway: Start, port: int) -> None:
    """A plugin holds up the successor of a worker that was killed."""
    folder = guard.folder("sluice-hold-")
    hold = folder / "hold"
    listen = f"127.0.0.1:{port}"
    running = gateway(None, plugins={"held": HELD % hold}, status_listen=listen, workers=2)
    running.expect_log("exited on signal 9")
    assert ready(port) == READY
    hold.touch()
    os.kill(running.workers()[0], signal.SIGKILL)
    why = "the configuration is live on 1 of 2 workers"
    wait_until(lambda: ready(port) == (503, {"message": why}), "the death to be noticed")
    guard.remove(folder)
    wait_until(lambda: ready(port) == READY, "a new worker")


def test_ready_while_a_reload_starts_its_workers(gateway: Start, port: int) -> None:
    """The former ones serve while nginx, with no CPU to spare, has not started the new ones."""
    folder = guard.folder("sluice-hold-")
    hold = folder / "hold"
    listen = f"127.0.0.1:{port}"
    running = gateway(None, plugins={"held": HELD % hold}, status_listen=listen, workers=2)
    wait_until(lambda: ready(port) == READY, "both workers")
    old, former = running.control(), running.workers()
    for pid in former:
        os.kill(pid, signal.SIGSTOP)  # they are not gone when the new ones are to come
    try:
        hold.touch()
        os.kill(running.master(), signal.SIGHUP)
        wait_until(lambda: not Path(f"/proc/{old}").exists(), "the old control worker to end")
        assert running.control() != old
        assert ready(port) == READY
    finally:
        for pid in former:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in former), "their end")
    assert ready(port) == READY
    guard.remove(folder)
    wait_until(lambda: ready(port) == READY, "the new workers")


def test_ready_over_reloads_and_a_new_control_worker(gateway: Start, port: int) -> None:
    """A probe that is sent at any time is answered, and the same."""
    running = gateway(proxying("http://127.0.0.1:9"), status_listen=f"127.0.0.1:{port}", workers=2)
    running.expect_log("exited on signal 9")
    wait_until(lambda: ready(port) == READY, "both workers")
    found: list[tuple[int, dict]] = []
    is_over = threading.Event()

    def probe() -> None:
        while not is_over.is_set():
            found.append(ready(port))

    prober = threading.Thread(target=probe)
    prober.start()
    try:
        for _ in range(3):
            running.reload()
    finally:
        is_over.set()
        prober.join()
    assert len(found) > 10
    assert [each for each in found if each != READY] == []
    old = running.control()
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: running.control() != old, "another control worker")
    assert ready(port) == READY


def test_with_tls(gateway: Start, port: int, tmp_path: Path) -> None:
    """With the certificate of the prefix, or its own; over HTTP/2, too."""
    pair = make("status.example")
    (tmp_path / "c.pem").write_text(pair.cert)
    (tmp_path / "k.pem").write_text(pair.key)
    running = gateway(None, status_listen=f"127.0.0.1:{port} ssl http2")
    made = shown(port, None)
    with connect(port, None) as wrapped:
        assert b'{"message":"ready"}' in get(wrapped, "/status/ready")
    with connect(port, None, context(alpn=("h2",))) as wrapped:
        assert wrapped.selected_alpn_protocol() == "h2"
    running.settings |= {
        "status_ssl_cert": tmp_path / "c.pem",
        "status_ssl_cert_key": tmp_path / "k.pem",
    }
    running.reload()
    assert shown(port, None) == pair.der != made


def test_its_own_logs(gateway: Start, port: int) -> None:
    running = gateway(
        None,
        status_listen=f"127.0.0.1:{port}",
        status_access_log="logs/status.log",
        status_access_log_format="saw $request_method $status",
        status_error_log="logs/status_error.log",
        log_level="info",
    )
    logs = running.settings["prefix"] / "logs"
    assert ready(port) == READY
    wait_until(lambda: (logs / "status.log").read_text() == "saw GET 200\n", "its line")
    with Wire(port) as wire:
        wire.send(b"GET  / HTTP/1.1\r\nHost : a\r\n\r\n")
        wire.read_to_end()
    wait_until(lambda: "client sent" in (logs / "status_error.log").read_text(), "its error")
    assert "client sent" not in running.error_log()


def test_who_holds_its_connections_holds_no_others(gateway: Start, port: int) -> None:
    """An eighth of the connections are for it: the admin listener works on, and so does it when
    those have had their time."""
    running = gateway(None, worker_connections=CONNECTIONS, status_listen=f"127.0.0.1:{port}")
    line = "connections refused: the status listener has 32 open"
    running.expect_log(line, range(1, 1000))
    flood = Flood(running, b"GET / HTTP/1.1\r\nHost: loc", port, "status")
    try:
        flood.add(CONNECTIONS)
        wait_until(lambda: flood.open() <= CONNECTIONS // 8, "the last ones to be accepted")
        assert flood.refused > CONNECTIONS // 2
        Client(running).must(200, "GET", "/services")
        with contextlib.ExitStack() as held:
            for _ in range(CONNECTIONS // 4):
                held.enter_context(Wire(running.admin_port)).send(b"GET")
            assert running.command("get", "services").returncode == 0
        wait_until(lambda: flood.open() == 0, "the ends of their time", 15)
    finally:
        flood.close()
    assert ready(port) == READY


def test_no_address_of_another_listener(gateway: Start) -> None:
    running = Gateway(None)
    running.settings["status_listen"] = running.settings["admin_listen"]
    try:
        done = running.command("start")
        assert done.returncode == 2
        assert f"status_listen: 127.0.0.1:{running.admin_port} is also" in done.stderr
    finally:
        running.discard()
