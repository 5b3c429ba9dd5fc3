"""Plugins of groups of consumers: who gets their configurations, and since when.

Which one wins is for `test_chain_random.py`. Here everything changes while the gateway runs: who is
in a group, what a group has, and what it is called. One plugin is in Lua, one in C.
"""

from typing import Any

import pytest
from admin_client import Client

from sluice import Gateway, Start, proxying
from upstream import Upstream

MARK = """
local pdk = require("gateway.pdk")
return {
    VERSION = "1", PRIORITY = 500,
    schema = { name = "mark", fields = { { config = { type = "record", fields = {
        { tag = { type = "string", required = true } },
    } } } } },
    access = function(self, conf)
        ngx.header["X-Access"] = conf.tag
    end,
    header_filter = function(self, conf)
        ngx.header["X-Filter"] = conf.tag
    end,
}
"""


def mark(tag: str) -> dict[str, Any]:
    """A configuration of the plugin in Lua."""
    return {"name": "mark", "config": {"tag": tag}}


def limit(hour: int) -> dict[str, Any]:
    """One of the plugin in C."""
    return {"name": "rate-limiting", "config": {"hour": hour}}


def start(gateway: Start, upstream: Upstream, **key_auth: object) -> tuple[Gateway, Client]:
    """With two consumers and two groups, nobody in them and nothing of theirs."""
    running = gateway(None, plugins={"mark": MARK})
    client = Client(running)
    names = ("ann", "ben")
    client.must(
        201,
        "POST",
        "/config",
        proxying(upstream)
        | {
            "_format_version": "3.0",
            "consumers": [
                {"username": name, "keyauth_credentials": [{"key": name}]} for name in names
            ],
            "consumer_groups": [{"name": "gold"}, {"name": "silver"}],
            "plugins": [{"name": "key-auth", "config": key_auth}, limit(100), mark("all")],
        },
    )
    return running, client


def given(running: Gateway, key: str | None) -> tuple[int, str | None, str | None, str | None]:
    """The status, and what the plugins were configured with: in access, later, and in C."""
    reply = running.ask("/", headers={"apikey": key} if key else {})
    headers = [reply.headers.get(f"x-{name}") for name in ("access", "filter")]
    return (reply.status, *headers, reply.headers.get("x-ratelimit-limit-hour"))


ALL = (200, "all", "all", "100")
GOLD = (200, "gold", "gold", "9")


def test_whoever_is_in_a_group_has_what_it_has(gateway: Start, upstream: Upstream) -> None:
    running, client = start(gateway, upstream)
    made = [
        client.must(201, "POST", "/consumer_groups/gold/plugins", plugin)
        for plugin in (limit(9), mark("gold"))
    ]
    assert [given(running, key) for key in ("ann", "ben")] == [ALL, ALL]
    for _ in range(3):
        client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": "ann"})
        assert [given(running, key) for key in ("ann", "ben")] == [GOLD, ALL]
        client.must(204, "DELETE", "/consumers/ann/consumer_groups/gold")
        assert [given(running, key) for key in ("ann", "ben")] == [ALL, ALL]
    client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": ["ann", "ben"]})
    assert [given(running, key) for key in ("ann", "ben")] == [GOLD, GOLD]
    # What a group has changes for all who are in it.
    client.must(200, "PATCH", f"/plugins/{made[1]['id']}", {"config": {"tag": "new"}})
    assert given(running, "ann") == (200, "new", "new", "9")
    client.must(200, "PATCH", f"/plugins/{made[0]['id']}", {"config": {"hour": 8}})
    assert given(running, "ben") == (200, "new", "new", "8")
    client.must(200, "PATCH", f"/plugins/{made[1]['id']}", {"enabled": False})
    assert given(running, "ann") == (200, "all", "all", "8")
    client.must(204, "DELETE", f"/consumer_groups/gold/plugins/{made[0]['id']}")
    assert given(running, "ben") == ALL
    client.must(200, "PATCH", f"/plugins/{made[1]['id']}", {"enabled": True})
    assert given(running, "ben") == (200, "new", "new", "100")
    client.must(204, "DELETE", "/consumer_groups/gold")
    assert [given(running, key) for key in ("ann", "ben")] == [ALL, ALL]


def test_a_plugin_that_groups_alone_have(gateway: Start, upstream: Upstream) -> None:
    running, client = start(gateway, upstream)
    for plugin in client.must(200, "GET", "/plugins")["data"]:
        if plugin["name"] != "key-auth":
            client.must(204, "DELETE", f"/plugins/{plugin['id']}")
    none = (200, None, None, None)
    client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": "ann"})
    assert given(running, "ann") == none
    for plugin in (limit(9), mark("gold")):
        client.must(201, "POST", "/consumer_groups/gold/plugins", plugin)
    assert [given(running, key) for key in ("ann", "ben", None)] == [
        GOLD,
        none,
        (401, None, None, None),
    ]


def test_of_several_groups_the_first_by_name(gateway: Start, upstream: Upstream) -> None:
    running, client = start(gateway, upstream)
    client.must(201, "POST", "/consumers/ann/consumer_groups", {"group": ["silver", "gold"]})
    for name in ("silver", "gold"):
        client.must(201, "POST", f"/consumer_groups/{name}/plugins", mark(name))
    client.must(201, "POST", "/consumer_groups/silver/plugins", limit(50))
    # Of each plugin by itself: the limit is the other group's.
    assert given(running, "ann") == (200, "gold", "gold", "50")
    for name in ("a", "silvers", "z"):
        renamed = client.must(200, "GET", "/consumer_groups/gold")["consumer_group"]["id"]
        client.must(200, "PATCH", f"/consumer_groups/{renamed}", {"name": name})
        tag = "gold" if name < "silver" else "silver"
        assert given(running, "ann") == (200, tag, tag, "50")
        client.must(200, "PATCH", f"/consumer_groups/{renamed}", {"name": "gold"})
    # Capitals come first, as their bytes do.
    client.must(200, "PATCH", "/consumer_groups/silver", {"name": "Silver"})
    assert given(running, "ann") == (200, "silver", "silver", "50")
    # A scope that says more wins over a name.
    service = client.must(200, "GET", "/services")["data"][0]["id"]
    own = mark("gold of the service") | {"service": service}
    client.must(201, "POST", "/consumer_groups/gold/plugins", own)
    assert given(running, "ann")[1] == "gold of the service"


def test_who_is_nobody_and_who_is_anonymous(gateway: Start, upstream: Upstream) -> None:
    running, client = start(gateway, upstream, anonymous="ben")
    for plugin in (limit(9), mark("gold")):
        client.must(201, "POST", "/consumer_groups/gold/plugins", plugin)
    assert given(running, None) == ALL
    client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": "ben"})
    assert [given(running, key) for key in (None, "wrong", "ann")] == [GOLD, GOLD, ALL]
    for plugin in client.must(200, "GET", "/plugins?size=1000")["data"]:
        if plugin["name"] == "key-auth":
            client.must(204, "DELETE", f"/plugins/{plugin['id']}")
    # Without authentication a key says nothing.
    assert [given(running, key) for key in (None, "ben")] == [ALL, ALL]


@pytest.mark.parametrize("form", ["nested", "flat", "decK"])
def test_in_files(gateway: Start, upstream: Upstream, form: str) -> None:
    group: dict[str, Any] = {"name": "gold"}
    consumer: dict[str, Any] = {"username": "ann", "keyauth_credentials": [{"key": "ann"}]}
    config: dict[str, Any] = proxying(upstream) | {
        "consumers": [consumer],
        "consumer_groups": [group],
        "plugins": [{"name": "key-auth"}, limit(100), mark("all")],
    }
    plugins = [limit(9), mark("gold")]
    if form == "flat":
        config["plugins"] += [plugin | {"consumer_group": "gold"} for plugin in plugins]
        pair = {"consumer": "ann", "consumer_group": "gold"}
        config["consumer_group_consumers"] = [pair]
    else:
        group["plugins"] = plugins
        if form == "decK":
            consumer["groups"] = [{"name": "gold"}]
        else:
            group["consumer_group_consumers"] = [{"consumer": "ann"}]
    running = gateway(config, plugins={"mark": MARK})
    assert given(running, "ann") == GOLD


def test_ids_of_plugins_without_a_group_are_what_they_were(gateway: Start) -> None:
    """A counter of rate-limiting goes with its plugin's id."""
    file = {"plugins": [limit(1)], "consumer_groups": [{"name": "gold", "plugins": [limit(2)]}]}
    client = Client(gateway(file))
    ids = {p["config"]["hour"]: p["id"] for p in client.must(200, "GET", "/plugins")["data"]}
    # RFC 4122, version 5, of "plugins:*:rate-limiting:::".
    assert ids[1] == "8328de13-9a5c-5a91-8f06-fb4062fec696"
    assert ids[2] != ids[1]
