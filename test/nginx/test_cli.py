"""The sluice command: what it starts, refuses, keeps and stops, seen from outside."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sluice import COMMAND, ROOT, Ports
from upstream import Exchange, Upstream
from wire import wait_until

SECONDS = 30

ONE = """\
_format_version: "3.0"
services:
  - name: one
    url: {url}
    routes: [{{name: one, paths: [/one]}}]
"""

TWO = ONE.replace("one", "two")

BAD = """\
_format_version: "3.0"
services:
  - name: one
    bogus: 1
    url: http://127.0.0.1:9
    routes: [{name: one, paths: [one]}]
"""

AS_ROOT = os.geteuid() == 0


class Instance:
    """A prefix, two ports and a declarative file, with the sluice command on them."""

    def __init__(self, folder: Path, ports: Ports) -> None:
        self.folder = folder
        self.prefix = folder / "run"
        self.file = folder / "sluice.yaml"
        self.proxy_port = ports.take()
        self.admin_port = ports.take()
        self.flags = {
            "--file": str(self.file),
            "--proxy-listen": f"127.0.0.1:{self.proxy_port}",
            "--admin-listen": f"127.0.0.1:{self.admin_port}",
            "--workers": "2",
            "--worker-connections": "512",
        }
        self.cuts_off_requests = False
        """Whether the test does: nginx then alerts of each open socket."""
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}

    def line(self, command: str, *more: str, **flags: str | None) -> list[str]:
        """The command line; `flags` replace the usual ones, None leaves one out."""
        given = {"--prefix": str(self.prefix)}
        if command == "start":
            given |= self.flags
        given |= {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
        words = [
            word for name, value in given.items() if value is not None for word in (name, value)
        ]
        return [str(COMMAND), command, *words, *more]

    def run(
        self, command: str, *more: str, **flags: str | None
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end."""
        return subprocess.run(
            self.line(command, *more, **flags),
            env=self.environment,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def succeed(self, command: str, *more: str, **flags: str | None) -> str:
        """Runs a command that has to succeed in silence; what it said."""
        done = self.run(command, *more, **flags)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout

    def refuse(self, command: str, *more: str, code: int = 1, **flags: str | None) -> list[str]:
        """Runs a command that has to fail; the lines that say why."""
        done = self.run(command, *more, **flags)
        assert (done.returncode, done.stdout) == (code, ""), (done.stdout, done.stderr)
        assert "traceback" not in done.stderr
        return done.stderr.splitlines()

    def status(self) -> dict:
        """What `sluice status --json` says."""
        return json.loads(self.run("status", "--json").stdout)

    def get(self, path: str, port: int | None = None) -> int:
        """The status code of one request; 0 when nobody answers.

        Nobody listens then, or nginx -t does for a moment, before a start in the foreground.
        """
        connection = http.client.HTTPConnection("127.0.0.1", port or self.proxy_port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (ConnectionRefusedError, ConnectionResetError):
            return 0
        finally:
            connection.close()


@pytest.fixture
def make() -> Iterator[Callable[[], Instance]]:
    """Makes instances; stops those that still run, and removes their files."""
    ports = Ports()
    made: list[Instance] = []

    def make_one() -> Instance:
        folder = Path(tempfile.mkdtemp(prefix="sluice-cli-"))
        folder.chmod(0o755)
        instance = Instance(folder, ports)
        instance.file.write_text(ONE.format(url="http://127.0.0.1:9"))
        made.append(instance)
        return instance

    yield make_one
    for instance in made:
        instance.run("stop")
        log = instance.prefix / "logs" / "error.log"
        text = log.read_text() if log.exists() else ""
        shutil.rmtree(instance.folder)
        assert "exited on signal" not in text
        assert instance.cuts_off_requests or "[alert]" not in text
    ports.release()


@pytest.fixture
def instance(make: Callable[[], Instance]) -> Instance:
    """One instance, not started."""
    return make()


def runs(pid: int) -> bool:
    """Whether a process is there and not only waiting for its parent to notice its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def is_untouched(instance: Instance) -> bool:
    """Whether a refused start left nothing behind: no prefix, no nginx."""
    return not instance.prefix.exists() and instance.status()["running"] is False


# Life


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
    assert not runs(status["pid"])
    assert not (instance.prefix / "nginx.pid").exists()


def test_stop_and_quit_of_nothing_succeed_the_rest_says_not_running(instance: Instance) -> None:
    assert "not running" in instance.succeed("stop")
    assert "not running" in instance.succeed("quit")
    for command in ("reload", "reopen"):
        assert instance.refuse(command, code=3) == [f"sluice: not running in {instance.prefix}"]
    assert instance.run("status").returncode == 3
    assert instance.status() == {
        "running": False,
        "prefix": str(instance.prefix),
        "version": instance.status()["version"],
    }


def test_status_tells_a_human(instance: Instance) -> None:
    instance.succeed("start")
    said = instance.succeed("status")
    for expected in (str(instance.prefix), f"127.0.0.1:{instance.proxy_port}", str(instance.file)):
        assert expected in said


def test_two_instances_run_side_by_side(make: Callable[[], Instance]) -> None:
    first, second = make(), make()
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
    instance.prefix.mkdir()
    (instance.prefix / "nginx.pid").write_text(f"{os.getpid()}\n")
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
    assert (process.returncode, out) == (0, "stopped after its last request\n")


@pytest.mark.usefixtures("held")
def test_quit_cuts_off_what_outlasts_its_timeout(instance: Instance) -> None:
    instance.cuts_off_requests = True
    (line,) = instance.refuse("quit", "--timeout", "0.3")
    assert line == "sluice: requests in work after 0.3 seconds were cut off"
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


# Refusals: one clear line, non-zero, nothing half-started


def test_a_bad_declarative_file_prints_every_error(instance: Instance) -> None:
    instance.file.write_text(BAD)
    errors = [
        "  services[0].bogus: unknown field",
        "  services[0].routes[0].paths[0]: should start with: / (fixed path) or ~/ (regex path)",
    ]
    title = f"sluice: file: {instance.file} has 2 errors:"
    assert instance.refuse("start") == [title, *errors]
    assert instance.refuse("check", str(instance.file), prefix=None) == [title, *errors]
    assert is_untouched(instance)


def test_check_says_what_a_good_file_holds(instance: Instance) -> None:
    said = instance.succeed("check", "sluice.yaml", prefix=None)
    assert "1 services, 1 routes, 0 upstreams, 0 consumers, 0 plugins" in said
    assert instance.succeed("check", str(ROOT / "examples" / "quickstart.yaml"), prefix=None)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({"file": None}, "file: no declarative configuration; give --file FILE"),
        ({"file": "/none.yaml"}, "file: cannot read /none.yaml: No such file or directory"),
        ({"file": "/"}, "file: cannot read /: it is a directory"),
        (
            {"nginx_binary": "/none/nginx"},
            "nginx_binary: /none/nginx is missing or not executable; correct --nginx-binary",
        ),
        (
            {"nginx_modules": "/none/lua.so"},
            "nginx_modules: /none/lua.so is missing; correct --nginx-modules",
        ),
        (
            {"error_log": "stderr"},
            "error_log: stderr needs --foreground; a daemon has no terminal",
        ),
        (
            {"access_log": "/none/access.log"},
            "access_log: cannot write /none/access.log; give --access-log another",
        ),
        (
            {"prefix": "/dev/null/run"},
            "prefix: /dev/null is not a directory; give --prefix another",
        ),
        (
            {"proxy_listen": "192.0.2.1:80"},
            "proxy_listen: 192.0.2.1:80 is no address of this machine; "
            "give --proxy-listen one that is",
        ),
        (
            {"plugins": "bundled, no-such-plugin"},
            "plugins: plugin 'no-such-plugin'",
        ),
    ],
)
def test_start_refuses_in_one_line(
    instance: Instance, flags: dict[str, str | None], expected: str
) -> None:
    line = instance.refuse("start", **flags)[0]
    assert line.startswith(f"sluice: {expected}")
    assert is_untouched(instance)


def test_a_taken_port_is_named(instance: Instance) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", instance.proxy_port))
        other.listen()
        (line,) = instance.refuse("start")
    assert line.startswith(f"sluice: proxy_listen: 127.0.0.1:{instance.proxy_port} is taken")
    assert "--proxy-listen" in line
    assert is_untouched(instance)


@pytest.mark.skipif(not AS_ROOT, reason="only root's workers are another user")
def test_workers_that_could_not_enter_the_prefix_are_refused(instance: Instance) -> None:
    instance.folder.chmod(0o700)
    (line,) = instance.refuse("start")
    assert f"'www-data' may not enter {instance.folder}" in line
    (line,) = instance.refuse("start", user="no-such-user")
    assert "there is no user 'no-such-user'" in line


@pytest.mark.parametrize(
    "words",
    [[], ["bogus"], ["start", "--bogus"], ["start", "--workers"], ["quit", "--timeout", "soon"]],
)
def test_wrong_use_is_one_line_and_exit_code_2(instance: Instance, words: list[str]) -> None:
    done = subprocess.run(
        [str(COMMAND), *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("sluice: ")


def test_bad_settings_are_all_named_with_their_source(instance: Instance) -> None:
    conf = instance.folder / "sluice.conf"
    conf.write_text("workers = many\n\nwrokers = 2\n")
    instance.environment["SLUICE_LOG_LEVEL"] = "loud"
    lines = instance.refuse(
        "start", code=2, conf="sluice.conf", workers=None, keepalive_timeout="long"
    )
    assert [line.split(":")[1].strip() for line in lines[1:]] == [
        f"workers ({conf}",
        "log_level (environment SLUICE_LOG_LEVEL)",
        "keepalive_timeout (flag --keepalive-timeout)",
    ]
    assert lines[0].startswith(f"sluice: {conf}:3: unknown setting 'wrokers'")
    assert is_untouched(instance)


def test_what_nginx_refuses_is_shown_and_cleared_away(instance: Instance) -> None:
    lines = instance.refuse("start", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx did not start:"
    assert 'unknown "no_such_variable" variable' in lines[1]
    assert is_untouched(instance)
    lines = instance.refuse("start", "--foreground", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx does not take the configuration:"
    assert is_untouched(instance)


def test_a_failed_start_leaves_what_was_in_the_prefix(instance: Instance) -> None:
    instance.prefix.mkdir()
    (instance.prefix / "mine.txt").write_text("mine")
    instance.refuse("start", access_log_format="$no_such_variable")
    left = {path.name for path in instance.prefix.iterdir()}
    assert left == {"mine.txt"}


# Reload and restart


def test_reload_takes_the_file_on_every_new_worker(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        old = set(instance.status()["workers"]["ready"])
        instance.file.write_text(TWO.format(url=upstream.url))
        assert instance.succeed("reload").startswith("reloaded: 2 new workers")
        assert not old & set(instance.status()["workers"]["ready"])
        assert [instance.get("/one") for _ in range(10)] == [404] * 10
        assert instance.get("/two") == 200


def test_a_bad_file_at_reload_keeps_the_running_configuration(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        before = instance.status()["workers"]
        instance.file.write_text(BAD)
        lines = instance.refuse("reload")
        assert lines[1] == "  services[0].bogus: unknown field"
        assert lines[-1] == "sluice: reload refused: the running configuration is kept"
        assert instance.status()["workers"] == before
        assert instance.get("/one") == 200


def test_what_nginx_refuses_at_reload_leaves_the_files_as_they_were(instance: Instance) -> None:
    instance.succeed("start")
    kept = ("nginx.conf", "settings.json", "start.json")
    before = [(instance.prefix / name).read_text() for name in kept]
    workers = instance.status()["workers"]
    lines = instance.refuse("reload", access_log_format="$no_such_variable")
    assert lines[0] == "sluice: nginx does not take the configuration:"
    assert [(instance.prefix / name).read_text() for name in kept] == before
    assert instance.status()["workers"] == workers


def test_a_master_that_fails_after_the_test_keeps_the_running_one(instance: Instance) -> None:
    """A plugin that loads in the command and fails in the master (nginx -t runs no Lua)."""
    plugins = instance.folder / "lua" / "plugins"
    plugins.mkdir(parents=True)
    fuse = instance.folder / "loads-left"
    (plugins / "fuse.lua").write_text(
        f"""
        local file = io.open("{fuse}")
        if file then
            local left = tonumber(file:read("*a"))
            file:close()
            if left == 0 then
                error("the fuse is gone")
            end
            file = io.open("{fuse}", "w")
            file:write(left - 1)
            file:close()
        end
        return {{
            name = "fuse", version = "1", priority = 1,
            schema = {{
                name = "fuse",
                fields = {{ {{ config = {{ type = "record", fields = {{}} }} }} }},
            }},
        }}
        """
    )
    instance.flags |= {
        "--lua-package-path": f"{instance.folder}/lua/?.lua",
        "--plugins": "bundled, fuse",
    }
    instance.succeed("start")
    workers = instance.status()["workers"]
    fuse.write_text("1")
    lines = instance.refuse("reload")
    assert lines[0] == "sluice: nginx did not take the configuration:"
    assert lines[-1] == "sluice: reload refused: the running configuration is kept"
    assert instance.status()["workers"] == workers
    assert instance.get("/") == 404


def test_reload_remembers_start_and_reads_the_settings_file_again(instance: Instance) -> None:
    conf = instance.folder / "sluice.conf"
    conf.write_text("header_prefix = X-First\nworkers = 1\n")
    instance.environment["SLUICE_LOG_LEVEL"] = "info"
    instance.succeed("start", conf="sluice.conf")
    del instance.environment["SLUICE_LOG_LEVEL"]

    def settings() -> tuple[str, int, str]:
        found = json.loads((instance.prefix / "settings.json").read_text())
        return found["header_prefix"], found["workers"], found["log_level"]

    assert settings() == ("X-First", 2, "info")
    conf.write_text("header_prefix = X-Second\nworkers = 1\nlog_level = warn\n")
    instance.succeed("reload")
    assert settings() == ("X-Second", 2, "info")
    instance.succeed("reload", workers="3")
    assert settings() == ("X-Second", 3, "info")
    assert len(instance.status()["workers"]["ready"]) == 3
    instance.succeed("restart")
    assert settings() == ("X-Second", 3, "info")


def test_reload_moves_a_listener(make: Callable[[], Instance]) -> None:
    instance, other = make(), make()
    instance.succeed("start")
    other.succeed("start")
    lines = instance.refuse("reload", proxy_listen=f"127.0.0.1:{other.proxy_port}")
    assert "is taken" in lines[0]
    other.succeed("stop")
    instance.succeed("reload", proxy_listen=f"127.0.0.1:{other.proxy_port}")
    wait_until(lambda: instance.get("/") == 0, "the old port to close")
    assert instance.get("/", port=other.proxy_port) == 404


def test_reload_says_which_settings_need_a_restart(instance: Instance) -> None:
    instance.succeed("start")
    shadow = instance.folder / "nginx"
    shadow.symlink_to("/usr/sbin/nginx")
    done = instance.run("reload", nginx_binary=str(shadow))
    assert done.returncode == 0
    assert done.stderr == "sluice: warning: nginx_binary changes only with `sluice restart`\n"


def test_restart_checks_before_it_stops(instance: Instance) -> None:
    assert "started" in instance.succeed("start")
    pid = instance.status()["pid"]
    instance.file.write_text(BAD)
    lines = instance.refuse("restart")
    assert lines[-1] == "sluice: restart refused: the running gateway is kept"
    assert instance.status()["pid"] == pid
    instance.file.write_text(ONE.format(url="http://127.0.0.1:9"))
    instance.succeed("restart")
    assert instance.status()["pid"] != pid
    assert instance.get("/") == 404


def test_restart_starts_what_was_stopped(instance: Instance) -> None:
    instance.succeed("start")
    instance.succeed("stop")
    instance.succeed("restart")
    assert instance.get("/") == 404


# Surroundings


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become another user")
def test_a_normal_user_needs_only_a_prefix(instance: Instance) -> None:
    nobody = pwd.getpwnam("nobody")
    os.chown(instance.folder, nobody.pw_uid, nobody.pw_gid)

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

    if as_nobody("status").returncode != 3:
        pytest.skip("this checkout is not readable for other users")
    done = as_nobody("start")
    assert (done.returncode, done.stderr) == (0, "")
    for pid in instance.status()["workers"]["ready"]:
        assert Path(f"/proc/{pid}").stat().st_uid == nobody.pw_uid
    assert instance.get("/") == 404
    assert as_nobody("reload").returncode == 0
    assert as_nobody("stop").returncode == 0
    assert {path.owner() for path in instance.prefix.rglob("*")} == {"nobody"}


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
        "sluice: warning: worker_connections: lowered from 16384 to 1000, "
        "the hard limit of open files\n"
    )
    assert "worker_connections 1000;" in (instance.prefix / "nginx.conf").read_text()


def test_two_starts_at_once_make_one_gateway(instance: Instance) -> None:
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
    for process in both:
        process.communicate(timeout=SECONDS)
    assert sorted(process.returncode for process in both) == [0, 1]
    assert instance.status()["running"] is True
    assert instance.get("/") == 404


def test_version_is_one_line() -> None:
    done = subprocess.run([str(COMMAND), "version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("sluice 0.")
    assert len(done.stdout.splitlines()) == 1


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
