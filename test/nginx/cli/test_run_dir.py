"""The folder of what runs: in the prefix, or where `run_dir` says, which commands need not know."""

import shutil
import stat
from pathlib import Path

import pytest

from instance import AS_ROOT, Instance, Instances

PREFIX_MAX = 107 - len("/run/control/socket")
"""The kernel takes 107 bytes as the path of a socket."""


@pytest.fixture
def run_dir(instance: Instance) -> Path:
    """Where the instance's start has it."""
    path = instance.folder / "volatile"
    instance.flags["--run-dir"] = str(path)
    return path


def test_commands_find_what_runs_by_the_prefix(instance: Instance, run_dir: Path) -> None:
    instance.succeed("start")
    link = instance.prefix / "run"
    assert link.readlink() == run_dir
    assert int((run_dir / "nginx.pid").read_text()) == instance.status()["pid"]
    assert stat.S_ISSOCK((run_dir / "control" / "socket").stat().st_mode)
    assert stat.S_IMODE((run_dir / "control").stat().st_mode) == 0o700
    assert stat.S_IMODE(run_dir.stat().st_mode) == 0o755
    # Here SLUICE_RUN_DIR is not set, and there is no settings file.
    assert "one" in instance.succeed("get", "services")
    instance.succeed("reload", "--new-workers")
    instance.succeed("upgrade", "--watch", "0.2")
    assert instance.get("/nothing") == 404
    assert int((run_dir / "nginx.pid").read_text()) == instance.status()["pid"]
    instance.succeed("restart")
    assert instance.get("/nothing") == 404
    instance.succeed("stop")
    assert not (run_dir / "nginx.pid").exists()


def test_it_may_be_where_it_is_anyway(instance: Instance) -> None:
    """The folder `run` of the prefix, said in so many words."""
    run = instance.prefix / "run"
    instance.flags["--run-dir"] = str(run)
    instance.succeed("start")
    assert not run.is_symlink()
    assert int((run / "nginx.pid").read_text()) == instance.status()["pid"]


def test_after_a_boot(instance: Instance, run_dir: Path) -> None:
    """Nothing of it is left, and the link leads nowhere."""
    instance.succeed("start")
    instance.succeed("stop")
    shutil.rmtree(run_dir)
    assert instance.status()["running"] is False
    assert "not running" in instance.succeed("stop")
    for verb in ("start", "restart"):
        instance.succeed(verb)
        assert instance.get("/nothing") == 404
        instance.succeed("stop")
        shutil.rmtree(run_dir)


def test_what_a_refused_start_made_is_gone(instance: Instance, run_dir: Path) -> None:
    instance.refuse("start", access_log_format="$no_variable")
    assert not run_dir.exists()
    assert not instance.prefix.exists()


def test_one_folder_is_one_instances(
    instances: Instances, instance: Instance, run_dir: Path
) -> None:
    instance.succeed("start")
    other = instances.make()
    (line,) = other.refuse("start", run_dir=str(run_dir))
    assert line == f"sluice: {other.prefix}/run/control/socket is in use by another program"
    assert instance.status()["running"] is True
    assert other.status()["running"] is False
    assert "one" in instance.succeed("get", "services")


def test_another_one_while_it_runs(instance: Instance, run_dir: Path) -> None:
    """What runs is found by the link: that stays."""
    instance.succeed("start")
    other = instance.folder / "other"
    why, _ = instance.refuse("reload", run_dir=str(other))
    only = f"changes only with {instance.hint('restart', f'--run-dir {other}')}"
    assert why == f"sluice: run_dir: {run_dir} -> {other} {only}"
    why, kept = instance.refuse("restart", run_dir=str(other))
    link = instance.prefix / "run"
    assert why == (
        f"sluice: run_dir: {link} is not a link to {other}; stop the gateway, and remove it"
    )
    assert kept == "sluice: restart refused: the running gateway is kept"
    assert not other.exists()
    assert instance.get("/nothing") == 404
    instance.succeed("stop")
    link.unlink()
    instance.succeed("start", run_dir=str(other))
    assert (other / "nginx.pid").exists()


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_others_may_not_write_there(instance: Instance, run_dir: Path, mode: int) -> None:
    run_dir.mkdir()
    run_dir.chmod(mode)
    (line,) = instance.refuse("start")
    assert line == f"sluice: run_dir: other users can write to {run_dir}; chmod go-w it"
    assert not instance.prefix.exists()


def test_others_may_not_rename_it(instance: Instance) -> None:
    above = instance.folder / "above"
    above.mkdir()
    above.chmod(0o777)
    (line,) = instance.refuse("start", run_dir=str(above / "volatile"))
    assert line == f"sluice: run_dir: all users can write to {above}; chmod o-w it"


@pytest.mark.skipif(not AS_ROOT, reason="needs root to give a folder away")
def test_it_is_nobody_elses(instance: Instance, run_dir: Path) -> None:
    run_dir.mkdir()
    shutil.chown(run_dir, "nobody")
    (line,) = instance.refuse("start")
    assert line.startswith(f"sluice: run_dir: {run_dir} belongs to nobody, not to root; chown it")


def test_a_folder_where_the_link_is_to_be(instance: Instance, run_dir: Path) -> None:
    link = instance.prefix / "run"
    link.mkdir(parents=True)
    (line,) = instance.refuse("start")
    assert line == (
        f"sluice: run_dir: {link} is not a link to {run_dir}; stop the gateway, and remove it"
    )


def test_the_longest_prefix(instance: Instance) -> None:
    """The socket's path is one that the kernel takes."""
    above = f"{instance.folder}/"
    instance.prefix = Path(above + "p" * (PREFIX_MAX + 1 - len(above)))
    (line,) = instance.refuse("start")
    assert line.startswith(f"sluice: prefix: longer than {PREFIX_MAX} bytes; ")
    instance.prefix = Path(above + "p" * (PREFIX_MAX - len(above)))
    instance.succeed("start")
    assert "one" in instance.succeed("get", "services")
    instance.succeed("stop")
