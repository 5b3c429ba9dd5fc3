"""Runs a stock nginx with the module and a configuration of the test's own: no gateway in it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from pathlib import Path

import guard
from sluice import COMMAND_SECONDS, NGINX, NGINX_MODULES, ROOT, Gateway, Ports, alive, sanitizers
from wire import Reply, Wire, wait_until

MODULES = Path(NGINX_MODULES[0]).parent
LUA = ROOT / "lib"
COMPAT = ROOT / "compat"

MAIN = """\
{environment}{modules}
load_module "{root}/build/module/ngx_sluice_module.so";
{user}worker_processes {workers};
pid {run}/nginx.pid;
error_log {run}/logs/error.log notice;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {run}/body;
    proxy_temp_path {run}/proxy;
    fastcgi_temp_path {run}/fastcgi;
    scgi_temp_path {run}/scgi;
    uwsgi_temp_path {run}/uwsgi;
    lua_package_path "{lua}/?.lua;{lua}/?/init.lua;{compat}/?.lua;{compat}/?/init.lua;;";
    lua_socket_log_errors off;
"""


class Bare(Gateway):
    """A running nginx. In `http`, the text within its http block, `@run@` stands for its folder,
    `@port@` for its port and `@socket@` for a UNIX socket in a folder of its own.

    Life, processes and logs are those of a Gateway.
    """

    def __init__(self, http: str, *, workers: int = 2) -> None:
        self.started_with = workers
        self.ports = Ports()
        self.prefix = guard.folder("sluice-bare-")
        self.proxy_port = self.ports.take()
        self.settings = {"prefix": self.prefix}
        self.env = {}
        self.expectations = []
        self._client = None
        self._scanned = 0
        self._unexpected = []
        self.started = False
        self.socket = self.prefix / "events" / "broker.sock"
        self.socket.parent.mkdir(mode=0o700)
        (self.prefix / "logs").mkdir()
        main = MAIN.format(
            environment="".join(f"env {name};\n" for name in sanitizers()),
            modules="\n".join(f"load_module {path};" for path in NGINX_MODULES),
            root=ROOT,
            lua=LUA,
            compat=COMPAT,
            run=self.prefix,
            workers=workers,
            user=f"user {pwd.getpwuid(os.geteuid()).pw_name};\n" if os.geteuid() == 0 else "",
        )
        self.write(main + self._filled(http) + "}\n")

    def _filled(self, text: str) -> str:
        text = text.replace("@run@", str(self.prefix)).replace("@port@", str(self.proxy_port))
        return text.replace("@socket@", str(self.socket))

    def write(self, text: str) -> None:
        """Writes nginx.conf, whole."""
        (self.prefix / "nginx.conf").write_text(text)

    def nginx(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs nginx with this configuration; how it ended."""
        return subprocess.run(
            [
                NGINX,
                "-p",
                f"{self.prefix}/",
                "-c",
                "nginx.conf",
                "-e",
                "logs/error.log",
                *arguments,
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def start(self) -> Bare:
        """Starts it as a daemon and waits until each worker is there.

        The daemon's parent ends before nginx.pid is written, and long before a worker runs.
        """
        done = self.nginx()
        assert done.returncode == 0, done.stderr
        self.started = True
        Gateway.live.append(self)
        wait_until(self._answers, "nginx to answer")
        wait_until(self._is_complete, "every worker")
        return self

    @property
    def _pid_file(self) -> Path:
        return self.prefix / "nginx.pid"

    def _is_complete(self) -> bool:
        """Whether each worker is past init_worker: nginx names it then."""
        try:
            return len(self.workers()) == self.started_with
        except (FileNotFoundError, ValueError):  # no nginx.pid, or an empty one
            return False

    def stop(self, how: str = "QUIT") -> None:
        """Stops it by a signal and waits until its processes are gone."""
        if not self.started:
            return
        self.started = False
        Gateway.live.remove(self)
        master = self.master()
        os.kill(master, getattr(signal, f"SIG{how}"))
        try:
            wait_until(lambda: not alive(master), "nginx to be gone")
        except AssertionError:
            for pid in (master, *self.workers(), *self.retiring()):
                os.kill(pid, signal.SIGKILL)
            raise

    def discard(self) -> None:
        """Clears up after a start that failed."""
        super().discard()
        shutil.rmtree(self.prefix, ignore_errors=True)

    def restart_workers(self) -> None:
        """Reloads and waits until every worker is new."""
        old = set(self.workers())
        os.kill(self.master(), signal.SIGHUP)
        wait_until(lambda: self._renewed(old), "new workers after the reload")

    def text(self, target: str) -> str:
        """The body of an answer with status 200."""
        reply: Reply = self.ask(target)
        assert reply.status == 200, (target, reply.status, reply.body)
        return reply.body.decode()

    def each_worker(self, target: str, workers: int = 2) -> dict[int, str]:
        """Asks until each worker has answered once: worker id -> what follows it in its line."""
        found: dict[int, str] = {}

        def complete() -> bool:
            with Wire(self.proxy_port) as wire:
                wid, _, rest = wire.ask(target).body.decode().strip().partition(" ")
            found[int(wid)] = rest
            return len(found) == workers

        wait_until(complete, f"{workers} workers to answer {target}")
        return found
