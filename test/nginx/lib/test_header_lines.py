"""`sluice_upstream_header` and `sluice_response_header`: lines of the gateway, up and down."""

import random
import string
from collections.abc import Callable

import pytest

from nginx import Nginx
from sluice import Gateway, proxying
from upstream import Upstream

LINES = 32
# What the gateway says itself, or nobody passes on.
OWN = ["Expect", "Keep-Alive", "Proxy", "Proxy-Connection", "TE", "Via", "X-Forwarded-For"]
OWN += ["X-Forwarded-Host", "X-Forwarded-Prefix", "X-Kong-Request-Id", "X-Real-IP"]
REFUSED = {
    "text": ("X-A text", "is not one variable"),
    "two values": ("X-A $scheme $host", "invalid number of arguments"),
    "no variable of this name": ("X-A $nobody_knows", 'unknown "nobody_knows" variable'),
    "too many": (
        "; sluice_upstream_header ".join(f'X-{i} ""' for i in range(LINES + 1)),
        "has more lines than there is room for",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_line_that_does_not_go(what: str) -> None:
    lines, said = REFUSED[what]
    nginx = Nginx(f"server {{ listen 127.0.0.1:@port@; sluice_upstream_header {lines}; }}")
    assert said in nginx.refuses()


def test_a_line_down_is_one_variable() -> None:
    nginx = Nginx("server { listen 127.0.0.1:@port@; sluice_response_header X-A text; }")
    assert "has a value that is not one variable" in nginx.refuses()


@pytest.mark.parametrize("seed", range(8))
def test_what_the_client_says_passes_in_its_order(
    gateway: Callable[..., Gateway], upstream: Upstream, seed: int
) -> None:
    dice = random.Random(seed)
    running = gateway(proxying(upstream))
    for count in (0, 1, 20, 21, 200):
        sent = []
        for i in range(count):
            length = dice.choice([1, 2, 5, 9, 15])
            name = "".join(dice.choices(string.ascii_letters + string.digits + "-", k=length))
            sent.append((f"{name}-{i}", "v" * dice.choice([0, 1, 30, 300])))
        own = [(dice.choice([n.lower(), n.upper(), n]), "client") for n in OWN if n != "Expect"]
        mixed = dice.sample(own, dice.randrange(len(own))) if count else []
        for line in mixed:
            sent.insert(dice.randrange(len(sent) + 1), line)
        assert running.ask("/?a=1", headers=[("Host", "a"), *sent]).status == 200
        got = [(name, value) for name, value in upstream.last.headers if value != "client"]
        expected = [line for line in sent if line not in mixed]
        assert [line for line in got if line in expected] == expected
        names = [line[0].lower() for line in got if line not in expected]
        assert len(set(names)) == len(names)
        assert {"host", "via", "x-real-ip", "x-forwarded-for"} <= set(names)
        assert not {"expect", "keep-alive", "te", "proxy", "connection"} & set(names)
