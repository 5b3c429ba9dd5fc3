"""Which route a request belongs to, asked of a real nginx; at random also against the oracle."""

import json
import random
import socket
from typing import Any

import httpx
import pytest

from processes import ran
from sluice import ROOT, Gateway, Start, proxying
from upstream import Upstream
from wire import Reply, Wire


def routing(upstream: Upstream, *routes: dict[str, Any]) -> dict[str, Any]:
    """A configuration where each route has a service whose path is its name (r0, r1, ...)."""
    return {
        "services": [
            {
                "name": f"s{number}",
                "url": f"{upstream.url}/r{number}",
                "routes": [{"name": f"r{number}", "strip_path": False} | route],
            }
            for number, route in enumerate(routes)
        ]
    }


def route_of(reply: Reply) -> int | None:
    """The number of the route that a request took; None where none matched."""
    if reply.status == 404:
        return None
    assert reply.status == 200, (reply.status, reply.body)
    return int(reply.json()["target"].split("/")[1].split("?")[0][1:])


def ask(running: Gateway, target: str, method: str = "GET", **headers: str) -> int | None:
    """The route that one request takes; header names with _ for -."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return route_of(running.ask(target, method, headers=sent))


# Conditions


def test_hosts(serving: Start, upstream: Upstream) -> None:
    running = serving(
        routing(
            upstream,
            {"hosts": ["api.example.com", "other.example.com"]},
            {"hosts": ["*.example.com"]},
            {"hosts": ["shop.*"]},
        )
    )
    expected = {
        "api.example.com": 0,
        "API.Example.COM": 0,
        "api.example.com:1234": 0,
        "other.example.com": 0,
        "x.example.com": 1,
        "x.y.example.com": 1,
        "example.com": None,
        "shop.org": 2,
        "shop.co.uk": 2,
        "shop": None,
        "api.example.com.evil.org": None,
    }
    assert {host: ask(running, "/", Host=host) for host in expected} == expected


def test_hosts_with_port(serving: Start, upstream: Upstream) -> None:
    running = serving(
        routing(
            upstream, {"hosts": ["a.com"]}, {"hosts": ["a.com:8443"]}, {"hosts": ["*.b.com:81"]}
        )
    )
    expected = {
        "a.com": 0,
        "a.com:80": 0,
        "a.com:8443": 1,
        "x.b.com:81": 2,
        "x.b.com:82": None,
        "x.b.com": None,
    }
    assert {host: ask(running, "/", Host=host) for host in expected} == expected


def test_port_of_the_listener_counts_where_host_names_none(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(routing(upstream, {"hosts": ["a.com"]}))
    config = routing(upstream, {"hosts": ["a.com"]}, {"hosts": [f"a.com:{running.proxy_port}"]})
    running.reload(config)
    assert ask(running, "/", Host="a.com") == 1
    assert ask(running, "/", Host="a.com:80") == 0


def test_ipv6_host(serving: Start, upstream: Upstream) -> None:
    running = serving(routing(upstream, {"hosts": ["[::1]"]}, {"hosts": ["a"]}))
    assert ask(running, "/", Host="[::1]") == 0
    assert ask(running, "/", Host="[::1]:80") == 0
    assert ask(running, "/", Host="[::2]") is None


def test_path_prefixes(serving: Start, upstream: Upstream) -> None:
    running = serving(
        routing(upstream, {"paths": ["/a", "/c"]}, {"paths": ["/a/b/"]}, {"paths": ["/a/b"]})
    )
    expected = {
        "/a": 0,
        "/abc": 0,
        "/a/c": 0,
        "/a/b": 2,
        "/a/b/": 1,
        "/a/b/c": 1,
        "/c?x": 0,
        "/A": None,
        "/": None,
        "/?/a": None,
    }
    assert {path: ask(running, path) for path in expected} == expected


def test_regex_paths(serving: Start, upstream: Upstream) -> None:
    running = serving(
        routing(
            upstream,
            {"paths": ["/users/12345"]},
            {"paths": ["~/users/\\d+$"]},
            {"paths": ["~/users/(?<name>[a-z]+)/"], "regex_priority": 5},
            {"paths": ["~/users/me/"], "regex_priority": 10},
            {"paths": ["~/(?i)case"]},
        )
    )
    expected = {
        "/users/12345": 1,
        "/users/12345/x": 0,
        "/users/1": 1,
        "/x/users/1": None,
        "/users/you/": 2,
        "/users/me/": 3,
        "/CASE": 4,
    }
    assert {path: ask(running, path) for path in expected} == expected


def test_paths_match_normalised(gateway: Start, upstream: Upstream) -> None:
    running = gateway(routing(upstream, {"paths": ["/admin"]}, {"paths": ["/a%2Fb"]}))
    expected = {
        "/%61dmin": 0,
        "/x/../admin": 0,
        "/./admin": 0,
        "//admin": 0,
        "/x/%2e%2e/admin": 0,
        "/admin%2Fx": 0,
        "/a%2fb": 1,
        "/a/b": None,
    }
    assert {path: ask(running, path) for path in expected} == expected


def test_methods(serving: Start, upstream: Upstream) -> None:
    running = serving(routing(upstream, {"methods": ["GET", "PURGE"]}, {"methods": ["POST"]}))
    expected = {"GET": 0, "PURGE": 0, "POST": 1, "PUT": None, "DELETE": None}
    assert {method: ask(running, "/", method) for method in expected} == expected


def test_headers(serving: Start, upstream: Upstream) -> None:
    running = serving(
        routing(
            upstream,
            {"headers": {"X-Version": ["v1", "v2"]}},
            {"headers": {"x-version": ["~*^v[3-9]$"]}},
            {"headers": {"X-Version": ["v1"], "X-User": ["anna"]}},
        )
    )
    assert ask(running, "/") is None
    assert ask(running, "/", X_Version="v1") == 0
    assert ask(running, "/", X_VERSION="V2") == 0
    assert ask(running, "/", x_version="v7") == 1
    assert ask(running, "/", X_Version="v10") is None
    assert ask(running, "/", X_Version="v1", X_User="anna") == 2
    assert ask(running, "/", X_User="anna") is None


def test_any_of_a_repeated_header_matches(serving: Start, upstream: Upstream) -> None:
    running = serving(routing(upstream, {"headers": {"X-Version": ["v2"]}}))
    for values in (["v1", "v2"], ["v2", "v1"]):
        reply = running.ask("/", headers=[("X-Version", value) for value in values])
        assert route_of(reply) == 0, values


def test_a_header_matches_with_dashes_or_underscores(serving: Start, upstream: Upstream) -> None:
    routes = {"headers": {"X-One": ["v"]}}, {"headers": {"X_Two": ["v"]}}
    running = serving(routing(upstream, *routes))
    for name, index in (("X-One", 0), ("X_One", 0), ("x-two", 1), ("X_TWO", 1)):
        assert route_of(running.ask("/", headers=[(name, "v")])) == index, name
    both = [("X-One", "other"), ("X_One", "v")]
    assert route_of(running.ask("/", headers=both)) == 0


def test_many_headers_hide_none(serving: Start, upstream: Upstream) -> None:
    running = serving(routing(upstream, {"headers": {"X-Version": ["v1"]}}))
    many = [(f"X-{number}", "x") for number in range(150)]
    assert route_of(running.ask("/", headers=[*many, ("X-Version", "v1")])) == 0


def test_more_conditions_win(serving: Start, upstream: Upstream) -> None:
    running = serving(
        routing(
            upstream,
            {"paths": ["/a/long/path"]},
            {"paths": ["/a"], "hosts": ["h"]},
            {"paths": ["/a"], "hosts": ["h"], "methods": ["POST"]},
            {"hosts": ["h"]},
        )
    )
    assert ask(running, "/a/long/path") == 0
    assert ask(running, "/a/long/path", Host="h") == 1
    assert ask(running, "/a/long/path", "POST", Host="h") == 2
    assert ask(running, "/b", Host="h") == 3


def test_equal_routes_the_older_wins_then_the_first(gateway: Start, upstream: Upstream) -> None:
    same = {"paths": ["/a"]}
    running = gateway(routing(upstream, same, same))
    assert ask(running, "/a") == 0
    running.reload(routing(upstream, same | {"created_at": 200}, same | {"created_at": 100}))
    assert ask(running, "/a") == 1


def test_route_without_a_service(serving: Start) -> None:
    reply = serving({"routes": [{"paths": ["/"]}]}).ask("/", headers={"Accept": "*/*"})
    assert (reply.status, reply.json()["message"]) == (503, "no Service found with those values")


def test_disabled_service_has_no_routes(serving: Start, upstream: Upstream) -> None:
    config = routing(upstream, {"paths": ["/a"]}, {"paths": ["/"]})
    config["services"][0]["enabled"] = False
    assert ask(serving(config), "/a") == 1


# Protocols


def test_https_only_asked_by_http_says_426(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, protocols=["https"]))
    reply = running.ask("/x", headers={"Accept": "application/json"})
    assert (reply.status, reply.json()["message"]) == (426, "Please use HTTPS protocol")
    assert reply.headers.get("upgrade") == "TLS/1.2, HTTP/1.1"
    assert "upgrade" in ", ".join(reply.headers.all("connection")).lower()
    assert upstream.requests == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_https_only_redirects(serving: Start, upstream: Upstream, status: int) -> None:
    route = {"protocols": ["https"], "https_redirect_status_code": status}
    running = serving(proxying(upstream, **route))
    reply = running.ask("/x%20y?z=1", headers={"Host": "api.example.com"})
    assert reply.status == status
    assert reply.headers.get("location") == "https://api.example.com/x%20y?z=1"
    assert upstream.requests == []


def test_a_redirect_without_a_host_names_the_address(upstream: Upstream) -> None:
    route = {"protocols": ["https"], "https_redirect_status_code": 301}
    running = Gateway(proxying(upstream, **route))
    running.settings["proxy_listen"] += f", [::1]:{running.proxy_port}"
    with running:
        for address, host in (("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")):
            with socket.create_connection((address, running.proxy_port)) as client:
                client.sendall(b"GET /x?z=1 HTTP/1.0\r\n\r\n")
                head = client.makefile("rb").read()
            assert f"\r\nLocation: https://{host}/x?z=1\r\n".encode() in head


def test_a_redirect_names_no_port_but_that_of_a_trusted_proxy(
    serving: Start, upstream: Upstream
) -> None:
    config = proxying(upstream, protocols=["https"], https_redirect_status_code=301)
    sent = {"Host": "api.example.com:8000", "X-Forwarded-Host": "shop.example.com:8443"}
    for trusted, where in (("", "api.example.com"), ("127.0.0.1", "shop.example.com:8443")):
        running = serving(config, trusted_ips=trusted)
        location = running.ask("/a?b=1", headers=sent).headers.get("location")
        assert location == f"https://{where}/a?b=1"


def test_https_told_by_a_trusted_proxy_is_https(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream, protocols=["https"])
    sent = {"X-Forwarded-Proto": "https"}
    assert gateway(config, trusted_ips="127.0.0.1").ask("/", headers=sent).status == 200
    assert gateway(config).ask("/", headers=sent).status == 426


def test_both_protocols_serve_http(serving: Start, upstream: Upstream) -> None:
    running = serving(proxying(upstream, protocols=["http", "https"]), tls="ssl")
    assert running.ask("/").status == 200
    tls = httpx.get(f"https://127.0.0.1:{running.tls_port}/", trust_env=False, verify=False)
    assert tls.status_code == 200
    seen = [request.headers.get("x-forwarded-proto") for request in upstream.requests]
    assert seen == ["http", "https"]


# At random, against the oracle

HOSTS = ["a.x", "b.x", "a.b.x", "a.x:81", "*.x", "*.b.x", "*.x:82", "a.*", "b.*", "[::1]"]
ASKED_HOSTS = ["a.x", "b.x", "a.b.x", "b.b.x", "a.y", "b.z", "A.X", "[::1]", "c.z"]
PATHS = ["/", "/a", "/b", "/a/b", "/ab", "/a/", "/b/a", "/a-b"]
REGEXES = ["~/a.*", "~/[ab]$", "~/a/(?<x>[a-z]+)", "~/b", "~/(a|b)/b?", "~/.+/b"]
METHODS = ["GET", "POST", "PUT"]
HEADERS = ["x-a", "x-b"]
VALUES = ["1", "one", "~*^o", "~*\\D$"]
SENT = ["1", "one", "ONE", "two"]


def some(dice: random.Random, items: list[str], most: int = 2) -> list[str]:
    """One to most different items."""
    return dice.sample(items, dice.randint(1, most))


def random_route(dice: random.Random) -> dict[str, Any]:
    """A route with at least one condition."""
    route: dict[str, Any] = {}
    while not route:
        if dice.random() < 0.5:
            route["hosts"] = some(dice, HOSTS)
        if dice.random() < 0.7:
            route["paths"] = some(dice, PATHS + REGEXES, 3)
        if dice.random() < 0.3:
            route["methods"] = some(dice, METHODS)
        if dice.random() < 0.3:
            route["headers"] = {n: some(dice, VALUES) for n in some(dice, HEADERS)}
    route["regex_priority"] = dice.randint(0, 2)
    route["created_at"] = dice.randint(1, 3)
    return route


def random_request(dice: random.Random, port: int) -> dict[str, Any]:
    """A request as the oracle takes it."""
    host_port = dice.choice([None, None, 81, 82])
    path = "/" + "".join(dice.choice("ab/-") for _ in range(dice.randint(0, 4)))
    while "//" in path:
        path = path.replace("//", "/")
    return {
        "method": dice.choice(METHODS),
        "host": dice.choice(ASKED_HOSTS),
        "port": host_port or port,
        "port_written": host_port is not None,
        "path": path,
        "headers": {n: some(dice, SENT) for n in HEADERS if dice.random() < 0.5},
    }


def disguise(dice: random.Random, path: str) -> str:
    """Another spelling of the same path."""
    letters = [f"%{ord(c):02x}" if c in "ab" and dice.random() < 0.2 else c for c in path]
    spelled = "".join(letters)
    return dice.choice(["", "", "", "/.", "/x/..", "/"]) + spelled


def oracle(routes: list[dict[str, Any]], requests: list[dict[str, Any]]) -> list[Any]:
    """What the slow router says."""
    lowered = [request | {"host": request["host"].lower()} for request in requests]
    done = ran(
        ["luajit", "test/nginx/support/oracle.lua"],
        input=json.dumps({"routes": routes, "requests": lowered}),
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def send(wire: Wire, request: dict[str, Any], target: str) -> Reply:
    """Sends a request of random_request()."""
    port = f":{request['port']}" if request["port_written"] else ""
    headers = [("Host", request["host"] + port)]
    headers += [(name, v) for name, values in request["headers"].items() for v in values]
    return wire.ask(target, request["method"], headers=headers)


@pytest.mark.parametrize("seed", range(6))
def test_a_real_nginx_routes_as_the_oracle_says(
    serving: Start, upstream: Upstream, seed: int
) -> None:
    dice = random.Random(seed)
    routes = [random_route(dice) for _ in range(dice.randint(5, 40))]
    running = serving(routing(upstream, *routes))
    requests = [random_request(dice, running.proxy_port) for _ in range(100)]
    answers = oracle(routes, requests)
    assert len([answer for answer in answers if answer]) > 20, "mostly 404s prove little"
    with running.wire() as wire:
        for request, answer in zip(requests, answers, strict=True):
            target = disguise(dice, request["path"])
            got = route_of(send(wire, request, target))
            wanted = answer["route"] - 1 if answer else None
            assert got == wanted, (
                f"{request} as {target}\n"
                f"took {got}: {got is not None and routes[got]}\n"
                f"oracle {wanted}: {wanted is not None and routes[wanted]}"
            )
