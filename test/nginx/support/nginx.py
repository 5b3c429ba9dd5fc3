"""Runs a stock nginx with the module and a configuration of the test's own: no gateway in it."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any, ClassVar

from ports import Ports

import guard
from processes import ran
from sluice import NGINX, NGINX_MODULES, ROOT, Gateway, alive, sanitizers
from wire import Reply, Wire, request_bytes, wait_until

MODULES = Path(NGINX_MODULES[0]).parent
LIB = ROOT / "lib"
COMPAT = ROOT / "compat"

Json = Any
"""What Lua sends back."""


def built(folder: str) -> Path:
    """The module's file in a folder of build/."""
    return ROOT / "build" / folder / "ngx_sluice_module.so"


MODULE = built("module")

MAIN = """\
@environment@@modules@
@user@worker_processes @workers@;
pid @run@/nginx.pid;
error_log @run@/logs/error.log @level@;
@main@
events { @events@ }
http {
    access_log off;
    client_body_temp_path @run@/body;
    proxy_temp_path @run@/proxy;
    fastcgi_temp_path @run@/fastcgi;
    scgi_temp_path @run@/scgi;
    uwsgi_temp_path @run@/uwsgi;
    lua_package_path "@lua@;;";
    lua_socket_log_errors off;
"""

RUN = """
    location = /run {
        client_body_buffer_size 1m;
        content_by_lua_block {
            ngx.req.read_body()
            local code = "local @given_names@ = ...\\n" .. ngx.req.get_body_data()
            local run = assert(loadstring(code, "=sent"))
            ngx.say(require("cjson").encode({ run(@given_values@) }))
        }
    }
"""
"""Where `run` sends Lua; a configuration has it as `@runs@`."""

PLACE = re.compile(r"@([a-z_]+)@")


class Nginx(Gateway):
    """A running nginx. `http` is the text within its http block, `main` and `events` are those of
    the main and the events block. `module` is the file to load, None for none; `environment` is
    nginx's, the test's own where there is none.

    In all texts `@run@` stands for its folder, `@port@` for its port, `@socket@` for a UNIX socket
    in a folder of its own, and `@<name>@` for the text that is given by this name, or nothing.

    Life, processes and logs are those of a Gateway.
    """

    lua: ClassVar[tuple[Path, ...]] = (LIB, COMPAT)
    """Where Lua is found."""

    given: ClassVar[dict[str, str]] = {"_": "nil"}
    """What the Lua that a test sends has: by name, how it is had."""

    def __init__(
        self,
        http: str,
        *,
        workers: int = 2,
        main: str = "",
        events: str = "worker_connections 256;",
        module: Path | None = MODULE,
        environment: dict[str, str] | None = None,
        **texts: str,
    ) -> None:
        places = PLACE.findall("".join([MAIN, http, *texts.values()]))
        unknown = set(texts) - set(places)
        assert not unknown, f"the configuration has no place for {unknown}"
        self.count = self.started_with = workers
        self.ports = Ports()
        self.prefix = guard.folder("sluice-nginx-")
        self.proxy_port = self.ports.take()
        self.settings = {"prefix": self.prefix}
        self.env = {}
        self.nginx_environment = environment
        self.expectations = []
        self._client = None
        self._scanned = 0
        self._unexpected = []
        self.started = False
        self.socket = self.prefix / "events" / "broker.sock"
        self.socket.parent.mkdir(mode=0o700)
        (self.prefix / "logs").mkdir()
        modules = [*NGINX_MODULES, *([f'"{module}"'] if module else [])]
        self._texts = {
            "environment": "".join(f"env {name};\n" for name in sanitizers(environment)),
            "modules": "\n".join(f"load_module {path};" for path in modules),
            "level": "notice",
            "main": main,
            "events": events,
            "lua": ";".join(f"{path}/?.lua;{path}/?/init.lua" for path in self.lua),
            "workers": str(workers),
            "user": f"user {pwd.getpwuid(os.geteuid()).pw_name};\n" if os.geteuid() == 0 else "",
            "runs": RUN,
            "given_names": ", ".join(self.given),
            "given_values": ", ".join(self.given.values()),
        }
        self._texts |= texts | self.places()
        self.write(self.filled(MAIN + http + "}\n"))

    def places(self) -> dict[str, str]:
        """What is this nginx's own, by the name that texts have for it."""
        return {
            "run": str(self.prefix),
            "port": str(self.proxy_port),
            "socket": str(self.socket),
        }

    def filled(self, text: str) -> str:
        """A text with all that its places stand for; texts that are put in have places, too."""
        while PLACE.search(text):
            text = PLACE.sub(lambda place: self._texts.get(place[1], ""), text)
        return text

    def write(self, text: str) -> None:
        """Writes nginx.conf, whole."""
        (self.prefix / "nginx.conf").write_text(text)

    def nginx(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs nginx with this configuration, by its path: a master that was started by a bare name
        ignores SIGUSR2. How it ended."""
        where = ("-p", f"{self.prefix}/", "-c", "nginx.conf", "-e", "logs/error.log")
        return ran([NGINX, *where, *arguments], env=self.nginx_environment)

    def start(self) -> Nginx:
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
        """Whether each worker is past init_worker: nginx names it then. One process is no worker:
        it answers, so it is there."""
        if "master_process off" in self._texts["main"]:
            return True
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

    def refuses(self) -> str:
        """Has nginx test the configuration, which it has to refuse, and clears up: what it says."""
        try:
            done = self.nginx("-t")
            assert done.returncode == 1, done.stderr
            return done.stderr
        finally:
            self.discard()

    def restart_workers(self) -> None:
        """Reloads and waits until every worker is new."""
        old = set(self.workers())
        os.kill(self.master(), signal.SIGHUP)
        wait_until(lambda: self._renewed(old), "new workers after the reload")

    def upgrade(self) -> int:
        """Starts a new master beside the old one, and waits for its workers; the old master."""
        old = self.master()
        self.start_new_master()
        wait_until(self._is_complete, "the workers of the new master")
        return old

    def end(self, master: int) -> None:
        """Ends a master and its workers, gracefully."""
        os.kill(master, signal.SIGQUIT)
        wait_until(lambda: not alive(master), "a master to leave")

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

    # Lua that a test sends

    def run_on(self, wire: Wire, code: str) -> Json:
        """Runs Lua in the worker behind a connection; what it returned: its only value, or the list
        of them."""
        self.send_code(wire, code)
        return self.answer_on(wire)

    def send_code(self, wire: Wire, code: str) -> None:
        """Sends Lua to the worker behind a connection and does not wait."""
        wire.send(request_bytes("/run", "POST", body=code.encode()))

    def answer_on(self, wire: Wire) -> Json:
        """What the code returned."""
        reply = wire.read_reply("POST")
        assert reply.status == 200, (reply.status, reply.body, self.error_log()[-2000:])
        values = json.loads(reply.body)
        return values[0] if isinstance(values, list) and len(values) == 1 else values
