"""The steps of a request, as others see them: who strips, checks, matches and asks before whom."""

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Pairs


def by_header(upstream: Upstream, name: str) -> dict:
    """Requests with this header go to /with, others to /without."""
    routes = {"with": {"headers": {name: ["v"]}}, "without": {"paths": ["/"]}}
    return {
        "services": [
            {"name": path, "url": f"{upstream.url}/{path}", "routes": [{"name": path} | route]}
            for path, route in routes.items()
        ]
    }


def routed(running: Gateway, headers: Pairs) -> str:
    """The route that a request takes."""
    reply = running.ask("/", headers=headers)
    assert reply.status == 200
    return reply.json()["target"].strip("/")


def test_what_is_stripped_is_not_matched(serving: Start, upstream: Upstream) -> None:
    """A header in the gateway's name is gone before routes look at headers."""
    running = serving(by_header(upstream, "X-Consumer-Username"))
    for name in ("X-Consumer-Username", "x_consumer_username"):
        assert routed(running, [(name, "v")]) == "without"


def test_what_connection_names_is_not_matched(serving: Start, upstream: Upstream) -> None:
    running = serving(by_header(upstream, "X-Team"))
    assert routed(running, [("X-Team", "v")]) == "with"
    assert routed(running, [("X-Team", "v"), ("Connection", "X-Team")]) == "without"


def test_what_is_refused_is_not_matched(serving: Start, upstream: Upstream) -> None:
    """No route has the path: whoever is refused first says so."""
    running = serving(proxying(upstream, paths=["/there"]))
    assert running.ask("/nowhere").status == 404
    assert running.ask("/nowhere", headers=[("Host", "a:99999")]).status == 400
    assert running.ask("/nowhere/..%2fa").status == 400
    assert not upstream.requests


def test_what_is_not_matched_has_no_plugins(serving: Start, upstream: Upstream) -> None:
    """A plugin refuses only what has a route, and nothing that it refuses goes on."""
    config = proxying(upstream, paths=["/there"])
    running = serving(config | {"plugins": [{"name": "key-auth"}]})
    assert running.ask("/nowhere").status == 404
    assert running.ask("/there", headers=[("Host", "a:99999")]).status == 400
    assert running.ask("/there").status == 401
    assert not upstream.requests


def test_https_is_asked_for_before_a_key(serving: Start, upstream: Upstream) -> None:
    """Else a client would send its key once more where all can read it."""
    config = proxying(upstream, protocols=["https"])
    running = serving(config | {"plugins": [{"name": "key-auth"}]})
    assert running.ask("/").status == 426
    assert not upstream.requests
