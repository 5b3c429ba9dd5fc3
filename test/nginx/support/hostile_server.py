"""Servers whose responses have no end: what each client that we write has to stop reading."""

import dataclasses
import time
from collections.abc import Iterator

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Go\r\n"

FULL = 256 * 1024 * 1024
"""Bytes after which a server gives up: it was read without bound."""

SLOW = 0.02
"""Seconds between the bytes of a slow one; a client that times each read waits for ever."""


@dataclasses.dataclass(frozen=True)
class Endless:
    """A response: how it begins, how it goes on, and what a client says of it."""

    begin: bytes
    more: bytes
    slow: bool = False
    error: str | None = None
    """None: the status has come, and counts."""

    def pieces(self) -> Iterator[bytes]:
        """What to send, up to a bound."""
        yield self.begin
        more = self.more if self.slow else self.more * (65536 // len(self.more))
        for _ in range(FULL // 65536):
            if self.slow:
                time.sleep(SLOW)
            yield more


LONG = "the head of the response is too long"

RESPONSES = {
    "header line": Endless(OK + b"X: ", b"a", error=LONG),
    "status line": Endless(OK[:-2], b"a", error=LONG),
    "header lines": Endless(OK, b"X: a\r\n", error="the head of the response has too many lines"),
    "interim": Endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", error="too many interim responses"),
    "slow header line": Endless(OK + b"X: ", b"a", slow=True, error="timeout"),
    "slow interim": Endless(b"HTTP/1.1 100 Continue\r\n", b"X", slow=True, error="timeout"),
    "body": Endless(OK + b"\r\n", b"body"),
    "length": Endless(OK + b"Content-Length: 99999999999\r\n\r\n", b"body"),
    "slow body": Endless(OK + b"Content-Length: 9999\r\n\r\n", b"b", slow=True),
    "chunks": Endless(CHUNKED, b"1\r\na\r\n"),
    "chunk size": Endless(CHUNKED + b"1;", b"a"),
    "slow chunks": Endless(CHUNKED, b"1\r\na\r\n", slow=True),
    "trailer": Endless(CHUNKED + b"0\r\nX: ", b"a"),
}
