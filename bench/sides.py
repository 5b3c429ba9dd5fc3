"""The processes of a run: upstream, hand-written nginx and HAProxy, Sluice.

Each has a directory and an address of its own, is pinned to one core, is
ready when its context is entered and gone when that is left. They end with
the runner even if that is killed.

Long on purpose: one side after the other, each with its configuration.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from probe import Client, split_address
from scenario import Scenario, fill, unfilled

from processes import children, title

ROOT = Path(__file__).resolve().parents[1]
NGINX_FOLDER = Path(__file__).resolve().parent / "nginx"
HAPROXY_CFG = Path(__file__).resolve().parent / "haproxy" / "haproxy.cfg"

# What says where this machine keeps nginx and its Lua; all other settings of the caller stay out.
PLATFORM = (
    "SLUICE_LUAJIT",
    "SLUICE_NGINX_BINARY",
    "SLUICE_NGINX_MODULES",
    "SLUICE_LUA_PACKAGE_PATH",
    "SLUICE_LUA_PACKAGE_CPATH",
)
CERTIFICATES = "ssl_certificate @certificate@;\nssl_certificate_key @key@;"
START_TIMEOUT_S = 300.0  # a million routes, on a busy machine
STOP_TIMEOUT_S = 10.0
CONNECTIONS = "16384"
TROUBLE = ("[emerg]", "[alert]", "[crit]", "[error]")


def platform(name: str) -> list[str]:
    """The lines that scripts/platform prints: where this machine keeps something."""
    command = [ROOT / "scripts" / "platform", name]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


(NGINX,) = platform("nginx_binary")


class StartError(Exception):
    """A side that did not start; the message has what it printed."""


def free_address() -> str:
    """A local address that nobody listens on, outside the range of clients' own ports."""
    for _ in range(1000):
        port = random.randrange(10240, 32000)
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
        return f"127.0.0.1:{port}"
    raise StartError("no free port")


class Server:
    """An nginx, however it is started: directory, address, core, and the processes that work.

    Without a core it runs on all of them. Lines of its error log that have words of `harmless` are
    no trouble.
    """

    harmless: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, name: str, folder: Path, address: str, core: int | None, count: int = 1
    ) -> None:
        self.name = name
        self.folder = folder
        self.address = address
        self.core = core
        self.count = count
        self.scheme = "http"
        self.http2 = False
        self.workers: list[int] = []
        self.error_log = folder / "error.log"
        self.pid_file = folder / "nginx.pid"
        self._process: subprocess.Popen[bytes] | None = None
        self._output = folder / "output"

    def __enter__(self) -> Server:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def write(self) -> None:
        """Writes the configuration into the directory."""
        raise NotImplementedError

    def command(self) -> list[str]:
        """What starts it in the foreground."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def _start(self) -> None:
        # --pdeathsig: the kernel stops it should the runner be killed.
        pinned = ["setpriv", "--pdeathsig", "TERM"]
        if self.core is not None:
            pinned += ["taskset", "-c", str(self.core)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                pinned + self.command(),
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # the terminal's Ctrl-C is for the runner alone
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise StartError(f"{self.name} did not start: {self._last_words()}")
            time.sleep(0.01)
        if self.core is not None and os.sched_getaffinity(self.worker) != {self.core}:
            raise StartError(f"{self.name} is not pinned to core {self.core}")

    def _is_ready(self) -> bool:
        master = self.master()
        if master is None:
            return False
        self.workers = self.find_workers(master)
        if len(self.workers) < self.count:
            return False
        try:
            socket.create_connection(split_address(self.address), 1).close()
        except OSError:
            return False
        return True

    def master(self) -> int | None:
        """The process that was started, once it says who it is."""
        try:
            return int(self.pid_file.read_text())
        except (OSError, ValueError):
            return None

    def client(self) -> Client:
        """One who asks it as the load does."""
        return Client(self.address, scheme=self.scheme, http2=self.http2)

    @property
    def worker(self) -> int:
        """The only worker, or the first one."""
        return self.workers[0]

    def counted(self) -> list[int]:
        """The processes whose CPU time counts."""
        return self.workers

    def find_workers(self, master: int) -> list[int]:
        """The workers of a master that are ready."""
        found = []
        for pid in children(master):
            if b"nginx: worker process" in title(pid):
                found.append(pid)
        return sorted(found)

    def stop(self) -> None:
        """Stops it, by force if need be."""
        if not self._process:
            return
        group = self._process.pid
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def trouble(self) -> str | None:
        """The first line of the error log that tells of an error."""
        try:
            lines = self.error_log.read_text(errors="replace").splitlines()
        except OSError:
            return None
        lines = [line for line in lines if not any(words in line for words in self.harmless)]
        return next((line for line in lines if any(mark in line for mark in TROUBLE)), None)

    def _last_words(self) -> str:
        said = self._output.read_text(errors="replace").strip()
        return said or self.trouble() or "it said nothing"


class Nginx(Server):
    """An nginx of ours from files of `bench/nginx`."""

    files: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        name: str,
        folder: Path,
        address: str,
        core: int | None,
        count: int = 1,
        **words: str,
    ) -> None:
        super().__init__(name, folder, address, core, count)
        self._words = {"listen": address, "connections": CONNECTIONS} | words

    def write(self) -> None:
        (self.folder / "tmp").mkdir()
        for source, target in self.files.items():
            text = fill((NGINX_FOLDER / source).read_text(), self._words)
            left = unfilled(text)
            if left:
                raise StartError(f"{source}: nothing to put for {left}")
            (self.folder / target).write_text(text)

    def command(self) -> list[str]:
        conf = str(self.folder / "nginx.conf")
        return [NGINX, "-p", f"{self.folder}/", "-c", conf, "-e", str(self.error_log)]


class Upstream(Nginx):
    """The static upstream: one process, which counts its answers.

    On an address, and with the same port on any number of other hosts; behind TLS with the words of
    a certificate; `added` comes into its environment.
    """

    files: ClassVar = {"upstream.conf": "nginx.conf"}

    def __init__(
        self,
        folder: Path,
        address: str,
        core: int | None,
        body: str,
        hosts: Sequence[str] = (),
        secure: dict[str, str] | None = None,
        added: dict[str, str] | None = None,
    ) -> None:
        self._added = added or {}
        self._status = free_address()
        self._asked = 0
        port = address.rpartition(":")[2]
        super().__init__(
            "upstream",
            folder,
            address,
            core,
            upstream=address,
            others="".join(f"listen {host}:{port};\n" for host in hosts),
            ssl=" ssl" if secure else "",
            certificates=fill(CERTIFICATES, secure) if secure else "",
            status=self._status,
            body=body,
        )

    def environment(self) -> dict[str, str]:
        return super().environment() | self._added

    def find_workers(self, master: int) -> list[int]:
        return [master]

    def answered(self) -> int:
        """Requests that it has answered so far, without those for this number."""
        with Client(self._status) as client:
            body = client.ask(b"GET / HTTP/1.1\r\nHost: status\r\n\r\n").body
        self._asked += 1
        # "server accepts handled requests\n 1 1 1 \nReading: ..."
        return int(body.split(b"\n")[2].split()[2]) - self._asked


class HandWritten(Nginx):
    """Hand-written nginx: the yardstick."""

    files: ClassVar = {"nginx.conf": "nginx.conf", "forwarded.conf": "forwarded.conf"}

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        address: str,
        upstream: str,
        core: int,
        name: str = "hand-written nginx",
        words: dict[str, str] | None = None,
    ) -> None:
        port = upstream.rpartition(":")[2]
        words = {**(words or {}), "upstream": upstream, "port": port}
        super().__init__(name, folder, address, core, **words)
        self.scheme, self.http2 = scenario.scheme, scenario.http2
        self._scenario = scenario

    def write(self) -> None:
        super().write()
        (self.folder / "servers.conf").write_text(self._scenario.nginx_conf(self._words))

    def command(self) -> list[str]:
        return [*super().command(), "-g", "daemon off;"]


class HAProxy(Server):
    """Hand-written HAProxy, one thread: the second yardstick."""

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        address: str,
        upstream: str,
        core: int,
        words: dict[str, str],
    ) -> None:
        super().__init__("hand-written HAProxy", folder, address, core)
        self.scheme, self.http2 = scenario.scheme, scenario.http2
        self._scenario = scenario
        self._words = words | {"listen": address, "upstream": upstream, "scheme": self.scheme}
        crt = f" ssl crt {words['chain_and_key']}" if self.scheme == "https" else ""
        self._words["bound_by"] = crt + (" alpn h2" if self.http2 else "")
        self._words["reached_by"] = " ssl verify none" if scenario.secure == "upstream" else ""

    def write(self) -> None:
        rules = fill(self._scenario.haproxy, self._words)
        text = fill(HAPROXY_CFG.read_text(), self._words | {"rules": rules})
        (self.folder / "haproxy.cfg").write_text(text)
        (self.folder / "routes.map").write_text(self._scenario.haproxy_map)

    def command(self) -> list[str]:
        return ["haproxy", "-db", "-f", "haproxy.cfg"]

    def find_workers(self, master: int) -> list[int]:
        return [master]

    def master(self) -> int | None:
        return self._process.pid if self._process else None

    def trouble(self) -> str | None:
        lines = self._output.read_text(errors="replace").splitlines()
        return next((line for line in lines if line.startswith("[ALERT]")), None)


def entries(folder: Path) -> str:
    """A folder that a worker may write log entries into, and that goes with the run."""
    found = folder / "entries"
    found.mkdir(parents=True, exist_ok=True)
    found.chmod(0o1777)
    return str(found)


class Declared(Protocol):
    """What has a declarative configuration for Sluice."""

    def sluice_file(self, words: dict[str, str]) -> str:
        """The file for these addresses."""

    def changed_file(self, words: dict[str, str]) -> str | None:
        """What the file becomes once Sluice runs, before anything is measured."""


class Sluice(Server):
    """Sluice of a checkout, with its defaults but for what a bench has to set."""

    def __init__(
        self,
        declared: Declared,
        folder: Path,
        address: str,
        upstream: str,
        core: int | None,
        root: Path = ROOT,
        count: int = 1,
        admin: str = "off",
        name: str = "Sluice",
        settings: dict[str, str] | None = None,
        words: dict[str, str] | None = None,
    ) -> None:
        super().__init__(name, folder, address, core, count)
        self.error_log = folder / "logs" / "error.log"
        self.admin = admin
        self.upstream = upstream
        self._settings = settings or {}
        self._declared = declared
        port = upstream.rpartition(":")[2]
        self._words = {**(words or {}), "listen": address, "upstream": upstream, "port": port}
        self.program = [str(root / "bin" / "sluice")]
        self.scheme = getattr(declared, "scheme", "http")
        self.http2 = getattr(declared, "http2", False)

    def master(self) -> int | None:
        # A revision to compare with may have it in the prefix itself.
        run = self.folder / "run"
        self.pid_file = (run if run.exists() else self.folder) / "nginx.pid"
        return super().master()

    def find_workers(self, master: int) -> list[int]:
        """Those that serve traffic; the control worker has any worker's title first."""
        pids = children(master)
        if "sluice_control on;" in (self.folder / "nginx.conf").read_text():
            titles = [title(pid) for pid in pids]
            if not any(b"nginx: control process" in each for each in titles):
                return []
        return super().find_workers(master)

    def counted(self) -> list[int]:
        """The control worker's, too: it delivers log entries."""
        return [*self.workers, self.control]

    @property
    def control(self) -> int:
        """The control worker."""
        master = self.master()
        pids = children(master) if master else []
        return next(pid for pid in pids if b"nginx: control process" in title(pid))

    def stop(self) -> None:
        super().stop()
        # Stopped as a service is, by a signal: its images stay for its next start.
        with contextlib.suppress(OSError, ValueError, KeyError):
            images = json.loads((self.folder / "settings.json").read_text())["image_dir"]
            if images.startswith("/dev/shm/sluice-"):
                shutil.rmtree(images, ignore_errors=True)

    def _start(self) -> None:
        super()._start()
        changed = self._declared.changed_file(self._words)
        if changed:
            (self.folder / "sluice.json").write_text(changed)
            command = [*self.program, "reload"]
            done = subprocess.run(
                command, env=self.environment(), cwd=self.folder, capture_output=True, text=True
            )
            if done.returncode != 0:
                raise StartError(f"{self.name} did not reload: {done.stderr.strip()}")

    def write(self) -> None:
        (self.folder / "sluice.json").write_text(self._declared.sluice_file(self._words))
        (self.folder / "sluice.conf").write_text("")

    def command(self) -> list[str]:
        return [*self.program, "start", "--foreground"]

    def _listen_words(self) -> str:
        words = [" ssl"] if self.scheme == "https" else []
        words += [" http2"] if self.http2 else []
        words += [" reuseport"] if self.count > 1 else []
        return "".join(words)

    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("SLUICE_") or name in PLATFORM
        }
        return kept | {
            "SLUICE_PREFIX": str(self.folder),
            "SLUICE_CONF": str(self.folder / "sluice.conf"),
            "SLUICE_FILE": str(self.folder / "sluice.json"),
            # With several workers, each gets its share of the connections.
            "SLUICE_PROXY_LISTEN": f"{self.address}{self._listen_words()}",
            "SLUICE_ADMIN_LISTEN": self.admin,
            "SLUICE_WORKERS": str(self.count),
            "SLUICE_WORKER_CONNECTIONS": CONNECTIONS,
            "SLUICE_ACCESS_LOG": "off",
            **self._settings,
        }


def missing_programs() -> list[str]:
    """Debian packages of the programs that a run needs and this machine lacks."""
    wanted = {
        "gcc": "build-essential",
        "valgrind": "valgrind",
        "wrk": "wrk",
        "h2load": "nghttp2-client",
        "haproxy": "haproxy",
        "taskset": "util-linux",
        "setpriv": "util-linux",
    }
    missing = {package for program, package in wanted.items() if not shutil.which(program)}
    if not os.access(NGINX, os.X_OK):
        missing.add("nginx-core")
    return sorted(missing)
