"""A timer for every request at full load, as log and counter plugins make them: nothing grows."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from processes import ran
from sluice import Gateway, Start
from wire import wait_until

COUNTER = """
local pdk = require("gateway.pdk")
local made, run = 0, 0
local function count(premature, bytes)
    run = run + 1
end
return {
    VERSION = "0.1.0", PRIORITY = 1,
    schema = { name = "counter", fields = { { config = { type = "record", fields = {} } } } },
    access = function()
        if ngx.var.uri ~= "/figures" then
            return pdk.exit(200, "ok")
        end
        collectgarbage()
        collectgarbage()
        pdk.exit(200, {
            made = made, run = run, kilobytes = collectgarbage("count"),
            sys = pdk.timers():stats().sys, nginx = ngx.timer.running_count(),
        })
    end,
    log = function()
        if ngx.var.uri ~= "/figures" then
            made = made + 1
            assert(pdk.timers():at(0, count, ngx.var.bytes_sent))
        end
    end,
}
"""


def figures(running: Gateway) -> dict[str, Any]:
    """What the worker says once each timer has run, and what the kernel says of it."""
    found: dict[str, Any] = {}

    def settled() -> bool:
        found.update(running.ask("/figures").json())
        return found["run"] == found["made"]

    wait_until(settled, "every timer to run")
    (worker,) = running.workers()
    status = Path(f"/proc/{worker}/status").read_text()
    found["resident"] = int(re.search(r"VmRSS:\s*(\d+)", status)[1])
    found["files"] = len(list(Path(f"/proc/{worker}/fd").iterdir()))
    return found


def load(running: Gateway, seconds: int) -> int:
    """Full load; the number of requests."""
    done = ran(
        ["wrk", "-t1", "-c32", "--timeout", "30s", f"-d{seconds}s", f"{running.proxy}/"], check=True
    )
    assert "Non-2xx" not in done.stdout, done.stdout
    assert "Socket errors" not in done.stdout, done.stdout
    return int(re.search(r"(\d+) requests in", done.stdout)[1])


@pytest.mark.skipif(not shutil.which("wrk"), reason="needs wrk")
def test_a_timer_for_every_request_makes_nothing_grow(gateway: Start) -> None:
    config = {"routes": [{"paths": ["/"]}], "plugins": [{"name": "counter"}]}
    running = gateway(config, plugins={"counter": COUNTER}, access_log="off")
    load(running, 2)
    before = figures(running)
    requests = load(running, 5)
    while requests <= 5000:
        requests += load(running, 5)
    after = figures(running)
    print(f"{requests} requests: {before} -> {after}")
    assert after["made"] >= before["made"] + requests
    assert after["kilobytes"] < before["kilobytes"] * 1.1 + 200
    assert after["resident"] < before["resident"] * 1.15 + 2000
    assert after["files"] <= before["files"] + 2  # connections that are asking
    assert after["nginx"] <= before["nginx"]
    assert after["sys"]["pending"] == 0
    assert after["sys"]["waiting"] == before["sys"]["waiting"]
    assert after["sys"]["contexts"] <= before["sys"]["contexts"]
