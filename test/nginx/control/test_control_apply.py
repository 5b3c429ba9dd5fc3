"""Changes in the control worker (gateway/writer/queue.lua): what is answered is live."""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from images_nginx import Images, Json
from processes import waited_seconds
from wire import Wire, request_bytes, wait_until

ROLE = """
    local entities = require("gateway.entities")
    local layout = require("gateway.store.layout")
    local schemas = {}
    for i, kind in ipairs(entities.kinds) do
        schemas[i] = entities.get(kind)
    end
    require("gateway.writer.queue").start({
        store = "@run@/store/store.db",
        images = "@images@",
        layouts = layout.derive(schemas),
        on_files = function() return true end,
    })
"""

APPLY = """
    local queue = require("gateway.writer.queue")
    local role = require("gateway.writer.role")
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
        super().__init__(workers=workers, role=ROLE, main="thread_pool sluice_store threads=4;")

    def apply(self, code: str) -> Json:
        """Runs Lua in worker 0 with `queue`, `role`, `route(number, path)`, `id` and `said`."""
        return self.run(APPLY + code)

    def state(self) -> Json:
        """What it says of itself."""
        return self.apply("return queue.state()")


@pytest.fixture
def control() -> Iterator[Control]:
    """A control worker with a store, and one that serves."""
    with Control() as running:
        yield running


def test_what_is_answered_is_live() -> None:
    with Control(workers=3) as nginx:
        assert nginx.match("/a")["status"] == 404
        said = nginx.apply('return said(queue.transaction({ route(1, "/a") }))')
        assert said["revision"] == 1
        for _ in range(20):
            assert nginx.match("/a")["name"] == "r1"
        for i in range(2, 30):
            nginx.apply(f'return said(queue.transaction({{ route(1, "/b{i}") }}))')
            assert nginx.match(f"/b{i}")["revision"] == i
        said = nginx.apply(
            'return said(queue.transaction({ { kind = "routes", delete = id(1) } }))'
        )
        assert said == {"revision": 30}
        assert nginx.match("/b29")["status"] == 404
        state = nginx.state()
        assert (state["state"], state["revision"], state["waiting"]) == ("live", 30, 0)
        assert nginx.block()["revision"] == 30


def test_waiting_changes_share_a_commit_and_answer_each_for_itself(control: Control) -> None:
    said = control.apply("""
        local threads, out = {}, {}
        for i = 1, 50 do
            threads[i] = ngx.thread.spawn(function()
                local change = route(i, "/" .. i)
                change.put.name = "n" .. i % 40
                return said(queue.transaction({ change }))
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
    assert control.state()["revision"] == 40


# A change while 300 reads have begun, of which none ends before it is made.
SLOW_READS = """
    local run, is_held, begun = ngx.run_worker_thread, true, 0
    ngx.run_worker_thread = function(pool, module, name, ...)
        local is_read = module == "gateway.store.thread"
        begun = begun + (is_read and 1 or 0)
        while is_read and is_held do
            ngx.sleep(0.001)
        end
        return run(pool, module, name, ...)
    end
    local threads, out = {}, {}
    for i = 1, 300 do
        threads[i] = ngx.thread.spawn(role.read, "list", "routes")
    end
    local at_once = begun
    local made = said(queue.transaction({ route(1, "/a") }))
    is_held = false
    for i = 1, 300 do
        local _, rows, err = ngx.thread.wait(threads[i])
        out[i] = rows and #rows or err.message
    end
    ngx.run_worker_thread = run
    return { at_once = at_once, made = made, out = out }
"""


def test_slow_reads_leave_the_writer_its_place(control: Control) -> None:
    """Those that wait have no thread, and no Lua VM of a thread, of which there are few."""
    control.apply('return said(queue.transaction({ route(2, "/b") }))')
    found = control.apply(SLOW_READS)
    assert found == {"at_once": 2, "made": {"revision": 2}, "out": [2] * 300}


def test_more_reads_than_vms(control: Control) -> None:
    found = control.apply("""
        local threads, out = {}, {}
        for i = 1, 300 do
            threads[i] = ngx.thread.spawn(role.read, "list", "routes")
        end
        local made = said(queue.transaction({ route(1, "/a") }))
        for i = 1, 300 do
            local _, rows, err = ngx.thread.wait(threads[i])
            out[i] = rows and "read" or err.message
        end
        return { made, out }
    """)
    assert found == [{"revision": 1}, ["read"] * 300]


def test_a_read_that_gets_no_place(control: Control) -> None:
    said = control.apply("""
        local reader = require("gateway.writer.reader").new(error)
        reader.places = { wait = function() return nil, "timeout" end }
        return { reader:call("list", "routes") }
    """)
    assert said[2] == {"err": "busy", "message": "the store was locked by readers for 10 seconds"}


def test_a_worker_that_exits_closes_no_writer_that_is_being_closed(control: Control) -> None:
    """Its exit comes while a thread closes the writer: a second time would free it twice."""
    closed = control.apply("""
        local thread, run = require("gateway.writer.thread"), ngx.run_worker_thread
        local closed = { exits = 0, by_exit = 0 }
        thread.close = function()
            closed.by_exit = closed.by_exit + 1
        end
        ngx.run_worker_thread = function(pool, module, name, ...)
            if module == "gateway.writer.thread" and name == "close" then
                closed.exits = closed.exits + 1
                role.exit()
            end
            return run(pool, module, name, ...)
        end
        role.leave()
        closed.state = queue.state().state
        return closed
    """)
    assert closed == {"exits": 1, "by_exit": 0, "state": "left"}


def test_a_file_replaces_everything_at_once(control: Control) -> None:
    said = control.apply("""
        local items = {}
        for i = 1, 3000 do
            items[i] = route(i, "/p/" .. i)
        end
        return said(queue.replace(items, "a file"))
    """)
    assert said == {"revision": 1, "changed": True}
    assert control.match("/p/2999")["name"] == "r2999"
    assert control.state()["origin"] == "a file"
    said = control.apply('return said(queue.replace({ route(7, "/p/7") }, "another"))')
    assert said["changed"] is True
    assert control.match("/p/7")["name"] == "r7"
    assert control.match("/p/2999")["status"] == 404
    assert control.apply('return #role.read("list", "routes")') == 1
    assert control.state()["origin"] == "another"
    control.apply('return said(queue.transaction({ route(7, "/q/7") }))')
    assert "origin" not in control.state()


def test_a_successor_goes_on_where_a_killed_one_ended(control: Control) -> None:
    control.expect_log(r"exited on signal 9", range(1, 9))
    control.apply('return said(queue.transaction({ route(1, "/a") }))')
    for i in range(2):
        before = control.zero()
        os.kill(before, signal.SIGKILL)
        assert control.match("/a")["status"] == 200
        wait_until(lambda before=before: control.zero() != before, "the next")
        said = control.apply(f'return said(queue.transaction({{ route(2, "/c{i}") }}))')
        assert said["revision"] == i + 2
        assert control.match(f"/c{i}")["name"] == "r2"
    assert len(list(control.images.iterdir())) == 2


def test_one_that_waits_for_the_role_leaves_the_block_to_the_other(control: Control) -> None:
    control.apply('return said(queue.transaction({ route(1, "/a") }))')
    wait_until(lambda: control.block()["state"] == LIVE, "the state")
    old = control.master()
    control.upgrade()
    wait_until(lambda: len(control.block()["slots"]) == 2, "the other one")
    for i in range(2, 30):
        control.apply(f'return said(queue.transaction({{ route(1, "/b{i}") }}))')
        assert (control.block()["state"], control.block()["revision"]) == (LIVE, i)
    control.end(old)
    wait_until(lambda: control.block()["state"] == LIVE, "the state of the next")


def test_three_deaths_in_a_minute_stop_it(control: Control) -> None:
    control.expect_log(r"exited on signal 9", range(1, 9))
    control.expect_log(r"control workers died within a minute")
    control.apply('return said(queue.transaction({ route(1, "/a") }))')
    for _ in range(3):
        before = control.zero()
        os.kill(before, signal.SIGKILL)
        wait_until(lambda before=before: control.block()["pid"] not in (0, before), "the next")
    wait_until(lambda: control.block()["error"] != "", "the reason")
    assert control.match("/a")["status"] == 200
    # Who wants to change something is answered, and hears why it is not.
    said = control.apply('return said(queue.transaction({ route(2, "/b") }))')
    assert said["err"] == "not ready"
    assert "3 control workers died within a minute" in said["message"]
    # What died before a reload is not held against who comes with it.
    control.restart_workers()
    said = control.apply('return said(queue.transaction({ route(2, "/b") }))')
    assert said == {"revision": 2}
    assert control.match("/b")["name"] == "r2"


def test_a_store_that_cannot_be_opened_is_said_to_who_asks(control: Control) -> None:
    control.expect_log(r"exited on signal 9")
    # And once more if it looks while there is none; and where it saw that before it died.
    control.expect_log(r"control: the store cannot be opened: ", range(1, 4))
    control.expect_log(r"control: changes are refused: ", range(2))
    control.apply('return said(queue.transaction({ route(1, "/a") }))')
    store = control.prefix / "store" / "store.db"
    aside = store.rename(store.with_name("aside"))
    store.mkdir()
    before = control.zero()
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: control.block()["pid"] not in (0, before), "the next")
    wait_until(lambda: "store.db" in control.state().get("message", ""), "the reason")
    assert control.state()["state"] == "starting"
    assert control.match("/a")["status"] == 200
    store.rmdir()
    aside.rename(store)
    wait_until(lambda: control.state()["state"] == "live", "its store")


def test_who_waits_for_the_role_does_not_speak_for_who_has_it(control: Control) -> None:
    control.apply('return said(queue.transaction({ route(1, "/a") }))')
    old, before = control.master(), control.block()
    control.upgrade()
    wait_until(lambda: len(control.block()["slots"]) == 2, "another who waits")
    time.sleep(0.2)
    after = control.block()
    for what in ("pid", "state", "revision", "error"):
        assert after[what] == before[what]
    control.end(old)
    wait_until(lambda: control.block()["pid"] not in (0, before["pid"]), "the role")
    assert control.apply('return said(queue.transaction({ route(2, "/b") }))') == {"revision": 2}


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
def test_files_that_are_gone_come_again(what: str, control: Control) -> None:
    """A new traffic worker serves; so do others, from what they have mapped."""
    control.expect_log(r"cannot map", range(9))
    control.expect_log(r"creating new ones")
    control.expect_log(r"exited on signal 9")
    control.apply('return said(queue.transaction({ route(1, "/a") }))')
    victim = control.traffic("return ngx.worker.pid()")
    HARM[what](control.images)
    os.kill(victim, signal.SIGKILL)
    assert control.match("/a")["name"] == "r1"
    assert control.apply('return said(queue.transaction({ route(2, "/b") }))') == {"revision": 2}
    assert control.match("/b")["name"] == "r2"
    assert len(list(control.images.iterdir())) == 2


def test_a_copy_that_the_disk_did_not_take_is_written_again(control: Control) -> None:
    copy = control.prefix / "store" / "base"
    wait_until(copy.is_file, "the first copy")
    copy.unlink()
    (copy / "in the way").mkdir(parents=True)
    control.expect_log(r"the image for the next start was not saved")
    said = control.apply("""
        local items = {}
        for i = 1, 6000 do
            items[i] = route(i, "/p/" .. i)
        end
        return said(queue.replace(items))
    """)
    assert said["changed"] is True
    log = control.prefix / "logs" / "error.log"
    wait_until(lambda: "the image for the next start" in log.read_text(), "a copy that failed")
    shutil.rmtree(copy)
    wait_until(copy.is_file, "another try", 30)


def test_who_reads_while_the_role_is_given_up_is_answered(control: Control) -> None:
    said = control.apply("""
        for i = 1, 300 do
            assert(queue.transaction({ route(i, "/" .. i) }))
        end
        local threads, reads, words = {}, 0, {}
        for i = 1, 8 do
            threads[i] = ngx.thread.spawn(function()
                local found, err
                repeat
                    reads = reads + 1
                    found, err = role.read("list", "routes", { size = 300 })
                until not found
                words[i] = err.err
            end)
        end
        ngx.sleep(0.1)
        role.leave()
        for i = 1, 8 do
            ngx.thread.wait(threads[i])
        end
        return { reads > 8, table.concat(words, ",") }
    """)
    assert said == [True, ",".join(["not ready"] * 8)]


def test_eight_workers_serve_what_is_answered_to_the_next_request() -> None:
    """One of them stands still for five seconds, and goes on."""
    with Control(workers=9) as nginx:
        nginx.apply('return said(queue.transaction({ route(1, "/0") }))')
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
        others = [os.getpid(), nginx.zero(), *wires.keys() - {silent}]
        while time.monotonic() < ends:
            begun, waited = time.monotonic(), waited_seconds(*others)
            said = nginx.apply(f'return said(queue.transaction({{ route(1, "/{number}") }}))')
            assert said == {"revision": number + 1}
            assert time.monotonic() - begun < 2 + waited_seconds(*others) - waited
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
