"""Scenarios of the kinds `var-access` and `var-request`: sluice.var beside ngx.var.

`var-access` times loops of one access in the header filter of a proxied
request, where request, answer and upstream have headers. Both ways are timed in
the same request, one after the other. `var-request` compares the CPU time of
whole requests, in two nginx that differ in nothing else.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, ClassVar

import events
import load
import sides
import stats
from probe import Client
from report import Metric, metric
from setting import Setting
from verify import InvalidRun

REQUEST = (
    "GET {path}?a=1&page=22 HTTP/1.1\r\n"
    "Host: shop.example.com\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101\r\n"
    "Accept: text/html,application/json\r\n"
    "Accept-Encoding: gzip\r\n"
    "X-Forwarded-For: 203.0.113.7\r\n"
    "X-Tenant: acme\r\n"
    "Cookie: theme=dark; session=0123456789abcdef\r\n"
    "{more}\r\n"
)


class Worker(sides.Nginx):
    """An nginx with one worker; `side` names the handler of whole requests."""

    files: ClassVar = {"var.conf": "nginx.conf"}

    def __init__(
        self,
        setting: Setting,
        name: str,
        core: int | None,
        side: str,
        jit: bool = True,
    ) -> None:
        folder = setting.fresh() / side
        words = {
            "modules": events.load_modules(setting.root),
            "user": events.user(),
            "bench": str(sides.NGINX_FOLDER.parent),
            "root": str(setting.root),
            "run": str(folder),
            "side": side,
            "jit": "" if jit else "jit.off()",
        }
        super().__init__(name, folder, sides.free_address(), core, **words)

    def check(self) -> None:
        """Fails if an error was logged."""
        if trouble := self.trouble():
            raise InvalidRun(f"{self.name} logged: {trouble}")


def _took(client: Client, what: str, name: str, turns: int, first: str) -> list[float]:
    more = f"X-Measure: {what} {name} {turns} {first}\r\n"
    answer = client.ask(REQUEST.format(path="/path/to/it", more=more).encode())
    if answer.status != 200 or "x-took" not in answer.headers:
        raise InvalidRun(f"{what} {name} was answered with {answer.status}")
    if answer.headers.get("x-same", "true") != "true":
        raise InvalidRun(f"{what} {name}: sluice.var and ngx.var say different things")
    # A loop may be as fast as the empty one.
    return [max(float(word), 0.1) for word in answer.headers["x-took"].split()]


def _accesses(setting: Setting) -> dict[str, Metric]:
    data = setting.data
    cases = [("get", name) for group in data["get"].values() for name in group]
    cases += [(what, name) for what in ("changed", "set") for name in data[what]]
    out: dict[str, Metric] = {}
    worst: dict[str, Metric] = {}
    for part, jit in enumerate((True, False)):
        suffix = "" if jit else "_jit_off"
        turns = data["turns"] if jit else data["turns_jit_off"]
        taken: dict[tuple[str, str], list[list[float]]] = {case: [] for case in cases}
        floors: dict[str, list[float]] = {"call": [], "string": []}
        with contextlib.ExitStack() as stack:
            name = "JIT on" if jit else "JIT off"
            worker = stack.enter_context(Worker(setting, name, None, "with_ngx", jit))
            client = stack.enter_context(Client(worker.address))
            for order in setting.rounds(["ngx", "sluice"], part, 2):
                for case in cases:
                    slow = case[1] in data["system_calls"]
                    count = max(turns // 20, 10) if slow else turns
                    if case[0] == "set":
                        count = min(count, data["turns_set"])
                    taken[case].append(_took(client, *case, count, order[0]))
                for floor, values in floors.items():
                    values += _took(client, floor, "host", turns, order[0])
            worker.check()
        for (what, name), pairs in taken.items():
            theirs, ours = zip(*pairs, strict=True)
            out[f"{what}_ratio_{name}{suffix}"] = metric("ratio", stats.ratio(theirs, ours))
            out[f"{what}_ns_{name}{suffix}"] = metric("ns", stats.level(ours))
            out[f"{what}_ns_ngx_{name}{suffix}"] = metric("ns", stats.level(theirs))
        for floor, values in floors.items():
            out[f"floor_{floor}_ns{suffix}"] = metric("ns", stats.level(values))
        for group, names in data["get"].items():
            ratios = [out[f"get_ratio_{name}{suffix}"] for name in names]
            worst[f"get_ratio_{GROUPS[group]}min{suffix}"] = min(ratios, key=lambda m: m.value)
        ratios = [out[f"set_ratio_{name}{suffix}"] for name in data["set"]]
        worst[f"set_ratio_min{suffix}"] = min(ratios, key=lambda m: m.value)
    return worst | out


# Names of the groups of reads in the metrics.
GROUPS = {"plain": "", "prefix": "prefix_", "absent": "absent_", "slow": "slow_"}


def _requests(setting: Setting) -> dict[str, Metric]:
    data: dict[str, Any] = setting.data
    cores = (0, 1)
    requests = setting.folder / "requests"
    requests.write_bytes(REQUEST.format(path="/requests", more="").encode())
    with contextlib.ExitStack() as stack:
        workers = {
            side: stack.enter_context(Worker(setting, f"with {side}", cores[0], f"with_{side}"))
            for side in ("ngx", "sluice")
        }
        _compare(workers, requests)

        def slice_(side: str, seconds: int) -> load.Slice:
            worker = workers[side]
            taken = load.run(
                worker.address,
                requests,
                worker.workers,
                cores[1],
                data["connections"],
                seconds,
            )
            if errors := taken.report.errors():
                raise InvalidRun(f"requests {worker.name}: {errors}")
            return taken

        for side in workers:
            slice_(side, 1)  # warm-up
        taken: dict[str, list[load.Slice]] = {side: [] for side in workers}
        for order in setting.rounds(list(workers), 0, 1):
            for side in order:
                taken[side].append(slice_(side, data["seconds"]))
        _compare(workers, requests)
        for worker in workers.values():
            worker.check()
    cpu = {side: [one.cpu_us for one in slices] for side, slices in taken.items()}
    rps = {side: [one.rps for one in slices] for side, slices in taken.items()}
    return {
        "efficiency": metric("ratio", stats.ratio(cpu["ngx"], cpu["sluice"])),
        "rps_ratio": metric("ratio", stats.ratio(rps["sluice"], rps["ngx"])),
        "cpu_us": metric("us/request", stats.level(cpu["sluice"])),
        "cpu_us_ngx": metric("us/request", stats.level(cpu["ngx"])),
        "rps": metric("requests/s", stats.level(rps["sluice"])),
        "rps_ngx": metric("requests/s", stats.level(rps["ngx"])),
    }


def _compare(workers: dict[str, Worker], requests: Path) -> None:
    """Both have to answer alike: with how much they read. Ports are as long on both."""
    said = set()
    for worker in workers.values():
        with Client(worker.address) as client:
            said.add(client.ask(requests.read_bytes()).body)
    if len(said) != 1:
        raise InvalidRun(f"requests are answered differently: {sorted(said)}")


MEASURES = {"var-access": _accesses, "var-request": _requests}
