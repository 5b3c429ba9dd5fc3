"""A store whose files go while the gateway runs: what is live is served, nothing is answered into
files that nobody finds again, and no command or control worker begins anew beside it."""

import contextlib
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from one_service import SERVED, ask, begin, control, names, put, store

from instance import AS_ROOT, Instance
from wire import wait_until


def aside(instance: Instance) -> Path:
    return instance.folder / "aside"


def empty(instance: Instance) -> None:
    aside(instance).mkdir()
    for path in store(instance).parent.iterdir():
        path.rename(aside(instance) / path.name)


def fill(instance: Instance) -> None:
    for path in aside(instance).iterdir():
        path.rename(store(instance).parent / path.name)


def move(instance: Instance) -> None:
    store(instance).parent.rename(aside(instance))


def move_back(instance: Instance) -> None:
    shutil.rmtree(store(instance).parent, ignore_errors=True)
    aside(instance).rename(store(instance).parent)


def take_db(instance: Instance) -> None:
    store(instance).rename(aside(instance))


def put_db_back(instance: Instance) -> None:
    aside(instance).rename(store(instance))


def replace_db(instance: Instance) -> None:
    take_db(instance)
    store(instance).write_bytes(b"")
    store(instance).chmod(0o600)
    if AS_ROOT:
        shutil.chown(store(instance), "www-data")


def replace_folder(instance: Instance) -> None:
    """As where a volume is not mounted any more: another folder is there, and empty."""
    move(instance)
    shutil.copytree(aside(instance), store(instance).parent, ignore=lambda _, names: names)
    shutil.chown(store(instance).parent, aside(instance).stat().st_uid)


LOSSES: dict[str, tuple[Callable[[Instance], None], Callable[[Instance], None]]] = {
    "emptied": (empty, fill),
    "moved": (move, move_back),
    "not-mounted": (replace_folder, move_back),
    "store-moved": (take_db, put_db_back),
    "store-replaced": (replace_db, put_db_back),
}


def is_refused(instance: Instance, name: str) -> None:
    """A write is, at once and with the reason; what is live stays."""
    status, said = put(instance, name)
    assert status == 503, said
    assert f"{store(instance)}: " in said["message"]
    assert said["state"] == "starting"
    assert instance.get("/one") == SERVED


def tells(instance: Instance) -> None:
    """/status has state, reason and the revision that is live."""
    status, said = ask(instance, "GET", "/status")
    assert status == 200
    assert said["control"]["state"] == "starting"
    assert f"{store(instance)}: " in said["control"]["message"]
    assert said["control"]["revision"] == said["configuration_version"] == 2
    assert said["database"] == {"reachable": False}


@pytest.mark.parametrize("name", list(LOSSES))
def test_what_is_live_stays_until_the_store_is_back(instance: Instance, name: str) -> None:
    lose, bring_back = LOSSES[name]
    begin(instance)
    lose(instance)
    is_refused(instance, "two")
    tells(instance)
    assert instance.status()["control"]["state"] == "starting"
    # Who has to open it anew does not begin with another.
    pid = instance.status()["control"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: instance.status()["control"].get("pid") not in (pid, 0), "a successor")
    wait_until(lambda: control(instance).get("message"), "its reason")
    is_refused(instance, "two")
    tells(instance)
    pid, master = instance.status()["control"]["pid"], instance.status()["pid"]
    os.kill(master, signal.SIGHUP)
    wait_until(lambda: instance.status()["control"].get("pid") not in (pid, 0), "new workers")
    wait_until(lambda: control(instance).get("message"), "its reason")
    is_refused(instance, "two")
    bring_back(instance)
    wait_until(lambda: control(instance)["state"] == "live", "the store")
    assert names(instance) == ["one"]
    assert put(instance, "three")[0] == 200
    instance.succeed("restart")
    assert names(instance) == ["one", "three"]
    assert instance.get("/one") == SERVED


@pytest.mark.parametrize("name", list(LOSSES))
def test_commands_look_before_they_change_anything(instance: Instance, name: str) -> None:
    lose, bring_back = LOSSES[name]
    begin(instance)
    master = instance.status()["pid"]
    lose(instance)
    for verb, kept in (
        ("reload", "the running configuration is kept"),
        ("restart", "the running gateway is kept"),
        ("upgrade", "the running gateway is kept"),
    ):
        lines = instance.refuse(verb)
        assert lines[0].startswith(f"sluice: store: {store(instance)}: ")
        assert lines[-1] == f"sluice: {verb} refused: {kept}"
        assert any("sluice stop" in line for line in lines)
        assert instance.get("/one") == SERVED
    for verb, *more in (("export",), ("backup", "copy.db"), ("check", "--store")):
        (line, *_) = instance.refuse(verb, *more)
        assert line.startswith("sluice: store: ")
    assert instance.status()["pid"] == master
    bring_back(instance)
    wait_until(lambda: control(instance)["state"] == "live", "the store")
    instance.succeed("reload", "--new-workers")
    assert put(instance, "two")[0] == 200
    assert names(instance) == ["one", "two"]


def test_reads_go_on_while_nothing_is_in_its_place(instance: Instance) -> None:
    """Of the files that it still has open: whoever removed them can copy what they held."""
    begin(instance)
    shutil.rmtree(store(instance).parent)
    is_refused(instance, "two")
    assert names(instance) == ["one"]
    tells(instance)
    assert not store(instance).parent.exists()
    instance.succeed("quit")


PARTS = {
    "removed": lambda path: path.unlink(),
    "replaced": lambda path: (path.unlink(), path.write_bytes(b"something else" * 9)),
}


@pytest.mark.parametrize("how", list(PARTS))
@pytest.mark.parametrize("suffix", ["-wal", "-shm", ".lock", ".witness"])
def test_what_was_answered_outlives_a_file_beside_it(
    instance: Instance, suffix: str, how: str
) -> None:
    """The log too: it is put back from where SQLite has it open."""
    begin(instance)
    path = store(instance, suffix)
    user = path.stat().st_uid
    PARTS[how](path)
    if path.exists():
        os.chown(path, user, user)
        path.chmod(0o600)
    put(instance, "two")
    wait_until(lambda: control(instance)["state"] == "live", "the store")
    # As often as it takes: what was refused is not there, what was answered is.
    answered = wait_until(lambda: put(instance, "three")[0] in (200, 201), "a change")
    assert answered
    pid = instance.status()["control"]["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: instance.status()["control"].get("pid") not in (pid, 0), "a successor")
    wait_until(lambda: control(instance)["state"] == "live", "the store")
    assert {"one", "three"} <= set(names(instance)) <= {"one", "two", "three"}
    before = names(instance)
    instance.succeed("check", "--store")
    instance.succeed("stop")
    instance.succeed("start", file=None)
    assert names(instance) == before
    assert instance.get("/one") == SERVED


def test_a_log_is_put_back_below_a_reader(instance: Instance) -> None:
    """However long another process reads what was there before."""
    begin(instance)
    with contextlib.closing(sqlite3.connect(store(instance), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        count = "SELECT count(*) FROM e_services"
        assert reader.execute(count).fetchone() == (1,)
        for number in range(20):
            assert put(instance, f"s{number}")[0] == 200
        store(instance, "-wal").unlink()
        put(instance, "other")
        wait_until(lambda: control(instance)["state"] == "live", "the store")
        for number in range(20, 40):
            assert put(instance, f"s{number}")[0] == 200
        assert reader.execute(count).fetchone() == (1,)
        reader.execute("COMMIT")
    wanted = {"one", *(f"s{number}" for number in range(40))}
    assert wanted <= set(names(instance)) <= wanted | {"other"}
    instance.succeed("check", "--store")
    instance.succeed("restart")
    assert wanted <= set(names(instance))


def test_a_file_is_the_source_of_another_store(instance: Instance) -> None:
    """Where the entities are those of a file, a restart makes the store anew of it."""
    begin(instance, str(instance.file))
    shutil.rmtree(store(instance).parent)
    assert "upgrade refused: the running gateway is kept" in instance.run("upgrade").stderr
    done = instance.run("restart")
    assert done.returncode == 0, done.stderr
    assert f"it is recreated from {instance.file}" in done.stderr
    assert instance.get("/one") == SERVED
    instance.succeed("reload")


def block(path: Path, what: str, other: Path) -> str:
    """Makes a file of the store such that it cannot be used; why, as the command says it."""
    if what == "link":
        other.write_bytes(b"")
        path.symlink_to(other)
        return "is a symbolic link"
    if what == "unwritable":
        path.write_bytes(b"")
        path.chmod(0o444)
        if AS_ROOT:
            shutil.chown(path, "root", "root")
        return "cannot be written"
    path.mkdir() if what == "folder" else os.mkfifo(path)
    return "is not a regular file"


@pytest.mark.parametrize("what", ["link", "folder", "pipe", "unwritable"])
@pytest.mark.parametrize("is_first", [False, True])
def test_files_beside_it_that_cannot_be_used_end_the_start_at_once(
    instance: Instance, what: str, is_first: bool
) -> None:
    begin(instance)
    instance.succeed("stop")
    if is_first:
        for path in store(instance).parent.iterdir():
            path.unlink()
    kept = instance.folder / "kept"
    for suffix in ("-wal", "-shm", "-journal", ".lock", ".witness"):
        path = store(instance, suffix)
        if path.exists():
            path.rename(kept)
        said = block(path, what, instance.folder / "other")
        lines = instance.refuse("start", file=None)
        assert lines == [f"sluice: store: {store(instance)}: {path} {said}"]
        path.rmdir() if what == "folder" else path.unlink()
        if kept.exists():
            kept.rename(path)
    instance.succeed("start", file=None)


@pytest.mark.parametrize("what", ["store", "folder"])
def test_a_store_that_may_only_be_read_ends_the_start_at_once(
    instance: Instance, what: str
) -> None:
    begin(instance)
    instance.succeed("stop")
    folder = store(instance).parent
    path, said = (store(instance), "") if what == "store" else (folder, f"its folder {folder} ")
    path.chmod(0o444 if what == "store" else 0o500)
    if AS_ROOT and what == "store":
        shutil.chown(path, "root", "root")
    lines = instance.refuse("start", file=None)
    assert lines == [f"sluice: store: {store(instance)}: {said}cannot be written"]
