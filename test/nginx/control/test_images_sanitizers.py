"""Images and roles of workers with ASan, UBSan and LSan in nginx."""

import os
import random
import signal

from asan import MODULE, check_nothing_to_report

from images_nginx import Images
from wire import wait_until

ROUTES = """
    local n, list = %d, {}
    for i = 1, 20 do
        list[i] = w.route(i, {
            hosts = i %% 3 == 0 and { "*.example", "a:81" } or nil,
            paths = { i %% 4 == 0 and "~/p(" .. i .. "|" .. n .. ")+$" or "/p" .. i },
            methods = i %% 5 == 0 and { "PUT", "OTHER" } or nil,
            headers = i %% 2 == 0 and { ["x-a"] = { "~*^v[0-9]+$", "w" } } or nil,
        })
    end
    w.base(n, list, n)
    w.delta(n, n, n)
    w.publish(n, n, n)
    w.change({ w.route(30, { paths = { "/changed" .. n }, revision = n + 1 }) }, n + 1)
    w.publish(n, n, n + 1)
    w.release()
    os.remove(w.path("base", n - 2))
"""


def ask_at_random(nginx: Images, chosen: random.Random, count: int) -> None:
    """Requests that match one thing or another."""
    for _ in range(count):
        lines = [
            (chosen.choice(["X-A", "x_a", "x-b", "X_B", "other"]), chosen.choice(["v1", "w", "z"]))
            for _ in range(chosen.choice([0, 1, 3, 40]))
        ]
        lines.append(("Host", chosen.choice(["a", "a:81", "b.example:80", "a:99999999999"])))
        path = chosen.choice([f"/p{chosen.randrange(30)}", "/changed7", "/none", "/p" + "4" * 90])
        method = chosen.choice(["GET", "PUT", "OTHER"])
        with nginx.wire() as wire:
            assert wire.ask(path, method, lines).status in (200, 400, 404)


def test_nothing_to_report(asan: dict[str, str]) -> None:
    chosen = random.Random(3)
    with Images(module=MODULE, environment=asan) as nginx:
        nginx.expect_log("exited on signal 9")
        nginx.expect_log("cannot map", range(1, 3))
        for number in range(2, 22):
            nginx.run(ROUTES % number)
            ask_at_random(nginx, chosen, 10)
            assert nginx.traffic('return w.find("credential", "key-auth", 8, "key", 3)') == "none"
            assert nginx.traffic('return w.find("by_id", 2, ("i"):rep(16))') == "none"
        nginx.run("w.publish(99, 0, 99)")
        assert nginx.match("/p1")["status"] == 503
        nginx.run(ROUTES % 100)
        wait_until(lambda: nginx.match("/p1")["status"] == 200, "what is live")
        nginx.restart_workers()
        ask_at_random(nginx, chosen, 10)
        zero = nginx.zero()
        os.kill(zero, signal.SIGKILL)
        wait_until(lambda: nginx.zero() != zero, "the next worker 0")
        old = nginx.master()
        nginx.upgrade()
        nginx.end(old)
        ask_at_random(nginx, chosen, 10)
        # Two left at the reload, two with the old master, two with the new one.
        check_nothing_to_report(nginx, 6)
