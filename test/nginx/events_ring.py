"""Workers with events on the ring transport, which run the Lua that a test sends them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from events_bare import Events
from sluice import COMMAND_SECONDS, NGINX, ROOT
from wire import ClosedEarly, Wire, request_bytes, wait_until

Json = Any
"""What Lua sends back."""

RUN = """
        location /run {
            client_body_buffer_size 1m;
            content_by_lua_block {
                local probe = require("probe")
                ngx.req.read_body()
                local run = assert(loadstring(ngx.req.get_body_data(), "=sent"))
                probe.say({ run(probe.ev, probe) })
            }
        }
"""


class Ring(Events):
    """`main` is put into the main context; `single` runs without a master process; `module` is
    the file to load, or "" for none; `environment` is nginx's."""

    binary = NGINX

    def __init__(
        self,
        options: str = "{}",
        *,
        main: str = "",
        single: bool = False,
        module: str | None = None,
        environment: dict[str, str] | None = None,
        locations: str = "",
        **more: object,
    ) -> None:
        self._single = single
        self._main = main + ("master_process off;\n" if single else "")
        self._module = module
        self._environment = environment
        super().__init__(
            options, locations=RUN + locations, **({"workers": 1} if single else {}), **more
        )

    def write(self, text: str) -> None:
        line = f'load_module "{ROOT}/build/module/ngx_sluice_module.so";'
        assert line in text
        if self._module is not None:
            text = text.replace(line, f"load_module {self._module};" if self._module else "")
        text = text.replace("\nevents {", f"\n{self._main}events {{", 1)
        super().write(text)

    def nginx(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """By its path: a master started by a bare name ignores SIGUSR2."""
        return subprocess.run(
            [
                *(self.binary, "-p", f"{self.prefix}/", "-c", "nginx.conf"),
                *("-e", "logs/error.log", *arguments),
            ],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )

    def _is_complete(self) -> bool:
        return self._single or super()._is_complete()

    def run(self, worker: int, code: str) -> Json:
        """Runs Lua in a worker, with `ev` and `probe`; what it returned."""
        with self.connection(worker) as wire:
            return self.run_on(wire, code)

    def run_on(self, wire: Wire, code: str) -> Json:
        """The same over a connection that leads to a worker."""
        self.send_code(wire, code)
        return self.answer_on(wire)

    def send_code(self, wire: Wire, code: str) -> None:
        """Sends Lua to the worker behind a connection and does not wait."""
        wire.send(request_bytes("/run", "POST", body=("local ev, probe = ...\n" + code).encode()))

    def answer_on(self, wire: Wire) -> Json:
        """What the code returned: its only value, or the list of them."""
        reply = wire.read_reply("POST")
        assert reply.status == 200, (reply.status, reply.body, self.error_log()[-2000:])
        values = json.loads(reply.body.decode().partition(" ")[2])
        return values[0] if isinstance(values, list) and len(values) == 1 else values

    def run_all(self, code: str) -> dict[int, Json]:
        """Runs Lua in each worker."""
        return {worker: self.run(worker, code) for worker in range(self.count)}

    def ring_stats(self) -> dict[str, Json]:
        """Figures of the log and all processes, as some worker sees them."""
        return self.one("/stats")[1]

    def settle(self) -> None:
        """Waits until every process has read everything."""

        def all_read() -> bool:
            try:
                stats = self.ring_stats()
            except (ClosedEarly, ConnectionError):
                return False
            return stats["total"]["lag"] == 0 and stats["total"]["queue_depth"] == 0

        wait_until(all_read, "everything published to be read")

    def pid_of(self, worker: int) -> int:
        """The process of a worker."""
        return self.run(worker, "return ngx.worker.pid()")


def switches(pid: int) -> int:
    """How often a process has gone to sleep so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has used so far."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def descriptors(pid: int) -> int:
    """How many files a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))
