"""The sluice command: starting, stopping, and the surroundings it runs in."""

import contextlib
import http.client
import os
import pwd
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from instance import AS_ROOT, ONE, SECONDS, TWO, Instance, Instances, copy_checkout
from sluice import COMMAND, alive, preloaded
from upstream import Exchange, Upstream
from wire import wait_until


def test_start_returns_when_it_serves_and_stop_when_it_is_gone(instance: Instance) -> None:
    said = instance.succeed("start")
    assert instance.get("/nothing") == 404
    assert instance.get("/", port=instance.admin_port) == 200
    status = instance.status()
    assert f"pid {status['pid']}" in said
    assert f"127.0.0.1:{instance.proxy_port}" in said
    assert len(status["workers"]["ready"]) == 2

    instance.succeed("stop")
    assert instance.get("/nothing") == 0
    assert not alive(status["pid"])
    assert not (instance.prefix / "run" / "nginx.pid").exists()


# A master that is put aside after each fork, as on a busy machine.
SLOW_FORK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t fork(void)
{
    char name[16];
    pid_t (*real)(void), pid;
    *(void **) &real = dlsym(RTLD_NEXT, "fork");
    pid = real();
    prctl(PR_GET_NAME, name);
    if (pid > 0 && strcmp(name, "nginx") == 0) { usleep(400000); }
    return pid;
}
"""


def test_start_and_reload_wait_for_workers_that_are_yet_to_be_forked(instance: Instance) -> None:
    library = instance.folder / "fork.so"
    build = ["gcc", "-x", "c", "-shared", "-fPIC", "-o", str(library), "-"]
    subprocess.run(build, input=SLOW_FORK, text=True, check=True, timeout=SECONDS)
    instance.environment["LD_PRELOAD"] = preloaded(library)
    instance.succeed("start", workers="3")
    assert len(instance.status()["workers"]["ready"]) == 3
    said = instance.succeed("reload", "--new-workers", workers="4")
    assert said.startswith("reloaded: 4 new workers")
    assert len(instance.status()["workers"]["ready"]) == 4


def test_limits_are_those_of_what_runs(instance: Instance) -> None:
    """CPUs and open files: a reload by somebody who has more changes nothing."""
    one = str(min(os.sched_getaffinity(0)))
    less = ["taskset", "--cpu-list", one, "prlimit", "--nofile=1000:1000"]
    line = [*less, *instance.line("start", workers="auto")]
    done = subprocess.run(
        line, env=instance.environment, capture_output=True, text=True, check=True
    )
    lowered = "worker_connections: lowered from 512 to 488, since 1000 is the hard limit"
    assert lowered in done.stderr
    assert len(instance.status()["workers"]["ready"]) == 1
    done = instance.run("reload", "--new-workers")
    # The old ones may have left before they are counted.
    assert done.stdout.split(",")[0].strip() == "reloaded: 1 new worker"
    assert lowered in done.stderr


def test_a_variable_that_means_something_to_nginx(instance: Instance) -> None:
    instance.environment["NGINX"] = "99;"
    instance.succeed("start")
    assert instance.get("/nothing") == 404


def test_start_warns_of_a_name_that_does_not_resolve(instance: Instance) -> None:
    name = "x" * 64 + ".invalid"  # a label is at most 63 long: nobody has to be asked
    instance.file.write_text(ONE.format(url=f"http://{name}"))
    done = instance.run("start")
    assert done.returncode == 0
    assert done.stderr.startswith(f"sluice: warning: {instance.file}: {name}: cannot be resolved")
    assert len(done.stderr.splitlines()) == 1


def test_stop_and_quit_of_nothing_succeed_the_rest_says_not_running(instance: Instance) -> None:
    assert "not running" in instance.succeed("stop")
    assert "not running" in instance.succeed("quit")
    for command in ("reload", "reopen"):
        # More lines where others run.
        line = instance.refuse(command, code=3)[0]
        assert line == f"sluice: not running in {instance.prefix}, which does not exist"
    assert instance.run("status").returncode == 3
    assert instance.status() == {
        "running": False,
        "prefix": str(instance.prefix),
        "version": instance.status()["version"],
        "orphans": [],
    }


def test_status_tells_a_human(instance: Instance) -> None:
    instance.succeed("start")
    said = instance.succeed("status")
    for expected in (str(instance.prefix), f"127.0.0.1:{instance.proxy_port}", str(instance.file)):
        assert expected in said


def test_two_instances_run_side_by_side(instances: Instances) -> None:
    first, second = instances.make(), instances.make()
    first.succeed("start")
    second.succeed("start")
    assert first.get("/") == second.get("/") == 404
    first.succeed("stop")
    assert (first.get("/"), second.get("/")) == (0, 404)


def test_a_second_start_is_refused_and_harms_nothing(instance: Instance) -> None:
    instance.succeed("start")
    pid = instance.status()["pid"]
    (line,) = instance.refuse("start")
    assert "already running" in line
    assert str(pid) in line
    assert instance.status()["pid"] == pid


def test_a_stale_pid_file_is_no_running_gateway(instance: Instance) -> None:
    (instance.prefix / "run").mkdir(parents=True)
    (instance.prefix / "run" / "nginx.pid").write_text(f"{os.getpid()}\n")
    assert instance.status()["running"] is False
    assert "not running" in instance.succeed("stop")  # and does not signal this process
    instance.succeed("start")
    assert instance.get("/") == 404


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_foreground_serves_until_a_signal(instance: Instance, name: signal.Signals) -> None:
    process = subprocess.Popen(
        instance.line("start", "--foreground", error_log="stderr", access_log="/dev/stdout"),
        env=instance.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: instance.get("/seen") == 404, "the gateway to answer")
    assert instance.status()["pid"] == process.pid
    process.send_signal(name)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert "Ctrl-C" in out
    assert "GET /seen" in out
    assert "start worker process" in err
    assert instance.get("/") == 0


@pytest.fixture
def held(instance: Instance) -> Iterator[tuple[http.client.HTTPConnection, threading.Event]]:
    """A request that waits in the upstream, on a started instance, until the event is set."""
    release = threading.Event()

    def wait(exchange: Exchange) -> None:
        release.wait(SECONDS)
        exchange.reply(200)

    with Upstream(wait) as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        connection = http.client.HTTPConnection("127.0.0.1", instance.proxy_port, timeout=SECONDS)
        connection.request("GET", "/one")
        upstream.wait_for(1)
        yield connection, release
        release.set()
        connection.close()


def test_quit_lets_a_request_finish(
    instance: Instance, held: tuple[http.client.HTTPConnection, threading.Event]
) -> None:
    connection, release = held
    process = subprocess.Popen(instance.line("quit"), stdout=subprocess.PIPE, text=True)
    wait_until(lambda: instance.get("/nothing") == 0, "the listener to close")
    assert process.poll() is None
    release.set()
    assert connection.getresponse().status == 200
    out, _ = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (0, "stopped after the last request\n")


@pytest.mark.usefixtures("held")
def test_quit_cuts_off_what_outlasts_its_timeout(instance: Instance) -> None:
    instance.cuts_off_requests = True
    (line,) = instance.refuse("quit", "--timeout", "0.3")
    assert line == "sluice: requests still open after 0.3 seconds were aborted"
    assert instance.status()["running"] is False


def test_reopen_writes_to_new_files(instance: Instance) -> None:
    instance.succeed("start")
    log = instance.prefix / "logs" / "access.log"
    instance.get("/before")
    wait_until(lambda: "/before" in log.read_text(), "the first line of the log")
    log.rename(log.with_suffix(".1"))
    instance.succeed("reopen")
    wait_until(log.exists, "the new log")

    def writes_there() -> bool:
        instance.get("/after")
        return "/after" in log.read_text()

    wait_until(writes_there, "a line in the new log")


def test_lua_in_the_current_folder_is_not_run(instance: Instance) -> None:
    """LuaJIT would search there: root may stand in a folder of anybody's."""
    for name in ("argparse.lua", "cjson.lua", "sluice.lua"):
        (instance.folder / name).write_text('error("run")')
    assert instance.run("status").returncode == 3


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become another user")
def test_a_normal_user_needs_only_a_prefix(instance: Instance) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(instance.folder, nobody.pw_uid, nobody.pw_gid)
    # A copy that everybody can read, as the checkout may lie in root's home.
    instance.command = copy_checkout(instance.folder / "sluice")

    def as_nobody(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            instance.line(command),
            env=instance.environment,
            cwd="/",
            user=nobody.pw_uid,
            group=nobody.pw_gid,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    done = as_nobody("start")
    assert (done.returncode, done.stderr) == (0, "")
    for pid in instance.status()["workers"]["ready"]:
        assert Path(f"/proc/{pid}").stat().st_uid == nobody.pw_uid
    assert instance.get("/") == 404
    assert as_nobody("reload").returncode == 0
    assert as_nobody("stop").returncode == 0
    assert {path.owner() for path in instance.prefix.rglob("*")} == {"nobody"}


@pytest.mark.skipif(not AS_ROOT, reason="only root's workers are another user")
def test_workers_may_enter_the_prefix_whatever_the_umask(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        before = os.umask(0o077)
        try:
            instance.succeed("start")
        finally:
            os.umask(before)
        connection = http.client.HTTPConnection("127.0.0.1", instance.proxy_port, timeout=SECONDS)
        connection.request("POST", "/one", body=b"x" * 1_000_000)  # more than fits in memory
        assert connection.getresponse().status == 200
        connection.close()
        instance.file.write_text(TWO.format(url=upstream.url))
        assert instance.succeed("reload").startswith("live on 2 workers in ")


@pytest.mark.skipif(not AS_ROOT, reason="only root's workers are another user")
def test_workers_have_to_read_the_checkout(instance: Instance) -> None:
    """The control worker's threads load what they run."""
    private = instance.folder / "private"
    instance.command = copy_checkout(private / "sluice")
    private.chmod(0o700)
    (line,) = instance.refuse("start")
    assert f"user: the workers' user 'www-data' has no access to {private}, where Sluice is" in line
    assert not instance.prefix.exists()


@pytest.mark.skipif(not AS_ROOT, reason="only root's workers are another user")
def test_workers_have_the_group_of_their_user(instance: Instance) -> None:
    """That of nobody has another name on Debian."""
    nobody = pwd.getpwnam("nobody")
    instance.succeed("start", user="nobody")
    for pid in instance.status()["workers"]["ready"]:
        owner = Path(f"/proc/{pid}").stat()
        assert (owner.st_uid, owner.st_gid) == (nobody.pw_uid, nobody.pw_gid)


def test_worker_connections_fit_the_limit_of_open_files(instance: Instance) -> None:
    line = instance.line("start", worker_connections="16384")
    done = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -n 1000; exec "$@"', "sh", *line],
        env=instance.environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == (
        "sluice: warning: worker_connections: lowered from 16384 to 488, "
        "since 1000 is the hard limit of open files\n"
    )
    assert "worker_connections 488;" in (instance.prefix / "nginx.conf").read_text()


def test_as_many_connections_are_served_as_were_asked_for(instance: Instance) -> None:
    """The files that a worker holds open beside them were once taken from their number."""
    instance.succeed("start", worker_connections="100", workers="1")
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(
                socket.create_connection(("127.0.0.1", instance.proxy_port), timeout=SECONDS)
            )
        assert instance.get("/nothing") == 404


def test_two_starts_at_once_make_one_gateway(instances: Instances) -> None:
    # In new prefixes: the one that loses the race must not take away what the other works in.
    for _ in range(10):
        instance = instances.make()
        both = [
            subprocess.Popen(
                instance.line("start"),
                env=instance.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        said = [process.communicate(timeout=SECONDS) for process in both]
        assert sorted(process.returncode for process in both) == [0, 1], said
        assert instance.status()["running"] is True
        assert instance.get("/") == 404


def test_version_is_one_line() -> None:
    done = subprocess.run([str(COMMAND), "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sluice 0.")
    assert len(done.stdout.splitlines()) == 1


def test_a_prefix_has_one_name(instance: Instance) -> None:
    """However its folder is reached, and whether or not it was there at the start."""
    link = instance.folder / "link"
    link.symlink_to(instance.folder)
    instance.succeed("start", prefix=str(link / "run"))
    assert instance.status()["running"] is True
    assert "stopped" in instance.succeed("stop", prefix=str(link / "run"))
    assert instance.get("/") == 0


def test_it_runs_through_a_symbolic_link(instance: Instance) -> None:
    link = instance.folder / "sluice"
    link.symlink_to(COMMAND)
    done = subprocess.run([str(link), "version"], capture_output=True, check=True, cwd="/")
    assert done.stdout.startswith(b"sluice ")


def test_the_workers_stay_when_the_command_line_is_long_gone(instance: Instance) -> None:
    """The daemon leaves the session of the command that started it."""
    instance.succeed("start")
    master = instance.status()["pid"]
    assert os.getsid(master) == master
