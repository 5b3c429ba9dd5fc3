"""The example of the page of http-log, which needs a log server."""

import json
import re
import subprocess
import sys
from pathlib import Path

from plugin_pages import example, page, typed
from ports import Ports

from sluice import Start
from upstream import Upstream


def test_the_example_of_http_log(gateway: Start, upstream: Upstream, tmp_path: Path) -> None:
    ports = Ports()
    port = ports.take()
    text = example("http-log", upstream.url).replace("127.0.0.1:9001", f"127.0.0.1:{port}")
    script = re.search(r"```python\n(.*?)```", page("http-log"), re.DOTALL)
    assert script
    server = tmp_path / "log-server.py"
    server.write_text(script[1].replace("9001", str(port)))
    running = gateway(text)
    command = [sys.executable, str(server)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout
        try:
            typed("http-log", running, "python3 log-server.py &")
            (entry,) = json.loads(started.stdout.readline())
        finally:
            started.kill()
            ports.release()
    assert entry["route"]["name"] == "orders"
    assert entry["request"]["uri"] == "/orders"
