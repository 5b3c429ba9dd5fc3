"""What a killed master leaves behind: workers that serve on, and what the command says and does."""

import os
import signal

import pytest

from instance import ONE, TWO, Instance, Instances
from sluice import alive
from upstream import Upstream
from wire import wait_until


def kill_master(instance: Instance) -> list[int]:
    """Kills the master of a started instance; the workers that it leaves."""
    status = instance.status()
    os.kill(status["pid"], signal.SIGKILL)
    wait_until(lambda: not alive(status["pid"]), "the end of the master")
    return sorted(status["workers"]["ready"])


def gone(pids: list[int]) -> bool:
    return not any(map(alive, pids))


def test_status_and_start_say_what_is_left(instance: Instance) -> None:
    instance.succeed("start")
    left = kill_master(instance)
    assert instance.get("/nothing") == 404
    status = instance.status()
    assert (status["running"], status["orphans"]) == (False, left)
    said = (
        f"the master in {instance.prefix} was killed; its workers "
        f"(pid {left[0]}, {left[1]}) still serve: {instance.hint('restart')} replaces them, "
        f"{instance.hint('stop')} ends them"
    )
    assert instance.run("status").stdout == said + "\n"
    assert instance.refuse("start") == ["sluice: " + said]
    assert instance.refuse("reload", code=3) == ["sluice: " + said]
    assert not gone(left)


@pytest.mark.parametrize("command", ["stop", "quit"])
def test_stop_and_quit_end_them(instances: Instances, command: str) -> None:
    instance, other = instances.make(), instances.make()
    instance.succeed("start")
    other.succeed("start")
    left, others = kill_master(instance), kill_master(other)
    instance.succeed(command)
    assert gone(left)
    assert instance.status()["orphans"] == []
    assert instance.get("/nothing") == 0
    # Nobody else's, though they are orphans as well.
    assert other.status()["orphans"] == others
    assert other.get("/nothing") == 404
    instance.succeed("start")
    assert instance.get("/nothing") == 404


def test_they_are_found_where_the_prefix_has_no_log(instance: Instance) -> None:
    log = instance.folder / "error.log"
    instance.succeed("start", error_log=str(log), access_log="off", admin_access_log="off")
    left = kill_master(instance)
    assert instance.status()["orphans"] == left
    instance.succeed("stop")
    assert gone(left)


def test_a_prefix_that_was_moved_keeps_its_workers(instance: Instance) -> None:
    """Their master is another prefix's by now, but there."""
    instance.succeed("start")
    workers = sorted(instance.status()["workers"]["ready"])
    moved = instance.folder / "moved"
    instance.prefix.rename(moved)
    assert "not running" in instance.succeed("stop", prefix=str(moved))
    moved.rename(instance.prefix)
    assert sorted(instance.status()["workers"]["ready"]) == workers


def test_restart_replaces_them_with_what_the_file_says_now(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        left = kill_master(instance)
        instance.file.write_text(TWO.format(url=upstream.url))
        instance.succeed("restart")
        assert gone(left)
        assert instance.get("/two") == 200
        assert instance.status()["running"] is True
