"""Worker 0 as the control worker, the others as traffic workers (ngx_sluice_control.c)."""

import os
import re
import signal
import socket
import struct
import time
from pathlib import Path

import pytest

from images_nginx import Images
from nginx import MODULE
from sluice import alive
from wire import Wire, request_bytes, wait_until

LIVE = 'return w.live(1, w.routes("/a"))'

STOPPED, STARTING, LIVE_STATE = 0, 1, 4

SERVER = "server {{ listen {}; {} location / {{ return 200; }} }}"
MARK = "sluice_control_server;"

REFUSED = {
    "one process": ("master_process off;", "", "needs .master_process on. and two"),
    "no traffic worker": ("", "", "needs .master_process on. and two"),
    "one address": (
        "",
        SERVER.format("127.0.0.1:@other@", "") + SERVER.format("127.0.0.1:@other@", MARK),
        r"cannot share .listen 127\.0\.0\.1:\d+.",
    ),
    "one socket": (
        "",
        SERVER.format("127.0.0.1:@other@", "") + SERVER.format("@other@", MARK),
        r"cannot share the socket of .listen 0\.0\.0\.0:\d+.",
    ),
    "one socket of IPv6": (
        "",
        SERVER.format("[::1]:@other@", MARK) + SERVER.format("[::]:@other@", ""),
        r"cannot share the socket of .listen \[::\]:\d+.",
    ),
    "a short watchdog": ("sluice_control_watchdog 1s;", "", "must be 0, for none, or at least 2s"),
    "marked twice": (
        "",
        SERVER.format("127.0.0.1:@other@", MARK + MARK),
        "sluice_control_server. directive is duplicate",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_go_is_refused_with_a_sentence(what: str) -> None:
    main, more, sentence = REFUSED[what]
    nginx = Images(main=main, more=more, workers=1 if what == "no traffic worker" else 2)
    assert re.search(sentence, nginx.refuses())


def test_addresses_of_one_port_may_be_of_both_kinds() -> None:
    more = SERVER.format("127.0.0.1:@other@", MARK) + SERVER.format("127.0.0.2:@other@", "")
    more += SERVER.format("127.0.0.3:@other@ bind", "")
    nginx = Images(more=more)
    try:
        assert nginx.nginx("-t").returncode == 0
    finally:
        nginx.discard()


def test_a_reload_to_what_does_not_go_changes_nothing(images: Images) -> None:
    images.run(LIVE)
    images.expect_log("needs .master_process on. and two")
    workers = images.workers()
    text = (images.prefix / "nginx.conf").read_text()
    images.write(text.replace("worker_processes 2;", "worker_processes 1;"))
    os.kill(images.master(), signal.SIGHUP)
    wait_until(lambda: "worker 0 serves no traffic" in images.error_log(), "its refusal")
    assert images.match("/a")["status"] == 200
    assert images.workers() == workers


def test_each_takes_the_connections_that_are_its_own() -> None:
    more = """
        server {
            listen unix:@socket@;
            sluice_control_server;
            location / { content_by_lua_block { ngx.say(ngx.worker.id()) } }
        }
    """
    with Images(workers=3, more=more) as nginx:
        nginx.run(LIVE)
        assert {nginx.run("return ngx.worker.id()") for _ in range(20)} == {0}
        seen: set[int] = set()

        def both() -> bool:
            seen.add(nginx.traffic("return ngx.worker.id()"))
            return {1, 2} <= seen

        wait_until(both, "both traffic workers")
        for _ in range(50):
            both()
        assert seen == {1, 2}
        for _ in range(10):
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(nginx.socket))
                client.sendall(request_bytes("/"))
                assert b"\r\n0\n" in client.recv(4096)


@pytest.mark.parametrize("mutex", ["on", "off"])
def test_nobody_is_served_before_an_image_is_live(mutex: str) -> None:
    """Connections wait, and are served once there is one."""
    with Images(workers=3, events=f"worker_connections 256; accept_mutex {mutex};") as nginx:
        wires = [Wire(nginx.proxy_port) for _ in range(5)]
        for wire in wires:
            wire.send(request_bytes("/a"))
        time.sleep(0.3)
        for wire in wires:
            wire.sock.setblocking(False)
            with pytest.raises(BlockingIOError):
                wire.sock.recv(1)
            wire.sock.settimeout(30)
        nginx.run(LIVE)
        for wire in wires:
            assert wire.read_reply("GET").status == 200
            wire.close()
        # And so it goes on.
        for _ in range(20):
            assert nginx.match("/a")["status"] == 200
            assert nginx.run("return ngx.worker.id()") == 0


def test_who_waits_leaves_when_it_is_told_to() -> None:
    with Images(workers=3, role="") as nginx:
        old = nginx.workers()
        nginx.restart_workers()
        wait_until(lambda: not any(map(alive, old)), "the old workers to leave")


def test_nobody_is_served_by_what_cannot_be_mapped() -> None:
    with Images() as nginx, nginx.wire() as wire:
        # A line a worker: worker 0 looks once a second, which may be meanwhile.
        nginx.expect_log(r"cannot map .*base\.1. \(bad\)", range(1, 3))
        wire.send(request_bytes("/a"))
        nginx.run("""
            local file = io.open(w.path("base", 1), "w")
            file:write("no image")
            file:close()
            os.execute("chmod 600 " .. w.path("base", 1))
            w.publish(1, 0, 1)
        """)
        time.sleep(0.2)
        nginx.run('w.live(2, w.routes("/a"))')
        assert wire.read_reply("GET").status == 200


def test_worker_0_waits_for_its_role() -> None:
    role = """
        ngx.timer.every(0.01, function()
            local file = io.open("@run@/role")
            if file then
                file:close()
                require("sluice.ffi.images").C.sluice_control_accept()
            end
        end)
    """
    with Images(role=role) as nginx, Wire(nginx.control_port) as wire:
        nginx.send_code(wire, "return 1")
        time.sleep(0.2)
        wire.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            wire.sock.recv(1)
        wire.sock.settimeout(30)
        (nginx.prefix / "role").touch()
        assert wire.read_reply("POST").status == 200
        nginx.run(LIVE)
        assert nginx.match("/a")["status"] == 200


def test_only_worker_0_takes_the_role(images: Images) -> None:
    images.run(LIVE)
    assert images.traffic("return w.C.sluice_control_accept()") == -1
    assert images.run("return w.C.sluice_control_accept()") == 0
    assert images.traffic("return ngx.worker.id()") == 1


def test_without_control_there_is_no_page() -> None:
    with Images(control="", role="") as nginx:
        said = nginx.run("""
            local rc, view, block = w.refresh(), w.C.sluice_images_view(), w.block()
            return { rc, view == nil, block, w.images.page() == nil, w.match("/").rc,
                w.C.sluice_control_accept(), w.C.sluice_control_deaths(1000) }
        """)
        assert said == ["none", True, None, True, "none", -1, 0]


# Lives and deaths


def test_the_death_of_worker_0_is_counted_and_traffic_goes_on(images: Images) -> None:
    images.run(LIVE)
    before = images.block()
    assert (before["starts"], before["deaths"], before["slots"]) == (1, 0, [before["pid"]])
    assert before["pid"] == images.zero()
    assert abs(before["started_at"] - time.time() * 1000) < 60000
    images.expect_log("exited on signal 9", 2)
    for deaths in (1, 2):
        with images.wire() as wire:
            zero = images.zero()
            os.kill(zero, signal.SIGKILL)
            assert wire.ask("/a").status == 200
            wait_until(lambda old=zero: images.zero() != old, "the next worker 0")
            assert wire.ask("/a").status == 200
        after = images.block()
        assert (after["starts"], after["deaths"]) == (1 + deaths, deaths)
        assert after["pid"] == images.zero()
        assert after["slots"] == [after["pid"]]
    ask = "return w.C.sluice_control_deaths(%d)"
    assert images.traffic(ask % 60000) == 2
    time.sleep(0.01)
    assert images.traffic(ask % 1) == 0


def test_a_traffic_worker_that_is_born_serves_at_once_what_is_live() -> None:
    with Images(workers=2) as nginx:
        nginx.run(LIVE)
        nginx.expect_log("exited on signal 9", 5)
        for _ in range(5):
            old = nginx.match("/a")["pid"]
            os.kill(old, signal.SIGKILL)
            said = nginx.match("/a")
            assert (said["status"], said["pid"] != old) == (200, True)
        assert nginx.block()["deaths"] == 0


def test_a_reload_keeps_the_page_and_is_no_death(images: Images) -> None:
    images.run(LIVE)
    for starts in (2, 3):
        images.restart_workers()
        assert images.match("/a")["status"] == 200
        wait_until(lambda: not images.retiring(), "the old workers to leave")
        block = images.block()
        assert (block["starts"], block["deaths"]) == (starts, 0)
        assert block["pid"] == images.zero()
        assert len(block["slots"]) == 1


# Keeps a worker for as long as there is a file.
BUSY = """
    local path = "%s"
    local file = io.open(path)
    while file do
        file:close()
        ngx.sleep(0.005)
        file = io.open(path)
    end
    return 1
"""


def test_a_worker_0_that_leaves_says_so() -> None:
    """The one that comes after it, at a reload, waits for the role."""
    role = """
        ngx.timer.at(0, function()
            local file = io.open("@run@/stay")
            if file then
                file:close()
            else
                require("sluice.ffi.images").C.sluice_control_accept()
            end
        end)
    """
    with Images(role=role) as nginx:
        nginx.run(LIVE)
        old = nginx.zero()
        (nginx.prefix / "stay").touch()
        with Wire(nginx.control_port) as wire:
            busy = nginx.prefix / "busy"
            busy.touch()
            nginx.send_code(wire, BUSY % busy)
            wait_until(lambda: nginx.block()["pid"] == old, "the block")
            nginx.restart_workers()
            assert nginx.block()["pid"] == old
            assert len(nginx.block()["slots"]) == 2
            busy.unlink()
            assert wire.read_reply("POST").status == 200
        wait_until(lambda: not alive(old), "the old worker 0 to leave")
        block = nginx.block()
        assert (block["pid"], block["state"], block["deaths"]) == (0, STOPPED, 0)
        assert len(block["slots"]) == 1


def test_lua_writes_what_others_read(images: Images) -> None:
    images.run(LIVE)
    assert images.block()["state"] == STARTING
    images.run("""
        local block = w.C.sluice_images_control_block()
        block.state = w.C.SLUICE_CONTROL_LIVE
        block.revision = 77
        require("ffi").copy(block.error, "no space")
    """)
    block = images.block()
    assert (block["state"], block["revision"], block["error"]) == (LIVE_STATE, 77, "no space")
    beat = block["heartbeat"]
    # It beats when it works, and sleeps till then.
    wait_until(lambda: images.zero() and images.block()["heartbeat"] > beat, "a beat")


# Binary upgrades


def test_a_binary_upgrade_and_back(images: Images) -> None:
    images.run(LIVE)
    old = images.master()
    images.upgrade()
    new = images.master()
    # One page: what is published is live in old and new workers.
    images.run('w.base(2, w.routes("/b")) w.publish(2, 0, 2)')
    pids = set()

    def all_pids() -> bool:
        said = images.match("/b")
        assert said["status"] == 200
        pids.add(said["pid"])
        return len(pids) == 2

    wait_until(all_pids, "workers of both")
    block = images.block()
    assert (len(block["slots"]), block["starts"], block["deaths"]) == (2, 2, 0)
    images.end(new)
    wait_until(lambda: not (images.prefix / "images.pid.oldbin").exists(), "the old name")
    assert images.wait_for_master(other_than=new) == old
    assert images.match("/b")["status"] == 200
    # And for good, with a reload behind it.
    images.upgrade()
    images.end(old)
    assert images.match("/b")["status"] == 200
    images.restart_workers()
    assert images.match("/b")["status"] == 200
    assert images.block()["deaths"] == 0


def page_of(pid: int) -> Path:
    """The shared memory of images, among the files that a process has open."""
    for path in Path(f"/proc/{pid}/fd").iterdir():
        if "memfd:sluice-images" in str(path.readlink()):
            return path
    raise AssertionError("no memfd")


@pytest.mark.parametrize("at", [8, 12])
def test_a_binary_upgrade_to_another_layout_makes_its_own_page(at: int, images: Images) -> None:
    """Of the page, or of images: workers of the new nginx wait for images of their own."""
    images.run(LIVE)
    old, zero = images.master(), images.zero()
    with page_of(old).open("r+b") as page:
        page.seek(at)
        layout = struct.unpack("<I", page.read(4))[0]
        page.seek(at)
        page.write(struct.pack("<I", layout + 1))
    images.upgrade()
    assert "has images of another layout" in images.error_log()
    for _ in range(20):
        assert images.match("/a")["status"] == 200
    images.end(old)
    with images.wire() as wire:
        wire.send(request_bytes("/b"))
        assert images.zero() != zero
        images.run('return w.live(5, w.routes("/b"))')
        assert wire.read_reply("GET").status == 200
    assert images.block()["starts"] == 1
    images.restart_workers()
    assert images.match("/b")["status"] == 200


def test_a_replaced_module_file_finds_the_page_again(tmp_path: Path) -> None:
    module, fresh = tmp_path / MODULE.name, tmp_path / "fresh"
    module.write_bytes(MODULE.read_bytes())
    with Images(module=module) as nginx:
        nginx.run(LIVE)
        fresh.write_bytes(MODULE.read_bytes())
        fresh.rename(module)
        nginx.restart_workers()
        assert nginx.match("/a")["status"] == 200
        assert nginx.block()["starts"] == 2


# The watchdog


def test_a_stuck_worker_0_is_killed() -> None:
    with Images(main="sluice_control_watchdog 4s;") as nginx:
        nginx.run(LIVE)
        nginx.expect_log("exited on signal 9")
        zero = nginx.zero()
        # Not while it only has nothing to do.
        time.sleep(5)
        assert nginx.zero() == zero
        with Wire(nginx.control_port) as wire:
            nginx.send_code(wire, "while true do end")
            wait_until(lambda: not alive(zero), "its end")
            assert nginx.match("/a")["status"] == 200
        wait_until(lambda: nginx.zero() != zero, "the next")
        assert nginx.block()["deaths"] == 1


@pytest.mark.parametrize("main", ["sluice_control_watchdog 0;", "debug_points stop;"])
def test_none_is_killed_without_a_watchdog(main: str) -> None:
    if "debug_points" in main:
        main += "sluice_control_watchdog 2s;"
    with Images(main=main) as nginx:
        nginx.run(LIVE)
        zero = nginx.zero()
        with Wire(nginx.control_port) as wire:
            busy = "local till = os.time() + 4 while os.time() < till do end return 1"
            assert nginx.run_on(wire, busy) == 1
        assert nginx.zero() == zero
