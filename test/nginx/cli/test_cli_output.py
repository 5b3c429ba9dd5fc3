"""What the command does where nobody reads what it prints, or the gateway does not answer: it ends
with a documented exit code, never by a signal."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from admin_client import Client

from sluice import COMMAND, Gateway, Start
from wire import DEADLINE

MANY = 300
COMMANDS = [["get", "services"], ["get", "services", "--json"], ["status"], ["export"]]


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """One that has more to print than a pipe takes at once."""
    with Gateway(None) as gateway:
        entity = {"url": "http://127.0.0.1:1", "tags": [f"{'x' * 80}{n}" for n in range(20)]}
        operations = [
            {"method": "PUT", "path": f"/services/s{n}", "body": entity} for n in range(MANY)
        ]
        Client(gateway).must(200, "POST", "/batch", operations)
        yield gateway


def command(running: Gateway, *arguments: str, **how: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [COMMAND, *arguments, "--prefix", running.settings["prefix"]],
        env=running.environment(),
        stderr=subprocess.PIPE,
        timeout=DEADLINE,
        check=False,
        **how,
    )


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_reader_that_leaves(running: Gateway, arguments: list[str]) -> None:
    """As head does; the command has done what it was to do."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        done = command(running, *arguments, stdout=output)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_watch_ends_with_its_reader(running: Gateway) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        done = command(running, "timers", "--watch", "0.1", stdout=output)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_output_that_cannot_be_written(running: Gateway, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as output:
        done = command(running, *arguments, stdout=output)
    assert done.returncode == 1
    assert done.stderr == b"sluice: cannot write to standard output: No space left on device\n"


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_output_that_is_closed(running: Gateway, arguments: list[str]) -> None:
    """No file or socket of the command comes into its place."""
    done = command(running, *arguments, preexec_fn=lambda: os.close(1))
    assert done.returncode == 1
    assert done.stderr == b"sluice: cannot write to standard output: Bad file descriptor\n"


@contextmanager
def closing(path: Path, reads: int) -> Iterator[None]:
    """A control socket whose owner closes each connection, after so many bytes."""
    kept = path.with_name("kept")
    path.rename(kept)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            if reads:
                connection.recv(reads)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        path.unlink()
        kept.rename(path)


def control_path(running: Gateway) -> Path:
    return running.settings["prefix"] / "run" / "control" / "socket"


@pytest.mark.parametrize("reads", [0, 10])
def test_a_gateway_that_closes(running: Gateway, reads: int, tmp_path: Path) -> None:
    """Whether it has read of the request or not."""
    large = tmp_path / "large.json"
    large.write_text('{"_format_version": "3.0", "services": []' + " " * 2**20 + "}")
    with closing(control_path(running), reads):
        for arguments in (["get", "services"], ["apply", str(large)], ["delete", "services", "s"]):
            done = command(running, *arguments, stdout=subprocess.PIPE)
            assert done.returncode == 1, arguments
            assert b"the gateway did not answer: " in done.stderr, arguments


@pytest.mark.parametrize("reads", [0, 10])
def test_a_reload_that_is_not_answered(gateway: Start, reads: int) -> None:
    """A file so large that it is still being sent when the connection is closed."""
    running = gateway({"services": []})
    names = [f"s{n}{'x' * 80}" for n in range(10000)]
    running.write_config({"services": [{"name": name, "url": "http://[::1]"} for name in names]})
    with closing(control_path(running), reads):
        done = command(running, "reload", stdout=subprocess.PIPE)
    assert done.returncode == 1
    assert b"the gateway did not answer: " in done.stderr
    assert command(running, "reload", stdout=subprocess.PIPE).returncode == 0
