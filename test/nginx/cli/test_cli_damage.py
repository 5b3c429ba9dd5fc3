"""A store that is not what it was: start says so and changes nothing; each way on is a command."""

import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from instance import AS_ROOT, ONE, Instance
from sluice import alive
from wire import wait_until

WORKERS = "www-data" if AS_ROOT else None


def put_service(instance: Instance, name: str) -> None:
    """A service that was answered."""
    connection = http.client.HTTPConnection("127.0.0.1", instance.admin_port, timeout=60)
    body = json.dumps({"url": "http://127.0.0.1:1"})
    head = {"Content-Type": "application/json"}
    connection.request("PUT", f"/services/{name}", body, head)
    assert connection.getresponse().status in (200, 201)
    connection.close()


def begin(instance: Instance) -> None:
    """Starts it with a store of one service."""
    instance.succeed("start", file=None)
    put_service(instance, "one")


def leave_one(instance: Instance) -> None:
    """A store of one service, that nobody has open."""
    begin(instance)
    instance.succeed("stop")


def backed_up(instance: Instance) -> Path:
    """Starts it with a store of one service; a copy of that."""
    begin(instance)
    backup = instance.folder / "backup.db"
    instance.succeed("backup", str(backup))
    return backup


def services(instance: Instance) -> list[str]:
    """The names of those that the store has."""
    found = json.loads(instance.succeed("export"))
    return sorted(each["name"] for each in found.get("services", []))


def store(instance: Instance, suffix: str = "") -> Path:
    """A file of the store."""
    return instance.prefix / "store" / f"store.db{suffix}"


def kill(instance: Instance) -> None:
    """Ends it without warning, all its processes at once."""
    instance.kills_workers = instance.cuts_off_requests = True
    status = instance.status()
    pids = [status["pid"], status["control"]["pid"], *status["workers"]["ready"]]
    os.kill(pids[0], signal.SIGSTOP)
    for pid in (*pids[1:], pids[0]):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(alive, pids)), "their end")


def contents(instance: Instance) -> dict[str, bytes]:
    """What is in the store's folder, without SQLite's index of the log."""
    return {
        path.name: path.read_bytes()
        for path in (instance.prefix / "store").iterdir()
        if path.is_file() and not path.name.endswith("-shm")
    }


def flip(path: Path, share: float) -> None:
    """Another bit at a place."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("end", ["stop", "quit"])
def test_an_orderly_end_leaves_a_file_that_is_whole(instance: Instance, end: str) -> None:
    begin(instance)
    put_service(instance, "two")
    instance.run(end)
    assert store(instance, "-wal").stat().st_size == 0
    for suffix in ("-wal", "-shm"):
        store(instance, suffix).unlink()
    assert services(instance) == ["one", "two"]
    instance.succeed("start", file=None)
    instance.succeed("stop")


DAMAGES: dict[str, tuple[bool, Callable[[Instance], None], str]] = {
    "log-flipped": (True, lambda i: flip(store(i, "-wal"), 0.3), "but revision 2 of"),
    "log-missing": (True, lambda i: store(i, "-wal").unlink(), "-wal is missing"),
    "log-empty": (True, lambda i: os.truncate(store(i, "-wal"), 0), "-wal has 0 bytes"),
    "store-empty": (False, lambda i: os.truncate(store(i), 0), "is empty, but revision 2 of"),
    "store-missing": (False, lambda i: store(i).unlink(), "is missing, but revision 2 of"),
    "store-flipped": (False, lambda i: flip(store(i), 0.7), "pages differ from what was written"),
}


@pytest.mark.parametrize("is_first", [False, True])
def test_the_file_alone_of_a_killed_gateway_is_refused(instance: Instance, is_first: bool) -> None:
    """Without its log and its witness, as in a new prefix: newer changes may be lost."""
    if not is_first:
        leave_one(instance)
    instance.succeed("start", file=None)
    put_service(instance, "two")
    kill(instance)
    whole = contents(instance)
    for path in store(instance).parent.iterdir():
        if path != store(instance):
            path.unlink()
    said = (
        f"is empty, but was not closed by its last writer, and its log {store(instance)}-wal is "
        "missing or empty: what it had may be lost"
        if is_first
        else f"was not closed by its last writer, and its log {store(instance)}-wal is missing or "
        "empty: changes after revision 1 may be lost"
    )
    for _ in range(2):
        lines = instance.refuse("start", file=None)
        assert lines[0] == f"sluice: store: {store(instance)}: {said}"
        assert store(instance).read_bytes() == whole["store.db"]
    (line,) = instance.refuse("export")
    assert line == lines[0]
    if is_first:
        # With the others it is whole.
        for suffix in ("-wal", ".witness"):
            store(instance, suffix).write_bytes(whole[f"store.db{suffix}"])
            if AS_ROOT:
                shutil.chown(store(instance, suffix), "www-data")
    else:
        # What there is can be accepted.
        assert any(f"sluice restore {store(instance)} --prefix" in each for each in lines)
        instance.succeed("restore", str(store(instance)))
    instance.succeed("start", file=None)
    assert services(instance) == (["two"] if is_first else ["one"])
    instance.succeed("stop")


@pytest.mark.parametrize("name", list(DAMAGES))
def test_damage_is_refused_with_the_ways_on(instance: Instance, name: str) -> None:
    is_hard, damage, reason = DAMAGES[name]
    backup = backed_up(instance)
    put_service(instance, "two")
    if is_hard:
        kill(instance)
    else:
        instance.succeed("stop")
    damage(instance)
    before = contents(instance)
    lines = instance.refuse("start", file=None)
    assert lines[0].startswith(f"sluice: store: {store(instance)}: ")
    assert reason in lines[0]
    assert f"  sluice restore BACKUP --prefix {instance.prefix}: " in "\n".join(lines)
    after = contents(instance)
    # SQLite makes an empty log where there is none.
    before.setdefault("store.db-wal", b"")
    after.setdefault("store.db-wal", b"")
    assert before == after
    # A copy from before the change, beside a base and a witness that are newer.
    said = instance.succeed("restore", str(backup)).splitlines()
    assert said[0] == f"the store has revision 1 of {backup}"
    kept = Path(said[1].removeprefix("the previous store is in "))
    assert before["store.db.witness"] == (kept / "store.db.witness").read_bytes()
    instance.succeed("start", file=None)
    assert services(instance) == ["one"]
    put_service(instance, "three")
    instance.succeed("restart")
    assert services(instance) == ["one", "three"]
    instance.succeed("stop")


def test_no_copy_is_made_of_damage(instance: Instance) -> None:
    leave_one(instance)
    flip(store(instance), 0.7)
    for verb in ("backup", "export"):
        (line,) = instance.refuse(verb, str(instance.folder / "copy"))
        assert "pages differ from what was written" in line
        assert not (instance.folder / "copy").exists()


def test_a_backup_can_be_restored_twice(instance: Instance) -> None:
    backup = backed_up(instance)
    instance.succeed("stop")
    kept = {instance.succeed("restore", str(backup)).splitlines()[1] for _ in range(3)}
    assert len(kept) == 3
    instance.succeed("start", file=None)
    assert services(instance) == ["one"]


def test_damage_of_a_backup_is_found(instance: Instance) -> None:
    """Wherever a bit of it is another one: a restore changes nothing, a start from it neither."""
    backup = backed_up(instance)
    instance.succeed("stop")
    whole, before = backup.read_bytes(), contents(instance)
    said = "is damaged: it differs from what was written when the backup was made"
    refused = []
    for number in range(24):
        flip(backup, (number + 0.5) / 24)
        refused += instance.refuse("restore", str(backup))
        assert contents(instance) == before
        backup.write_bytes(whole)
    assert len(refused) == 24
    assert refused.count(f"sluice: store: {backup}: {said}") > 12
    flip(backup, 0.999)
    for path in store(instance).parent.iterdir():
        path.unlink()
    shutil.copy(backup, store(instance))
    if AS_ROOT:
        shutil.chown(store(instance), "www-data")
    lines = instance.refuse("start", file=None)
    assert lines[0] == f"sluice: store: {store(instance)}: {said}"
    backup.write_bytes(whole)
    instance.succeed("restore", str(backup))
    instance.succeed("start", file=None)
    assert services(instance) == ["one"]


def test_no_store_is_restored_below_a_process_that_writes_it(instance: Instance) -> None:
    backup = backed_up(instance)
    instance.succeed("stop")
    before = contents(instance)
    with store(instance, ".lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lines = instance.refuse("restore", str(backup))
    assert lines == [f"sluice: store: {store(instance)}: another process is writing it"]
    assert contents(instance) == before
    instance.succeed("restore", str(backup))


def test_a_restore_without_room_says_where(instance: Instance) -> None:
    begin(instance)
    backup, folder = instance.folder / "backup.db", instance.prefix / "store"
    instance.succeed("backup", str(backup))
    instance.succeed("stop")
    folder.chmod(0o500)
    lines = instance.refuse("restore", str(backup))
    folder.chmod(0o700)
    assert lines == [f"sluice: store: {folder}/restore.given: Permission denied"]
    assert services(instance) == ["one"]


@pytest.mark.skipif(not AS_ROOT, reason="root's rights are to be had")
def test_a_restore_by_root_changes_nothing_that_a_link_leads_to(instance: Instance) -> None:
    """The folder is the workers', who may put a link in the place of what is made there."""
    leave_one(instance)
    victim, given = instance.folder / "victim", instance.folder / "given"
    victim.write_bytes(b"root's")
    # Large, so that it takes a while to write.
    given.write_bytes(b"no store" * (1 << 22))
    folder, is_over = instance.prefix / "store", threading.Event()
    swapped = set()

    def swap() -> None:
        while not is_over.is_set():
            for path in folder.glob("restore*"):
                if path.name not in swapped:
                    swapped.add(path.name)
                    path.unlink(missing_ok=True)
                    path.symlink_to(victim)

    worker = threading.Thread(target=swap)
    worker.start()
    try:
        instance.refuse("restore", str(given))
    finally:
        is_over.set()
        worker.join()
    assert swapped
    assert (victim.stat().st_uid, victim.read_bytes()) == (0, b"root's")


def control_worker(instance: Instance) -> dict:
    """What status says of it; nothing while there is none."""
    return instance.status().get("control") or {}


def test_a_control_worker_does_not_begin_anew(instance: Instance) -> None:
    instance.kills_workers = instance.cuts_off_requests = True
    begin(instance)
    wait_until(lambda: control_worker(instance).get("state") == "live", "the store is live")
    pid = control_worker(instance)["pid"]
    aside = store(instance, ".aside")
    store(instance).rename(aside)
    os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: "is missing, but revision 1 of" in (control_worker(instance).get("error") or ""),
        "the reason",
    )
    assert not store(instance).exists()
    # It is noted first, and logged then.
    line = "control: the store cannot be opened: "
    wait_until(lambda: line in instance.error_log(), "the line")
    assert instance.error_log().count(line) == 1
    aside.rename(store(instance))
    wait_until(lambda: control_worker(instance).get("state") == "live", "the store is live again")
    assert services(instance) == ["one"]
    put_service(instance, "two")


def test_a_log_that_was_large_once_is_cut(instance: Instance) -> None:
    begin(instance)
    log = store(instance, "-wal")
    # What a load that was rolled back leaves: bytes behind the last commit.
    os.truncate(log, 80 << 20)
    wait_until(lambda: log.stat().st_size <= 64 << 20, "the log is cut")
    put_service(instance, "two")
    instance.succeed("stop")
    assert log.stat().st_size == 0
    instance.succeed("start", file=None)
    assert services(instance) == ["one", "two"]


def test_a_log_that_cannot_be_cut_is_said(instance: Instance) -> None:
    """Where the witness cannot be written there is no checkpoint, and the log gets longer."""
    begin(instance)
    blocked = store(instance, ".witness.new")
    (blocked / "x").mkdir(parents=True)
    os.truncate(store(instance, "-wal"), 80 << 20)
    log = instance.prefix / "logs" / "error.log"
    wait_until(lambda: "the store's log was not truncated: " in log.read_text(), "a line")
    assert f"{blocked}: File exists" in log.read_text()
    put_service(instance, "two")
    (blocked / "x").rmdir()
    blocked.rmdir()
    instance.succeed("stop")
    instance.succeed("start", file=None)
    assert services(instance) == ["one", "two"]


@pytest.mark.parametrize("verb", ["restart", "reload"])
@pytest.mark.parametrize("how", ["missing", "cut"])
def test_nobody_guesses_how_it_was_started(instance: Instance, verb: str, how: str) -> None:
    instance.succeed("start")
    path = instance.prefix / "start.json"
    if how == "missing":
        path.unlink()
    else:
        os.truncate(path, path.stat().st_size // 2)
    lines = instance.refuse(verb)
    word = "missing" if how == "missing" else "damaged"
    assert lines[0] == (
        f"sluice: {path} is {word}, so the flags given to start are unknown; run "
        f"{instance.hint('stop')}, then {instance.hint('start')} with these flags"
    )
    assert instance.get("/one") == 502
    instance.succeed("stop")
    instance.succeed("start")
    instance.succeed(verb)


def test_what_the_store_holds_now_is_a_way_on(instance: Instance) -> None:
    leave_one(instance)
    older = store(instance).read_bytes()
    instance.succeed("start", file=None)
    put_service(instance, "two")
    assert instance.refuse("restore", str(store(instance)))[0].startswith(
        "sluice: the gateway is running in "
    )
    instance.succeed("stop")
    store(instance).write_bytes(older)
    lines = instance.refuse("start", file=None)
    assert "holds revision 1, but revision 2 was answered" in lines[0]
    (way,) = (line for line in lines if line.endswith(": the current contents of the store"))
    words = way.split(": ")[0].split()
    assert words[:2] == ["sluice", "restore"]
    said = instance.succeed("restore", words[2])
    assert said.startswith("the store has revision 1 of ")
    instance.succeed("start", file=None)
    assert services(instance) == ["one"]
    instance.succeed("stop")


def test_a_copy_of_a_file_is_made_anew(instance: Instance) -> None:
    instance.file.write_text(ONE.format(url="http://127.0.0.1:1"))
    instance.succeed("start")
    instance.succeed("stop")
    flip(store(instance), 0.5)
    damaged = store(instance).read_bytes()
    done = instance.run("start")
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    found = re.fullmatch(
        rf"sluice: warning: store: {store(instance)}: is damaged: .*; it is recreated from "
        rf"{instance.file}, and the previous store is in (\S+)",
        line,
    )
    assert found
    assert (Path(found[1]) / "store.db").read_bytes() == damaged
    assert instance.get("/one") == 502
    instance.succeed("stop")
    instance.succeed("start")
    instance.succeed("stop")


def test_what_was_written_is_not_made_anew_of_a_file(instance: Instance) -> None:
    leave_one(instance)
    store(instance).unlink()
    lines = instance.refuse("start")
    assert "is missing, but revision 1 of" in lines[0]


@pytest.mark.parametrize("what", ["link", "folder", "unreadable"])
def test_a_store_that_cannot_be_used_ends_the_start_at_once(instance: Instance, what: str) -> None:
    leave_one(instance)
    aside = store(instance, ".aside")
    if what == "unreadable":
        if AS_ROOT:
            shutil.chown(store(instance), "root", "root")
        store(instance).chmod(0o000 if not AS_ROOT else 0o600)
        reason = "cannot be read: permission denied"
    else:
        store(instance).rename(aside)
        if what == "link":
            store(instance).symlink_to(aside)
        else:
            store(instance).mkdir()
        reason = "is a symbolic link" if what == "link" else "is not a regular file"
    assert instance.refuse("start", file=None) == [f"sluice: store: {store(instance)}: {reason}"]


@pytest.mark.parametrize("name", ["settings.json", "nginx.conf", "start.json"])
@pytest.mark.parametrize("how", ["missing", "empty", "cut", "flipped"])
def test_other_files_of_the_prefix_are_made_anew(instance: Instance, name: str, how: str) -> None:
    leave_one(instance)
    path = instance.prefix / name
    if how == "missing":
        path.unlink()
    elif how == "flipped":
        # The first character: elsewhere it may be another digit of a port, and no damage.
        flip(path, 0.0)
    else:
        os.truncate(path, 0 if how == "empty" else path.stat().st_size // 2)
    instance.succeed("start", file=None)
    assert services(instance) == ["one"]
    instance.succeed("stop")


def test_a_witness_that_is_damaged_is_made_anew_with_a_line(instance: Instance) -> None:
    leave_one(instance)
    flip(store(instance, ".witness"), 0.0)
    done = instance.run("start", file=None)
    assert done.returncode == 0
    assert done.stderr == (
        f"sluice: warning: store: {store(instance, '.witness')} is damaged and will be recreated\n"
    )
    assert services(instance) == ["one"]
    instance.succeed("stop")
    instance.succeed("start", file=None)
    instance.succeed("stop")


def test_a_witness_that_is_missing_is_made_anew_with_a_line(instance: Instance) -> None:
    leave_one(instance)
    store(instance, ".witness").unlink()
    done = instance.run("start", file=None)
    assert done.returncode == 0
    assert done.stderr == (
        f"sluice: warning: store: {store(instance, '.witness')} is missing and will be recreated\n"
    )
    instance.succeed("restart")
    instance.succeed("stop")
