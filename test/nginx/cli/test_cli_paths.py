"""Paths are compared by the file that they lead to: links, `..`, slashes."""

import os
import pwd
from pathlib import Path

import pytest

from instance import AS_ROOT, Instance
from wire import wait_until


@pytest.fixture
def alias(instance: Instance) -> Path:
    """Another way to the folder that the prefix is in."""
    path = instance.folder / "alias"
    path.symlink_to(instance.folder)
    return path


@pytest.mark.parametrize("log", ["./logs//x.log", "logs/../x.log", "{alias}/run/logs/x.log"])
def test_a_log_in_a_prefix_that_is_not_made_yet(instance: Instance, alias: Path, log: str) -> None:
    instance.succeed("start", access_log=log.format(alias=alias), access_log_buffer="0")
    assert instance.get("/nothing") == 404
    log_file = instance.prefix / ("x.log" if ".." in log else "logs/x.log")
    # nginx answers before it logs.
    wait_until(lambda: "/nothing" in log_file.read_text(), "a line")
    assert log_file.stat().st_mode & 0o777 == 0o640


def test_logs_of_two_listeners_in_one_file(instance: Instance) -> None:
    """nginx wants one buffer for a file."""
    same = {"access_log": "logs/x.log", "admin_access_log": "./logs/x.log"}
    same["access_log_buffer"] = "32k"
    instance.succeed("start", **same)
    conf = (instance.prefix / "nginx.conf").read_text()
    lines = [line for line in conf.splitlines() if "x.log" in line]
    assert len(lines) == 2
    assert all(" buffer=" in line and f'"{instance.prefix}/logs/x.log"' in line for line in lines)


@pytest.mark.skipif(not AS_ROOT, reason="root alone is kept from others' folders")
def test_a_log_that_leaves_the_prefix_is_not_in_it(instance: Instance) -> None:
    folder = instance.folder / "theirs"
    folder.mkdir()
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    (line,) = instance.refuse("start", access_log="logs/../../theirs/x.log")
    assert line.startswith(
        f"sluice: access_log: nobody could put a link into {folder}, which nginx would"
    )


def test_folders_by_another_name_are_the_same(instance: Instance, alias: Path) -> None:
    names = ("image_dir", "run_dir")
    given = {name: str(instance.folder / name) for name in names}
    instance.succeed("start", **given)
    again = {name: str(alias / name) for name in names}
    assert "nothing has changed" in instance.succeed("reload", **again)
    instance.succeed("restart", **again)
    assert instance.get("/nothing") == 404
    other = str(instance.folder / "other")
    assert "changes only with" in instance.refuse("reload", image_dir=other)[0]


def test_tokens_of_a_file_by_another_name(instance: Instance, alias: Path) -> None:
    file = instance.folder / "tokens"
    file.touch(0o600)
    instance.succeed("start", admin_named_tokens=str(file))
    before = instance.status()["pid"]
    added = ("token", "add", "ci", "--role", "read")
    assert instance.succeed(*added, admin_named_tokens=str(alias / "tokens")) != ""
    assert instance.succeed("token", "list") == "name  role\nci    read\n"
    settings = (instance.prefix / "settings.json").read_text()
    assert '"ci"' in settings
    assert instance.status()["pid"] == before
