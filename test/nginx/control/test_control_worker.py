"""The control worker dies, hangs, starves and is replaced: traffic does not notice."""

import contextlib
import os
import resource
import signal
import threading
import time
from functools import partial
from pathlib import Path

import httpx
import pytest
from changes import Later, document, post, stopped, versions
from threads import beside
from traffic import Traffic, successor
from versions import VERSION, versioned

import guard
from instance import AS_ROOT
from sluice import Gateway, Start, alive, sanitizers
from upstream import Upstream
from wire import DEADLINE, wait_until


@pytest.fixture
def running(gateway: Start, upstream: Upstream) -> Gateway:
    """A gateway of two workers that serves version 0."""
    return gateway(versioned(upstream, 0), workers=2, plugins=VERSION)


LOOPS = {
    "version": VERSION["version"].replace(
        "access = function",
        """init_worker = function()
            if ngx.worker.id() ~= 0 then
                return
            end
            require("gateway.pdk").timers():every(0.05, function()
                if os.remove("FUSE") then
                    while true do end
                end
            end)
        end,
        access = function""",
    )
}


def changes(running: Gateway, upstream: Upstream, number: int) -> None:
    """A change is taken, and live everywhere."""
    assert post(running, document(versioned(upstream, number))).status_code == 201
    assert versions(running) == {str(number)}


def test_kill(running: Gateway, upstream: Upstream) -> None:
    running.expect_log("exited on signal 9", 1)
    with Traffic(running) as traffic:
        victim = running.control()
        os.kill(victim, signal.SIGKILL)
        successor(running, victim)
        changes(running, upstream, 1)
        traffic.goes_on()
    assert traffic.failed == []


def test_three_deaths_in_a_row(running: Gateway, upstream: Upstream) -> None:
    """It stops to build, and says so; what is live is served."""
    running.expect_log("exited on signal 9", 3)
    running.expect_log("3 control workers died within a minute", 1)
    with Traffic(running) as traffic:
        for _ in range(3):
            victim = running.control()
            os.kill(victim, signal.SIGKILL)
            successor(running, victim)
        wait_until(
            lambda: "read only" in running.command("status").stdout, "the status to tell of it"
        )
        assert "died 3 times" in running.command("status").stdout
        traffic.goes_on()
    assert traffic.failed == []


def test_a_stop_by_a_signal(running: Gateway, upstream: Upstream) -> None:
    with Traffic(running) as traffic:
        with stopped(running.control()):
            later = Later(running, document(versioned(upstream, 1)))
            traffic.goes_on(1000)
            assert later.is_alive()
        assert later.answer().status_code == 201
        assert versions(running) == {"1"}
    assert traffic.failed == []


def test_an_endless_loop(gateway: Start, upstream: Upstream) -> None:
    """The watchdog ends it; a plugin's background jobs run in worker 0 alone."""
    fuse = guard.folder("sluice-fuse-") / "fuse"
    fuse.parent.chmod(0o777)
    plugins = {"version": LOOPS["version"].replace("FUSE", str(fuse))}
    # That it hangs is seen after 3 s.
    running = gateway(versioned(upstream, 0), workers=2, plugins=plugins, watchdog_timeout="12s")
    running.expect_log("exited on signal 9", 1)
    with Traffic(running) as traffic:
        victim = running.control()
        fuse.touch()
        wait_until(lambda: not fuse.exists(), "the loop")
        wait_until(lambda: "hangs" in running.command("status").stdout, "the status to tell of it")
        successor(running, victim)
        changes(running, upstream, 1)
    assert traffic.failed == []


def test_no_memory(gateway: Start, upstream: Upstream) -> None:
    """A change that does not fit is refused or ends the worker; both leave what is live alone."""
    # Only a process of one's own user can be limited without a right that containers lack.
    user = {"user": "root"} if AS_ROOT else {}
    running = gateway(versioned(upstream, 0), workers=2, plugins=VERSION, **user)
    running.expect_log("exited (on signal|with)|memory|control|thread aborted", range(100))
    config = versioned(upstream, 1)
    config["services"][0]["routes"] += [
        {"name": f"r{n}", "paths": [f"/many/{n}"]} for n in range(5000)
    ]
    with Traffic(running) as traffic:
        victim = running.control()
        size = int(Path(f"/proc/{victim}/statm").read_text().split()[0]) * 4096
        resource.prlimit(victim, resource.RLIMIT_AS, (size + 2**20, size + 2**20))
        later = Later(running, document(config))
        later.join(DEADLINE)
        if later.reply is not None:
            assert later.reply.status_code >= 500
        traffic.goes_on()
        if alive(victim):
            os.kill(victim, signal.SIGKILL)
        successor(running, victim)
        changes(running, upstream, 2)
    assert traffic.failed == []


def test_eight_workers_one_of_them_stopped(gateway: Start, upstream: Upstream) -> None:
    """After the answer no worker serves what was before to a new request, one that stood still
    either."""
    running = gateway(versioned(upstream, 0), workers=8, plugins=VERSION)
    victim = running.workers()[3]
    with stopped(victim):
        begun = time.monotonic()
        assert post(running, document(versioned(upstream, 1))).status_code == 201
        assert {running.ask("/").headers.get("x-version") for _ in range(40)} == {"1"}
        time.sleep(max(0.0, 5 - (time.monotonic() - begun)))
    assert versions(running) == {"1"}


def image_dir(running: Gateway) -> Path:
    node = httpx.get(running.admin, trust_env=False, timeout=DEADLINE).json()
    return Path(node["configuration"]["image_dir"])


@pytest.mark.parametrize("how", ["removed", "torn", "foreign"])
def test_images_that_go_under_it(gateway: Start, upstream: Upstream, how: str) -> None:
    """Workers have them mapped; who needs them anew gets new ones."""
    running = gateway(versioned(upstream, 0), workers=2, plugins=VERSION)
    running.expect_log("exited on signal 9|control", range(100))
    folder = image_dir(running)
    with Traffic(running) as traffic:
        for each in list(folder.iterdir()):
            text = each.read_bytes()
            each.unlink()
            if how == "torn":
                each.write_bytes(text[: len(text) // 2])
            elif how == "foreign":
                each.write_bytes(b"something else" * 1000)
        victim = running.control()
        os.kill(victim, signal.SIGKILL)
        successor(running, victim)
        changes(running, upstream, 1)
    assert traffic.failed == []


def test_reloads_lose_no_admin_request(running: Gateway, upstream: Upstream) -> None:
    """Neither on new connections nor on those that are kept open."""
    wrong: list[object] = []
    done = threading.Event()

    def ask(is_kept: bool) -> None:
        client = httpx.Client(base_url=running.admin, trust_env=False, timeout=DEADLINE)
        while not done.is_set():
            if not is_kept:
                client.close()
                client = httpx.Client(base_url=running.admin, trust_env=False, timeout=DEADLINE)
            with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
                # An idle connection may be closed just then; the client asks again.
                reply = client.get("/routes/route")
                if reply.status_code != 200:
                    wrong.append(reply.text)
        client.close()

    both = [partial(ask, kept) for kept in (True, False)]
    with beside(*both, until=done), Traffic(running, 2) as traffic:
        for number in range(1, 9):
            running.reload()
            changes(running, upstream, number)
    assert wrong == []
    assert traffic.failed == []
    left = sorted(path.name for path in image_dir(running).iterdir())
    assert len(left) <= 4, left


def test_an_upgrade_and_back(running: Gateway, upstream: Upstream) -> None:
    """There is one writer, and no change is lost or refused."""
    with Traffic(running) as traffic:
        for number in range(1, 4):
            old = running.master()
            new = running.start_new_master()
            wait_until(lambda: len(running.workers()) == 2, "the new workers")
            assert post(running, document(versioned(upstream, number))).status_code == 201
            if number == 2:
                # And back: the old one goes on.
                os.kill(new, signal.SIGQUIT)
                wait_until(lambda new=new: not alive(new), "the new one to leave")
            else:
                os.kill(old, signal.SIGQUIT)
                wait_until(lambda old=old: not alive(old), "the old one to leave")
            running.wait_for_master()
            changes(running, upstream, number + 10)
    assert traffic.failed == []


def resident_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("RssAnon:")[2].split()[0]) / 1024


@pytest.mark.skipif(bool(sanitizers()), reason="ASan keeps for a while what was freed")
def test_fifty_configurations_leave_no_memory_behind(running: Gateway, upstream: Upstream) -> None:
    def change(number: int) -> None:
        config = versioned(upstream, number)
        config["services"][0]["routes"] += [
            {"name": f"r{n}-{number}", "paths": [f"/many/{number}/{n}"]} for n in range(1000)
        ]
        assert post(running, document(config)).status_code == 201
        for n in range(0, 1000, 50):
            assert running.ask(f"/many/{number}/{n}").status == 200

    def memory() -> list[float]:
        return [resident_mb(pid) for pid in [running.control(), *running.workers()]]

    # LuaJIT's heap grows in steps, in one fifty or another, and SQLite keeps pages of deletions, up
    # to 64 MB; a leak would grow in each fifty.
    seen = [memory()]
    for first in range(0, 750, 50):
        for number in range(first, first + 50):
            change(number)
        seen.append(memory())
        if all(now < then + 5 for then, now in zip(*seen[-2:], strict=True)):
            break
    else:
        pytest.fail(f"memory grows: {seen}")
    print(seen)
    assert len(list(image_dir(running).iterdir())) <= 4
