"""The store on the command line: check, import, export, diff, backup; and the images' folder."""

import contextlib
import fcntl
import json
import os
import pwd
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from instance import AS_ROOT, ONE, TWO, Instance
from processes import children, ran
from upstream import Upstream
from wire import wait_until

WORKERS = "www-data" if AS_ROOT else None

SECRET = """
consumers:
  - username: alice
    keyauth_credentials: [{key: alices-secret}]
"""


def image_dir(instance: Instance) -> Path:
    """Where the images of the last start are."""
    return Path(json.loads((instance.prefix / "settings.json").read_text())["image_dir"])


def test_the_history_names_a_file_and_who_loads_it(instance: Instance) -> None:
    """However it is loaded: by import, start or reload, and whether the gateway runs or not."""
    user = pwd.getpwuid(os.geteuid()).pw_name
    url = "http://127.0.0.1:9"
    one, two = instance.folder / "one.yaml", instance.folder / "two.yaml"
    one.write_text(ONE.format(url=url))
    two.write_text(TWO.format(url=url))
    instance.succeed("start", file="")
    instance.succeed("import", str(two))
    instance.succeed("quit")
    instance.succeed("import", "one.yaml")
    instance.file.write_text(one.read_text())
    instance.succeed("start")
    instance.file.write_text(two.read_text())
    instance.succeed("reload")
    instance.succeed("quit")
    instance.file.write_text(one.read_text())
    instance.succeed("start")
    instance.succeed("restart", "--no-file")
    instance.succeed("delete", "routes", "one")
    entries = json.loads(instance.succeed("history", "--json"))
    assert [each["by"] for each in entries] == [
        f"control socket ({user})",
        f"file {instance.file} ({user})",
        f"file {instance.file} ({user})",
        f"file {one} ({user})",
        f"file {two} ({user})",
    ]


def test_import_export_diff_and_backup_while_it_runs_and_while_not(instance: Instance) -> None:
    with Upstream() as upstream:
        one = instance.folder / "one.yaml"
        one.write_text(ONE.format(url=upstream.url) + SECRET)
        two = instance.folder / "two.yaml"
        two.write_text(TWO.format(url=upstream.url))
        instance.file.write_text(one.read_text())
        instance.succeed("start")
        for _ in ("running", "stopped"):
            assert instance.succeed("diff", str(one)).startswith("no changes, ")
            done = instance.run("diff", str(two))
            assert (done.returncode, done.stderr) == (1, "")
            lines = done.stdout.splitlines()
            assert {"+ route two of service two", "+ service two"} <= set(lines)
            assert "- route one of service one" in lines
            assert "alices-secret" not in done.stdout
            found = json.loads(instance.succeed("export"))
            assert [each["name"] for each in found["routes"]] == ["one"]
            assert "names" not in found
            said = instance.succeed("check", "--store")
            assert re.fullmatch(r"the store is valid: revision \d+ of [0-9a-f-]{36}\n", said)
            instance.run("quit")
        # What was exported is what a file may be.
        exported = instance.folder / "exported.json"
        instance.succeed("export", str(exported))
        assert stat.S_IMODE(exported.stat().st_mode) == 0o600
        assert instance.refuse("export", str(exported)) == [
            f"sluice: {exported} already exists; --force replaces it",
        ]
        readable = instance.folder / "exported.yaml"
        instance.succeed("export", str(readable))
        assert stat.S_IMODE(readable.stat().st_mode) == 0o600
        assert "\n  host: " in readable.read_text()
        for path in (exported, readable):
            assert instance.succeed("diff", str(path)).startswith("no changes, ")
        assert instance.succeed("export", "-") == exported.read_text()
        backup = instance.folder / "backup.db"
        instance.succeed("backup", str(backup))
        said = instance.succeed("import", str(two)).splitlines()
        assert said[-1] == f"the store in {instance.prefix} has the contents of {two}"
        assert instance.succeed("diff", str(two)).startswith("no changes, ")
        # A backup is a store.
        said = instance.succeed("restore", str(backup)).splitlines()
        assert re.fullmatch(rf"the store has revision \d+ of {backup}", said[0])
        assert said[1].startswith(f"the previous store is in {instance.prefix}/store/before-")
        assert instance.succeed("diff", str(one)).startswith("no changes, ")


def test_force_replaces_a_file(instance: Instance) -> None:
    instance.file.write_text(ONE.format(url="http://127.0.0.1:1"))
    instance.succeed("import", str(instance.file))
    for command, name in (("export", "out.json"), ("export", "out.yaml"), ("backup", "out.db")):
        path = instance.folder / name
        path.write_text("an operator's own")
        path.chmod(0o644)
        link = instance.folder / f"link-to-{name}"
        link.symlink_to(path)
        refusal = [f"sluice: {path} already exists; --force replaces it"]
        assert instance.refuse(command, str(path)) == refusal
        assert path.read_text() == "an operator's own"
        before = path.stat().st_ino
        assert str(link) in instance.succeed(command, str(link), "--force")
        # The file that the link is of, as a whole, and for its owner alone.
        found = path.stat()
        assert (link.is_symlink(), stat.S_IMODE(found.st_mode)) == (True, 0o600)
        assert found.st_ino != before
        assert b"operator" not in path.read_bytes()
    assert list(instance.folder.glob("*.unfinished")) == []
    # Where there is none, it makes one.
    new = instance.folder / "new.json"
    instance.succeed("export", str(new), "--force")
    assert new.read_bytes() == (instance.folder / "out.json").read_bytes()
    backup = instance.folder / "out.db"
    assert "the store has revision 1" in instance.succeed("restore", str(backup))


def test_force_replaces_neither_folders_nor_devices_nor_the_store(instance: Instance) -> None:
    instance.file.write_text(ONE.format(url="http://127.0.0.1:1"))
    instance.succeed("import", str(instance.file))
    store = instance.prefix / "store" / "store.db"
    nowhere = instance.folder / "nowhere"
    nowhere.symlink_to(instance.folder / "not-there")
    for command in ("export", "backup"):
        for path in (Path("/dev/null"), instance.folder, nowhere):
            said = instance.refuse(command, str(path), "--force")
            assert said == [f"sluice: {path} exists, and is not a file"]
        said = instance.refuse(command, str(store), "--force")
        assert said == [f"sluice: {store} is the store itself"]
    assert instance.succeed("check", "--store").startswith("the store is valid: revision 1 ")


@pytest.mark.parametrize("words", [("backup", "copy"), ("export", "copy"), ("start",)])
def test_what_a_killed_backup_left_goes(instance: Instance, words: tuple[str, ...]) -> None:
    """With the next one or the next start; what a process that is there makes stays."""
    instance.succeed("start")
    instance.succeed("quit")
    folder = instance.prefix / "store"
    before = {each.name for each in folder.iterdir()}
    dead = int(Path("/proc/sys/kernel/pid_max").read_text()) + 1
    names = ("backup.%d.unfinished", "export.%d.unfinished")
    suffixes = [name + more for name in names for more in ("", ".new", ".new-journal")]
    (folder / "store.db.backup.20261125").write_text("an operator's own")
    before.add("store.db.backup.20261125")
    for suffix in suffixes:
        for pid in (dead, os.getpid()):
            (folder / f"store.db.{suffix % pid}").write_text("half")
    instance.succeed(*(str(instance.folder / word) if word == "copy" else word for word in words))
    here = {f"store.db.{suffix % os.getpid()}" for suffix in suffixes}
    found = {each.name for each in folder.iterdir()}
    assert {name for name in found if str(dead) in name} == set()
    assert here | {"store.db.backup.20261125"} <= found
    if words[0] != "start":
        assert found == before | here


def check_standard_input(instance: Instance, upstream: Upstream) -> None:
    """Of a gateway that has TWO, and has it again then."""
    one, two = (text.format(url=upstream.url) for text in (ONE, TWO))

    def given(text: str, *words: str) -> tuple[int, str]:
        line = instance.line(*words)
        done = ran(line, env=instance.environment, cwd=instance.folder, input=text)
        return done.returncode, done.stdout + done.stderr

    assert given(two, "diff", "-") == (0, "no changes, 2 unchanged\n")
    # JSON is told by its text, as decK writes it without a name.
    in_json = instance.succeed("export")
    assert given(in_json, "diff", "-") == (0, "no changes, 2 unchanged\n")
    code, said = given(one, "diff", "-")
    assert (code, "+ route one of service one" in said) == (1, True)
    code, said = given(one, "check", "-")
    assert (code, said.partition(": ")[0]) == (0, "standard input is valid")
    for verb in ("check", "diff", "import"):
        code, said = given("services: [{nam: a}]", verb, "-")
        assert code == 1
        assert said.startswith("sluice: file: standard input has ")
    # Nobody can answer, and its writer may have failed after some lines.
    code, said = given(one, "import", "-")
    line = "sluice: standard input lacks 2 entities of the store; --yes deletes them\n"
    assert (code, said) == (1, line + "sluice: nothing was changed\n")
    for text, path in ((one, "/one"), (two, "/two")):
        code, said = given(text, "import", "-", "--yes")
        assert (code, "live on 2 workers in " in said) == (0, True)
        assert instance.get(path) == 200
    user = pwd.getpwuid(os.geteuid()).pw_name
    latest = json.loads(instance.succeed("history", "--json"))[0]
    assert latest["by"] == f"standard input ({user})"


def test_import_into_a_gateway_that_runs_is_live(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start", file=None)
        two = instance.folder / "two.yaml"
        two.write_text(TWO.format(url=upstream.url))
        said = instance.succeed("import", str(two)).splitlines()
        assert said[-1].startswith("live on 2 workers in ")
        assert [instance.get(path) for path in ("/one", "/two")] == [404, 200]
        check_standard_input(instance, upstream)
        # A start without a file serves what the store has.
        instance.succeed("stop")
        instance.succeed("start", file=None)
        assert [instance.get(path) for path in ("/one", "/two")] == [404, 200]
        instance.succeed("stop")
        # One with a file that the store was not made from would lose what was imported.
        assert "has changes that are not in the file" in instance.refuse("start")[0]
        instance.succeed("import", str(instance.file))
        instance.succeed("start")
        assert [instance.get(path) for path in ("/one", "/two")] == [200, 404]


def test_a_damaged_store_is_named(instance: Instance) -> None:
    instance.succeed("start")
    instance.succeed("stop")
    path = instance.prefix / "store" / "store.db"
    for name in ("store.db-wal", "store.db-shm"):
        (instance.prefix / "store" / name).unlink(missing_ok=True)
    data = bytearray(path.read_bytes())
    data[5000:20000] = os.urandom(15000)
    path.write_bytes(data)
    (first, *_) = instance.refuse("check", "--store")
    assert str(path) in first


def test_a_prefix_without_a_store(instance: Instance) -> None:
    for words in (("check", "--store"), ("export",), ("backup", "/nowhere/at/all")):
        assert instance.refuse(*words) == [f"sluice: store: there is none in {instance.prefix}"]


def test_the_images_are_in_memory_and_go_with_the_gateway(instance: Instance) -> None:
    instance.succeed("start")
    folder = image_dir(instance)
    assert folder.parent == Path("/dev/shm")
    found = folder.stat()
    assert stat.S_IMODE(found.st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
    instance.succeed("reload", "--new-workers")
    assert image_dir(instance) == folder
    instance.succeed("restart")
    assert folder.exists()
    instance.succeed("quit")
    assert not folder.exists()


@contextlib.contextmanager
def read_by_another(store: Path) -> Iterator[None]:
    """Another process has just opened the store, and reads its log of changes."""
    with store.with_name("store.db-shm").open("r+b") as index:
        index.write(bytes(32768))
        index.flush()
        # Locks of SQLite's: who uses the index; and all that recover needs.
        fcntl.lockf(index, fcntl.LOCK_SH, 1, 128)
        fcntl.lockf(index, fcntl.LOCK_EX, 8, 120)
        yield


def has_opened(process: subprocess.Popen[str], store: Path) -> bool:
    """Whether a process, or a child of it, has come as far as the index of the log."""
    with contextlib.suppress(OSError):
        for pid in (process.pid, *children(process.pid)):
            if f"{store}-shm" in Path(f"/proc/{pid}/maps").read_text():
                return True
    return process.poll() is not None


def test_a_store_that_another_process_begins_to_read_is_waited_for(instance: Instance) -> None:
    instance.succeed("start")
    instance.succeed("quit")
    store = instance.prefix / "store" / "store.db"
    with read_by_another(store):
        command = subprocess.Popen(
            instance.line("export"),
            env=instance.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: has_opened(command, store), "the command to open the store")
    out, err = command.communicate(timeout=60)
    assert (command.returncode, err) == (0, "")
    assert json.loads(out)["services"]


def test_a_folder_of_the_users_own(instance: Instance) -> None:
    folder = instance.folder / "images"
    instance.folder.chmod(0o755)
    instance.succeed("start", image_dir=str(folder))
    assert image_dir(instance) == folder
    assert list(folder.iterdir())
    others = instance.folder / "others"
    why, _ = instance.refuse("reload", image_dir=str(others))
    only = f"changes only with {instance.hint('restart', f'--image-dir {others}')}"
    assert why == f"sluice: image_dir: {folder} -> {others} {only}"
    assert image_dir(instance) == folder
    # What a gateway that was killed has left, of a version with another layout.
    base = next(folder.glob("base.*")).read_bytes()
    instance.succeed("stop")
    # It was made by hand, or may have been: it stays, without images.
    assert list(folder.iterdir()) == []
    (folder / "base.99").write_bytes(base[:16] + b"\xff" + base[17:])
    instance.succeed("start", image_dir=str(folder))
    assert not (folder / "base.99").exists()
    instance.succeed("stop")


@pytest.mark.parametrize("what", ["file", "mode", "owner"])
def test_a_folder_that_is_not_the_workers_alone_is_refused(instance: Instance, what: str) -> None:
    folder = instance.folder / "images"
    if what == "file":
        folder.touch()
        reason = f"image_dir: {folder} is not a directory"
    else:
        folder.mkdir(mode=0o700)
        if what == "mode":
            shutil.chown(folder, WORKERS)
            folder.chmod(0o755)
            reason = f"image_dir: other users can enter {folder}; chmod 700 it"
        elif AS_ROOT:
            shutil.chown(folder, "nobody")
            reason = f"image_dir: {folder} belongs to nobody, not to www-data; "
        else:
            pytest.skip("needs root to give a folder away")
    (line,) = instance.refuse("start", image_dir=str(folder))
    assert line.startswith(f"sluice: {reason}")
    assert not instance.prefix.exists()


@contextlib.contextmanager
def tmpfs(instance: Instance, size: str) -> Iterator[Path]:
    """A small file system in memory."""
    if not AS_ROOT:
        pytest.skip("needs root to mount a small file system")
    small = instance.folder / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", small], check=True)
    try:
        yield small
    finally:
        subprocess.run(["umount", "--lazy", small], check=True)


def file_of(routes: int) -> str:
    """A declarative file."""
    paths = [{"name": f"r{n}", "paths": [f"/{n}"]} for n in range(routes)]
    service = {"name": "s", "url": "http://127.0.0.1:1", "routes": paths}
    return json.dumps({"_format_version": "3.0", "services": [service]})


def test_a_folder_without_room_is_refused(instance: Instance) -> None:
    with tmpfs(instance, "8m") as small:
        (line,) = instance.refuse("start", image_dir=str(small / "images"))
    assert line == (
        f"sluice: image_dir: {small}/images has too little space: 33 MiB are needed "
        "(two images of 1 MiB, two deltas of 16 MiB), 8 MiB are available"
    )
    assert not instance.prefix.exists()


def test_images_that_have_no_room_are_refused_before_the_store_takes_them(
    instance: Instance,
) -> None:
    instance.folder.chmod(0o755)
    with tmpfs(instance, "40m") as small:
        folder = str(small / "images")
        instance.file.write_text(file_of(12_000))
        (line,) = instance.refuse("start", image_dir=folder)
        sizes = re.fullmatch(
            rf"sluice: image_dir: {folder} has too little space: (\d+) MiB are needed "
            r"\(two images of (\d+) MiB, two deltas of 16 MiB\), 40 MiB are available",
            line,
        )
        assert sizes
        needed, image = map(int, sizes.groups())
        assert 40 < needed <= 2 * (image + 16)
        assert not instance.prefix.exists()
        instance.file.write_text(file_of(100))
        instance.succeed("start", image_dir=folder)
        # Somebody takes the rest of it: what is live stays, and small changes go on.
        (small / "others").write_bytes(b"x" * (20 << 20))
        instance.file.write_text(file_of(12_000))
        done = instance.run("reload", image_dir=folder)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        instance.file.write_text(file_of(200))
        instance.succeed("reload", image_dir=folder)
        assert instance.get("/199") == 502
        instance.succeed("stop")


def test_copies_of_a_store_on_a_full_disk_say_what_they_need(instance: Instance) -> None:
    instance.folder.chmod(0o755)
    with tmpfs(instance, "3m") as small:
        instance.prefix = small / "prefix"
        instance.succeed("import", str(instance.file))
        with contextlib.suppress(OSError), (small / "others").open("wb", buffering=0) as others:
            while others.write(b"x" * 4096):
                pass
        for verb in ("export", "backup"):
            (line,) = instance.refuse(verb, str(instance.folder / "copy"))
            rest = f"; the file is first made beside the store: free space in {small}/prefix/store"
            assert line.endswith(rest)


def test_status_tells_of_the_control_worker(instance: Instance) -> None:
    instance.kills_workers = True
    instance.cuts_off_requests = True
    instance.succeed("start")
    control = instance.status()["control"]
    assert (control["life"], control["state"], control["deaths"]) == ("answers", "live", 0)
    os.kill(control["pid"], 19)
    wait_until(lambda: instance.status()["control"]["life"] == "stopped by a signal", "the stop")
    assert "stopped by a signal" in instance.succeed("status")
    assert instance.get("/nothing") == 404
    os.kill(control["pid"], 9)
    wait_until(
        lambda: (
            (now := instance.status()["control"])["pid"] != control["pid"]
            and now["state"] == "live"
        ),
        "its successor",
    )
    control = instance.status()["control"]
    assert (control["deaths"], control["crashes"]) == (1, 1)
    assert "workers killed by signals since the start: 1; " in instance.succeed("status")
    assert "died 1 time; traffic continued" in instance.succeed("status")
