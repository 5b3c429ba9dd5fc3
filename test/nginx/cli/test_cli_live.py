"""reload --new-workers and restart say what is live, whatever becomes of workers meanwhile."""

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable

import pytest
from changes import stopped
from plugin_files import write_plugin

from instance import ONE, SECONDS, TWO, Instance
from sluice import alive
from upstream import Upstream
from wire import wait_until

THREE = ONE.replace("one", "three")


@pytest.fixture
def posted(instance: Instance) -> Instance:
    """A gateway whose live configuration, TWO, was posted over the file of its start, ONE."""
    with Upstream() as upstream:
        instance.url = upstream.url
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        instance.file.write_text(TWO.format(url=upstream.url))
        assert instance.succeed("reload").startswith("live on 2 workers")
        yield instance


def serves(instance: Instance, path: str) -> bool:
    """Whether every answer of many is that of the configuration with this path."""
    paths = {"/one", "/two", "/three"}
    return all(
        instance.get(each) == (200 if each == path else 404)
        for each in sorted(paths)
        for _ in range(8)
    )


def kill_each_worker(instance: Instance) -> None:
    """Kills every worker once and waits for those in their place."""
    for pid in instance.status()["workers"]["ready"]:
        os.kill(pid, signal.SIGKILL)
        wait_until(
            lambda pid=pid: (
                pid not in (ready := instance.status()["workers"]["ready"]) and len(ready) == 2
            ),
            "another worker",
        )


@pytest.fixture
def deaths() -> Callable[[Instance], None]:
    """Declares that the test kills workers."""

    def declare(instance: Instance) -> None:
        instance.cuts_off_requests = True
        instance.kills_workers = True

    return declare


def test_a_stopped_worker_does_not_bring_back_what_it_served(
    posted: Instance, deaths: Callable[[Instance], None]
) -> None:
    """It once told that the old configuration was kept, and flipped all workers to it later."""
    deaths(posted)
    first = posted.status()["workers"]["ready"]
    posted.file.write_text(THREE.format(url=posted.url))
    with stopped(first[0]):
        done = posted.run("reload", "--new-workers")
        # The other old one may have left before it is counted.
        line = done.stdout.splitlines()[0].split(",")[0]
        assert (done.returncode, line) == (0, "reloaded: 2 new workers")
        assert done.stderr == (
            f"sluice: warning: 1 worker of the old configuration stopped by a signal "
            f"(pid {first[0]}); they exit after SIGCONT\n"
        )
        assert serves(posted, "/three")
    wait_until(lambda: not any(map(alive, first)), "the old workers to leave")
    assert serves(posted, "/three")
    kill_each_worker(posted)
    assert serves(posted, "/three")


def test_workers_that_are_all_stopped_hide_no_reload(posted: Instance) -> None:
    """Nobody tells beforehand which generation is live."""
    first = posted.status()["workers"]["ready"]
    posted.file.write_text(THREE.format(url=posted.url))
    with stopped(first[0]), stopped(first[1]):
        done = posted.run("reload", "--new-workers")
        assert done.returncode == 0, done.stderr
        assert "2 workers of the old configuration stopped" in done.stderr
        assert serves(posted, "/three")
    wait_until(lambda: not any(map(alive, first)), "the old workers to leave")
    assert serves(posted, "/three")


def test_two_reloads_beside_a_stopped_worker(posted: Instance) -> None:
    first = posted.status()["workers"]["ready"]
    with stopped(first[0]):
        for text, path in ((THREE, "/three"), (ONE, "/one")):
            posted.file.write_text(text.format(url=posted.url))
            done = posted.run("reload", "--new-workers")
            assert done.returncode == 0, done.stderr
            assert f"(pid {first[0]})" in done.stderr
            assert serves(posted, path)
    wait_until(lambda: not any(map(alive, first)), "the old workers to leave")
    assert serves(posted, "/one")
    # The numbers of configurations go on, so the workers take the next one.
    posted.file.write_text(TWO.format(url=posted.url))
    assert posted.succeed("reload").startswith("live on 2 workers")
    assert serves(posted, "/two")


def test_a_stopped_master_is_named_and_changes_nothing_later(posted: Instance) -> None:
    posted.cuts_off_requests = True
    master = posted.status()["pid"]
    posted.file.write_text(THREE.format(url=posted.url))
    with stopped(master):
        lines = posted.refuse("reload", "--new-workers")
    assert lines == [
        "sluice: nginx rejected the configuration:",
        f"  its master (pid {master}) is stopped",
        "sluice: reload refused: the running configuration is kept",
    ]
    log = posted.prefix / "logs" / "error.log"
    wait_until(lambda: log.read_text().count("start worker processes") == 2, "its late reload")
    wait_until(lambda: not posted.status()["workers"]["starting"], "the workers")
    wait_until(lambda: serves(posted, "/two"), "what was said")


PLUGIN = """
    return {
        VERSION = "1", PRIORITY = 1,
        schema = {
            name = "fuse",
            fields = { { config = { type = "record", fields = {} } } },
        },
    }
"""

FUSE = """
    local file = io.open("{fuse}")
    local left = file and file:read("*a")
    if file then
        file:close()
        if left == "0" then
            for pid in io.lines("{pids}") do
                require("posix.signal").kill(tonumber(pid), 9)
            end
            error("the fuse is gone")
        end
        file = io.open("{fuse}", "w")
        file:write("0")
        file:close()
    end
"""


def start_with(posted: Instance, source: str) -> None:
    """Starts it anew with a plugin of this name and source."""
    posted.succeed("stop")
    write_plugin(posted.folder / "lua", "fuse", source)
    posted.flags |= {
        "--lua-package-path": f"{posted.folder}/lua/?.lua",
        "--plugins": "bundled, fuse",
    }
    posted.succeed("start")
    assert serves(posted, "/two")


@pytest.fixture
def fuse(posted: Instance) -> Instance:
    """One whose next load of the plugins works in the command, and not in the master."""
    names = {"fuse": posted.folder / "fuse", "pids": posted.folder / "pids"}
    names["pids"].touch()
    start_with(posted, FUSE.format(**names) + PLUGIN)
    names["fuse"].write_text("1")
    return posted


def test_workers_that_die_in_a_refused_reload_are_no_new_ones(
    fuse: Instance, deaths: Callable[[Instance], None]
) -> None:
    """Those in their place have other pids, and the old configuration."""
    deaths(fuse)
    first = fuse.status()["workers"]["ready"]
    (fuse.folder / "pids").write_text("".join(f"{pid}\n" for pid in first))
    fuse.file.write_text(THREE.format(url=fuse.url))
    lines = fuse.refuse("reload", "--new-workers")
    assert lines[0] == "sluice: nginx rejected the configuration:"
    assert lines[-1] == "sluice: reload refused: the running configuration is kept"
    wait_until(lambda: not any(map(alive, first)), "the killed ones to be gone")
    wait_until(lambda: len(fuse.status()["workers"]["ready"]) == 2, "those in their place")
    assert serves(fuse, "/two")


def test_workers_that_die_in_a_reload_do_not_hide_it(
    posted: Instance, deaths: Callable[[Instance], None]
) -> None:
    deaths(posted)
    first = posted.status()["workers"]["ready"]
    posted.file.write_text(THREE.format(url=posted.url))
    with stopped(first[0]):
        os.kill(first[1], signal.SIGKILL)
        done = posted.run("reload", "--new-workers")
        assert done.returncode == 0, done.stderr
        with contextlib.suppress(ProcessLookupError):
            os.kill(first[0], signal.SIGKILL)
    assert serves(posted, "/three")
    kill_each_worker(posted)
    assert serves(posted, "/three")


def test_a_master_that_is_killed_in_a_reload_leaves_workers_that_serve(fuse: Instance) -> None:
    """It once told that the gateway does not serve."""
    status = fuse.status()
    first = sorted(status["workers"]["ready"])
    (fuse.folder / "pids").write_text(f"{status['pid']}\n")
    fuse.file.write_text(THREE.format(url=fuse.url))
    (line,) = fuse.refuse("reload", "--new-workers", code=3)
    assert line.startswith(
        f"sluice: the master in {fuse.prefix} was killed; its workers (pid {first[0]}, {first[1]}) "
        "still serve: "
    )
    assert line.endswith("; 0 of 2 have the new configuration")
    assert serves(fuse, "/two")
    fuse.cuts_off_requests = True
    (fuse.folder / "fuse").unlink()
    fuse.succeed("restart")
    assert serves(fuse, "/three")


DECIDED = """
    local queue = require("gateway.writer.queue")
    local replace = queue.replace
    queue.replace = function(...)
        local done, err = replace(...)
        if os.remove("{fuse}") then
            require("posix.signal").kill(require("posix.unistd").getpid(), 9)
        end
        return done, err
    end
"""


LOOP = """
    local plugin = (function() %s end)()
    function plugin.access()
        assert(io.open("%s", "w")):close()
        while true do end
    end
    return plugin
"""


def test_a_reload_names_an_old_worker_that_does_not_answer(
    posted: Instance, deaths: Callable[[Instance], None]
) -> None:
    deaths(posted)
    begun = posted.prefix / "store" / "begun"  # the workers' folder
    start_with(posted, LOOP % (PLUGIN, begun))
    posted.file.write_text(TWO.format(url=posted.url) + "plugins: [{name: fuse}]\n")
    posted.succeed("reload")
    with socket.create_connection(("127.0.0.1", posted.proxy_port)) as client:
        client.sendall(b"GET /two HTTP/1.1\r\nHost: h\r\n\r\n")
        wait_until(begun.exists, "a worker that is busy")
        reload = subprocess.Popen(
            posted.line("reload", "--new-workers"),
            env=posted.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = reload.stderr.readline()
        if "waiting for" not in line:
            reload.kill()
        said = r"sluice: waiting for old workers that do not answer: pid (\d+)\n"
        found = re.fullmatch(said, line)
        os.kill(int(found[1]), signal.SIGKILL)
        said, complaint = reload.communicate(timeout=SECONDS)
    assert (reload.returncode, complaint) == (0, "")
    assert said.startswith("reloaded: 2 new workers")


def test_a_control_worker_that_dies_before_it_answers_has_made_the_change(
    posted: Instance, deaths: Callable[[Instance], None]
) -> None:
    """It once told that the running configuration was kept."""
    deaths(posted)
    fuse = posted.prefix / "store" / "fuse"  # the workers' folder
    start_with(posted, DECIDED.format(fuse=fuse) + PLUGIN)
    fuse.touch()
    posted.file.write_text(THREE.format(url=posted.url))
    (line,) = posted.refuse("reload")
    assert line.startswith("sluice: the gateway did not answer: ")
    assert line.endswith("; the store has the new configuration, which is live soon")
    assert serves(posted, "/three")
    # Nothing is left to be done.
    assert "nothing has changed" in posted.succeed("reload")
    assert serves(posted, "/three")


def test_restart_tries_nginx_before_it_ends_the_old(posted: Instance) -> None:
    kept = ("nginx.conf", "settings.json", "start.json")
    before = [(posted.prefix / name).read_text() for name in kept]
    pid = posted.status()["pid"]
    lines = posted.refuse("restart", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx rejected the configuration:"
    assert lines[-1] == "sluice: restart refused: the running gateway is kept"
    assert posted.status()["pid"] == pid
    assert [(posted.prefix / name).read_text() for name in kept] == before
    assert serves(posted, "/two")


def test_restart_writes_before_it_ends_the_old(posted: Instance) -> None:
    pid = posted.status()["pid"]
    (posted.prefix / "settings.json.new" / "in").mkdir(parents=True)
    lines = posted.refuse("restart")
    assert lines[0].startswith(f"sluice: cannot write {posted.prefix}/settings.json.new: ")
    assert lines[-1] == "sluice: restart refused: the running gateway is kept"
    assert posted.status()["pid"] == pid
    assert serves(posted, "/two")


def test_restart_says_that_the_gateway_is_down(fuse: Instance) -> None:
    done = fuse.run("restart")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("sluice: the gateway is not running: nginx did not start:\n")
    assert fuse.status()["running"] is False
    assert fuse.get("/two") == 0
    (fuse.folder / "fuse").unlink()
    fuse.succeed("start")
    assert serves(fuse, "/two")
