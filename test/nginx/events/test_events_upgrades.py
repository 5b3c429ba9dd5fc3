"""Events over binary upgrades, and with a module whose file was replaced."""

import os
import signal
from pathlib import Path

from events_publishing import CHECK, GAPS, PUBLISH, PUBLISHERS, hear_from_each

from events_nginx import Events
from nginx import MODULE
from sluice import alive
from wire import Wire, wait_until


def log_of(pid: int) -> Path:
    """The events' log, among the files that a process has open."""
    for path in Path(f"/proc/{pid}/fd").iterdir():
        if "memfd:" in str(path.readlink()):
            return path
    raise AssertionError("no memfd")


def test_a_binary_upgrade_keeps_the_log() -> None:
    with Events(workers=2, init_worker=CHECK + PUBLISH) as ring:
        ring.ready()
        old_workers = ring.workers()
        old = ring.upgrade()
        # Old and new hear each other.
        pids = {w["pid"] for w in ring.ring_stats()["workers"]}
        assert pids == set(ring.workers()) | set(old_workers)
        found: dict[int, int] = {}

        def all_heard() -> bool:
            with Wire(ring.proxy_port) as wire:
                pid = ring.run_on(wire, "return ngx.worker.pid()")
                found[pid] = ring.run_on(wire, PUBLISHERS)
            return found == dict.fromkeys(pids, 4)

        wait_until(all_heard, "everybody to hear everybody")
        ring.end(old)
        ring.ready()
        ring.run(0, 'ngx.shared.notes:set("stop", true)')
        ring.settle()
        assert ring.run(0, GAPS) == ""
        hear_from_each(ring)
        # And the new master can be reloaded, and upgraded, as well as the old one.
        ring.restart_workers()
        hear_from_each(ring)


def test_a_binary_upgrade_to_another_layout_starts_a_new_log() -> None:
    """The old log gets another layout's number; only who opens a log looks at it."""
    with Events(workers=2, init_worker=CHECK) as ring:
        ring.expect_log(r"the log of the old nginx cannot be used \(another layout\)", range(1, 3))
        ring.expect_log(r"this worker missed 0 events \(new log\)", 2)
        ring.ready()
        old, old_workers = ring.master(), ring.workers()
        with log_of(old).open("r+b") as log:
            # Behind size and seed.
            log.seek(16)
            layout = int.from_bytes(log.read(4), "little")
            log.seek(16)
            log.write((layout + 1).to_bytes(4, "little"))
        ring.upgrade()
        os.kill(old, signal.SIGQUIT)
        wait_until(lambda: not any(map(alive, [old, *old_workers])), "the old ones to leave")
        ring.ready()
        wait_until(lambda: ring.run_all("return probe.overruns") == {0: 1, 1: 1}, "both to be told")
        notice = {"missed": 0, "reason": "new log"}
        assert list(ring.run_all("return probe.overrun").values()) == [notice, notice]
        assert {w["pid"] for w in ring.ring_stats()["workers"]} == set(ring.workers())
        # And it is inherited as well as any.
        hear_from_each(ring)
        ring.restart_workers()
        hear_from_each(ring)
        assert ring.run_all("return probe.overruns or 0") == {0: 0, 1: 0}


def test_an_upgrade_that_is_taken_back() -> None:
    with Events(workers=2, init_worker=CHECK) as ring:
        ring.ready()
        ring.upgrade()
        new, oldbin = ring.master(), ring.prefix / "nginx.pid.oldbin"
        os.kill(new, signal.SIGQUIT)
        wait_until(lambda: not alive(new) and not oldbin.exists(), "the new master to leave")
        hear_from_each(ring)


def test_a_replaced_module_file_finds_the_log_again(tmp_path: Path) -> None:
    """make build puts a new file in the old one's place: to the linker another library."""
    module = tmp_path / MODULE.name
    module.write_bytes(MODULE.read_bytes())
    # A request that keeps its old worker, which speaks when all new ones are there.
    stay = """
        ngx.shared.notes:incr("stay", 1, 0)
        for _ = 1, 3000 do
            if ngx.shared.notes:get("speak") then break end
            ngx.sleep(0.01)
        end
        return ev:publish("all", "seq", "old " .. ngx.worker.id(), 1)
    """
    with Events(workers=2, module=module, init_worker=CHECK + PUBLISH) as ring:
        ring.ready()
        fresh = tmp_path / "fresh"
        fresh.write_bytes(MODULE.read_bytes())
        fresh.rename(module)
        with ring.connection(0) as zero, ring.connection(1) as one:
            for wire in (zero, one):
                ring.send_code(wire, stay)
            begun = 'return ngx.shared.notes:get("stay")'
            wait_until(lambda: ring.run(0, begun) == 2, "both requests to be begun")
            ring.restart_workers()
            ring.ready()
            assert ring.ring_stats()["log"]["generation"] == 2
            ring.run(0, 'ngx.shared.notes:set("speak", true)')
            assert [ring.answer_on(wire) for wire in (zero, one)] == [True, True]
        heard = 'return probe.heard_of["old 0"] == 1 and probe.heard_of["old 1"] == 1'
        wait_until(lambda: ring.run_all(heard) == {0: True, 1: True}, "old ones to be heard")
        ring.run(0, 'ngx.shared.notes:set("stop", true)')
        assert ring.run(0, GAPS) == ""
