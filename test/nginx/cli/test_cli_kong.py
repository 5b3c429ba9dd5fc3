"""`sluice kong`: Kong's commands, their words and exit codes, and what they refuse."""

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import Ports
from trouble import TROUBLE

import guard
from instance import AS_ROOT, BAD, ONE, SECONDS
from sluice import COMMAND, NGINX, sanitizers
from upstream import Upstream
from wire import DEADLINE, Wire, request_bytes, wait_until

FLAGS_THAT_ARE_WRONG = {
    ("bogus",): "unknown command 'bogus'",
    (): "a command is required",
    ("start", "--bogus"): "unknown option '--bogus'",
    ("start", "-p", ""): "prefix (flag --prefix): '' is not valid; expected a path",
    ("health", "-p", "a;b"): "prefix (flag --prefix): 'a;b' is not valid",
    ("config", "parse", ""): "no file to check",
    ("start", "-p"): "option '-p' requires an argument",
    ("start", "-c", "/nowhere/kong.conf"): "cannot read /nowhere/kong.conf",
    (
        "start",
        "--nginx-conf",
        "x",
    ): "kong start: --nginx-conf: nginx.conf is rendered from",
    ("reload", "--nginx-conf-flags=x"): "kong reload: --nginx-conf-flags: nginx.conf is rendered",
    ("quit", "--wait", "soon"): "--wait: 'soon' is not valid",
    ("quit", "-t", "nan"): "--timeout: 'nan' is not valid",
    ("quit", "--timeout=-1"): "--timeout: '-1' is not valid",
    ("config",): "kong config: a command is missing; there are db_export, db_import, parse",
    ("config", "merge"): "kong config: no 'merge'; there are db_export, db_import, parse",
    ("config", "parse"): "kong config parse: a file is missing",
    ("config", "parse", "/nowhere/kong.yml"): "cannot read /nowhere/kong.yml",
    ("config", "db-import"): "kong config db_import: a file is missing",
    ("config", "init"): "kong config init: write a file by hand",
    ("migrations", "down"): "kong migrations: no 'down'; there are bootstrap, finish, list",
    ("migrations", "reset"): "the configuration is a file (declarative_config)",
    ("check", "/nowhere/kong.conf"): "cannot read /nowhere/kong.conf",
    ("hybrid", "gen_cert"): "kong hybrid: there is no hybrid mode here",
    ("vault", "get", "env/x"): "kong vault: the only vault is the environment",
    ("drain",): "kong drain: use `kong quit --wait SECONDS`",
    ("stop",): "Error: no such prefix: ",
    ("quit",): "Error: no such prefix: ",
    ("reload",): "Error: no such prefix: ",
    ("health",): "Error: no such prefix: ",
}


class Kong:
    """A prefix with the settings that Kong's users have in their environment."""

    def __init__(self, upstream: Upstream) -> None:
        self.ports, self.folder = Ports(), guard.folder("sluice-kong-")
        self.prefix, self.file = self.folder / "run", self.folder / "kong.yml"
        self.file.write_text(ONE.format(url=upstream.url))
        self.port = self.ports.take()
        self.declared = ""
        """A pattern of lines that the error log may have."""
        self.environment = {
            name: text for name, text in os.environ.items() if not name.startswith("SLUICE_")
        } | {
            "KONG_PREFIX": str(self.prefix),
            "KONG_DATABASE": "off",
            "KONG_DECLARATIVE_CONFIG": str(self.file),
            "KONG_PROXY_LISTEN": f"127.0.0.1:{self.port}",
            "KONG_ADMIN_LISTEN": f"127.0.0.1:{self.ports.take()}",
            "KONG_NGINX_WORKER_PROCESSES": "2",
            "SLUICE_WORKER_CONNECTIONS": "512",
            "SLUICE_VAULT_ENV": ",".join(sanitizers()),
        }

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a command with more in the environment."""
        return subprocess.run(
            [COMMAND, "kong", *words],
            env=self.environment | more,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def succeed(self, *words: str, **more: str) -> str:
        """Its standard output."""
        done = self.run(*words, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refuse(self, *words: str, **more: str) -> str:
        """Its standard error."""
        done = self.run(*words, **more)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "stack traceback" not in done.stderr
        return done.stderr

    def run_nginx(self, prefix: Path | None = None) -> None:
        """Runs a prepared one by hand; by another name of its prefix, if there is one."""
        words = [NGINX, "-p", prefix or self.prefix, "-c", "nginx.conf"]
        env = self.environment
        subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL, timeout=SECONDS)

    def status_of(self, path: str) -> int:
        """What a request is answered with; 0: by nobody."""
        with contextlib.suppress(OSError), Wire(self.port) as wire:
            return wire.ask(path).status
        return 0

    def close(self) -> None:
        """Stops it, and reads its error log."""
        self.run("stop")
        self.ports.release()
        log = self.prefix / "logs" / "error.log"
        lines = log.read_text().splitlines() if log.exists() else []
        guard.remove(self.folder)
        assert [line for line in lines if self.is_trouble(line)] == []

    def is_trouble(self, line: str) -> bool:
        """Whether a line of the error log is none that the test declared."""
        declared = self.declared and re.search(self.declared, line)
        return TROUBLE.search(line) is not None and not declared


@pytest.fixture
def kong(upstream: Upstream) -> Iterator[Kong]:
    made = Kong(upstream)
    yield made
    made.close()


@pytest.mark.parametrize("words", FLAGS_THAT_ARE_WRONG)
def test_what_is_wrong_is_named(kong: Kong, words: tuple[str, ...]) -> None:
    """The exit code is 1, as Kong's for all that is wrong, and nothing is made."""
    assert FLAGS_THAT_ARE_WRONG[words] in kong.refuse(*words)
    assert not kong.prefix.exists()


def test_the_life_of_one(kong: Kong) -> None:
    """Flags as Kong's lapp reads them; what has no effect is taken."""
    said = kong.succeed("start", "--v", "--run-migrations", "--db-timeout", "5", "--lock-timeout=9")
    assert said.splitlines()[-1] == "Kong started"
    assert f"already running in {kong.prefix}" in kong.refuse("start", "--vv")
    assert "already running" in kong.refuse("prepare")
    assert "already running" in kong.refuse("docker-start")
    assert kong.status_of("/one") == 200
    healthy = f"nginx.......running\n\nKong is healthy at {kong.prefix}\n"
    assert kong.succeed("health") == healthy
    assert kong.succeed("health", f"-p{kong.prefix}") == healthy
    assert kong.succeed("restart").splitlines()[-1] == "Kong started"
    assert kong.succeed("reload", "-v").splitlines()[-1] == "Kong reloaded"
    assert kong.succeed("stop").splitlines()[-1] == "Kong stopped"
    not_running = f"Error: nginx not running in prefix: {kong.prefix}\n"
    for command in ("stop", "quit", "reload"):
        assert kong.refuse(command) == not_running
    done = kong.run("health")
    assert (done.returncode, done.stdout) == (1, "nginx.......not running\n\n")
    assert done.stderr == f"Error: Kong is not running at {kong.prefix}\n"


def test_a_wrong_reload_keeps_what_runs(kong: Kong) -> None:
    kong.succeed("start")
    kong.file.write_text(BAD)
    assert "reload refused" in kong.refuse("reload")
    assert "line 4" in kong.refuse("config", "parse", str(kong.file))
    assert kong.status_of("/one") == 200


def test_quit_waits_and_cuts_off(kong: Kong, upstream: Upstream) -> None:
    """Its exit code is 0, however it ends."""
    kong.declared = "open socket .* left in connection|: aborting$"
    kong.succeed("start")
    assert kong.succeed("quit").splitlines()[-1] == "Kong stopped (gracefully)"
    kong.succeed("start")
    seen, held = len(upstream.requests), upstream.hold()
    with Wire(kong.port) as wire:
        wire.send(request_bytes("/one"))
        wait_until(lambda: len(upstream.requests) > seen, "the request")
        assert kong.succeed("quit", "-w", "0.1", "-t", "1").splitlines()[-1] == (
            "Timeout, Kong stopped forcefully"
        )
    held.set()


def test_a_settings_file_is_checked(kong: Kong) -> None:
    conf = kong.folder / "kong.conf"
    conf.write_text("log_level = info\nproxy_listen = 127.0.0.1:1234\n")
    assert kong.succeed("check", str(conf)) == f"configuration at {conf} is valid\n"
    conf.write_text("log_level = loud\n")
    assert "log_level" in kong.refuse("check", str(conf))
    assert "ssl_cert" in kong.refuse("check", str(conf), KONG_SSL_CERT="/nowhere.pem")
    assert not kong.prefix.exists()


def test_a_file_is_no_store(kong: Kong) -> None:
    """Nothing is imported where it would have no effect, nor taken away."""
    for words in (["config", "db_import", str(kong.file)], ["config", "db_export"]):
        assert "the configuration is a file" in kong.refuse(*words)
    for words in (["reset", "-y"], ["bootstrap", "--force"]):
        assert "the configuration is a file" in kong.refuse("migrations", *words)
    assert "Database is up-to-date" in kong.succeed("migrations", "bootstrap")
    assert not kong.prefix.exists()
    store = {"KONG_DATABASE": "postgres", "KONG_DECLARATIVE_CONFIG": "", "SLUICE_SINGLE_NODE": "on"}
    assert "reset without a question with --yes" in kong.refuse("migrations", "reset", **store)


def test_nginx_by_hand(kong: Kong) -> None:
    """What is prepared is found by the other commands; its logs may be links as Kong's are."""
    kong.succeed("prepare", "-p", str(kong.prefix), "kong", "docker-start")
    assert kong.run("health").returncode == 1
    (kong.prefix / "logs" / "access.log").unlink()
    (kong.prefix / "logs" / "access.log").symlink_to("/dev/stdout")
    kong.run_nginx()
    wait_until(lambda: kong.status_of("/one") == 200, "nginx to serve")
    assert "Kong is healthy" in kong.succeed("health")
    kong.succeed("reload", KONG_LOG_LEVEL="info")
    kong.succeed("quit")
    (kong.prefix / "logs" / "access.log").unlink()
    (kong.prefix / "logs" / "access.log").symlink_to("/etc/passwd")
    assert "logs/access.log is not a file with one name" in kong.refuse("start")


def test_nginx_by_hand_in_a_prefix_with_two_names(kong: Kong) -> None:
    kong.succeed("prepare")
    link = kong.folder / "another"
    link.symlink_to(kong.prefix)
    kong.run_nginx(link)
    wait_until(lambda: kong.status_of("/one") == 200, "nginx to serve")
    assert "Kong is healthy" in kong.succeed("health")
    assert "already running" in kong.refuse("start")


def test_health_of_what_has_no_configuration(kong: Kong) -> None:
    """nginx runs, and its workers do not accept yet."""
    kong.declared = "the store cannot be opened"
    kong.succeed("prepare")
    with (kong.prefix / "store" / "store.db").open("r+b") as store:
        store.write(b"damaged" * 100)
    kong.run_nginx()
    log = kong.prefix / "logs" / "error.log"
    wait_until(lambda: kong.declared in log.read_text(), "the store to be refused")
    done = kong.run("health")
    assert (done.returncode, done.stdout) == (1, "nginx.......running\n\n")
    assert done.stderr == f"Error: some services are not running at {kong.prefix}\n"


def test_a_killed_one_is_not_healthy(kong: Kong) -> None:
    """Its workers serve on; stop ends them."""
    kong.succeed("start")
    pid = int((kong.prefix / "run" / "nginx.pid").read_text())
    os.kill(pid, 9)
    wait_until(lambda: not Path(f"/proc/{pid}/cmdline").exists(), "the master to be gone", DEADLINE)
    assert "Kong is not running" in kong.refuse("health")
    kong.succeed("stop")
    wait_until(lambda: kong.status_of("/one") == 0, "its workers to be gone")


@pytest.mark.skipif(not AS_ROOT, reason="gives a folder to somebody else")
def test_a_prefix_of_somebody_elses(kong: Kong) -> None:
    """In a container nobody else is there; elsewhere it is refused."""
    kong.prefix.mkdir()
    shutil.chown(kong.prefix, 12345)
    assert f"prefix: {kong.prefix} belongs to user 12345" in kong.refuse("start")
    kong.prefix.chmod(0o777)
    kong.succeed("start", SLUICE_CONTAINER="1")
    assert "belongs to user 12345" in kong.refuse("reload")
    kong.succeed("health")
