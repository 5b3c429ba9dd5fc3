"""The recipes of docs/operations.md print what they say."""

import os
import re
import subprocess

from sluice import COMMAND, ROOT, Start, sanitizers
from upstream import DeadPort, Exchange, Upstream

COMMANDS = re.compile(r"^(\S.*?)(?: +# (.*))?$", re.MULTILINE)


def test_what_is_written(gateway: Start, upstream: Upstream) -> None:
    """Each command after the other, in a gateway that has what they ask for."""
    page = (ROOT / "docs" / "operations.md").read_text()
    (recipes,) = re.findall(r"^## Finding out\n(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    blocks = re.findall(r"^```\n(.*?)^```", recipes, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5

    def answer(exchange: Exchange) -> None:
        exchange.reply(404 if exchange.request.target.endswith("/missing") else 200, body=b"ok\n")

    upstream.handler = answer
    with DeadPort() as dead:
        running = gateway(None, workers=2)
        running.expect_log("Connection refused", range(1, 20))
        logs = running.settings["prefix"] / "logs"
        places = {
            ":8000": f":{running.proxy_port}",
            ":8001": f":{running.admin_port}",
            "127.0.0.1:9000": dead.address,
            "/var/log/sluice": str(logs),
            "shop.internal:8080": upstream.address,
        }
        environment = {k: v for k, v in running.environment().items() if k not in sanitizers()}
        environment |= {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "no_proxy": "*"}

        def run(line: str, expected: str) -> None:
            for written, real in places.items():
                line, expected = line.replace(written, real), expected.replace(written, real)
            command = ["bash", "-c", line]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode == 0, (line, done)
            assert expected in done.stdout, (line, done.stdout)

        for line in (
            "curl -sfX PUT http://127.0.0.1:8001/services/shop -d url=http://shop.internal:8080",
            "curl -sfX PUT http://127.0.0.1:8001/services/shop/routes/shop -d 'paths[]=/shop'",
            "curl -sfX PUT http://127.0.0.1:8001/services/stock -d url=http://127.0.0.1:9000",
            "curl -sfX PUT http://127.0.0.1:8001/services/stock/routes/stock -d 'paths[]=/stock'",
            "curl -sfX POST http://127.0.0.1:8001/routes/shop/plugins -d name=rate-limiting "
            "-d config.minute=5",
            "curl -s http://127.0.0.1:8000/shop/missing",
        ):
            run(line, "")
        for block in blocks:
            for line, expected in COMMANDS.findall(block):
                run(line, expected)
