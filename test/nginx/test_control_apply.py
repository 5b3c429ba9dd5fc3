"""Changes in the control worker (gateway/control/apply.lua): what is answered is live."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from images_bare import Images, Json
from wire import Wire, request_bytes, wait_until

ROLE = """
    local entities = require("gateway.entities")
    local layout = require("gateway.store.layout")
    local schemas = {}
    for i, kind in ipairs(entities.kinds) do
        schemas[i] = entities.get(kind)
    end
    require("gateway.control.apply").start({
        store = "@run@/store/store.db",
        images = "@images@",
        layouts = layout.derive(schemas),
        on_files = function() end,
    })
"""

APPLY = """
    local apply = require("gateway.control.apply")
    local function id(number)
        return ("00000000-0000-4000-8000-%012d"):format(number)
    end
    local function route(number, path)
        local entity = { id = id(number), name = "r" .. number, paths = { path }, strip_path = true,
            protocols = { "http" }, created_at = 1, regex_priority = 0 }
        return { kind = "routes", put = entity }
    end
    local function said(done, err)
        return done and { revision = done.revision, changed = done.changed }
            or { err = err.err, message = err.message, field = err.field }
    end
"""


LIVE = 4
"""SLUICE_CONTROL_LIVE"""


class Control(Images):
    """A control worker with a store."""

    def __init__(self, workers: int = 2) -> None:
        super().__init__(workers=workers, role=ROLE, main="thread_pool sluice_store threads=2;")

    def apply(self, code: str) -> Json:
        """Runs Lua in worker 0 with `apply`, `route(number, path)`, `id` and `said`."""
        return self.run(APPLY + code)

    def state(self) -> Json:
        """What it says of itself."""
        return self.apply("return apply.state()")


def test_what_is_answered_is_live() -> None:
    with Control(workers=3) as nginx:
        assert nginx.match("/a")["status"] == 404
        said = nginx.apply('return said(apply.transaction({ route(1, "/a") }))')
        assert said["revision"] == 1
        for _ in range(20):
            assert nginx.match("/a")["name"] == "r1"
        for i in range(2, 30):
            nginx.apply(f'return said(apply.transaction({{ route(1, "/b{i}") }}))')
            assert nginx.match(f"/b{i}")["revision"] == i
        said = nginx.apply(
            'return said(apply.transaction({ { kind = "routes", delete = id(1) } }))'
        )
        assert said == {"revision": 30}
        assert nginx.match("/b29")["status"] == 404
        state = nginx.state()
        assert (state["state"], state["revision"], state["waiting"]) == ("live", 30, 0)
        assert nginx.block()["revision"] == 30


def test_waiting_changes_share_a_commit_and_answer_each_for_itself() -> None:
    with Control() as nginx:
        said = nginx.apply("""
            local threads, out = {}, {}
            for i = 1, 50 do
                threads[i] = ngx.thread.spawn(function()
                    local change = route(i, "/" .. i)
                    change.put.name = "n" .. i % 40
                    return said(apply.transaction({ change }))
                end)
            end
            for i = 1, 50 do
                local _, result = ngx.thread.wait(threads[i])
                out[i] = result.err or "made"
            end
            return out
        """)
        assert said.count("made") == 40
        assert said.count("unique violation") == 10
        assert nginx.state()["revision"] == 40


def test_a_file_replaces_everything_at_once() -> None:
    with Control() as nginx:
        said = nginx.apply("""
            local items = {}
            for i = 1, 3000 do
                items[i] = route(i, "/p/" .. i)
            end
            return said(apply.replace(items, "a file"))
        """)
        assert said == {"revision": 1, "changed": True}
        assert nginx.match("/p/2999")["name"] == "r2999"
        assert nginx.state()["origin"] == "a file"
        said = nginx.apply('return said(apply.replace({ route(7, "/p/7") }, "another"))')
        assert said["changed"] is True
        assert nginx.match("/p/7")["name"] == "r7"
        assert nginx.match("/p/2999")["status"] == 404
        assert nginx.apply('return #apply.read("list", "routes")') == 1
        assert nginx.state()["origin"] == "another"
        nginx.apply('return said(apply.transaction({ route(7, "/q/7") }))')
        assert "origin" not in nginx.state()


def test_a_successor_goes_on_where_a_killed_one_ended() -> None:
    with Control() as nginx:
        nginx.expect_log(r"exited on signal 9", range(1, 9))
        nginx.apply('return said(apply.transaction({ route(1, "/a") }))')
        for i in range(2):
            before = nginx.zero()
            os.kill(before, signal.SIGKILL)
            assert nginx.match("/a")["status"] == 200
            wait_until(lambda before=before: nginx.zero() != before, "the next")
            said = nginx.apply(f'return said(apply.transaction({{ route(2, "/c{i}") }}))')
            assert said["revision"] == i + 2
            assert nginx.match(f"/c{i}")["name"] == "r2"
        assert len(list(nginx.images.iterdir())) == 2


def test_one_that_waits_for_the_role_leaves_the_block_to_the_other() -> None:
    with Control() as nginx:
        nginx.apply('return said(apply.transaction({ route(1, "/a") }))')
        wait_until(lambda: nginx.block()["state"] == LIVE, "the state")
        old = nginx.master()
        nginx.upgrade()
        wait_until(lambda: len(nginx.block()["seats"]) == 2, "the other one")
        for i in range(2, 30):
            nginx.apply(f'return said(apply.transaction({{ route(1, "/b{i}") }}))')
            assert (nginx.block()["state"], nginx.block()["revision"]) == (LIVE, i)
        nginx.end(old)
        wait_until(lambda: nginx.block()["state"] == LIVE, "the state of the next")


def test_three_deaths_in_a_minute_stop_it() -> None:
    with Control() as nginx:
        nginx.expect_log(r"exited on signal 9", range(1, 9))
        nginx.expect_log(r"control workers died within a minute")
        nginx.apply('return said(apply.transaction({ route(1, "/a") }))')
        for _ in range(3):
            before = nginx.zero()
            os.kill(before, signal.SIGKILL)
            wait_until(lambda before=before: nginx.block()["pid"] not in (0, before), "the next")
        wait_until(lambda: nginx.block()["error"] != "", "the reason")
        assert nginx.match("/a")["status"] == 200
        # Who wants to change something is answered, and hears why it is not.
        said = nginx.apply('return said(apply.transaction({ route(2, "/b") }))')
        assert said["err"] == "not ready"
        assert "3 control workers died within a minute" in said["message"]
        # What died before a reload is not held against who comes with it.
        nginx.restart_workers()
        said = nginx.apply('return said(apply.transaction({ route(2, "/b") }))')
        assert said == {"revision": 2}
        assert nginx.match("/b")["name"] == "r2"


def test_a_store_that_cannot_be_opened_is_said_to_who_asks() -> None:
    with Control() as nginx:
        nginx.expect_log(r"exited on signal 9")
        # And once more if it looks while there is none.
        nginx.expect_log(r"control: the store is not opened: ", range(1, 3))
        nginx.apply('return said(apply.transaction({ route(1, "/a") }))')
        store = nginx.prefix / "store" / "store.db"
        aside = store.rename(store.with_name("aside"))
        store.mkdir()
        before = nginx.zero()
        os.kill(before, signal.SIGKILL)
        wait_until(lambda: nginx.block()["pid"] not in (0, before), "the next")
        wait_until(lambda: "store.db" in nginx.state().get("message", ""), "the reason")
        assert nginx.state()["state"] == "starting"
        assert nginx.match("/a")["status"] == 200
        store.rmdir()
        aside.rename(store)
        wait_until(lambda: nginx.state()["state"] == "live", "its store")


def test_who_waits_for_the_role_does_not_speak_for_who_has_it() -> None:
    with Control() as nginx:
        nginx.apply('return said(apply.transaction({ route(1, "/a") }))')
        old, before = nginx.master(), nginx.block()
        nginx.upgrade()
        wait_until(lambda: len(nginx.block()["seats"]) == 2, "another who waits")
        time.sleep(0.2)
        after = nginx.block()
        for what in ("pid", "state", "revision", "error"):
            assert after[what] == before[what]
        nginx.end(old)
        wait_until(lambda: nginx.block()["pid"] not in (0, before["pid"]), "the role")
        assert nginx.apply('return said(apply.transaction({ route(2, "/b") }))') == {"revision": 2}


def truncate(folder: Path, kind: str) -> None:
    for path in folder.glob(f"{kind}.*"):
        os.truncate(path, 4096)


HARM: dict[str, Callable[[Path], None]] = {
    "the folder removed": shutil.rmtree,
    "the files removed": lambda folder: [path.unlink() for path in folder.iterdir()] and None,
    "the base truncated": lambda folder: truncate(folder, "base"),
    "the delta truncated": lambda folder: truncate(folder, "delta"),
}


@pytest.mark.parametrize("what", HARM)
def test_files_that_are_gone_come_again(what: str) -> None:
    """A traffic worker that is born serves; so do others, from what they have mapped."""
    with Control() as nginx:
        nginx.expect_log(r"cannot map", range(9))
        nginx.expect_log(r"they are made anew")
        nginx.expect_log(r"exited on signal 9")
        nginx.apply('return said(apply.transaction({ route(1, "/a") }))')
        victim = nginx.traffic("return ngx.worker.pid()")
        HARM[what](nginx.images)
        os.kill(victim, signal.SIGKILL)
        assert nginx.match("/a")["name"] == "r1"
        assert nginx.apply('return said(apply.transaction({ route(2, "/b") }))') == {"revision": 2}
        assert nginx.match("/b")["name"] == "r2"
        assert len(list(nginx.images.iterdir())) == 2


def test_a_copy_that_the_disk_did_not_take_is_written_again() -> None:
    with Control() as nginx:
        copy = nginx.prefix / "store" / "base"
        wait_until(copy.is_file, "the first copy")
        copy.unlink()
        (copy / "in the way").mkdir(parents=True)
        nginx.expect_log(r"the next start has to build its image")
        said = nginx.apply("""
            local items = {}
            for i = 1, 6000 do
                items[i] = route(i, "/p/" .. i)
            end
            return said(apply.replace(items))
        """)
        assert said["changed"] is True
        log = nginx.prefix / "logs" / "error.log"
        wait_until(lambda: "the next start has to" in log.read_text(), "a copy that failed")
        shutil.rmtree(copy)
        wait_until(copy.is_file, "another try", 30)


def test_who_reads_while_the_role_is_given_up_is_answered() -> None:
    with Control() as nginx:
        said = nginx.apply("""
            for i = 1, 300 do
                assert(apply.transaction({ route(i, "/" .. i) }))
            end
            local threads, reads, words = {}, 0, {}
            for i = 1, 8 do
                threads[i] = ngx.thread.spawn(function()
                    local found, err
                    repeat
                        reads = reads + 1
                        found, err = apply.read("list", "routes", { size = 300 })
                    until not found
                    words[i] = err.err
                end)
            end
            ngx.sleep(0.1)
            apply.leave()
            for i = 1, 8 do
                ngx.thread.wait(threads[i])
            end
            return { reads > 8, table.concat(words, ",") }
        """)
        assert said == [True, ",".join(["not ready"] * 8)]


def test_eight_workers_serve_what_is_answered_to_the_next_request() -> None:
    """One of them stands still for five seconds, and goes on."""
    with Control(workers=9) as nginx:
        nginx.apply('return said(apply.transaction({ route(1, "/0") }))')
        wires: dict[int, Wire] = {}

        def meet_all() -> bool:
            wire = nginx.wire()
            pid = json.loads(wire.ask("/0").body)["pid"]
            if pid in wires:
                wire.close()
            else:
                wires[pid] = wire
            return len(wires) == 8

        wait_until(meet_all, "eight workers")
        silent = next(iter(wires))
        os.kill(silent, signal.SIGSTOP)
        ends, number = time.monotonic() + 5, 1
        while time.monotonic() < ends:
            begun = time.monotonic()
            said = nginx.apply(f'return said(apply.transaction({{ route(1, "/{number}") }}))')
            assert said == {"revision": number + 1}
            assert time.monotonic() - begun < 2
            for pid, wire in wires.items():
                if pid != silent:
                    assert wire.ask(f"/{number}").status == 200
                    assert wire.ask(f"/{number - 1}").status == 404
            number += 1
            # nginx closes a connection after its thousandth request.
            time.sleep(0.05)
        # It is asked before it goes on, with what was live when it was stopped.
        wires[silent].send(request_bytes("/0"))
        os.kill(silent, signal.SIGCONT)
        assert wires[silent].read_reply("GET").status == 404
        assert wires[silent].ask(f"/{number - 1}").status == 200
        for wire in wires.values():
            wire.close()
