"""Routes' patterns and header conditions under requests made to be dear: refused, never passed on.

The patterns exceed PCRE's limit of steps, where nobody knows whether they match: a request on
which one gives up belongs to no other route, least of all to an open one.
"""

import itertools
import re
from collections.abc import Callable, Iterator

import pytest
from log_server import LogServer

from processes import check_cost
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

HEAVY = "(?:a|aa)+"
LONG = "a" * 60 + "!"
MAX_LINES = 32

LOGGED = r'\[error\] .*route "heavy": a regular expression gave up on a request.*limit exceeded'


@pytest.fixture
def beside(upstream: Upstream) -> Callable[..., dict]:
    """A protected route beside an open one that takes what it does not."""

    def make(**route: object) -> dict:
        config = proxying(upstream)
        heavy = {"name": "heavy", "plugins": [{"name": "key-auth"}]} | route
        config["services"][0]["routes"].append(heavy)
        return config

    return make


PATTERNS = {
    "path": ({"paths": [f"~/{HEAVY}$"]}, f"/{LONG}", {}),
    "path before others": ({"paths": ["/never", f"~/{HEAVY}$"]}, f"/{LONG}", {}),
    "path that is stripped": ({"paths": [f"~/x/{HEAVY}$"], "strip_path": True}, f"/x/{LONG}", {}),
    "encoded": ({"paths": [f"~/{HEAVY}$"]}, f"/%61%61{LONG}", {}),
    "query behind": ({"paths": [f"~/{HEAVY}$"]}, f"/{LONG}?q=1", {}),
    "quantified group": ({"paths": ["~/(a|b|ab)*$"]}, "/" + "ab" * 60 + "!", {}),
    "back reference": ({"paths": [r"~/(a+)(?:\1|aa)*$"]}, "/" + "a" * 3000 + "!", {}),
    "look ahead": ({"paths": [f"~/(?={HEAVY}$)"]}, f"/{LONG}", {}),
    "header": ({"headers": {"x-a": [f"~*^{HEAVY}$"]}}, "/", {"X-A": LONG}),
    "header in caps": ({"headers": {"X-A": [f"~*^{HEAVY}$"]}}, "/", {"x-a": LONG.upper()}),
    "second value": ({"headers": {"x-a": ["b", f"~*^{HEAVY}$"]}}, "/", {"X-A": LONG}),
    "header and path": (
        {"headers": {"x-a": [f"~*^{HEAVY}$"]}, "paths": ["~/x"]},
        "/x",
        {"X-A": LONG},
    ),
}


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_request_on_which_a_pattern_gives_up_is_refused(
    serving: Start, upstream: Upstream, beside: Callable[..., dict], kind: str
) -> None:
    route, target, headers = PATTERNS[kind]
    running = serving(beside(**route))
    assert running.ask("/other").status == 200
    before = len(upstream.requests)
    running.expect_log(LOGGED, 2)
    for _ in range(2):
        reply = running.ask(target, headers=headers | {"Accept": "application/json"})
        assert reply.status == 500
        assert reply.json()["message"] == "An unexpected error occurred"
    assert len(upstream.requests) == before
    assert running.ask("/other").status == 200


def test_a_line_of_several_counts(
    serving: Start, upstream: Upstream, beside: Callable[..., dict]
) -> None:
    running = serving(beside(headers={"x-a": [f"~*^{HEAVY}$"]}))
    running.expect_log(LOGGED, 1)
    assert running.ask("/", headers=[("X-A", "b"), ("x-a", LONG)]).status == 500
    # Another line matches: then it is the protected route's for sure.
    assert running.ask("/", headers=[("X-A", "aa"), ("X-A", LONG)]).status == 401
    assert upstream.requests == []


def test_a_route_that_wins_anyway_has_the_request(
    serving: Start, upstream: Upstream, beside: Callable[..., dict]
) -> None:
    config = beside(paths=[f"~/{HEAVY}$"])
    config["services"][0]["routes"].append({"name": "host", "hosts": ["a"], "paths": ["/"]})
    running = serving(config)
    assert running.ask(f"/{LONG}", headers={"Host": "a"}).status == 200
    running.expect_log(LOGGED, 1)
    assert running.ask(f"/{LONG}", headers={"Host": "b"}).status == 500


WARNING = r""".*"heavy": a client can make the pattern '/\(a\+\)\+\$' exceed its limits"""


def test_check_and_start_warn_of_such_a_pattern(
    gateway: Start, beside: Callable[..., dict]
) -> None:
    running = gateway(beside(paths=["~/(a+)+$", "~/fine/(?<id>[^/]+)/.*$"]))
    assert len(re.findall(r"sluice: warning: .*" + WARNING, running.warned)) == 1
    done = running.command("check")
    assert done.returncode == 0
    assert re.fullmatch(r"sluice: warning: " + WARNING + r".*\n", done.stderr)
    assert "is valid" in done.stdout


# Header conditions


def test_a_header_costs_one_limit(
    gateway: Start, upstream: Upstream, beside: Callable[..., dict]
) -> None:
    """A value that stays below the limit wherever a match could begin, and that is long."""
    running = gateway(beside(headers={"x-a": ["~*(a+)+$"]}))
    asked = itertools.count()
    running.expect_log(LOGGED, range(5, 1000))
    assert "a client can make the pattern '(a+)+$' exceed its limits" in running.warned
    (worker,) = running.workers()

    def ask() -> None:
        for _ in range(5):
            next(asked)
            assert running.ask("/", headers={"X-A": ("a" * 14 + "!") * 500}).status == 500

    check_cost(worker, 5 * 0.01, ask)
    count = next(asked)
    wait_until(lambda: len(re.findall(LOGGED, running.error_log())) == count, "a line for each")
    assert upstream.requests == []


@pytest.fixture(scope="module")
def tenants() -> Iterator[Gateway]:
    """A thousand routes, told apart by a header."""
    with Upstream() as upstream:
        config = proxying(upstream, headers={"x-tenant": ["t0"]})
        config["services"][0]["routes"] += [
            {"name": f"r{n}", "paths": ["/"], "headers": {"x-tenant": [f"t{n}"]}}
            for n in range(1, 1000)
        ]
        with Gateway(config) as running:
            yield running


@pytest.mark.parametrize("name", ["X-Tenant", "x_tenant", "X-TENANT"])
def test_lines_of_a_header_that_routes_look_at_are_limited(tenants: Gateway, name: str) -> None:
    for count in (1, MAX_LINES, MAX_LINES + 1, 500):
        lines = [(name, f"none{n}") for n in range(count - 1)]
        for headers in ([*lines, (name, "t5")], [("X-Tenant", "t5"), *lines]):
            wanted = 400 if count > MAX_LINES else 200
            assert tenants.ask("/", headers=headers).status == wanted, count
    others = [(f"X-Other-{n}", "t5") for n in range(500)]
    assert tenants.ask("/", headers=[*others, ("X-Tenant", "t5")]).status == 200


def test_headers_by_conditions_are_no_product(tenants: Gateway) -> None:
    """All headers are read once for a request, not once a route. CPU time, not the clock."""
    lines = [("X-Tenant", "n" * 200 + str(n)) for n in range(MAX_LINES)]
    headers = lines + [(f"X-{n}", "") for n in range(900)]
    (worker,) = tenants.workers()

    def ask() -> None:
        for _ in range(5):
            assert tenants.ask("/", headers=headers).status == 404

    check_cost(worker, 5 * 0.02, ask)


def test_what_is_refused_before_it_is_routed_is_logged(
    serving: Start, beside: Callable[..., dict]
) -> None:
    """Global plugins see it, as they see what nginx refuses."""
    with LogServer() as server:
        plugin = {"name": "http-log", "config": {"http_endpoint": server.url}}
        running = serving(beside(paths=[f"~/{HEAVY}$"]) | {"plugins": [plugin]})
        running.expect_log(LOGGED, 1)
        asked = {f"/{LONG}": 500, "/a/..%2fb": 400, "/fine": 200}
        for target, status in asked.items():
            assert running.ask(target).status == status
        wait_until(lambda: len(server.entries) == len(asked), "an entry for each")
        seen = {entry["request"]["uri"]: entry["response"]["status"] for entry in server.entries}
        assert seen == asked
