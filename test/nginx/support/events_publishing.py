"""Workers that publish numbers and check those of the others."""

from events_nginx import Events
from wire import wait_until

# Each process checks that the numbers of each publisher come without a gap, from the first that
# it hears, and writes what it found where its successors and the test can read it.
CHECK = """
    local notes, pid = ngx.shared.notes, ngx.worker.pid()
    local last = {}
    probe.heard_of = last
    ev:subscribe("seq", "*", function(n, publisher)
        if last[publisher] and n ~= last[publisher] + 1 then
            notes:rpush("gaps", ("%d: %s: %d after %d"):format(pid, publisher, n, last[publisher]))
        end
        last[publisher] = n
    end)
    ev:subscribe("sluice", "overrun", function(data)
        notes:rpush("gaps", pid .. ": overrun " .. data.missed .. " " .. data.reason)
    end)
"""


# A publisher in this worker, until it is told to stop: numbers of its own name.
PUBLISH = """
    local pid, n = ngx.worker.pid(), 0
    ngx.timer.at(0, function()
        while not ngx.shared.notes:get("stop") and not ngx.worker.exiting() do
            for _ = 1, 20 do
                if ev:publish("all", "seq", tostring(pid), n + 1) then n = n + 1 end
            end
            ngx.sleep(0.001)
        end
        ngx.shared.notes:set("published " .. pid, n)
    end)
"""


GAPS = """
    local out = {}
    for i = 1, ngx.shared.notes:llen("gaps") or 0 do
        out[i] = ngx.shared.notes:lpop("gaps")
    end
    return table.concat(out, "; ")
"""


# How many publishers a worker has heard of.
PUBLISHERS = "local n = 0 for _ in pairs(probe.heard_of) do n = n + 1 end return n"


def hear_from_each(ring: Events) -> None:
    """Checks that all hear what each of the workers publishes now."""
    ring.ready()
    ring.forget()
    for worker in range(ring.count):
        ring.publish_at(worker, source="now", event=str(worker))
    wanted = {str(w) for w in range(ring.count)}

    def complete() -> bool:
        heard = ring.all("/heard").values()
        return all({e["event"] for e in h if e["source"] == "now"} == wanted for h in heard)

    wait_until(complete, "everybody to hear everybody")
