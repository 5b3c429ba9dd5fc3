"""A name server of a test's own (RFC 1035, over UDP), and what makes libc's resolver ask it."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import threading
from pathlib import Path

import guard
from sluice import preloaded

A, NO_SUCH_NAME, RESPONSE = 1, 3, 0x8180

TIMESTAMPS, TIMESPEC = 35, struct.Struct("@ll")
"""SO_TIMESTAMPNS of socket(7), which Python has no name for, and what it gives."""


def library() -> Path:
    """What is preloaded (name_server.c)."""
    path = guard.folder("sluice-names-") / "name_server.so"
    source = Path(__file__).parent / "name_server.c"
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path, source]
    subprocess.run([*command, "-lresolv"], check=True)
    path.chmod(0o755)
    return path


class NameServer:
    """Answers what `addresses` has, and that there is no such name for others; to names that end
    with one of `silent` it says nothing."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.silent: tuple[str, ...] = ()
        self.asked: list[tuple[float, str]] = []
        """When each name's IPv4 addresses were asked for: when the kernel had the question, however
        late this thread has it."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self) -> NameServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def environment(self, preload: Path, seconds: int = 20) -> dict[str, str]:
        """Of a gateway that is to ask it, and asks again after so many seconds."""
        return {
            "LD_PRELOAD": preloaded(preload),
            "NAME_SERVER": str(self.port),
            "NAME_SERVER_WAIT": str(seconds),
        }

    def times(self, name: str) -> list[float]:
        """When a name was asked for."""
        return [at for at, asked in list(self.asked) if asked == name]

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                query, about, _, client = self._socket.recvmsg(
                    512, socket.CMSG_SPACE(TIMESPEC.size)
                )
                seconds, nanoseconds = TIMESPEC.unpack(about[0][2])
                answer = self._answer(query, seconds + nanoseconds / 1e9)
                if answer:
                    self._socket.sendto(answer, client)

    def _answer(self, query: bytes, at_time: float) -> bytes | None:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += 1 + query[at]
        name, (kind,) = ".".join(labels).lower(), struct.unpack("!H", query[at + 1 : at + 3])
        if kind == A:
            self.asked.append((at_time, name))
        if name.endswith(self.silent):
            return None
        known = self.addresses.get(name)
        found = known if known and kind == A else []
        records = b"".join(
            struct.pack("!HHHIH", 0xC00C, A, 1, 0, 4) + socket.inet_aton(ip) for ip in found
        )
        flags = RESPONSE | (0 if known else NO_SUCH_NAME)
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
        return head + query[12 : at + 5] + records
