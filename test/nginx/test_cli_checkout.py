"""Sluice as it is cloned: wherever it lies, `make build` and `make run` work or say in one line
why not."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from instance import SECONDS, Instance, copy_checkout
from sluice import sanitizers

pytestmark = pytest.mark.skipif(
    bool(sanitizers()), reason="a clone builds a module of its own, without sanitizers"
)

# Of scripts/run and the demo upstream.
PROXY, UPSTREAM = 8000, 9080

BUILD_SECONDS = 300


@pytest.fixture
def checkout(instance: Instance) -> Path:
    """A copy with a blank in its path, for an instance that has one in its prefix."""
    folder = instance.folder / "my sluice"
    instance.command = copy_checkout(folder)
    instance.prefix = folder / "build" / "its run"
    return folder


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A socket in the way of others."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield other


def take(listener: socket.socket, port: int) -> None:
    """Takes a port, unless somebody else has it already."""
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError:
        return


def is_free(port: int) -> bool:
    """Whether nobody listens there."""
    with socket.socket() as other:
        return other.connect_ex(("127.0.0.1", port)) != 0


def refused(checkout: Path) -> list[str]:
    """What scripts/run says that cannot run."""
    done = subprocess.run(
        [checkout / "scripts" / "run"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr.splitlines()


def test_it_builds_and_runs_where_the_path_has_a_blank(instance: Instance, checkout: Path) -> None:
    shutil.rmtree(checkout / "build")
    build = [checkout / "scripts" / "build-module"]
    done = subprocess.run(build, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run(build, capture_output=True, check=True).stdout == b""  # is built
    instance.succeed("start")
    assert instance.get("/nothing") == 404
    assert instance.succeed("reload", "--new-workers").startswith("reloaded: 2 new workers")
    assert instance.get("/nothing") == 404
    assert instance.succeed("stop") == "stopped\n"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SLUICE_NGINX_BINARY", "/bin/true", "/bin/true is no nginx; correct SLUICE_NGINX_BINARY"),
        (
            "SLUICE_NGINX_SOURCE",
            "/none",
            "/none/configure is missing; scripts/setup run installs Debian's, "
            "SLUICE_NGINX_SOURCE names another",
        ),
    ],
)
def test_a_build_names_what_it_lacks(checkout: Path, name: str, value: str, said: str) -> None:
    done = subprocess.run(
        [checkout / "scripts" / "build-module"],
        env=os.environ | {name: value},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"build: {said}\n")


@pytest.mark.parametrize("name", ["a;b", "a?b"])
def test_a_path_that_lua_cannot_search_is_refused(instance: Instance, name: str) -> None:
    folder = instance.folder / name
    instance.command = copy_checkout(folder)
    said = f"sluice: it cannot run from {folder}: a ; or ? is in that path"
    assert instance.refuse("start") == [said]
    assert not instance.prefix.exists()


def test_the_demo_names_the_port_that_its_upstream_lacks(
    checkout: Path, listener: socket.socket
) -> None:
    take(listener, UPSTREAM)
    (line,) = refused(checkout)
    assert line.startswith(
        f"run: 127.0.0.1:{UPSTREAM}, which the demo upstream needs, is taken by "
    )


def test_the_demo_names_the_port_that_the_gateway_lacks(
    checkout: Path, listener: socket.socket
) -> None:
    if not is_free(UPSTREAM):
        pytest.skip("another demo runs on this machine")
    take(listener, PROXY)
    line = refused(checkout)[0]
    assert line.startswith(f"sluice: proxy_listen: 127.0.0.1:{PROXY} is taken by another program")


def test_the_demo_leaves_nothing_when_nobody_reads_it(checkout: Path) -> None:
    """As in `make run | head -1`."""
    if not all(is_free(port) for port in (PROXY, PROXY + 1, UPSTREAM)):
        pytest.skip("another demo runs on this machine")
    with subprocess.Popen(
        [checkout / "scripts" / "run"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as demo:
        assert demo.stdout
        assert demo.stdout.readline().startswith("sluice ")
        demo.stdout.close()
        try:
            demo.wait(SECONDS)
            assert is_free(PROXY)
            assert is_free(UPSTREAM)
        finally:
            subprocess.run(
                [checkout / "bin" / "sluice", "stop", "--prefix", checkout / "build" / "run"],
                capture_output=True,
                check=False,
            )
            if not is_free(UPSTREAM):
                os.kill(int((checkout / "build/demo/nginx.pid").read_text()), signal.SIGTERM)
