"""Files: who may read them, what is not followed, and what outlives a loss of power."""

import contextlib
import json
import os
import pwd
import random
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from changes import document, post
from versions import VERSION, versioned

import guard
from instance import AS_ROOT, ONE, Instance, copy_checkout
from sluice import SUPPORT, Start, alive, preloaded
from upstream import Upstream
from wire import wait_until

NOBODY = pwd.getpwnam("nobody")

SECRET = "root:$6$not-for-workers:19000:0:99999:7:::\n"

only_root = pytest.mark.skipif(not AS_ROOT, reason="needs root to become another user")


@pytest.fixture
def victim() -> Iterator[Path]:
    """A file that is its owner's alone, as /etc/shadow; it has to stay as it is."""
    path = guard.folder("sluice-victim-") / "shadow"
    path.write_text(SECRET)
    path.chmod(0o600)
    yield path
    found = path.stat()
    assert path.read_text() == SECRET
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, os.geteuid())


def modes(folder: Path) -> dict[str, int]:
    """What everybody may do with each file in a folder."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode)
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_what_holds_secrets_is_its_owners_alone(gateway: Start, upstream: Upstream) -> None:
    before = os.umask(0)
    try:
        running = gateway(versioned(upstream, 0), plugins=VERSION, access_log="logs/access.log")
    finally:
        os.umask(before)
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    prefix = running.settings["prefix"]
    found = modes(prefix)
    assert {path: mode for path, mode in found.items() if path.startswith("logs/")} == {
        "logs/error.log": 0o640,
        "logs/access.log": 0o640,
        "logs/admin_access.log": 0o640,
    }
    for name in ("nginx.conf", "settings.json", "start.json", "sluice.lock"):
        assert found[name] == 0o600, name
    assert {mode for path, mode in found.items() if path.startswith("store/")} == {0o600}
    for folder, mode in (("logs", 0o750), ("store", 0o700), ("run/control", 0o700)):
        assert stat.S_IMODE((prefix / folder).stat().st_mode) == mode, folder


def test_old_files_that_everybody_could_read_are_closed(instance: Instance) -> None:
    logs = instance.prefix / "logs"
    logs.mkdir(parents=True)
    (logs / "error.log").touch(0o644)
    for name in ("nginx.conf", "settings.json", "start.json"):
        (instance.prefix / name).touch(0o644)
    instance.succeed("start")
    found = modes(instance.prefix)
    assert found["logs/error.log"] == 0o640
    assert {found[name] for name in ("nginx.conf", "settings.json", "start.json")} == {0o600}


def test_reopened_logs_are_not_for_everybody(instance: Instance) -> None:
    instance.succeed("start")
    log = instance.prefix / "logs" / "error.log"
    log.rename(log.with_suffix(".1"))
    instance.succeed("reopen")
    assert stat.S_IMODE(log.stat().st_mode) == 0o640
    wait_until(lambda: "reopening logs" in log.with_suffix(".1").read_text(), "nginx to see it")


# Folders


def check_refused(instance: Instance, word: str) -> None:
    """A start says in one line what is wrong with a folder, and changes nothing."""
    (line,) = instance.refuse("start")
    assert line.startswith("sluice: prefix: "), line
    assert word in line
    assert not (instance.prefix / "settings.json").exists()


@pytest.mark.parametrize("name", ["", "logs", "tmp", "run", "run/control", "store"])
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_folder_that_others_may_write_to_is_refused(
    instance: Instance, name: str, mode: int
) -> None:
    folder = instance.prefix / name
    folder.mkdir(parents=True)
    folder.chmod(mode)
    check_refused(instance, f"other users can write to {folder}; chmod go-w it")


@only_root
@pytest.mark.parametrize("name", ["", "logs", "tmp", "run", "run/control"])
def test_a_folder_of_another_user_is_refused(instance: Instance, name: str) -> None:
    folder = instance.prefix / name
    folder.mkdir(parents=True)
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    check_refused(instance, f"{folder} belongs to nobody, not to root; chown it")


@pytest.mark.parametrize("name", ["logs", "tmp", "run", "run/control", "store"])
def test_a_link_in_the_place_of_a_folder_is_refused(instance: Instance, name: str) -> None:
    elsewhere = instance.folder / "elsewhere"
    elsewhere.mkdir()
    (instance.prefix / name).parent.mkdir(parents=True)
    (instance.prefix / name).symlink_to(elsewhere)
    check_refused(instance, "is not a directory; remove it")
    assert list(elsewhere.iterdir()) == []


def test_a_folder_above_where_everybody_may_rename_is_refused(instance: Instance) -> None:
    above = instance.folder / "above"
    above.mkdir()
    above.chmod(0o777)
    instance.prefix = above / "run"
    check_refused(instance, f"all users can write to {above}")
    above.chmod(0o1777)  # as /tmp
    instance.succeed("start")


@only_root
def test_a_folder_above_that_is_another_users_is_refused(instance: Instance) -> None:
    above = instance.folder / "above"
    above.mkdir()
    os.chown(above, NOBODY.pw_uid, NOBODY.pw_gid)
    instance.prefix = above / "run"
    check_refused(instance, f"{above} belongs to nobody, who could replace what is in it")


# What somebody left in a prefix while it was open to all

REPLACED = [
    "nginx.conf",
    "nginx.conf.new",
    "settings.json",
    "settings.json.new",
    "start.json",
    "start.json.new",
    "run/control/socket",
]
"""Written by a rename, or taken away first."""

OPENED = ["run/nginx.pid", "logs/error.log", "logs/access.log", "tmp/client_body", "tmp/proxy"]
"""nginx opens these by name, or gives them to its workers."""


def plant(path: Path, kind: str, victim: Path) -> None:
    """What an attacker leaves there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "second name":
        path.hardlink_to(victim)
    elif kind == "dangling link":
        path.symlink_to(victim.parent / "made")
    else:
        os.mkfifo(path, 0o666)
    if AS_ROOT and kind != "second name":
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "second name"])
def test_what_is_planted_where_files_are_written_is_replaced(
    instance: Instance, victim: Path, kind: str
) -> None:
    for name in REPLACED:
        plant(instance.prefix / name, kind, victim)
        (instance.prefix / name).parent.chmod(0o755)
    instance.succeed("start")
    assert instance.get("/") == 404
    for name in ("nginx.conf", "settings.json", "start.json"):
        path = instance.prefix / name
        found = path.lstat()
        assert stat.S_ISREG(found.st_mode), name
        assert found.st_nlink == 1
        assert found.st_uid == os.geteuid()
    instance.file.write_text(ONE.format(url="http://127.0.0.1:9") + "# changed\n")
    assert instance.succeed("reload").startswith("live on 2 workers")
    assert list(victim.parent.iterdir()) == [victim]


@pytest.mark.parametrize("name", OPENED)
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "second name"])
def test_what_is_planted_where_nginx_opens_is_refused(
    instance: Instance, victim: Path, kind: str, name: str
) -> None:
    plant(instance.prefix / name, kind, victim)
    check_refused(instance, f"{instance.prefix / name} is not a ")
    (instance.prefix / name).unlink()
    assert list(victim.parent.iterdir()) == [victim]


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe"])
def test_the_lock_is_no_link_and_no_pipe(instance: Instance, victim: Path, kind: str) -> None:
    plant(instance.prefix / "sluice.lock", kind, victim)
    (line,) = instance.refuse("start")
    assert "sluice.lock: is " in line
    assert list(victim.parent.iterdir()) == [victim]


def low_port() -> int:
    """One that only root may open, and on which nobody listens."""
    for port in random.sample(range(600, 1024), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port found")


@only_root
def test_root_acts_as_the_user_whom_its_settings_name(instance: Instance) -> None:
    """As with the packages: the prefix is the user's, and so is all that runs and is written."""
    # A copy that everybody can read, as the checkout may lie in root's home.
    instance.command = copy_checkout(instance.folder / "sluice")
    instance.folder.chmod(0o755)
    instance.prefix.mkdir()
    os.chown(instance.prefix, NOBODY.pw_uid, NOBODY.pw_gid)
    instance.environment["SLUICE_USER"] = "nobody"
    run_dir = instance.folder / "volatile"
    instance.environment["SLUICE_RUN_DIR"] = str(run_dir)
    instance.flags["--admin-listen"] = f"127.0.0.1:{low_port()}"
    instance.succeed("start")
    master = instance.status()["pid"]
    assert Path(f"/proc/{master}").stat().st_uid == NOBODY.pw_uid
    status = Path(f"/proc/{master}/status").read_text()
    # To listen on low ports, and nothing else.
    assert {f"Cap{which}:\t{1 << 10:016x}" for which in ("Inh", "Prm", "Eff", "Amb")} <= set(
        status.splitlines()
    )
    instance.succeed("reload", "--new-workers")
    instance.succeed("upgrade", "--watch", "0.2")
    instance.succeed("reopen")
    # As it leaves, its files do.
    wait_until(lambda: not alive(master), "the old nginx to leave")
    written = [run_dir, *run_dir.rglob("*"), *instance.prefix.rglob("*")]
    assert {path.lstat().st_uid for path in written} == {NOBODY.pw_uid}
    assert int((run_dir / "nginx.pid").read_text()) == instance.status()["pid"]
    instance.succeed("quit")
    # As after a boot, whatever root's umask is.
    shutil.rmtree(run_dir)
    before = os.umask(0o077)
    try:
        instance.succeed("start")
    finally:
        os.umask(before)
    assert stat.S_IMODE(run_dir.stat().st_mode) == 0o755
    instance.succeed("quit")


@only_root
@pytest.mark.parametrize("kind", ["link", "dangling link", "file", "roots"])
def test_root_gives_away_no_folder_but_a_new_one(
    instance: Instance, victim: Path, kind: str
) -> None:
    """Where that of what runs is to be, something else stands."""
    instance.command = copy_checkout(instance.folder / "sluice")
    instance.folder.chmod(0o755)
    instance.prefix.mkdir()
    os.chown(instance.prefix, NOBODY.pw_uid, NOBODY.pw_gid)
    instance.environment["SLUICE_USER"] = "nobody"
    # Sticky, as /tmp is.
    above = instance.folder / "above"
    above.mkdir()
    above.chmod(0o1777)
    path = above / "volatile"
    if kind == "roots":
        path.mkdir()
    elif kind == "file":
        path.hardlink_to(victim)
    else:
        path.symlink_to(victim.parent if kind == "link" else victim.parent / "made")
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
    before = victim.parent.stat()
    (line,) = instance.refuse("start", run_dir=str(path))
    assert line.startswith("sluice: "), line
    assert "run_dir" in line or "cannot create" in line
    assert list(victim.parent.iterdir()) == [victim]
    assert victim.parent.stat().st_uid == before.st_uid
    assert not os.path.lexists(instance.prefix / "run")


@only_root
@pytest.mark.parametrize("verb", ["restart", "reload", "reopen"])
def test_nothing_in_anothers_prefix_is_believed(instance: Instance, verb: str) -> None:
    """Its settings name programs and logs, and it may run what looks like a gateway."""
    folder, prefix = instance.folder, instance.prefix
    prefix.mkdir()
    program = folder / "program"
    program.write_text(f"#!/bin/sh\ntouch {folder}/run-by-$(id -un)\n")
    program.chmod(0o755)
    given = {"text": str(program), "source": "flag", "base": "/"}
    (prefix / "start.json").write_text(
        json.dumps({"flags": {"nginx_binary": given}, "environment": {}})
    )
    logs = {"error_log": f"{folder}/made", "access_log": "off", "admin_access_log": "off"}
    (prefix / "settings.json").write_text(json.dumps(logs | {"nginx_binary": str(program)}))
    script = "mkdir run; echo $$ >run/nginx.pid; echo; while sleep 60; do :; done"
    for path in (prefix, *prefix.iterdir()):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
    with subprocess.Popen(
        ["/bin/sh", "-c", script, "nginx", "-c", str(prefix / "nginx.conf"), "x"],
        cwd=prefix,
        user="nobody",
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as master:
        try:
            assert master.stdout
            assert master.stdout.readline() == b"\n"
            before = sorted(folder.iterdir())
            lines = instance.refuse(verb)
            assert f"{prefix} belongs to nobody, not to root" in lines[0]
            assert instance.status()["pid"] == master.pid
            assert sorted(folder.iterdir()) == before
        finally:
            os.killpg(master.pid, 9)


# What workers can replace, and the master reads


@only_root
@pytest.mark.parametrize("kind", ["link", "second name"])
def test_nobody_reads_for_a_worker_what_it_may_not_read(
    instance: Instance, victim: Path, kind: str
) -> None:
    """The store is opened with the workers' rights, whoever asks."""
    instance.succeed("start")
    instance.succeed("stop")
    path = instance.prefix / "store" / "store.db"
    for each in (path, path.with_name("store.db-wal"), path.with_name("store.db-shm")):
        each.unlink(missing_ok=True)
    plant(path, kind, victim)
    said = ""
    for words in (("start",), ("check", "--store"), ("export",), ("diff", str(instance.file))):
        done = instance.run(*words)
        said += done.stdout + done.stderr
        assert done.returncode == 1, words
    assert "not-for-workers" not in said
    assert instance.get("/one") == 0


HOSTILE = {
    "hostile": """
        local ffi = require("ffi")
        local map

        -- Fills the shared log, data and all, with an address that is nobody's.
        local function corrupt()
            for line in io.lines("/proc/self/maps") do
                local from, to = line:match("^(%x+)-(%x+) rw.*memfd:sluice")
                if from then
                    map = ffi.cast("uint64_t *", tonumber(from, 16))
                    local words = (tonumber(to, 16) - tonumber(from, 16)) / 8
                    for i = 0, words - 1 do
                        map[i] = 0x4141414141414140ULL + i % 8
                    end
                end
            end
        end

        return {
            VERSION = "0.1.0", PRIORITY = 1,
            schema = {
                name = "hostile",
                fields = { { config = { type = "record", fields = {} } } },
            },
            access = function()
                corrupt()
                ngx.exit(map and 204 or 500)
            end,
        }
    """
}


@only_root
def test_the_master_outlives_a_worker_that_writes_all_over_the_log(
    gateway: Start, upstream: Upstream
) -> None:
    config = {
        "services": [
            {
                "name": "a",
                "url": upstream.url,
                "routes": [{"name": "a", "paths": ["/"], "protocols": ["http"]}],
                "plugins": [{"name": "hostile"}],
            }
        ]
    }
    running = gateway(config, workers=2, plugins=HOSTILE, events_size="64k", user="nobody")
    # Workers may do, and say, whatever they like now.
    trouble = r"worker process|\[(error|alert|crit|emerg)\]|exited on signal|Sanitizer"
    running.expect_log(trouble, range(10**6))
    master = running.master()
    started = Path(f"/proc/{master}/stat").read_text().rpartition(")")[2].split()[19]
    assert running.ask("/").status == 204
    seen = running.error_log().count("start worker processes")
    for turn in range(3):
        os.kill(master, 1)
        wait_until(
            lambda turn=turn: running.error_log().count("start worker processes") > seen + turn,
            "a reload",
        )
        for pid in running.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
    assert Path(f"/proc/{master}/stat").read_text().rpartition(")")[2].split()[19] == started
    running.stop()


# Loss of power


@pytest.fixture(scope="module")
def preload() -> Iterator[Path]:
    """The library that writes down the order of calls."""
    folder = guard.folder("sluice-sync-")
    library = folder / "sync_order.so"
    source = SUPPORT / "sync_order.c"
    subprocess.run(
        ["gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source],
        check=True,
    )
    return library


def test_a_decision_is_on_the_disk_before_it_is_answered(
    gateway: Start, upstream: Upstream, preload: Path
) -> None:
    order = guard.folder("sluice-order-") / "order"
    order.touch()
    env = {"LD_PRELOAD": preloaded(preload), "SYNC_ORDER": str(order)}
    running = gateway(versioned(upstream, 0), plugins=VERSION, env=env)
    prefix = running.settings["prefix"]
    lines = order.read_text().splitlines()
    for name in ("nginx.conf", "settings.json", "start.json"):
        at = lines.index(f"rename {prefix / name}")
        assert lines[at - 1 : at + 2] == [
            f"fsync {prefix / name}.new",
            f"rename {prefix / name}",
            f"fsync {prefix}",
        ]
    seen = len(lines)
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    lines = order.read_text().splitlines()[seen:]
    assert f"fsync {prefix / 'store' / 'store.db-wal'}" in lines
