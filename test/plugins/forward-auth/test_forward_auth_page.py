"""The example of the page of forward-auth, which needs a server that is asked."""

import contextlib
import re
import socket
import subprocess
import sys
from pathlib import Path

from plugin_pages import example, page, typed
from ports import Ports

from sluice import Start
from upstream import Upstream
from wire import wait_until


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


def test_the_example_of_forward_auth(gateway: Start, upstream: Upstream, tmp_path: Path) -> None:
    ports = Ports()
    port = ports.take()
    text = example("forward-auth", upstream.url).replace("127.0.0.1:9002", f"127.0.0.1:{port}")
    script = re.search(r"```python\n(.*?)```", page("forward-auth"), re.DOTALL)
    assert script
    server = tmp_path / "auth-server.py"
    server.write_text(script[1].replace("9002", str(port)))
    running = gateway(text)
    with subprocess.Popen([sys.executable, str(server)], stderr=subprocess.PIPE) as started:
        try:
            wait_until(lambda: listens(port), "the server to listen")
            said = typed("forward-auth", running, "python3 auth-server.py &")
        finally:
            started.kill()
            ports.release()
    assert said.startswith("HTTP/1.1 401 ")
    assert upstream.last.headers.get("X-User") == "ann"
    assert len(upstream.requests) == 1
