"""A supervisor that speaks the protocol of sd_notify(3), as systemd does, for one gateway."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import struct
import subprocess
import threading
import time

from sluice import COMMAND, Config, Gateway, alive
from wire import DEADLINE, wait_until

CREDENTIALS = struct.Struct("3i")
"""Of the kernel's SCM_CREDENTIALS: pid, uid, gid."""


@dataclasses.dataclass
class Message:
    """What a process of the service said."""

    at: float
    pid: int
    values: dict[str, str]


class Notices:
    """The socket, and what has come through it, in order."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.messages: list[Message] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)
        if not address.startswith("@"):
            # Workers of a gateway that root has started are another user.
            os.chmod(address, 0o777)
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        size = socket.CMSG_SPACE(CREDENTIALS.size)
        while True:
            text, ancillary, _, _ = self._socket.recvmsg(4096, size)
            if text == b"end":
                self._socket.close()
                return
            pid = CREDENTIALS.unpack(ancillary[0][2])[0]
            values = dict(line.split("=", 1) for line in text.decode().splitlines())
            self.messages.append(Message(time.monotonic(), pid, values))

    def close(self) -> None:
        """Ends the thread, and the socket with it."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", self._socket.getsockname())

    def all(self, name: str, since: int = 0) -> list[Message]:
        """Those that say something of this name, from a number of messages on."""
        return [message for message in self.messages[since:] if name in message.values]

    def next(self, name: str, since: int = 0) -> Message:
        """Waits for one, and returns the first."""
        return wait_until(lambda: self.all(name, since), f"{name}= to be told")[0]

    def mark(self) -> int:
        """For `since`: only what is still to come."""
        return len(self.messages)


class Supervised(Gateway):
    """A gateway in the foreground, under a supervisor with a watchdog of so many seconds (None:
    with none). `notices` is what it says; `main` the process that the supervisor looks after."""

    def __init__(
        self,
        config: Config | None,
        *,
        watchdog: float | None = None,
        address: str = "",
        **settings: object,
    ) -> None:
        super().__init__(config, **settings)
        self.notices = Notices(address or str(self.prefix / "notify"))
        self.env |= {"NOTIFY_SOCKET": self.notices.address}
        if watchdog:
            self.env |= {"WATCHDOG_USEC": str(int(watchdog * 1e6))}
        self.main = 0

    def begin(self) -> None:
        """Starts it, and does not wait."""
        self.process = subprocess.Popen(
            [str(COMMAND), "start", "--foreground"],
            env=self.environment() | {"WATCHDOG_PID": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.main = self.process.pid
        self.started = True
        Gateway.live.append(self)

    def start(self) -> Supervised:
        """Starts it, and waits until it is ready."""
        self.begin()
        self.notices.next("READY")
        return self

    def stop(self, how: str = "SIGQUIT") -> None:
        """Ends it as a supervisor does, by a signal."""
        if self.started:
            self.started = False
            Gateway.live.remove(self)
            if self._client:
                self._client.close()
                self._client = None
            with contextlib.suppress(ProcessLookupError):  # a test may have ended it
                os.kill(self.main, getattr(signal, how))
            wait_until(self._is_gone, "nginx to be gone")
            self.process.wait(DEADLINE)
            self.process.stderr.close()
            self.notices.close()

    def _is_gone(self) -> bool:
        self.process.poll()
        return not alive(self.main)


class Foreground(Supervised):
    """With a pipe as stdout, which a test may read."""

    def begin(self) -> None:
        self.out, theirs = os.pipe()
        self.process = subprocess.Popen(
            [str(COMMAND), "start", "--foreground"],
            env=self.environment() | {"WATCHDOG_PID": "1"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(theirs)
        self.main = self.process.pid
        self.started = True
        Gateway.live.append(self)
