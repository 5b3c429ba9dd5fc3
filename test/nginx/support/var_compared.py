"""Texts of requests, read by us and by ngx.var."""

from seeds import seed_of

from nginx import Nginx
from sluice import SUPPORT

SEED = seed_of("var_texts")


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
    return HTTP.replace("@tests@", str(SUPPORT))


def check_same(server: Nginx, target: str, at_least: int) -> None:
    """Fails if any read differs, or if there were only a few."""
    compared, _, wrong = server.text(target).partition("\n")
    assert wrong == ""
    assert int(compared) >= at_least


def check_random(server: Nginx, rounds: int) -> None:
    """Random texts."""
    for number in range(rounds):
        check_same(server, f"/random/{SEED * 1000 + number}", 5000)
