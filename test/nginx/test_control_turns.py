"""Large changes take turns with other requests of the control worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from changes import document, post
from test_admin_modes import send

import guard
from sluice import Gateway
from wire import wait_until

Start = Callable[..., Gateway]

COUNT = 10000

# Notes what the event loop's thread has worked without a pause, and in all, in microseconds of its
# processor: what else the machine does makes no difference. A file that is gone begins anew.
WATCH = """
local ffi = require("ffi")
ffi.cdef([[
struct test_turns_time { long seconds, nanoseconds; };
int test_turns_clock(int which, struct test_turns_time *time) __asm__("clock_gettime");
]])
local THREAD = 3
local time = ffi.new("struct test_turns_time")

local function now()
    ffi.C.test_turns_clock(THREAD, time)
    return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) / 1e3
end

local function watch(premature)
    local path = "@path@"
    local longest, all, before, ticks = 0, 0, now(), 0
    while not premature and not ngx.worker.exiting() do
        ngx.sleep(0.001)
        local took = now() - before
        longest, all, ticks = math.max(longest, took), all + took, ticks + 1
        if ticks % 20 == 0 then
            local before_it, file = io.open(path), io.open(path .. ".new", "w")
            if before_it then
                before_it:close()
            else
                longest, all = 0, 0
            end
            if file then
                file:write(("%d %d %d"):format(ticks, longest, all))
                file:close()
                os.rename(path .. ".new", path)
            end
        end
        before = now()
    end
end

return {
    name = "turns",
    version = "0.1.0",
    priority = 1,
    schema = { name = "turns", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        if ngx.worker.id() == 0 then
            ngx.timer.at(0, watch)
        end
    end,
}
"""


class Turns:
    """What the plugin has noted since it was made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.unlink(missing_ok=True)
        wait_until(path.exists, "the plugin to begin anew")

    def share(self) -> float:
        """The longest work without a pause, of all that was done."""
        begun = self._read()[0]
        wait_until(lambda: self._read()[0] > begun, "the plugin to write")
        _, longest, done = self._read()
        return longest / done

    def _read(self) -> list[int]:
        return [int(word) for word in self.path.read_text().split()]


def test_large_changes_take_turns(gateway: Start) -> None:
    """Of what the event loop works for them, no stretch without a pause is more than a quarter, and
    in the worse of two runs, with what else happened to fall into it, a third.

    The deletion is short in all, 45 ms on a fast machine, of which 5 to 11 go in one stretch. Lists
    that went to threads in one piece took half a second of the loop for 50,000.
    """
    folder = guard.folder("sluice-turns-")
    folder.chmod(0o777)
    path = folder / "turns"
    running = gateway(None, plugins={"turns": WATCH.replace("@path@", str(path))})
    services = [{"name": f"s{n}", "host": "127.0.0.1"} for n in range(COUNT)]
    text = document({"services": services})
    send(running, "PUT", "/consumers/first", json={})
    turns = Turns(path)
    assert post(running, text).status_code == 201
    shares = {"config": [turns.share()]}
    revision = int(send(running, "GET", "/").headers["Sluice-Revision"])
    for to in (revision - 1, revision) * 2:
        turns = Turns(path)
        reply = send(running, "POST", "/rollback", json={"revision": to})
        assert reply.json()["changes"] == COUNT + 1, reply.text
        shares.setdefault(f"rollback {to}", []).append(turns.share())
    guard.remove(folder)
    assert max(min(found) for found in shares.values()) < 1 / 4, shares
    assert max(max(found) for found in shares.values()) < 1 / 3, shares
