"""The image of packaging/container, with what an engine leaves it (container.py)."""

import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator

import pytest
from container import PREFIX, ROOT_USER, STRANGER, Container, can_contain, one, reader_of

import guard
from upstream import Upstream
from wire import DEADLINE, Wire, request_bytes, wait_until

pytestmark = pytest.mark.skipif(
    not can_contain(), reason="needs root, namespaces, and a checkout that any user may enter"
)

NARROW = ["read-only", f"tmpfs={PREFIX}"]
"""A root that nobody may write to, with one volume."""


@pytest.fixture
def contained(upstream: Upstream) -> Iterator[Callable[..., Container]]:
    """Starts containers whose route /one leads to the upstream, configured by a text; as a user
    whom nobody knows, and with a root that nobody may write to."""
    started: list[Container] = []

    def start(*options: str, binds: dict | None = None, **environment: str) -> Container:
        if not environment.keys() & {"SLUICE_CONF", "SLUICE_FILE"}:
            environment["SLUICE_DECLARATIVE_CONFIG_STRING"] = one(upstream.url)
        narrow = [*NARROW, *options]
        started.append(Container(environment, user=STRANGER, options=narrow, binds=binds))
        started[-1].serves()
        return started[-1]

    yield start
    for container in started:
        container.close()


def test_it_serves_and_logs(contained: Callable[..., Container]) -> None:
    """By a text in the environment; with all of /dev/shm that engines give."""
    container = contained()
    assert container.run("touch", "/root-is-writable", user=ROOT_USER).returncode != 0
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
    seen = len(upstream.requests)
    held = upstream.hold()
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

    made = Container({"SLUICE_FILE": "/file.yaml"}, options=NARROW, binds={fifo: "/file.yaml"})
    with contextlib.closing(made) as container:
        end = wait_until(lambda: reader_of(fifo), "it to read its file")
        os.kill(container.first(), signal.SIGTERM)
        assert container.process.wait(DEADLINE) == 128 + signal.SIGTERM
        os.close(end)
    guard.remove(folder)


def test_workers_that_its_share_pays_for(contained: Callable[..., Container]) -> None:
    """Half a CPU is one worker. A reload asks again."""
    folder = guard.folder("sluice-cgroup-")
    (folder / "cpu.max").write_text("50000 100000\n")
    container = contained(binds={folder: "/sys/fs/cgroup"}, SLUICE_WORKERS="auto")
    found = json.loads(container.run("sluice", "status", "--json").stdout)
    assert len(found["workers"]["ready"]) == 1
    (folder / "cpu.max").write_text("max 100000\n")
    done = container.run("sluice", "reload", "--new-workers")
    assert f"{len(os.sched_getaffinity(0))} new worker" in done.stdout
    guard.remove(folder)


def test_less_shared_memory(contained: Callable[..., Container]) -> None:
    """It says so, and has its images on the volume."""
    container = contained("shm=8m")
    assert b"warning: image_dir: /dev/shm has too little space: 33 MiB are needed" in container.err


def test_files_that_are_mounted(contained: Callable[..., Container], upstream: Upstream) -> None:
    """Settings and the declarative file, read-only; no text."""
    folder = guard.folder("sluice-mounted-")
    (folder / "sluice.yaml").write_text(one(upstream.url))
    (folder / "sluice.conf").write_text("file = sluice.yaml\nheader_prefix = X-Sluice\n")
    container = contained(binds={folder: "/mounted"}, SLUICE_CONF="/mounted/sluice.conf")
    with Wire(container.port) as wire:
        assert "x-sluice-request-id" in wire.ask("/one").headers
    (folder / "sluice.yaml").write_text("nonsense")
    assert container.run("sluice", "reload").returncode == 1
    container.serves()
    guard.remove(folder)
