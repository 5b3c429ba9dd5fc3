"""What a worker keeps of a configuration between requests, and what a change does to it."""

from collections import Counter

from changes import change

from sluice import Start, proxying
from upstream import Upstream

TAG = {
    "tag": """
local pdk = require("gateway.pdk")
return {
    VERSION = "1", PRIORITY = 10,
    schema = { name = "tag", fields = {
        { config = { type = "record", fields = {
            { text = { type = "string", required = true } },
        } } },
    } },
    access = function(_, conf)
        local route, service = pdk.route(), pdk.service()
        ngx.header["X-Tag"] = conf.text
        ngx.header["X-Route"] = route.name .. " of " .. service.name
    end,
}
"""
}


def test_a_rotation_goes_on_over_changes_elsewhere(gateway: Start, servers: list[Upstream]) -> None:
    """Of routes, of other services, and of what plans are made of."""
    targets = [{"target": server.address} for server in servers]
    config = proxying("http://balanced") | {"upstreams": [{"name": "balanced", "targets": targets}]}
    running = gateway(config)
    order = [running.ask("/").json()["upstream"]]
    for number in range(8):
        other = {"name": f"other-{number}", "url": "http://127.0.0.1:1"}
        other["routes"] = [{"name": f"r-{number}", "paths": [f"/other-{number}"]}]
        config["services"].append(other)
        change(running, config)
        order.append(running.ask("/").json()["upstream"])
    assert order[:3] * 3 == order
    # Its own targets are another matter.
    del targets[2]
    change(running, config)
    assert Counter(running.ask("/").json()["upstream"] for _ in range(8)) == {"a": 4, "b": 4}


def test_routes_that_differ_only_in_what_they_match_are_told_apart(
    gateway: Start, upstream: Upstream
) -> None:
    """More of them than are kept, with what differs between their plans."""
    config = proxying(f"{upstream.url}/base")
    routes = config["services"][0]["routes"]
    routes.clear()
    for i in range(3000):
        route = {"name": f"r{i}", "paths": [f"/r{i}/"], "strip_path": i % 2 == 0}
        routes.append(route | {"preserve_host": i % 3 == 0})
    running = gateway(config)
    with running.wire() as wire:
        for i in [*range(0, 3000, 7), *range(20), *range(0, 3000, 7)]:
            assert wire.ask(f"/r{i}/x", headers={"Host": "client.example"}).status == 200
            path = "/x" if i % 2 == 0 else f"/r{i}/x"
            assert upstream.last.target == f"/base{path}"
            host = "client.example" if i % 3 == 0 else upstream.address
            assert upstream.last.headers.get("host") == host


def test_plugins_follow_their_scopes_through_changes(gateway: Start, upstream: Upstream) -> None:
    """Bindings come and go; another route, service or consumer is not concerned."""
    config = proxying(upstream)
    config["services"][0]["routes"].append({"name": "second", "paths": ["/2"]})
    config["plugins"] = [{"name": "tag", "config": {"text": "global"}}]
    running = gateway(config, plugins=TAG)

    def tags() -> list[str | None]:
        replies = [running.ask(path) for path in ("/", "/2")]
        routes = [reply.headers.get("x-route") for reply in replies]
        assert routes == ["route of service", "second of service"]
        return [reply.headers.get("x-tag") for reply in replies]

    assert tags() == ["global", "global"]
    config["plugins"].append({"name": "tag", "config": {"text": "r"}, "route": "second"})
    change(running, config)
    assert tags() == ["global", "r"]
    config["plugins"].append({"name": "tag", "config": {"text": "s"}, "service": "service"})
    change(running, config)
    assert tags() == ["s", "r"]
    config["plugins"][1]["config"]["text"] = "r2"
    change(running, config)
    assert tags() == ["s", "r2"]
    del config["plugins"][1]
    change(running, config)
    assert tags() == ["s", "s"]


def test_a_consumers_configuration_is_in_force_at_once(gateway: Start, upstream: Upstream) -> None:
    """Also where none had one before, and of a consumer whose key is known already."""
    config = proxying(upstream)
    config["plugins"] = [{"name": "key-auth"}, {"name": "tag", "config": {"text": "global"}}]
    config["consumers"] = [
        {"username": name, "keyauth_credentials": [{"key": f"{name}-key"}]} for name in ("a", "b")
    ]
    running = gateway(config, plugins=TAG)

    def tags() -> list[str | None]:
        keys = [{"apikey": f"{name}-key"} for name in ("a", "b")]
        return [running.ask("/", headers=key).headers.get("x-tag") for key in keys]

    assert tags() == ["global", "global"]
    own = {"name": "tag", "config": {"text": "a's"}}
    config["consumers"][0]["plugins"] = [own]
    change(running, config)
    assert tags() == ["a's", "global"]
    own["route"] = "route"
    own["config"]["text"] = "a's on route"
    change(running, config)
    assert tags() == ["a's on route", "global"]
    config["consumers"][0]["plugins"] = []
    change(running, config)
    assert tags() == ["global", "global"]
    # A key that a worker has just found is looked for again after any change.
    config["consumers"][0]["keyauth_credentials"] = []
    change(running, config)
    assert running.ask("/", headers={"apikey": "a-key"}).status == 401
