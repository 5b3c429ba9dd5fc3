"""A file or folder of the prefix that goes, may only be read or has no room while the gateway runs:
each command finds the gateway all the same, and each process that dies has a successor or a reason
why not."""

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from one_service import SERVED, begin, control, names, put, store

from instance import AS_ROOT, Instance
from processes import children
from sluice import alive
from wire import wait_until

# A pid file that went beside that of a killed upgrade, whose process is gone.
LEFT = "run/nginx.pid.oldbin"
PARTS = [
    "run/nginx.pid",
    LEFT,
    "run",
    "run/control",
    "logs",
    "tmp",
    "tls",
    "nginx.conf",
    "settings.json",
    "start.json",
]


def lose(instance: Instance, part: str) -> None:
    path = instance.prefix / part
    if part == LEFT:
        with subprocess.Popen(["true"]) as ended:
            path.write_text(f"{ended.pid}\n")
        path = instance.prefix / "run" / "nginx.pid"
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def has_account(uid: int) -> bool:
    with contextlib.suppress(KeyError):
        return bool(pwd.getpwuid(uid))
    return False


def kill_control(instance: Instance) -> None:
    """Waits until it has a successor."""
    pid = instance.status()["control"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: instance.status()["control"].get("pid") not in (pid, 0), "a successor")


@pytest.mark.parametrize("part", PARTS)
def test_each_process_that_dies_has_a_successor(instance: Instance, part: str) -> None:
    begin(instance)
    master = instance.status()["pid"]
    lose(instance, part)
    kill_control(instance)
    wait_until(lambda: control(instance)["state"] == "live", "the store")
    workers = children(master)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not set(workers) & set(children(master)), "their end")
    wait_until(lambda: instance.get("/one") == SERVED, "new workers")
    wait_until(lambda: control(instance)["state"] == "live", "the store")
    assert put(instance, "two")[0] == 200
    assert instance.status()["pid"] == master


@pytest.mark.parametrize("part", PARTS)
def test_commands_find_the_gateway(instance: Instance, part: str) -> None:
    """What they cannot do without that part they say, and change nothing."""
    begin(instance)
    master = instance.status()["pid"]
    images = Path(json.loads((instance.prefix / "settings.json").read_text())["image_dir"])
    lose(instance, part)
    assert instance.status()["pid"] == master
    lines = instance.refuse("start", file=None)
    assert lines[0].startswith(f"sluice: already running in {instance.prefix} (pid {master})")
    done = instance.run("reload", "--new-workers")
    if done.returncode != 0:
        assert done.stderr.splitlines()[-1] == (
            "sluice: reload refused: the running configuration is kept"
        )
        assert str(instance.prefix / part) in done.stderr
    assert instance.get("/one") == SERVED
    assert instance.status()["pid"] == master
    instance.succeed("stop")
    assert instance.get("/one") == 0
    assert not images.exists()
    instance.succeed("start", file=None)
    assert names(instance) == ["one"]
    assert instance.get("/one") == SERVED


def test_who_names_no_prefix_is_told_of_it(instance: Instance) -> None:
    begin(instance)
    lose(instance, "run/nginx.pid")
    done = instance.run("status", prefix=None)
    assert str(instance.prefix) in done.stdout + done.stderr


def test_a_start_names_the_gateway_whose_prefix_was_removed(instance: Instance) -> None:
    begin(instance)
    master = instance.status()["pid"]
    images = Path(json.loads((instance.prefix / "settings.json").read_text())["image_dir"])
    shutil.rmtree(instance.prefix)
    first = instance.refuse("start")[0]
    why = f"is in use by a gateway whose prefix {instance.prefix} was removed (pid {master})"
    assert f"{why}; run `kill {master}`, or set --proxy-listen to another port" in first
    os.kill(master, signal.SIGTERM)
    wait_until(lambda: not alive(master), "the end")
    instance.succeed("start")
    instance.succeed("stop")
    assert not images.exists()


@pytest.mark.skipif(not AS_ROOT, reason="only root's workers are another user")
def test_images_of_each_user_whom_the_workers_ran_as(instance: Instance) -> None:
    """Also of one whose account is gone; what only has the name of one of theirs stays."""
    begin(instance)
    images = Path(json.loads((instance.prefix / "settings.json").read_text())["image_dir"])
    own, name = images.stat(), images.name.rsplit("-", 1)[1]
    unknown = next(uid for uid in range(54321, 60000) if not has_account(uid))
    others = {uid: images.with_name(f"sluice-{uid}-{name}") for uid in (1, unknown, unknown + 1)}
    try:
        for uid, folder in others.items():
            folder.mkdir(mode=0o700)
            (folder / "base.1").touch()
            os.chown(folder, uid, own.st_gid)
        stranger = others.pop(unknown + 1)
        os.chown(stranger, own.st_uid, own.st_gid)
        lose(instance, "settings.json")
        instance.succeed("stop")
        assert not images.exists()
        assert [folder for folder in others.values() if folder.exists()] == []
        assert list(stranger.iterdir()) == [stranger / "base.1"]
    finally:
        for folder in images.parent.glob(f"sluice-*-{name}"):
            shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("part", ["run/nginx.pid", LEFT, "run"])
@pytest.mark.parametrize("verb", ["restart", "upgrade"])
def test_another_nginx_takes_the_place_of_one_without_a_pid_file(
    instance: Instance, part: str, verb: str
) -> None:
    begin(instance)
    master = instance.status()["pid"]
    lose(instance, part)
    assert instance.run(verb).returncode == 0
    wait_until(lambda: not Path(f"/proc/{master}").exists(), "the end of the one before")
    assert instance.status()["pid"] not in (master, 0)
    assert put(instance, "two")[0] == 200
    assert instance.get("/one") == SERVED


@contextlib.contextmanager
def looks_like_it(
    instance: Instance, *before: str, has_log: bool = True, holds: socket.socket | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the command line of its master, and what that holds open."""
    title = f"nginx: master process x -p {instance.prefix}/ -c {instance.prefix}/nginx.conf"
    words = [*before, "bash", "-c", 'echo; exec -a "$0" sleep 600', title]
    log = instance.prefix / "logs" / "error.log" if has_log else Path(os.devnull)
    with (
        open(log) as held,
        subprocess.Popen(words, stdin=holds or held, stdout=subprocess.PIPE) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            named = Path(f"/proc/{process.pid}/cmdline")
            wait_until(lambda: named.read_bytes().startswith(b"nginx: master"), "its name")
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(not AS_ROOT, reason="needs root to make a mount namespace")
def test_one_of_the_same_prefix_in_another_container_is_a_stranger(instance: Instance) -> None:
    begin(instance)
    instance.succeed("stop")
    with looks_like_it(instance) as process:
        assert instance.status()["pid"] == process.pid
    hidden = f'mount -t tmpfs tmpfs {instance.prefix} && exec "$@"'
    with looks_like_it(instance, "unshare", "--mount", "bash", "-c", hidden, "hidden") as process:
        assert instance.status()["running"] is False
        instance.succeed("start", file=None)
        instance.succeed("stop")
        assert process.poll() is None


@pytest.mark.parametrize("part", ["logs", "prefix", "folder"])
def test_a_master_whose_folder_has_become_a_link(instance: Instance, part: str) -> None:
    """The kernel names what it has open without links, its command line with them."""
    begin(instance)
    master = instance.status()["pid"]
    folder = {
        "logs": instance.prefix / "logs",
        "prefix": instance.prefix,
        "folder": instance.folder,
    }[part]
    aside = folder.with_name(f"{folder.name}.aside")
    folder.rename(aside)
    folder.symlink_to(aside)
    assert instance.status()["pid"] == master
    lose(instance, "run/nginx.pid")
    assert instance.status()["pid"] == master
    instance.succeed("stop")
    assert instance.get("/one") == 0
    with looks_like_it(instance) as process:
        assert instance.status()["pid"] == process.pid


def test_a_name_alone_makes_no_master(instance: Instance) -> None:
    """Anybody may choose one, and have a start refused."""
    begin(instance)
    instance.succeed("stop")
    with looks_like_it(instance, has_log=False) as process:
        assert instance.status()["running"] is False
        instance.succeed("start", file=None)
        instance.succeed("stop")
        assert process.poll() is None


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become another user")
def test_another_users_process_is_no_master(instance: Instance) -> None:
    """In namespaces of its own it can have a log of this name."""
    begin(instance)
    instance.succeed("stop")
    other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    with looks_like_it(instance, *other) as process:
        assert instance.status()["running"] is False
        instance.succeed("start", file=None)
        instance.succeed("stop")
        assert process.poll() is None


def test_a_name_of_any_length_stops_no_command(instance: Instance) -> None:
    begin(instance)
    instance.succeed("stop")
    title = "nginx: master process x -p " + "/a" * 15000 + " -c nginx.conf"
    with subprocess.Popen(["bash", "-c", 'exec -a "$0" sleep 600', title]) as process:
        try:
            named = Path(f"/proc/{process.pid}/cmdline")
            wait_until(lambda: named.read_bytes().startswith(b"nginx: master"), "its name")
            assert instance.status()["running"] is False
        finally:
            process.kill()


@pytest.mark.parametrize("link", ["folder", "prefix"])
def test_a_link_to_its_socket_makes_no_master(instance: Instance, link: str) -> None:
    """Anybody may bind one of that name, and have a link to the prefix take its folder's place."""
    begin(instance)
    instance.succeed("stop")
    theirs = instance.folder / "theirs"
    to, at = {
        "folder": (instance.prefix / "run" / "control", theirs / "socket"),
        "prefix": (instance.prefix, theirs / "run" / "control" / "socket"),
    }[link]
    at.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(at))
        held.listen()
        theirs.rename(instance.folder / "aside")
        theirs.symlink_to(to)
        with looks_like_it(instance, holds=held) as process:
            assert instance.status()["running"] is False
            assert process.poll() is None


def take_folder(instance: Instance) -> None:
    folder = store(instance).parent
    os.chown(folder, 0, 0)
    folder.chmod(0o500)


def give_folder(instance: Instance) -> None:
    folder, user = store(instance).parent, store(instance).stat()
    os.chown(folder, user.st_uid, user.st_gid)
    folder.chmod(0o700)


def mount_read_only(instance: Instance) -> None:
    """What is open stays as it was."""
    folder = store(instance).parent

    def is_read_only() -> bool:
        """Not while something that was opened in between is written to."""
        subprocess.run(["mount", "--bind", folder, folder], check=True)
        command = ["mount", "-o", "remount,bind,ro", folder]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode != 0:
            unmount(instance)
        return done.returncode == 0

    wait_until(is_read_only, "the folder to be read-only")


def unmount(instance: Instance) -> None:
    subprocess.run(["umount", "--lazy", store(instance).parent], check=True)


UNUSABLE: dict[str, tuple[Callable[[Instance], None], Callable[[Instance], None], str]] = {
    "folder-of-root": (take_folder, give_folder, "cannot be searched: permission denied"),
    "read-only": (mount_read_only, unmount, "cannot be written"),
}


@pytest.mark.skipif(not AS_ROOT, reason="needs root to take it from the workers")
@pytest.mark.parametrize("name", list(UNUSABLE))
def test_a_store_that_its_workers_may_not_use(instance: Instance, name: str) -> None:
    """What is live is served, every command says why and changes nothing."""
    take, give, reason = UNUSABLE[name]
    begin(instance)
    master = instance.status()["pid"]
    take(instance)
    try:
        for verb in ("reload", "restart", "upgrade"):
            lines = instance.refuse(verb)
            assert lines[0].startswith(f"sluice: store: {store(instance)}: ")
            assert lines[0].endswith(reason)
            assert lines[-1].startswith(f"sluice: {verb} refused: the running ")
        kill_control(instance)
        wait_until(lambda: control(instance).get("message"), "its reason")
        status, said = put(instance, "two")
        assert (status, said["state"]) == (503, "starting")
        assert said["message"].endswith(reason)
        assert instance.get("/one") == SERVED
        assert instance.status()["pid"] == master
    finally:
        give(instance)
    wait_until(lambda: control(instance)["state"] == "live", "the store")
    assert put(instance, "three")[0] == 200
    assert names(instance) == ["one", "three"]


def fill(folder: Path) -> Path:
    """Leaves no room; the file that takes it."""
    path = folder / "others"
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return path


@pytest.mark.skipif(not AS_ROOT, reason="needs root to mount a small file system")
@pytest.mark.parametrize("death", ["control", "master", "reload", "restart", "upgrade"])
def test_a_store_without_room(instance: Instance, death: str) -> None:
    """What is live is served and writes get 507, whoever dies and starts meanwhile."""
    folder = store(instance).parent
    instance.prefix.mkdir(mode=0o755)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", folder], check=True)
    try:
        begin(instance)
        others = fill(folder)
        status, said = put(instance, "two")
        assert (status, said["name"]) == (507, "full")
        if death == "control":
            kill_control(instance)
        elif death == "master":
            os.kill(instance.status()["pid"], signal.SIGKILL)
            wait_until(lambda: instance.status()["running"] is False, "its end")
            instance.succeed("stop")
            instance.succeed("start", file=None)
        else:
            instance.succeed(death, *(["--new-workers"] if death == "reload" else []))
        wait_until(lambda: control(instance)["state"] == "live", "the store")
        assert put(instance, "two")[0] == 507
        assert names(instance) == ["one"]
        assert instance.get("/one") == SERVED
        others.unlink()
        assert put(instance, "three")[0] == 200
        assert names(instance) == ["one", "three"]
        instance.succeed("stop")
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
