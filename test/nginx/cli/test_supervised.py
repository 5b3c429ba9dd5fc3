"""What a gateway tells its supervisor (ngx_sluice_notify.c), and what it does under one."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from changes import stopped
from supervisor import Supervised
from traffic import Traffic, successor
from versions import VERSION, versioned

import guard
from sluice import COMMAND, ROOT, Gateway, alive, proxying
from upstream import Upstream
from wire import DEADLINE, request_bytes, wait_until

Start = Callable[..., Supervised]

WATCHDOG_SECONDS = 2.0
FEED_SECONDS = WATCHDOG_SECONDS / 4

# Holds one worker in its init_worker for as long as a file is there.
SLOW = """
return {
    VERSION = "0.1.0", PRIORITY = 1,
    schema = { name = "slow", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        local file = ngx.worker.id() == WORKER and io.open("FUSE")
        while file do
            file:close()
            file = io.open("FUSE")
        end
    end,
}
"""


@pytest.fixture
def supervised() -> Iterator[Start]:
    """Starts gateways under a supervisor; they stop with the test, logs checked."""
    with ExitStack() as stack:
        yield lambda config, **options: stack.enter_context(Supervised(config, **options))


def check_is_fed(running: Supervised, feeds: int = 3) -> None:
    """The watchdog gets what it wants, from now on."""
    since = running.notices.mark()
    wait_until(lambda: len(running.notices.all("WATCHDOG", since)) >= feeds, "the watchdog's food")


def check_starves(running: Supervised) -> None:
    """It gets nothing for as long as a supervisor would wait."""
    since = running.notices.mark()
    time.sleep(WATCHDOG_SECONDS)
    # One may have been under way.
    assert len(running.notices.all("WATCHDOG", since)) <= 1


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_ready_is_who_serves(upstream: Upstream, kind: str, worker: int) -> None:
    """Not before every worker is there, the control worker as little as the others."""
    fuse = guard.folder("sluice-fuse-") / "fuse"
    fuse.touch()
    address = f"@sluice-test-{os.getpid()}-{worker}" if kind == "abstract" else ""
    running = Supervised(
        proxying(upstream),
        workers=2,
        address=address,
        plugins={"slow": SLOW.replace("FUSE", str(fuse)).replace("WORKER", str(worker))},
    )
    running.begin()
    running.wait_for_master()
    time.sleep(0.5)
    assert running.notices.messages == []
    fuse.unlink()
    ready = running.notices.next("READY")
    assert ready.pid == running.control()
    assert running.ask("/").status == 200
    running.close()
    assert [list(message.values) for message in running.notices.messages] == [
        ["READY"],
        ["STOPPING"],
    ]


def test_a_start_that_is_refused_tells_nothing(upstream: Upstream) -> None:
    running = Supervised(proxying(upstream) | {"bogus": []})
    running.begin()
    assert running.process.wait(DEADLINE) == 1
    assert "bogus" in running.process.stderr.read()
    assert running.notices.messages == []
    running.started = False
    running.discard()


def test_a_reload(supervised: Start, upstream: Upstream) -> None:
    """Of settings: new workers. Of the file alone: a change like any other, and nothing is told."""
    running = supervised(versioned(upstream, 0), workers=2, plugins=VERSION)
    since = running.notices.mark()
    first = running.control()
    running.write_config(versioned(upstream, 1))
    assert running.command("reload").returncode == 0
    assert running.notices.messages[since:] == []
    running.settings["keepalive_requests"] = 5
    done = running.command("reload")
    assert done.returncode == 0, done.stderr
    reloading = running.notices.next("RELOADING", since)
    assert reloading.pid == running.main
    said = int(reloading.values["MONOTONIC_USEC"]) / 1e6
    assert said == pytest.approx(reloading.at, abs=DEADLINE)
    assert said <= reloading.at
    ready = running.notices.next("READY", since)
    assert ready.pid == running.control() != first
    assert ready.at > reloading.at
    wait_until(lambda: not alive(first), "the old control worker to leave")
    assert [next(iter(m.values)) for m in running.notices.messages[since:]] == [
        "RELOADING",
        "READY",
    ]


@pytest.mark.parametrize("how", ["settings", "file", "nginx"])
def test_a_reload_that_is_refused(supervised: Start, upstream: Upstream, how: str) -> None:
    """It fails, and says why; the supervisor hears nothing of it."""
    running = supervised(proxying(upstream), workers=2)
    since = running.notices.mark()
    if how == "file":
        running.write_config(proxying(upstream) | {"bogus": []})
    elif how == "settings":
        running.settings["workers"] = "many"
    else:
        running.expect_log('unknown "no_such_variable" variable')
        running.settings["access_log_format"] = "$no_such_variable"
    done = running.command("reload")
    assert done.returncode == (2 if how == "settings" else 1)
    assert "reload refused: the running configuration is kept" in done.stderr
    assert running.notices.messages[since:] == []
    assert running.ask("/").status == 200


def test_the_watchdog_is_fed(supervised: Start, upstream: Upstream) -> None:
    running = supervised(proxying(upstream), watchdog=WATCHDOG_SECONDS)
    check_is_fed(running, 4)
    fed = running.notices.all("WATCHDOG")
    assert {message.pid for message in fed} == {running.control()}
    # In all: one that comes late on a busy machine makes the next gap short.
    assert fed[-1].at - fed[0].at > (len(fed) - 1) * FEED_SECONDS / 2


def test_the_watchdog_is_not_fed_while_one_hangs(supervised: Start, upstream: Upstream) -> None:
    """The control worker or the master; a traffic worker is their business."""
    running = supervised(proxying(upstream), workers=2, watchdog=WATCHDOG_SECONDS)
    with stopped(running.control()):
        check_starves(running)
    check_is_fed(running)
    with stopped(running.main):
        check_starves(running)
    check_is_fed(running)
    with stopped(running.workers()[0]):
        check_is_fed(running)


def test_deaths_of_control_workers_starve_nobody(supervised: Start, upstream: Upstream) -> None:
    """Traffic goes on, so the service does, also when none builds any more."""
    running = supervised(versioned(upstream, 0), plugins=VERSION, watchdog=WATCHDOG_SECONDS)
    running.expect_log("exited on signal 9", 3)
    running.expect_log("3 control workers died within a minute", 1)
    with Traffic(running) as traffic:
        for _ in range(3):
            victim = running.control()
            since = running.notices.mark()
            os.kill(victim, signal.SIGKILL)
            next_one = successor(running, victim)
            # The victim's last may have been under way.
            fed = running.notices.next("WATCHDOG", since)
            if fed.pid == victim:
                fed = running.notices.next("WATCHDOG", running.notices.messages.index(fed) + 1)
            assert fed.pid == next_one
        check_is_fed(running)
    assert traffic.failed == []


def test_the_watchdog_is_fed_to_the_last_request(supervised: Start, upstream: Upstream) -> None:
    """The control worker stays for its log entry; without it who drains feeds in its place."""
    running = supervised(proxying(upstream), workers=2, watchdog=WATCHDOG_SECONDS)
    running.expect_log("exited on signal 9", 1)
    go_on = upstream.hold()
    control = running.control()
    with running.wire() as wire:
        wire.send(request_bytes("/"))
        upstream.wait_for(1)
        os.kill(running.main, signal.SIGQUIT)
        check_is_fed(running)
        os.kill(control, signal.SIGKILL)
        wait_until(lambda: not alive(control), "the control worker to be gone")
        check_is_fed(running)
        assert running.notices.all("STOPPING") == []
        go_on.set()
        assert wire.read_reply("GET").status == 200
    assert running.notices.next("STOPPING").pid == running.main
    assert running.process.wait(DEADLINE) == 0


def test_drains_after_a_reload_hide_no_hang(supervised: Start, upstream: Upstream) -> None:
    running = supervised(proxying(upstream), workers=2, watchdog=WATCHDOG_SECONDS)
    go_on = upstream.hold()
    with running.wire() as wire:
        wire.send(request_bytes("/"))
        upstream.wait_for(1)
        running.reload()
        assert running.retiring()
        check_is_fed(running)
        with stopped(running.control()):
            check_starves(running)
        go_on.set()
        assert wire.read_reply("GET").status == 200


def test_an_upgrade_and_back(supervised: Start, upstream: Upstream) -> None:
    """The supervisor looks after the new master from the moment when the old one leaves."""
    running = supervised(
        versioned(upstream, 0), workers=2, plugins=VERSION, watchdog=WATCHDOG_SECONDS
    )
    old = running.main
    with Traffic(running) as traffic:
        # Back: nothing has happened.
        since = running.notices.mark()
        new = running.start_new_master()
        wait_until(lambda: len(running.workers()) == 2, "the new workers")
        os.kill(new, signal.SIGQUIT)
        wait_until(lambda: not alive(new), "the new one to leave")
        assert running.notices.all("MAINPID", since) == []
        assert running.notices.all("STOPPING", since) == []
        check_is_fed(running)
        # And forth.
        done = running.command("upgrade")
        assert done.returncode == 0, done.stderr
        new = running.master()
        told = running.notices.next("MAINPID", since)
        assert (told.pid, told.values["MAINPID"]) == (old, str(new))
        running.main = new
        assert running.process.wait(DEADLINE) == 0
        check_is_fed(running)
        assert running.notices.all("STOPPING", since) == []
    assert traffic.failed == []
    # It has kept what it was told, for its own successor.
    since = running.notices.mark()
    assert running.command("upgrade").returncode == 0
    assert running.notices.next("MAINPID", since).pid == new
    running.main = running.master()


@pytest.mark.parametrize("address", ["relative", "/" + 200 * "x"])
def test_an_address_that_is_none(
    gateway: Callable[..., Gateway], upstream: Upstream, address: str
) -> None:
    running = gateway(proxying(upstream), env={"NOTIFY_SOCKET": address})
    assert "is no address of a socket: nobody is told what is live" in running.error_log()
    assert running.ask("/").status == 200


def test_a_supervisor_that_is_gone(gateway: Callable[..., Gateway], upstream: Upstream) -> None:
    """A process warns of it once."""
    running = gateway(
        proxying(upstream),
        log_level="info",
        env={"NOTIFY_SOCKET": str(ROOT / "no-such-socket"), "WATCHDOG_USEC": "40000"},
    )

    def said(level: str) -> int:
        lines = running.error_log().splitlines()
        return sum(f"[{level}]" in line and "cannot tell the supervisor" in line for line in lines)

    wait_until(lambda: said("info") > 3, "the watchdog to go on")
    assert said("warn") == 1
    assert running.ask("/").status == 200


def test_a_restart_is_the_supervisors(supervised: Start, upstream: Upstream) -> None:
    """Also after an upgrade: the command has to be one of its own."""
    running = supervised(proxying(upstream))
    assert running.command("upgrade").returncode == 0
    running.main = running.master()
    without = {k: v for k, v in running.environment().items() if k != "NOTIFY_SOCKET"}
    done = subprocess.run(
        [str(COMMAND), "restart"], env=without, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "`systemctl restart sluice`" in done.stderr
    assert done.stderr.splitlines()[-1] == "sluice: restart refused: the running gateway is kept"
    assert running.master() == running.main
    assert running.ask("/").status == 200
