"""The example of the page of file-log, which needs a gateway in the foreground."""

import json
import os
import re

from plugin_pages import example, typed
from supervisor import Foreground

from upstream import Upstream


def test_the_example_of_file_log(upstream: Upstream) -> None:
    with Foreground(example("file-log", upstream.url)) as running:
        typed("file-log", running, "sluice start --foreground --file sluice.yaml &")
        text = b""
        while not (found := re.search(rb"^({.*)\n", text, re.MULTILINE)):
            text += os.read(running.out, 1 << 16)
        assert json.loads(found[1])["route"]["name"] == "orders"
    os.close(running.out)
