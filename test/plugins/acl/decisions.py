"""What acl decides, at random (test_decisions_random.py)."""

import random

from decisions_words import GROUPS, NAMED, Case, Config, World, flag, known, some

AUTHENTICATES = """
local said = kong.request.get_header("X-Groups")
if said then
    local groups = {}
    for name in said:gmatch("[^,]+") do
        groups[#groups + 1] = name
    end
    kong.ctx.shared.authenticated_groups = groups
end
"""

BESIDE = [NAMED, {"name": "pre-function", "config": {"access": [AUTHENTICATES]}}]


def configuration(draw: random.Random, world: World) -> Config:
    config: Config = {draw.choice(["allow", "deny"]): some(draw, GROUPS, 1)}
    config |= {"hide_groups_header": draw.random() < 0.3}
    return config | {"always_use_authenticated_groups": flag(draw)}


def request(draw: random.Random, case: Case, world: World) -> None:
    known(draw, case, world)
    case.groups = draw.choice([None, some(draw, GROUPS)])
    if case.groups is not None:
        case.headers.append(("X-Groups", ",".join(case.groups)))
