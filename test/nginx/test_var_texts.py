"""Arguments, cookies and headers in hostile texts: every short text of the letters that matter, and
random long ones, read by number and as `ngx.var` does in the same request.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from var_servers import Server

from bare import Bare

SEED = int(os.environ.get("VAR_SEED", "1"))
ROUNDS = 40

# Of every length that the module compares in its own way, and of some that it leaves to nginx.
SUFFIXES = ["a", "ab"] + [("n_m1z_" * 6)[:length] for length in range(1, 35)]
INDEX = " ".join(
    f"${prefix}{suffix}"
    for prefix in ("arg_", "cookie_", "http_", "sent_http_")
    for suffix in SUFFIXES
)

HTTP = """
    @index@
    lua_transform_underscores_in_response_headers off;
    init_by_lua_block {
        package.path = package.path .. ";@tests@/?.lua"
        require("var_texts")
    }
    server {
        listen 127.0.0.1:@port@;
        location / { content_by_lua_block { require("var_texts").content() } }
    }
"""


def configuration() -> str:
    """Of a server that compares."""
    return HTTP.replace("@tests@", str(Path(__file__).parent))


def compare(server: Bare, target: str, at_least: int) -> None:
    """Fails if any read differs, or if there were only a few."""
    compared, _, wrong = server.text(target).partition("\n")
    assert wrong == ""
    assert int(compared) >= at_least


@pytest.mark.parametrize(("prefix", "letters"), [("arg_", 5), ("cookie_", 7)])
def test_every_short_text(prefix: str, letters: int) -> None:
    with Server(configuration(), INDEX) as server:
        for number in range(1, letters + 1):
            compare(server, f"/{prefix}/{number}", 4 * letters**5)


def compare_random(server: Bare, rounds: int) -> None:
    """Random texts."""
    for number in range(rounds):
        compare(server, f"/random/{SEED * 1000 + number}", 5000)


def test_random_texts() -> None:
    with Server(configuration(), INDEX) as server:
        compare_random(server, ROUNDS)
