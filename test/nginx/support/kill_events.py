"""Kills workers under load, many times: `make kill KILLS=2000`. Not part of `make test`.

Each worker publishes numbers as fast as it may, in three sizes, one of them in pieces, and checks
the numbers of all others. Any worker but the one that is asked, and that one now and then too, is
killed at a random instant; between two kills each survivor must have gone on.
"""

import argparse
import os
import random
import signal
import sys
import time

from events_publishing import CHECK, GAPS

from events_nginx import Events
from wire import ClosedEarly, wait_until

# Not asked for in this order: the sizes make frames wrap, fill the log and travel in pieces.
LOAD = """
    local pid, n, dice = ngx.worker.pid(), 0, math.random
    local texts = { "", ("x"):rep(1000), ("y"):rep(60000) }
    math.randomseed(pid)
    ngx.timer.at(0, function()
        while not ngx.shared.notes:get("stop") do
            for _ = 1, dice(50) do
                local text = texts[dice(100) == 1 and 3 or dice(2)]
                if not ev:publish("all", "load", tostring(pid), { n + 1, text }) then break end
                n = n + 1
            end
            ngx.sleep(dice(3) / 1000)
        end
    end)
    ev:subscribe("load", "*", function(data, publisher)
        probe.count = (probe.count or 0) + 1
        local n = data[1]
        if probe.heard_of[publisher] and n ~= probe.heard_of[publisher] + 1 then
            ngx.shared.notes:rpush("gaps", ("%d: %s: %d after %d"):format(
                pid, publisher, n, probe.heard_of[publisher]))
        end
        if #data[2] > 0 and data[2]:find("[^xy]") then
            ngx.shared.notes:rpush("gaps", "torn")
        end
        probe.heard_of[publisher] = n
    end)
    ngx.timer.every(5, function() -- the dead say nothing any more
        for publisher in pairs(probe.heard_of) do
            if not io.open("/proc/" .. publisher) then probe.heard_of[publisher] = nil end
        end
    end)
"""


def asked(ring: Events, code: str) -> object:
    """What worker 0 answers; it may have been killed meanwhile."""
    for _ in range(100):
        try:
            return ring.run(0, code)
        except (ClosedEarly, ConnectionError):
            time.sleep(0.01)
    raise AssertionError("worker 0 does not answer")


def main() -> int:
    """Kills; 0 if nobody missed anything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--size", default="256k", help="of the log: small, so that it is full often"
    )
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    dice = random.Random(given.seed)
    longest = 0.0
    with Events(
        workers=given.workers,
        main=f"sluice_events_size {given.size};\n",
        init_worker=CHECK + LOAD,
    ) as ring:
        ring.expect_log(r"exited on signal 9", range(1, 1 << 30))
        # The test's own dictionary: nginx takes its lock from the dead.
        ring.expect_log(r'shared memory zone "notes" was locked by', range(1 << 30))
        ring.ready()
        started = time.monotonic()
        for kill in range(given.kills):
            time.sleep(dice.uniform(0, 0.03))
            pids = ring.workers()
            if not pids:
                continue
            try:
                os.kill(dice.choice(pids), signal.SIGKILL)
            except ProcessLookupError:
                continue
            if kill % 50 == 49:
                began = time.monotonic()
                wait_until(lambda: len(ring.workers()) == given.workers, "the successor")
                for worker in range(given.workers):
                    before = ring.run(worker, "return probe.count or 0")
                    wait_until(
                        lambda w=worker, b=before: ring.run(w, "return probe.count or 0") > b + 100,
                        f"worker {worker} to go on after {kill + 1} kills",
                    )
                longest = max(longest, time.monotonic() - began)
                gaps = asked(ring, GAPS)
                if gaps:
                    print(f"after {kill + 1} kills: {gaps}", flush=True)
                    return 1
            if kill % 500 == 499:
                print(f"{kill + 1} kills in {time.monotonic() - started:.0f} s", flush=True)
        asked(ring, 'ngx.shared.notes:set("stop", true) return true')
        stats = ring.ring_stats()
        print(
            f"{given.kills} kills: nobody missed anything; {stats['log']['published']} events; "
            f"the slowest check that all went on took {longest:.2f} s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
