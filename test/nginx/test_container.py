"""The entry point of packaging/container, with what a container leaves it (container.sh)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

import guard
from instance import AS_ROOT, ONE, SECONDS
from sluice import ROOT, Ports, sanitizers
from upstream import Exchange, Upstream
from wire import DEADLINE, ClosedEarly, Wire, request_bytes, wait_until

USER = 54321
PREFIX = "/mnt/gateway"
TOOLS = ROOT / "packaging" / "container"


def can_contain() -> bool:
    """Whether this process may make namespaces, and any user may enter the checkout."""
    if not AS_ROOT or not all(folder.stat().st_mode & 1 for folder in [ROOT, *ROOT.parents]):
        return False
    return subprocess.run(["unshare", "--mount", "true"], check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not can_contain(), reason="needs root, namespaces, and a checkout that any user may enter"
)


def image_environment() -> dict[str, str]:
    """ENV of the recipe."""
    text = (TOOLS / "Containerfile").read_text().replace("\\\n", " ")
    (line,) = [line for line in text.splitlines() if line.startswith("ENV ")]
    return dict(word.split("=", 1) for word in line.split()[1:])


def with_default_signals() -> None:
    for name in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(name, signal.SIG_DFL)


class Container:
    """One that runs; `out` and `err` are what it has printed."""

    def __init__(self, shm: str, environment: dict[str, str]) -> None:
        self.root = guard.folder("sluice-container-")
        self.ports = Ports()
        self.port = self.ports.take()
        self.environment = image_environment() | {
            "PATH": f"{ROOT}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "SLUICE_PREFIX": PREFIX,
            "SLUICE_WORKERS": "2",
            "SLUICE_WORKER_CONNECTIONS": "512",
            "SLUICE_PROXY_LISTEN": f"127.0.0.1:{self.port}",
            "SLUICE_ADMIN_LISTEN": f"127.0.0.1:{self.ports.take()}",
        }
        self.environment |= {name: os.environ[name] for name in sanitizers()} | environment
        self.out, self.err = bytearray(), bytearray()
        ends = [self._collect(into) for into in (self.out, self.err)]
        inside = [Path(__file__).with_name("container.sh"), self.root, shm, str(USER)]
        self.process = subprocess.Popen(
            [
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                *inside,
                TOOLS / "entrypoint",
            ],
            env=self.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=ends[0],
            stderr=ends[1],
            # A shell's background job has others: signals that are ignored stay so.
            preexec_fn=with_default_signals,
        )
        for end in ends:
            os.close(end)

    @staticmethod
    def _collect(into: bytearray) -> int:
        reading, writing = os.pipe()
        # As engines do: the logs are opened by name.
        os.fchown(writing, USER, 0)

        def read(source: BinaryIO) -> None:
            while data := source.read1(65536):
                into.extend(data)

        threading.Thread(target=read, args=(os.fdopen(reading, "rb"),), daemon=True).start()
        return writing

    def first(self) -> int:
        """Its first process, as this machine numbers it."""
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())

    def status_of(self, path: str) -> int:
        """What a request is answered with; 0: by nobody."""
        with contextlib.suppress(OSError, ClosedEarly), Wire(self.port) as wire:
            return wire.ask(path).status
        return 0

    def run(self, *words: str, user: int = USER) -> subprocess.CompletedProcess[str]:
        """Runs a command within, as `exec` of an engine does."""
        enter = ["nsenter", f"--target={self.first()}", "--mount", "--pid", "--root", "--wd"]
        return subprocess.run(
            [*enter, f"--setuid={user}", "--setgid=0", *words],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def serves(self) -> None:
        """Waits until it does."""
        wait_until(
            lambda: self.process.poll() is not None or self.status_of("/one") == 200, "it to serve"
        )
        assert self.process.poll() is None, self.err.decode()

    def close(self) -> None:
        """Ends it, and removes its files."""
        # By its first process: unshare's own end is not its end once it has changed its user.
        with contextlib.suppress(OSError, ValueError):
            os.kill(self.first(), signal.SIGKILL)
        self.process.wait(DEADLINE)
        self.ports.release()
        self.root.rmdir()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """An upstream whose requests to /one wait while `held` is not set."""
    with Upstream() as server:
        yield server


@pytest.fixture
def contained(upstream: Upstream) -> Iterator[Callable[..., Container]]:
    """Starts containers whose route /one leads to the upstream, configured by a text."""
    started: list[Container] = []

    def start(shm: str = "64m", **environment: str) -> Container:
        if not environment.keys() & {"SLUICE_CONF", "SLUICE_FILE"}:
            environment["SLUICE_DECLARATIVE_CONFIG_STRING"] = ONE.format(url=upstream.url)
        started.append(Container(shm, environment))
        started[-1].serves()
        return started[-1]

    yield start
    for container in started:
        container.close()


def test_it_serves_and_logs(contained: Callable[..., Container]) -> None:
    """By a text in the environment; with all of /dev/shm that engines give."""
    container = contained()
    assert container.run("touch", "/root-is-writable", user=0).returncode != 0
    wait_until(lambda: b'"GET /one HTTP/1.1" 200' in container.out, "the access log")
    wait_until(lambda: b"start worker process" in container.err, "the error log")
    assert b"warning" not in container.err
    for command in (["reopen"], ["status"], ["reload", "--keepalive-requests=5"]):
        done = container.run("sluice", *command)
        assert done.returncode == 0, done.stderr
        container.status_of(f"/after-{command[0]}")
        said = f"GET /after-{command[0]} ".encode()
        wait_until(lambda said=said: said in container.out, "the access log to go on")
    assert b"[alert]" not in container.err
    assert b"[emerg]" not in container.err


@pytest.mark.parametrize("command", ["upgrade", "restart"])
def test_nothing_takes_its_nginx_from_it(contained: Callable[..., Container], command: str) -> None:
    """It would end with that."""
    container = contained()
    done = container.run("sluice", command)
    assert done.returncode == 1
    assert f"{command} refused: the running gateway is kept" in done.stderr
    assert "container" in done.stderr
    assert container.run("sluice", "reload", "--new-workers").returncode == 0
    assert "container" in container.run("sluice", command).stderr
    container.serves()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGQUIT", "SIGINT"])
def test_it_ends_after_its_requests(
    contained: Callable[..., Container], upstream: Upstream, name: str
) -> None:
    """And at once when it is told so twice."""
    container = contained()
    held = threading.Event()

    def wait(exchange: Exchange) -> None:
        held.wait(DEADLINE)
        exchange.reply(200)

    seen = len(upstream.requests)
    upstream.handler = wait
    with Wire(container.port) as wire:
        wire.send(request_bytes("/one"))
        wait_until(lambda: len(upstream.requests) > seen, "the request")
        os.kill(container.first(), getattr(signal, name))
        wait_until(lambda: container.status_of("/nothing") == 0, "nobody to be let in")
        assert container.process.poll() is None
        if name == "SIGINT":
            os.kill(container.first(), signal.SIGTERM)
            assert container.process.wait(DEADLINE) == 0
        else:
            held.set()
            assert wire.read_reply("GET").status == 200
            assert container.process.wait(DEADLINE) == 0
    held.set()


def test_it_ends_while_it_prepares() -> None:
    """A signal is not lost before nginx is there to take it."""
    folder = guard.folder("sluice-fifo-")
    fifo = folder / "sluice.yaml"
    os.mkfifo(fifo)

    def being_read() -> int | None:
        with contextlib.suppress(OSError):
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        return None

    with contextlib.closing(Container("64m", {"SLUICE_FILE": str(fifo)})) as container:
        # As long as nobody writes it waits.
        end = wait_until(being_read, "it to read its file")
        os.kill(container.first(), signal.SIGTERM)
        assert container.process.wait(DEADLINE) == 128 + signal.SIGTERM
        os.close(end)
    guard.remove(folder)


def test_workers_that_its_share_pays_for(contained: Callable[..., Container]) -> None:
    """Half a CPU is one worker. A reload asks again."""
    folder = guard.folder("sluice-cgroup-")
    (folder / "cpu.max").write_text("50000 100000\n")
    container = contained(SLUICE_WORKERS="auto", CGROUP=str(folder))
    found = json.loads(container.run("sluice", "status", "--json").stdout)
    assert len(found["workers"]["ready"]) == 1
    (folder / "cpu.max").write_text("max 100000\n")
    done = container.run("sluice", "reload", "--new-workers")
    assert f"{len(os.sched_getaffinity(0))} new worker" in done.stdout
    guard.remove(folder)


def test_less_shared_memory(contained: Callable[..., Container]) -> None:
    """It says so, and has its images on the volume."""
    container = contained("8m")
    assert b"warning: image_dir: /dev/shm has no room: 33 MiB are needed" in container.err


def test_files_that_are_mounted(contained: Callable[..., Container], upstream: Upstream) -> None:
    """Settings and the declarative file, read-only; no text."""
    folder = guard.folder("sluice-mounted-")
    (folder / "sluice.yaml").write_text(ONE.format(url=upstream.url))
    (folder / "sluice.conf").write_text(f"file = {folder}/sluice.yaml\nheader_prefix = X-Sluice\n")
    container = contained(SLUICE_CONF=f"{folder}/sluice.conf")
    with Wire(container.port) as wire:
        assert "x-sluice-request-id" in wire.ask("/one").headers
    (folder / "sluice.yaml").write_text("nonsense")
    assert container.run("sluice", "reload").returncode == 1
    container.serves()
    guard.remove(folder)
