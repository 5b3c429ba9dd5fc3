"""What request-termination decides, at random (test_decisions_random.py)."""

import json
import random
from typing import Any
from urllib.parse import unquote_plus

from decisions_words import Case, Config, Seen, World, post

DECISIONS = {"pass", "respond", "unknown", "body"}


def configuration(draw: random.Random, world: World) -> Config:
    config: Config = {"status_code": draw.choice([200, 404, 418, 503])}
    config |= [{}, {"trigger": "X-Close"}, {"trigger": "X_Close"}][world.nth % 3]
    if world.nth % 2:
        return config | {"echo": True} | draw.choice([{}, {"message": "a/b"}])
    texts: list[Config] = [{}, {"message": "a/b"}, {"body": "x"}]
    return config | draw.choice([*texts, {"body": "<x>", "content_type": "text/html"}])


def request(draw: random.Random, case: Case, world: World) -> None:
    if draw.random() < 0.6:
        fields = [("a", "1"), ("a", "%41+"), ("b", draw.choice(["", "x y"])), ("X-Close", "1")]
        post(draw, case, draw.sample(fields, draw.randint(0, 4)))


def _is_answered(case: Case) -> bool:
    trigger = case.config.get("trigger")
    if not trigger:
        return True
    names = {name.lower() for name, _ in case.headers}
    if names & {trigger.lower(), trigger.lower().replace("_", "-")}:
        return True
    parts = [part.partition("=")[0] for part in case.query.split("&")]
    return trigger in [unquote_plus(part) for part in parts]


def is_unknown(case: Case) -> bool:
    """An echo has what only the gateway's process knows."""
    return case.config["echo"] and _is_answered(case)


def own(case: Case, seen: Seen) -> dict[str, Any]:
    """What the echo says of the process, the route and the service; the rest is compared."""
    if not is_unknown(case):
        return {}
    told = seen.reply.json()
    assert told["matched_route"]["name"] == f"r{case.route}"
    assert told["matched_service"]["name"] in ("s", "t")
    found = {"kong": told["kong"], "port": told["request"]["port"]}
    return found | {"route": told["matched_route"], "service": told["matched_service"]}


def alike(case: Case, found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Members of JSON may stand in another order."""
    if is_unknown(case):
        found["message"], wanted["message"] = (
            json.loads(one["message"]) for one in (found, wanted)
        )
