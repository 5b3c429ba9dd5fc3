"""Sluice as it is cloned: wherever it lies, `make build` and `make run` work or say in one line
why not."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from instance import SECONDS, Instance, copy_checkout, optimise_less
from sluice import COMMAND, ROOT, sanitizers
from wire import wait_until

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
    optimise_less(checkout)
    build = [checkout / "scripts" / "build-module"]
    done = subprocess.run(build, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run(build, capture_output=True, check=True).stdout == b""  # is built
    instance.succeed("start")
    assert instance.get("/nothing") == 404
    assert instance.succeed("reload", "--new-workers").startswith("reloaded: 2 new workers")
    assert instance.get("/nothing") == 404
    assert instance.succeed("stop") == "stopped\n"


GCC = """#!/bin/sh
# dpkg-buildflags asks what it compiles for.
[ "$1" != -dumpmachine ] || exec "$(PATH=${PATH#*:} command -v gcc)" "$@"
echo began >>"$0.calls"
read -r go <"$0.go"
exit 1
"""
"""A compiler that waits until it is told to, and fails."""


def is_waited_for(file: Path) -> bool:
    """Whether a process waits for a lock on it."""
    inode = f":{file.stat().st_ino} " if file.exists() else "none"
    return any("->" in line and inode in line for line in Path("/proc/locks").open())


def test_two_builds_of_the_core_at_once_are_one_after_the_other(
    checkout: Path, tmp_path: Path
) -> None:
    shutil.rmtree(checkout / "build")
    gcc, calls, go = (tmp_path / name for name in ("gcc", "gcc.calls", "gcc.go"))
    gcc.write_text(GCC)
    gcc.chmod(0o755)
    os.mkfifo(go)

    with ExitStack() as stack:

        def build() -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [checkout / "scripts" / "build-module"],
                env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            stack.enter_context(process)
            stack.callback(os.killpg, process.pid, signal.SIGKILL)
            return process

        one = build()
        wait_until(calls.exists, "the first one to compile")
        two = build()
        lock = checkout / "build" / "core" / "lock"
        wait_until(
            lambda: is_waited_for(lock) or calls.read_text().count("began") > 1,
            "the second one to wait, or to write what the first one reads",
        )
        assert calls.read_text().count("began") == 1
        said = []
        for process in (one, two):
            go.write_text("go\n")
            said.append(process.stderr.read())
    assert said == ["build: module/core does not build\n"] * 2
    assert calls.read_text().count("began") == 2


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
    said = f"sluice: cannot run from {folder}: the path contains ; or ?"
    assert instance.refuse("start") == [said]
    assert not instance.prefix.exists()


@pytest.mark.parametrize("end", ["", ";"])
def test_a_path_with_control_characters_is_shown_without(tmp_path: Path, end: str) -> None:
    """Also before there are modules: a terminal takes none for a command."""
    folder = tmp_path / f"\x1b[2J\n\x9b{end}"
    folder.mkdir()
    for name in ("cli", "compat", "gateway"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "lib", folder / "lib")
    done = subprocess.run(
        [os.environ.get("SLUICE_LUAJIT", "luajit"), folder / "cli" / "main.lua", "version"],
        env={name: value for name, value in os.environ.items() if name != "LUA_PATH"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    shown = f"{tmp_path}/?[2J\\n?{end}"
    said = f"cannot run from {shown}: the path contains ; or ?"
    if not end:
        said = f"module: {shown}/build/core/libsluice_core.so is missing; run: make build"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"sluice: {said}\n")


def test_a_name_of_luajit_with_control_characters_is_shown_without() -> None:
    done = subprocess.run(
        [COMMAND, "version"],
        env=os.environ | {"SLUICE_LUAJIT": "no\x1b[2J"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("sluice: no?[2J is not installed: ")


def test_the_demo_names_the_port_that_its_upstream_lacks(
    checkout: Path, listener: socket.socket
) -> None:
    take(listener, UPSTREAM)
    (line,) = refused(checkout)
    assert line.startswith(
        f"run: 127.0.0.1:{UPSTREAM}, which the demo upstream needs, is in use by "
    )


def test_the_demo_names_the_port_that_the_gateway_lacks(
    instance: Instance, checkout: Path, listener: socket.socket
) -> None:
    if not is_free(UPSTREAM):
        pytest.skip("another demo runs on this machine")
    take(listener, PROXY)
    lines = refused(checkout)
    taken = f"sluice: proxy_listen: 127.0.0.1:{PROXY} is in use by another program"
    assert lines[0].startswith(taken)
    assert lines[-1] == (
        "run: for other addresses: SLUICE_PROXY_LISTEN=127.0.0.1:8080 "
        "SLUICE_ADMIN_LISTEN=127.0.0.1:8081 make run"
    )
    proxy, admin = f"127.0.0.1:{instance.proxy_port}", f"127.0.0.1:{instance.admin_port}"
    others = {"SLUICE_PROXY_LISTEN": proxy, "SLUICE_ADMIN_LISTEN": admin}
    with subprocess.Popen(
        [checkout / "scripts" / "run"],
        env=os.environ | others,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout
        try:
            said = "".join(iter(demo.stdout.readline, "Ctrl-C here stops it.\n"))
        finally:
            demo.send_signal(signal.SIGINT)
    assert f"curl http://{proxy}/hello\n  curl -i " in said
    assert f"curl http://{admin}/routes\n" in said


def stop_demo(checkout: Path) -> None:
    """Ends what a demo has left that was to leave nothing."""
    subprocess.run(
        [checkout / "bin" / "sluice", "stop", "--prefix", checkout / "build" / "run"],
        capture_output=True,
        check=False,
    )
    pid = checkout / "build/demo/nginx.pid"
    if pid.exists():
        os.kill(int(pid.read_text()), signal.SIGTERM)


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
            stop_demo(checkout)


def images_of(checkout: Path) -> Path:
    """Where the demo's gateway has its images, in memory."""
    prefix = str((checkout / "build" / "run").resolve())
    return Path(
        f"/dev/shm/sluice-{os.geteuid()}-{hashlib.sha256(prefix.encode()).hexdigest()[:16]}"
    )


def stopping(checkout: Path) -> int | None:
    """The pid of the demo's `sluice stop`, once a Ctrl-C would end it."""
    main = f"{checkout.resolve()}/cli/main.lua\0stop\0".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if main in (folder / "cmdline").read_bytes():
                status = (folder / "status").read_text()
                ignored = int(status.split("SigIgn:")[1].split()[0], 16)
                return None if ignored & 1 << signal.SIGINT - 1 else int(folder.name)
        except OSError:  # it has ended
            continue
    return None


def interrupt_stop(checkout: Path, demo: subprocess.Popen[str]) -> None:
    """Ctrl-C while `sluice stop` takes the images away; it waits for that."""
    pid = wait_until(lambda: stopping(checkout), "sluice stop to run")
    os.kill(pid, signal.SIGSTOP)
    os.killpg(demo.pid, signal.SIGINT)
    os.kill(pid, signal.SIGCONT)


MOMENTS = ["upstream", "images", "settings", "listening", "twice", "stopping", "term"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_at_any_moment_leaves_nothing(checkout: Path, moment: str) -> None:
    """Neither in memory nor on a port; the first start of a checkout, which has no settings yet."""
    ports = (PROXY, PROXY + 1, PROXY + 443, UPSTREAM)
    if not all(is_free(port) for port in ports):
        pytest.skip("another demo runs on this machine")
    images = images_of(checkout)
    signs = {
        "upstream": (checkout / "build/demo/nginx.pid").exists,
        "images": images.exists,
        "settings": (checkout / "build/run/settings.json").exists,
        "listening": lambda: not is_free(PROXY),
    }
    command = ["sh", "-c", 'exec "$1" </dev/null', "sh", str(checkout / "scripts" / "run")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as demo:
        assert demo.stdout
        try:
            if moment in signs:
                wait_until(signs[moment], f"the demo to have got to its {moment}")
            else:
                lines = iter(demo.stdout.readline, "")
                assert any("Try it in another terminal" in line for line in lines)
                assert images.exists()
            how = signal.SIGTERM if moment == "term" else signal.SIGINT
            for _ in range(2 if moment == "twice" else 1):
                os.killpg(demo.pid, how)
            if moment == "stopping":
                interrupt_stop(checkout, demo)
            said = demo.stdout.read()
            assert demo.wait(SECONDS) == 0, said
            assert said.endswith("stopped; `make run` starts it again\n"), said
            # Before what takes away what a failed test has left.
            assert not images.exists()
            assert all(is_free(port) for port in ports)
        finally:
            demo.kill()
            stop_demo(checkout)
