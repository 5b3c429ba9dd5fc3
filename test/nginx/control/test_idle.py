"""An idle gateway sleeps: nothing wakes a worker without a request, a change or an event."""

import re
import time
from pathlib import Path

import pytest

from processes import switches
from sluice import Start, proxying
from upstream import Upstream
from wire import wait_until

IDLE_SECONDS = 3


def settle(pids: list[int]) -> dict[int, int]:
    """What is counted once none has been woken for a second: what a start or a change leaves to do
    is done."""

    def still() -> dict[int, int] | None:
        before = {pid: switches(pid) for pid in pids}
        time.sleep(1)
        return before if before == {pid: switches(pid) for pid in pids} else None

    return wait_until(still, "the workers to sleep")


PLUGINS = [{"name": "rate-limiting", "config": {"minute": 1000000}}]


@pytest.mark.parametrize("plugins", [[], PLUGINS], ids=["plain", "plugins"])
def test_nobody_wakes(gateway: Start, upstream: Upstream, plugins: list[object]) -> None:
    config = proxying(upstream) | {"plugins": plugins}
    running = gateway(config, workers=3)
    for _ in range(20):
        assert running.ask("/").status == 200
    pids = [*running.workers(), running.control()]

    def nobody_wakes() -> bool:
        """The kernel may wake one for its own sake, but not each time."""
        before = settle(pids)
        time.sleep(IDLE_SECONDS)
        woken = {pid: switches(pid) - before[pid] for pid in pids}
        # Its round of names may be in these seconds: it asks a thread, which asks the store.
        return woken.pop(running.control()) <= 20 and set(woken.values()) == {0}

    wait_until(nobody_wakes, "a while in which nobody wakes")
    assert running.ask("/").status == 200


def maps(pid: int) -> set[str]:
    return set(re.findall(r"/((?:base|delta)\.\d+)", Path(f"/proc/{pid}/maps").read_text()))


def test_an_idle_worker_does_not_hold_old_files(gateway: Start, upstream: Upstream) -> None:
    """It is told of new ones; they are removed, and take memory as long as they are mapped."""
    running = gateway(proxying(upstream), workers=2)
    old = {pid: maps(pid) for pid in running.workers()}
    config = proxying(upstream)
    # So many that a new base is built.
    config["services"] += [{"name": f"s{n}", "url": "http://127.0.0.1:1"} for n in range(6000)]
    running.write_config(config)
    assert running.command("reload").returncode == 0
    wait_until(
        lambda: all(maps(pid) and not maps(pid) & old[pid] for pid in running.workers()),
        "idle workers to let go of old files",
    )


@pytest.mark.parametrize("how", ["removed", "renamed over", "written"])
def test_files_that_somebody_touches_are_made_anew(
    gateway: Start, upstream: Upstream, how: str
) -> None:
    """With no change, no request and no death."""
    running = gateway(proxying(upstream), workers=2)
    running.expect_log("are missing or damaged", range(1, 5))
    folder = Path(running.client.get(running.admin).json()["configuration"]["image_dir"])
    settle([running.control()])
    old = {path.name for path in folder.iterdir()}
    base = next(path for path in folder.iterdir() if path.name.startswith("base"))
    if how == "removed":
        base.unlink()
    elif how == "renamed over":
        other = folder / "other"
        other.write_bytes(base.read_bytes()[:10])
        other.replace(base)
    else:
        with base.open("r+b") as file:
            file.write(b"something else")
    wait_until(
        lambda: not {path.name for path in folder.iterdir()} & old, "new files in their place"
    )
    settle([running.control()])
    assert running.ask("/").status == 200
