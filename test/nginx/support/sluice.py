"""Runs a real Sluice for one test: own prefix, own ports, and its error log read at the end."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

import evidence
import httpx
from plugin_files import write_kong_plugin, write_plugin
from ports import Ports
from trouble import TROUBLE, Expectation, Trouble, is_slow_end

import guard
from processes import children
from wire import DEADLINE, Pairs, Reply, Wire, wait_until

ROOT = Path(__file__).resolve().parents[3]
# What tests use beside Python: Lua for nginx, C for a library, scripts.
SUPPORT = Path(__file__).resolve().parent

COMMAND = ROOT / "bin" / "sluice"

COMMAND_SECONDS = 60.0
"""After which a command hangs; generous, for a busy machine."""

LINE_SECONDS = 2.0
"""How long a declared line may come after all that the test has waited for."""


def platform(name: str) -> list[str]:
    """The lines that scripts/platform prints: where this machine keeps something."""
    command = [ROOT / "scripts" / "platform", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


(NGINX,) = platform("nginx_binary")
NGINX_MODULES = platform("nginx_modules")

Config = dict[str, Any] | str


def sanitizers(environment: dict[str, str] | None = None) -> list[str]:
    """What the sanitizers are told by, as names in an environment, this run's where none is given.
    A binary upgrade passes on what nginx.conf names, and nothing else."""
    found = environment or os.environ
    names = ["LD_PRELOAD", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"]
    return [name for name in names if name in found] if "ASAN_OPTIONS" in found else []


def preloaded(library: Path) -> str:
    """LD_PRELOAD with one more library, after the sanitizers' own: those have to come first."""
    return ":".join(filter(None, (os.environ.get("LD_PRELOAD"), str(library))))


# Of the system's: to read them all is an eighth of the CPU time that most tests take.
A_CA = "/etc/ssl/certs/ISRG_Root_X1.pem"


class HasUrl(Protocol):
    """A server of upstream.py."""

    @property
    def url(self) -> str: ...


class Gateway:
    """A running Sluice.

    `config` is the declarative configuration: a dict (`_format_version` added where missing) or
    the text of a YAML file; None: no file, so that the Admin API writes the store. Settings are
    those of docs/config.md by name; True and False are written on and off, lists comma-separated.
    `plugins` maps names to the Lua source of plugins made up by the test; `kong_plugins` maps them
    to their files as Kong has them, without `.lua`: `handler`, `schema`, or `config` in the place
    of that, the fields of the configuration. `env` is added to the
    environment of every command. `tls`: what stands behind the address of a second listener, at
    `tls_port` ("ssl", "ssl http2"); none where it is empty.

    Usable as a context manager; leaving it stops the gateway and reads its error log.
    """

    live: ClassVar[list[Gateway]] = []
    """The running ones, whose logs are also read after each test."""
    program: ClassVar[Path] = COMMAND
    _ends_from: int | None = None
    """Where in the error log the end begins that is the harness's, not the test's."""

    def __init__(
        self,
        config: Config | None,
        *,
        plugins: dict[str, str] | None = None,
        kong_plugins: dict[str, dict[str, str]] | None = None,
        env: dict[str, str] | None = None,
        tls: str = "",
        **settings: object,
    ) -> None:
        self.ports = Ports()
        self.prefix = guard.folder("sluice-")
        self.file = self.prefix / ("sluice.yaml" if isinstance(config, str) else "sluice.json")
        self.proxy_port = self.ports.take()
        self.admin_port = self.ports.take()
        self.tls_port = self.ports.take() if tls else 0
        self.settings: dict[str, Any] = {
            "prefix": self.prefix / "run",
            "file": "" if config is None else self.file,
            "proxy_listen": f"127.0.0.1:{self.proxy_port}",
            "admin_listen": f"127.0.0.1:{self.admin_port}",
            "workers": 1,
            "worker_connections": 1024,
            "log_level": "notice",
            "proxy_ssl_trusted_certificate": A_CA,
            "vault_env": sanitizers(),
        } | settings
        if tls:
            self.settings["proxy_listen"] += f", 127.0.0.1:{self.tls_port} {tls}"
        self.env = env or {}
        if plugins or kong_plugins:
            self._write_plugins(plugins or {}, kong_plugins or {})
        self.expectations: list[Expectation] = []
        self._client: httpx.Client | None = None
        self._scanned = 0
        self._unexpected: list[str] = []
        self.warned = ""
        """What the start said on stderr."""
        self.started = False
        if config is not None:
            self.write_config(config)

    # Life

    def start(self) -> Gateway:
        """Starts it as a daemon and waits until it answers."""
        done = self.command("start")
        assert done.returncode == 0, f"sluice start failed:\n{done.stdout}{done.stderr}"
        self.warned = done.stderr
        self.started = True
        Gateway.live.append(self)
        wait_until(self._answers, "the proxy port to answer")
        return self

    def stop(self, how: str = "stop") -> None:
        """Stops it (`how`: the command) and waits until its processes are gone."""
        client, self._client = self._client, None
        if client:
            client.close()
        if not self.started:
            return
        self.started = False
        Gateway.live.remove(self)
        master = self.master()
        if client:  # else a retiring worker may end before it sees that: nginx alerts of the socket
            with contextlib.suppress(AssertionError):
                wait_until(lambda: not self.retiring(), "old workers to leave", LINE_SECONDS)
        if self._ends_from is not None and self._is_alone(master):
            os.kill(master, signal.SIGTERM)
        else:
            self._stop_by_command(how, master)
        try:
            wait_until(lambda: not alive(master), "nginx to be gone")
        except AssertionError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(master, signal.SIGKILL)
            raise

    def _is_alone(self, master: int) -> bool:
        """Whether a signal to the master is all that `sluice stop` would do. The command itself is
        an eighth of the CPU time that most tests take."""
        with contextlib.suppress(OSError):
            title = Path(f"/proc/{master}/cmdline").read_bytes().decode(errors="replace")
            return str(self.settings["prefix"]) in title and not self._former_pid_file.exists()
        return False

    def _stop_by_command(self, how: str, master: int) -> None:
        done = self.command(how)
        is_late = self._ends_from is not None and "did not stop: timeout" in done.stderr
        if done.returncode != 0 and not is_late:
            with contextlib.suppress(ProcessLookupError):
                os.kill(master, signal.SIGKILL)
            raise AssertionError(f"sluice {how} failed:\n{done.stdout}{done.stderr}")

    def close(self) -> None:
        """Stops it, reads its error log for the last time, removes its files."""
        try:
            if self.started:
                self._wait_for_declared()
                self._ends_from = self.error_log().rfind("\n") + 1
            try:
                self.stop()
            finally:
                self.check_log(final=True)
        except BaseException:
            evidence.keep(self.prefix)
            raise
        finally:
            self.ports.release()
            guard.remove(self.prefix)

    def __enter__(self) -> Gateway:
        try:
            return self.start()
        except BaseException:
            evidence.keep(self.prefix)
            evidence.notice(
                line for line in self.error_log().splitlines() if not self._expected(line)
            )
            self.discard()
            raise

    def __exit__(self, kind: object, problem: BaseException | None, _: object) -> None:
        if problem is None:
            self.close()
            return
        problem.add_note(f"end of the error log:\n{self.error_log()[-3000:]}")
        evidence.keep(self.prefix)
        with contextlib.suppress(AssertionError):
            self.close()

    def discard(self) -> None:
        """Clears up after a start that failed, or was never made; the log is not looked at."""
        if self in Gateway.live:
            Gateway.live.remove(self)
        with contextlib.suppress(OSError, ValueError):
            os.kill(self.master(), signal.SIGTERM)
        guard.remove(self.prefix)
        self.ports.release()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `sluice` with this gateway's settings in its environment."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            # Files, not pipes: a daemon may keep its end of a pipe open.
            done = subprocess.run(
                [str(self.program), *arguments],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                timeout=COMMAND_SECONDS,
                check=False,
            )
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, out.read(), err.read())

    def environment(self) -> dict[str, str]:
        """The environment that commands run with: no SLUICE_* but this gateway's."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
        ours = {f"SLUICE_{k.upper()}": _as_text(v) for k, v in self.settings.items()}
        return clean | ours | self.env

    def write_config(self, config: Config) -> None:
        """Writes the declarative configuration without making it live."""
        if isinstance(config, dict):
            config = json.dumps({"_format_version": "3.0"} | config)
        self.file.write_text(config)

    def reload(self, config: Config | None = None) -> None:
        """Replaces the workers, with a new configuration where given, and waits until all are new.

        What `sluice reload` does when only the file has changed is in test_config_change.py.
        """
        if config is not None:
            self.write_config(config)
        old = set(self.workers())
        done = self.command("reload", "--new-workers")
        assert done.returncode == 0, f"sluice reload failed:\n{done.stdout}{done.stderr}"
        wait_until(lambda: self._renewed(old), "new workers after the reload")

    def _renewed(self, old: set[int]) -> bool:
        now = set(self.workers())
        return len(now) == len(old) and not now & old

    def _answers(self) -> bool:
        """The port takes connections. No request is made: plugins and upstreams would see it."""
        try:
            Wire(self.proxy_port, timeout=2).close()
        except OSError:
            return False
        return True

    def _write_plugins(
        self, plugins: dict[str, str], kong_plugins: dict[str, dict[str, str]]
    ) -> None:
        for name, source in plugins.items():
            write_plugin(self.prefix / "lua", name, source)
        for name, files in kong_plugins.items():
            write_kong_plugin(self.prefix / "lua", name, files)
        self.settings["lua_package_path"] = f"{self.prefix}/lua/?.lua"
        self.settings.setdefault("plugins", ["bundled", *plugins, *kong_plugins])

    # Processes

    def master(self) -> int:
        """The process id of nginx's master; ValueError while its file is empty, as at first."""
        return int(self._pid_file.read_text())

    def wait_for_master(self, other_than: int = 0) -> int:
        """Waits until an nginx that has just started has written its process id, and returns it."""

        def find() -> int:
            with contextlib.suppress(OSError, ValueError):  # it is moved, or being written
                found = self.master()
                return found if found != other_than else 0
            return 0

        return wait_until(find, "a master's pid file")

    def start_new_master(self) -> int:
        """Starts a new master beside the old one, as an upgrade does, and returns its pid."""
        old = self.master()
        os.kill(old, signal.SIGUSR2)
        return self.wait_for_master(other_than=old)

    @property
    def _pid_file(self) -> Path:
        return self.settings["prefix"] / "run" / "nginx.pid"

    @property
    def _former_pid_file(self) -> Path:
        """Of the nginx before a binary upgrade, as long as that runs."""
        return self._pid_file.with_name("nginx.pid.oldbin")

    def workers(self) -> list[int]:
        """The process ids of the workers that take new connections, so not of retiring ones."""
        return [
            pid
            for pid, title in self._children()
            if "worker process" in title and "is shutting down" not in title
        ]

    def control(self) -> int:
        """The process id of the control worker."""
        return wait_until(
            lambda: next((pid for pid, t in self._children() if "control process" in t), 0),
            "a control worker",
        )

    def retiring(self) -> list[int]:
        """The process ids of workers that only finish what they have begun."""
        return [pid for pid, title in self._children() if "is shutting down" in title]

    def _children(self) -> Iterator[tuple[int, str]]:
        for pid in children(self.master()):
            with contextlib.suppress(OSError):
                title = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                if "worker process" in title or "control process" in title:
                    yield pid, title

    # Talking to it

    @property
    def proxy(self) -> str:
        """Base URL of the proxy listener."""
        return f"http://127.0.0.1:{self.proxy_port}"

    @property
    def admin(self) -> str:
        """Base URL of the admin listener."""
        return f"http://127.0.0.1:{self.admin_port}"

    @property
    def client(self) -> httpx.Client:
        """A keep-alive client of the proxy; follows no redirects, knows no proxies."""
        if not self._client:
            self._client = httpx.Client(
                base_url=self.proxy, trust_env=False, verify=False, timeout=DEADLINE
            )
        return self._client

    def get(self, path: str, headers: Pairs | None = None) -> httpx.Response:
        """GET by the pooled client. Use ask() where the exact target or headers matter."""
        return self.client.get(path, headers=headers)

    def wire(self, timeout: float = DEADLINE) -> Wire:
        """A raw connection to the proxy."""
        return Wire(self.proxy_port, timeout=timeout)

    def ask(
        self,
        target: str,
        method: str = "GET",
        headers: Pairs | None = None,
        body: bytes | None = None,
    ) -> Reply:
        """One request on a raw connection of its own, target and headers sent as they are."""
        with self.wire() as wire:
            return wire.ask(target, method, headers, body)

    # Logs

    def error_log(self) -> str:
        """The text of the error log so far."""
        return self._log("error.log")

    def access_log(self) -> str:
        """The text of the access log so far."""
        return self._log("access.log")

    def _log(self, name: str) -> str:
        path = self.settings["prefix"] / "logs" / name
        return path.read_text(errors="replace") if path.exists() else ""

    def expect_log(self, pattern: str, count: int | range = 1) -> None:
        """Declares, before it happens, a kind of error-log line and how often it comes.

        Lines are searched for pattern (a regular expression). A line that would be no trouble may
        be declared as well: then it must come.
        """
        self.expectations.append(Expectation(re.compile(pattern), count))

    def _wait_for_declared(self) -> None:
        """Gives declared lines time: many follow the answer that a test has waited for.

        Those that come as nginx ends are not here yet, so it is no failure if some stay away.
        """
        with contextlib.suppress(AssertionError):
            wait_until(self._declared_have_come, "the declared lines", LINE_SECONDS)

    def _declared_have_come(self) -> bool:
        log = self.error_log()
        return all(expectation.has_come(log) for expectation in self.expectations)

    def check_log(self, final: bool = False) -> None:
        """Fails on trouble in the log since the last check; counts are compared when final."""
        log = self.error_log()
        end = len(log) if final else log.rfind("\n") + 1
        trouble = self._trouble(log, end)
        if trouble:
            evidence.notice(trouble)
            raise Trouble("undeclared lines in the error log:\n" + "\n".join(trouble[:20]))
        unmet = [e for e in self.expectations if final and not e.met()]
        if unmet:
            lines = [f"{e.pattern.pattern!r}: {e.seen} lines, declared {e.count}" for e in unmet]
            raise Trouble("the error log differs from what was declared:\n" + "\n".join(lines))

    def _trouble(self, log: str, end: int) -> list[str]:
        """What nobody expected of the lines since the last check."""
        ending = end if self._ends_from is None else max(self._ends_from, self._scanned)
        lines, last = log[self._scanned : ending], log[ending:end]
        self._scanned = end
        trouble = self._undeclared(lines)
        return trouble + [line for line in self._undeclared(last) if not is_slow_end(line)]

    def _undeclared(self, text: str) -> list[str]:
        unexpected = [line for line in text.splitlines() if not self._expected(line)]
        return [line for line in unexpected if TROUBLE.search(line)]

    def _expected(self, line: str) -> bool:
        matching = [e for e in self.expectations if e.pattern.search(line)]
        for expectation in matching:
            expectation.seen += 1
        return bool(matching)


Start = Callable[..., Gateway]
"""What the fixture `gateway` is."""


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits for its parent to notice does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        # A killed one's other threads may not have ended yet, as in an fsync: they hold its files.
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z" or len(threads) > 1


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def proxying(
    upstream: HasUrl | str, *, service: dict | None = None, **route: object
) -> dict[str, Any]:
    """The smallest configuration: one service at upstream.url, one route (`/` by default)."""
    return {
        "services": [
            {
                "name": "service",
                "url": upstream if isinstance(upstream, str) else upstream.url,
                "routes": [{"name": "route", "paths": ["/"]} | copy.deepcopy(route)],
            }
            | (service or {})
        ]
    }
