"""A server whose bytes are a test's."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def raw(
    handler: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None
) -> Iterator[int]:
    """A server that hands each connection to a function, in a thread; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=run, args=(connection,), daemon=True).start()

        def run(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                handler(tls.wrap_socket(connection, server_side=True) if tls else connection)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
