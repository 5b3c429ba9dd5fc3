"""What workers map of what is live (module/gateway/image/ngx_sluice_images.h)."""

import hashlib
import itertools
import json
import os
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from images_nginx import Images
from wire import wait_until

LIVE = 'return w.live(1, w.routes("/a", "/b"))'
FAILED = r"sluice: cannot map \".*/images/(base|delta)\.\d+\" \(%s\): requests are answered 503"

# A line a worker: worker 0 looks once a second, which may be meanwhile.
ONE_EACH = range(1, 3)


def maps(pid: int) -> list[str]:
    """The files of images that a process has mapped, whether they still have their names or not."""
    text = Path(f"/proc/{pid}/maps").read_text()
    return re.findall(r"/images/((?:base|delta)\..*)$", text, re.M)


def test_a_request_matches_what_is_published(images: Images) -> None:
    assert images.run("return w.refresh()") == "none"
    images.run(LIVE)
    said = images.match("/b/c")
    assert said["status"] == 200
    assert (said["slot"], said["generation"], said["prefix"]) == (2, 2, 2)
    assert said["pid"] != images.zero()
    assert images.match("/none")["rc"] == "none"


def test_a_change_is_seen_whole_once_it_is_published(images: Images) -> None:
    images.run("""
        w.base(1, w.routes("/a", "/b"))
        w.delta(1, 1)
        w.publish(1, 1, 1)
        w.change({
            w.route(3, { paths = { "/c" }, revision = 2, generation = 7 }),
            { kind = w.C.SLUICE_CORE_ROUTE, slot = 1, gone = true },
        }, 2)
    """)
    assert [images.match(path)["rc"] for path in ("/a", "/c")] == ["ok", "none"]
    images.run("w.publish(1, 1, 2)")
    assert images.match("/a")["rc"] == "none"
    said = images.match("/c")
    assert (said["slot"], said["generation"], said["revision"]) == (3, 7, 2)


def test_look_ups() -> None:
    digest = hashlib.sha256(b"s" * 16 + b"key-auth" + b"\0" + b"a key").hexdigest()
    with Images() as nginx:
        nginx.run(f"""
            local digest = ("{digest}"):gsub("..", function(byte)
                return string.char(tonumber(byte, 16))
            end)
            return w.live(1, {{
                {{ kind = w.C.SLUICE_CORE_CONSUMER, slot = 4, id = ("i"):rep(16), [0] = "anne" }},
                {{ kind = w.C.SLUICE_CORE_CREDENTIAL, slot = 9, [0] = 4, [1] = digest }},
            }})
        """)
        asked = nginx.traffic("""
            local CONSUMER = w.C.SLUICE_CORE_CONSUMER
            w.refresh()
            local function all(...) return { w.find(...) } end
            return {
                by_slot = all("by_slot", CONSUMER, 4),
                no_slot = all("by_slot", CONSUMER, 5),
                by_id = all("by_id", CONSUMER, ("i"):rep(16)),
                no_id = all("by_id", CONSUMER, ("j"):rep(16)),
                by_key = all("by_key", CONSUMER, "anne", 4),
                no_key = all("by_key", CONSUMER, "ann", 3),
                long_key = all("by_key", CONSUMER, "anne", 2 ^ 32 + 4),
                credential = all("credential", "key-auth", 8, "a key", 5),
                again = all("credential", "key-auth", 8, "a key", 5),
                other_kind = all("credential", "basic", 5, "a key", 5),
                other_key = all("credential", "key-auth", 8, "a kez", 5),
            }
        """)
    found = {name: said for name, said in asked.items() if said != ["none"]}
    assert found == {
        "by_slot": ["ok", 4],
        "by_id": ["ok", 4],
        "by_key": ["ok", 4],
        "credential": ["ok", 9],
        "again": ["ok", 9],
    }


def test_a_credential_is_looked_for_in_what_is_live_now() -> None:
    """By a request that has matched before the key was revoked, and waited."""
    digest = hashlib.sha256(b"s" * 16 + b"k" + b"\0" + b"a").digest()
    text = "".join(f"\\{byte:03d}" for byte in digest)
    credential = f'{{ kind = w.C.SLUICE_CORE_CREDENTIAL, slot = 1, [0] = 0, [1] = "{text}" }}'
    with Images() as nginx:
        nginx.run(f"return w.live(1, {{ {credential} }})")
        asked = nginx.traffic("""
            local before = w.match("/").rc
            local first = w.find("credential", "k", 1, "a", 1)
            w.base(2, {})
            w.publish(2, 0, 2)
            return { before, first, w.find("by_slot", w.C.SLUICE_CORE_CREDENTIAL, 1),
                w.find("credential", "k", 1, "a", 1) }
        """)
    assert asked == ["none", "ok", "ok", "none"]


def test_the_epoch_grows_with_what_plans_depend_on(images: Images) -> None:
    change = """
        w.change({ %s }, %d)
        w.publish(1, 1, %d)
    """
    route = 'w.route(1, { paths = { "/a" }, revision = %d })'
    service = "{ kind = w.C.SLUICE_CORE_SERVICE, slot = 1 }"
    ask = "w.refresh() return tonumber(w.C.sluice_images_epoch())"
    images.run('w.base(1, w.routes("/a")) w.delta(1, 1) w.publish(1, 1, 1)')
    epochs = [images.traffic(ask)]

    def next_epoch(code: str) -> None:
        images.run(code)
        epochs.append(images.traffic(ask))

    next_epoch(change % (route % 2, 2, 2))
    assert epochs[-1] == epochs[-2]
    next_epoch(change % (service, 3, 3))
    assert epochs[-1] > epochs[-2]
    # A service is linked, not yet published; the worker looks at it for another one's sake.
    next_epoch(f"w.change({{ {route % 4} }}, 4) w.change({{ {service} }}, 5) w.publish(1, 1, 4)")
    next_epoch("w.publish(1, 1, 5)")
    assert epochs[-1] > epochs[-2]
    next_epoch(change % (route % 6, 6, 6))
    assert epochs[-1] == epochs[-2]
    next_epoch("w.base(2, {}, 6) w.publish(2, 0, 6)")
    assert epochs[-1] > epochs[-2]


def spoil(path: Path, kind: str) -> str:
    """Makes a file one that no worker maps; the core's word for it."""
    if kind == "removed":
        path.unlink()
        return "system"
    if kind == "link":
        path.rename(path.with_suffix(".old"))
        path.symlink_to(path.with_suffix(".old"))
        return "system"
    if kind == "other":
        path.write_bytes(os.urandom(4096))
        return "bad"
    if kind == "cut":
        os.truncate(path, 100)
        return "bad"
    if kind == "empty":
        os.truncate(path, 0)
        return "bad"
    if kind == "layout":
        data = path.read_bytes()
        at = 16 if path.name.startswith("base") else 8
        path.write_bytes(data[:at] + b"\xff\0\0\0" + data[at + 4 :])
        return "version"
    if kind == "mode":
        path.chmod(0o644)
    else:
        os.chown(path, 12345, 12345)
    return "foreign"


SPOILT = ["removed", "link", "other", "cut", "empty", "layout", "mode", "owner"]


@pytest.mark.parametrize("kind", SPOILT)
@pytest.mark.parametrize("what", ["base", "delta"])
def test_a_file_that_cannot_be_mapped(what: str, kind: str, images: Images) -> None:
    """What was there before is not served on, the answers are counted, the next file mends it."""
    if kind == "owner" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    images.run(LIVE)
    assert images.match("/a")["status"] == 200
    images.run('w.base(2, w.routes("/c")) w.delta(2, 2)')
    word = spoil(images.images / f"{what}.2", kind)
    images.expect_log(FAILED % word, ONE_EACH)
    images.run("w.publish(2, 2, 2)")
    for _ in range(3):
        said = images.match("/a")
        assert (said["status"], said["rc"]) == (503, word)
    assert images.traffic("return w.find('by_slot', w.C.SLUICE_CORE_ROUTE, 1)") == word
    assert images.traffic("return w.C.sluice_images_view() == nil")
    assert images.block()["failures"] == 3
    images.run('w.base(3, w.routes("/d")) w.delta(3, 3) w.publish(3, 3, 3)')
    wait_until(lambda: images.match("/d")["status"] == 200, "what is published next")
    assert images.match("/a")["status"] == 404


def test_it_tries_again_by_itself_but_not_at_once(images: Images) -> None:
    images.run(LIVE)
    images.match()
    images.expect_log(FAILED % "system", ONE_EACH)
    said = images.traffic("""
        w.publish(2, 0, 2)
        local first = w.refresh()
        w.base(2, {})
        local second = w.refresh()
        ngx.sleep(0.05)
        return { first, second, w.refresh() }
    """)
    assert said == ["system", "system", "ok"]


def limit(pid: int, what: int, soft: int) -> Callable[[], None]:
    """Sets a limit of a process; what puts it back."""
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (soft, before[1]))
    return lambda: resource.prlimit(pid, what, before) and None


@pytest.mark.parametrize("what", ["descriptors", "memory"])
def test_none_left(what: str) -> None:
    with Images() as nginx, nginx.wire() as wire:
        nginx.run(LIVE)
        pid = nginx.run_on(wire, "return ngx.worker.pid()")
        nginx.expect_log(FAILED % "system", ONE_EACH)
        # Large, so that it has to be mapped where nothing is free.
        nginx.run("w.base(2, w.many(20000)) return w.publish(2, 0, 2)")
        if what == "descriptors":
            back = limit(pid, resource.RLIMIT_NOFILE, 3)
        else:
            back = limit(pid, resource.RLIMIT_AS, 4096)
        said = nginx.run_on(wire, "return w.refresh()")
        back()
        assert said == "system"
        wait_until(lambda: nginx.run_on(wire, "return w.refresh()") == "ok", "a new try")
        assert nginx.block()["failures"] >= 1
        assert maps(pid) == ["base.2"]


def test_a_descriptor_is_kept_for_it() -> None:
    with Images() as nginx, nginx.wire() as wire:
        nginx.run(LIVE)
        # As a test, so that each file is closed again.
        said = nginx.run_on(
            wire,
            """
            w.base(2, w.routes("/c"))
            w.publish(2, 0, 2)
            local open = {}
            repeat
                local file, err = io.open("/dev/null")
                open[#open + 1] = file
            until not file
            local rc, full = w.refresh(), io.open("/dev/null") == nil
            for _, file in ipairs(open) do file:close() end
            return { rc, full }
        """,
        )
        assert said == ["ok", True]


def test_a_thousand_bases_leave_nothing_behind(images: Images) -> None:
    images.run(LIVE)
    pid = images.match("/a")["pid"]
    wait_until(lambda: maps(pid) == ["base.1"], "the first")
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    for first in range(2, 1002, 100):
        said = images.traffic(f"""
            local rcs = {{}}
            for i = {first}, {first + 99} do
                w.base(i, w.routes("/" .. i))
                w.delta(i, i)
                w.release()
                w.publish(i, i, i)
                os.remove(w.path("base", i - 1))
                os.remove(w.path("delta", i - 1))
                local said = w.match("/" .. i)
                rcs[said.rc] = (rcs[said.rc] or 0) + 1
                if i % 20 == 0 then ngx.sleep(0.001) end
            end
            return rcs
        """)
        assert said == {"ok": 100}
    wait_until(lambda: sorted(maps(pid)) == ["base.1001", "delta.1001"], "the last alone")
    assert len(os.listdir(f"/proc/{pid}/fd")) <= descriptors + 1


def test_files_that_go_at_once_are_no_failure() -> None:
    """The writer removes a file when the next one is published: a worker may just have read that
    it is live."""
    with Images(workers=3) as nginx:
        nginx.run(LIVE)
        nginx.run("""
            package.loaded.stop = { false }
            local stop = package.loaded.stop
            ngx.timer.at(0, function()
                local n = 2
                while not stop[1] do
                    -- Fewer than the times that a worker tries.
                    for i = n, n + 7 do w.base(i, {}) end
                    for i = n, n + 7 do
                        w.publish(i, 0, i)
                        os.remove(w.path("base", i - 1))
                    end
                    n = n + 8
                    ngx.sleep(0.001)
                end
            end)
        """)
        end = time.monotonic() + 2
        seen = set()
        while time.monotonic() < end:
            seen |= set(
                nginx.traffic("""
                    local seen = {}
                    for _ = 1, 2000 do seen[w.refresh()] = true end
                    return seen
                """)
            )
        nginx.run("package.loaded.stop[1] = true")
        assert seen == {"ok"}


def test_a_large_base_goes_in_pieces(images: Images) -> None:
    """Two pieces may go between two looks on a busy machine, a whole base each time may not."""
    for number in range(1, 12, 2):
        said = images.run(
            f"local n = w.base({number}, w.many(60000)) w.publish({number}, 0, {number}) return n"
        )
        assert said > 2**23
        pid = images.match("/r1")["pid"]
        wait_until(lambda: maps(pid) == [f"base.{number}"], "the large one alone")  # noqa: B023
        sizes = images.traffic(f"""
            local function mapped()
                local total = 0
                for line in io.lines("/proc/self/maps") do
                    local from, to = line:match("^(%x+)%-(%x+).*/images/base%.{number}")
                    total = total + (from and tonumber(to, 16) - tonumber(from, 16) or 0)
                end
                return total
            end
            w.base({number + 1}, {{}})
            w.publish({number + 1}, 0, {number + 1})
            w.refresh()
            local sizes = {{ mapped() }}
            while sizes[#sizes] > 0 do
                ngx.sleep(0.001)
                sizes[#sizes + 1] = mapped()
            end
            return sizes
        """)
        pieces = {before - after for before, after in itertools.pairwise(sizes)}
        if max(pieces) <= 2 * 2**22:
            return
    pytest.fail(f"the last base went so: {sizes}")


def test_maps_are_not_dumped(images: Images) -> None:
    images.run("w.base(1, {}) w.delta(1, 1) w.publish(1, 1, 1)")
    pid = images.match()["pid"]
    parts = Path(f"/proc/{pid}/smaps").read_text().split("VmFlags:")
    flags = [after for before, after in itertools.pairwise(parts) if "/images/" in before]
    assert len([text for text in flags if " dd" in text.splitlines()[0]]) == 2


def test_a_folder_whose_name_is_too_long(images: Images) -> None:
    images.run(LIVE)
    assert images.traffic("return pcall(w.open, ('f'):rep(4000))")[0] is False
    assert images.match("/a")["status"] == 200
    assert json.loads(images.ask("/a").body)["rc"] == "ok"
