"""`transformations` of schemas written for Kong: what is kept in place of what was given."""

import pytest
from admin_client import Client, uuid

from sluice import Config, Gateway, Start, proxying
from upstream import Upstream

HANDLER = """
-- as many plugins do
local badges = kong.db.badges
return {
    VERSION = "1.0.0", PRIORITY = 1,
    access = function(_, conf)
        local badge = badges:select_by_name("one")
        ngx.req.set_header("X-Kept", conf.pin .. " " .. (badge and badge.pin or "none"))
        if ngx.req.get_headers()["x-new"] then
            local _, _, err = badges:update_by_name("one", { pin = "bad" })
            kong.response.exit(200, err)
        end
    end,
}
"""

SCHEMA = """
return {
    name = "keeper",
    fields = { { config = { type = "record", fields = {
        { pin = { type = "string" } },
        { note = { type = "string" } },
    } } } },
    transformations = { {
        input = { "config.pin" },
        on_write = function(pin)
            if pin == "bad" then return nil, "a bad pin" end
            return { config = { pin = pin .. "+" } }
        end,
    } },
}
"""

DAOS = """
local typedefs = require("kong.db.schema.typedefs")
return { {
    name = "badges",
    primary_key = { "id" },
    endpoint_key = "name",
    cache_key = { "name" },
    admin_api_name = "badges",
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        { consumer = { type = "foreign", reference = "consumers", on_delete = "cascade" } },
        { name = { type = "string", required = true, unique = true } },
        { pin = { type = "string" } },
        { note = { type = "string" } },
    },
    transformations = { {
        input = { "pin" },
        needs = { "consumer.id" },
        on_write = function(pin, id)
            if pin == "bad" then return nil, "a bad pin" end
            return { pin = pin .. "@" .. id:sub(-1) }
        end,
    } },
} }
"""
KEEPER = {"keeper": {"handler": HANDLER, "schema": SCHEMA, "daos": DAOS}}
FAILED = "transformation failed: a bad pin"
MUTUALLY = "all or none of these fields must be set: 'pin', 'consumer.id'"


@pytest.fixture
def made(gateway: Start, upstream: Upstream) -> Gateway:
    """With a store, two consumers, and the plugin on every request."""
    running = gateway(None, kong_plugins=KEEPER)
    client = Client(running)
    client.must(201, "POST", "/services", {"name": "echo", "url": upstream.url})
    client.must(201, "POST", "/services/echo/routes", {"paths": ["/"]})
    for number, name in enumerate(("ann", "ben"), 1):
        client.must(201, "POST", "/consumers", {"username": name, "id": uuid(number)})
    return running


def test_it_is_made_once_of_what_was_given(made: Gateway, upstream: Upstream) -> None:
    client = Client(made)
    path = "/consumers/ann/badges/one"
    badge = client.must(201, "POST", "/consumers/ann/badges", {"name": "one", "pin": "7"})
    assert badge["pin"] == "7@1"
    assert client.must(200, "PATCH", path, {"note": "n"})["pin"] == "7@1"
    assert client.must(200, "PATCH", path, {"pin": "8"})["pin"] == "8@1"
    plugin = client.must(201, "POST", "/plugins", {"name": "keeper", "config": {"pin": "1"}})
    assert plugin["config"]["pin"] == "1+"
    path = f"/plugins/{plugin['id']}"
    assert client.must(200, "PATCH", path, {"config": {"note": "n"}})["config"]["pin"] == "1+"
    assert client.must(200, "PATCH", path, {"config": {"pin": "2"}})["config"]["pin"] == "2+"
    reply = client.form("PATCH", path, "config.pin=3")
    assert reply.json()["config"] == {"pin": "3+", "note": "n"}
    made.ask("/")
    assert upstream.last.headers.get("x-kept") == "3+ 8@1"


def test_what_cannot_be_made_is_refused_and_nothing_changes(made: Gateway) -> None:
    client = Client(made)
    badge = client.must(201, "POST", "/consumers/ann/badges", {"name": "one", "pin": "7"})
    plugin = client.must(201, "POST", "/plugins", {"name": "keeper", "config": {"pin": "1"}})
    before = client.ask("GET", "/badges").headers.get("sluice-revision")
    assert before
    bad = {"pin": "bad"}
    for method, target, value, message in (
        ("POST", "/consumers/ann/badges", {"name": "two"} | bad, FAILED),
        ("PUT", "/consumers/ann/badges/two", bad, FAILED),
        ("PATCH", f"/badges/{badge['id']}", bad, FAILED),
        ("PATCH", "/badges/one", {"consumer": {"username": "ben"}}, MUTUALLY),
        ("POST", "/badges", {"name": "two", "pin": "7"}, MUTUALLY),
        ("POST", "/plugins", {"name": "keeper", "config": bad}, FAILED),
        ("PATCH", f"/plugins/{plugin['id']}", {"config": bad}, FAILED),
    ):
        error = client.must(400, method, target, value)
        assert (error["code"], error["fields"]) == (2, {"@entity": [message]}), target
    assert client.ask("GET", "/badges").headers.get("sluice-revision") == before
    assert client.must(200, "GET", "/badges")["data"] == [badge]
    assert client.must(200, "PATCH", "/badges/one", {"consumer": {"username": "ann"}})
    moved = client.must(200, "PATCH", "/badges/one", {"consumer": {"username": "ben"}, "pin": "9"})
    assert moved["pin"] == "9@2"


def test_a_plugin_is_told(made: Gateway) -> None:
    client = Client(made)
    client.must(201, "POST", "/consumers/ann/badges", {"name": "one", "pin": "7"})
    client.must(201, "POST", "/plugins", {"name": "keeper", "config": {"pin": "1"}})
    error = made.ask("/", headers=[("X-New", "1")]).json()
    assert (error["name"], error["fields"]) == ("schema violation", {"@entity": [FAILED]})
    assert client.must(200, "GET", "/badges/one")["pin"] == "7@1"


def test_files(gateway: Start, upstream: Upstream) -> None:
    """One that is refused changes nothing; one may have what is kept."""

    def config(pin: str) -> Config:
        badges = [{"name": "one", "pin": pin}]
        return proxying(upstream) | {
            "_format_version": "3.0",
            "consumers": [{"username": "ann", "id": uuid(1), "badges": badges}],
            "plugins": [{"name": "keeper", "config": {"pin": pin}}],
        }

    running = gateway(None, kong_plugins=KEEPER)
    client = Client(running)
    client.must(201, "POST", "/config", config("7"))
    running.ask("/")
    assert upstream.last.headers.get("x-kept") == "7+ 7@1"
    error = client.must(400, "POST", "/config?flatten_errors=1", config("bad"))
    told = {
        each["entity_type"]: [one["message"] for one in each["errors"]]
        for each in error["flattened_errors"]
    }
    assert told == {"badge": [FAILED], "plugin": [FAILED]}
    running.ask("/")
    assert upstream.last.headers.get("x-kept") == "7+ 7@1"
    again = config("7@1") | {"_transform": False}
    client.must(201, "POST", "/config", again)
    running.ask("/")
    assert upstream.last.headers.get("x-kept") == "7@1 7@1"
