"""The examples of docs/admin.md do what they say."""

import os
import re
import shlex
import subprocess

from sluice import ROOT, Start, sanitizers

EXAMPLE = re.compile(r"^curl (.*\S) +# (\d{3})$", re.MULTILINE)


def test_what_is_written(gateway: Start) -> None:
    """Each command after the other, with the status that stands behind it."""
    running = gateway(None)
    examples = EXAMPLE.findall((ROOT / "docs" / "admin.md").read_text())
    assert len(examples) > 10
    # Debian's curl does not come to its main() with them.
    env = {name: value for name, value in os.environ.items() if name not in sanitizers()}
    for arguments, status in examples:
        words = [word.replace(":8001", f":{running.admin_port}") for word in shlex.split(arguments)]
        command = ["curl", "--silent", "--noproxy", "*", "--write-out", "\n%{http_code}", *words]
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=30, check=True
        )
        assert done.stdout.endswith(f"\n{status}"), f"curl {arguments}: {done.stdout}"
