"""Clients of a listener of the control worker that hold all the connections they get."""

import contextlib
import socket

from sluice import Gateway

CONNECTIONS = 256
"""Of a worker in tests that use them up."""


class Flood:
    """Connections of many clients, from several addresses, with the beginning of a request each.
    They come one after the other, and never give up: what is open at a time is what the gateway
    leaves open, and the last ones; so a test needs some hundred descriptors, not one for each."""

    def __init__(
        self, running: Gateway, sent: bytes, port: int | None = None, listener: str = "admin"
    ) -> None:
        self.sent, self.port, self.listener = sent, port or running.admin_port, listener
        self.held: list[socket.socket] = []
        self.refused = 0

    def add(self, count: int) -> None:
        for number in range(count):
            client = socket.socket()
            client.bind((f"127.0.0.{2 + number % 8}", 0))
            client.connect(("127.0.0.1", self.port))
            with contextlib.suppress(ConnectionError):
                client.send(self.sent)
            client.setblocking(False)
            self.held.append(client)
            if len(self.held) > CONNECTIONS:
                self.open()

    def open(self) -> int:
        """How many the gateway has not ended."""
        self.held = [client for client in self.held if not self.is_ended(client)]
        return len(self.held)

    def is_ended(self, client: socket.socket) -> bool:
        """Then it is closed here, too."""
        try:
            data = client.recv(4096)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if data:
            assert data.startswith(b"HTTP/1.1 503 "), data
            says = f'{{"message":"too many connections to the {self.listener} listener"}}'
            assert data.endswith(says.encode())
            self.refused += 1
        client.close()
        return True

    def close(self) -> None:
        for client in self.held:
            client.close()
