"""What prometheus decides, at random: every request passes, and is counted."""

import random
import re
from collections import Counter

from decisions_words import Case, Config, Done, World, flag

from sluice import Gateway
from wire import wait_until

DECISIONS = {"pass"}
TOTAL = re.compile(r'^kong_http_requests_total\{.*route="r(\d+)".*\} (\d+)$', re.MULTILINE)


def configuration(draw: random.Random, world: World) -> Config:
    return {"status_code_metrics": flag(draw), "latency_metrics": flag(draw)}


def request(draw: random.Random, case: Case, world: World) -> None:
    """Any will do."""


def written(done: list[Done], world: World, running: Gateway) -> None:
    """So many requests were counted of each route that counts them."""
    cases = [one.case for one in done]
    wanted = Counter(case.route for case in cases if case.config["status_code_metrics"])
    routes = {case.route for case in cases}

    def read() -> bool:
        text = world.client.ask("GET", "/metrics").body.decode()
        found: Counter[int] = Counter()
        for route, count in TOTAL.findall(text):
            if int(route) in routes:
                found[int(route)] += int(count)
        return found == wanted

    wait_until(read, f"the counts {wanted}")
