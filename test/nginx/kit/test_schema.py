"""Schemas of plugins written for Kong: how the Admin API, files and the command line take them."""

from typing import Any

from admin_client import Client

from sluice import Gateway, Start, proxying
from upstream import Upstream

HANDLER = 'return { VERSION = "1.0.0", PRIORITY = 10, access = function(_, conf) ACCESS end }'
SHOWN = """
    ngx.req.set_header("X-Trace", table.concat({
        conf.level, conf.inner.deep, tostring(conf.limit), #conf.key,
    }, " "))
"""
SCHEMA = """
local Schema = require("kong.db.schema")
local typedefs = require("kong.db.schema.typedefs")
local redis = require("kong.tools.redis.schema")
local handler = require("kong.plugins.mine.handler")
local level = Schema.define({ type = "string", one_of = { "low", "high" }, default = "low" })

return {
    name = "mine",
    fields = {
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        { config = {
            type = "record",
            fields = {
                { level = level({ description = "How loud it is." }) },
                { limit = { type = "integer", default = handler.PRIORITY, gt = 0 } },
                { key = { type = "string", auto = true, required = true } },
                { url = typedefs.url },
                { inner = { type = "record", fields = { { deep = { type = "string" } } } } },
                { redis = redis.config_schema },
                { queue = typedefs.queue },
            },
            shorthand_fields = {
                { deep = {
                    type = "string",
                    deprecation = {
                        message = "deep is now inner.deep",
                        removal_in_version = "2.0",
                        replaced_with = { { path = { "inner", "deep" } } },
                    },
                    func = function(value) return { inner = { deep = value } } end,
                } },
            },
            entity_checks = {
                { conditional = {
                    if_field = "level", if_match = { eq = "high" },
                    then_field = "url", then_match = { required = true },
                } },
                { custom_entity_check = {
                    field_sources = { "limit", "url" },
                    fn = function(entity)
                        if entity.limit == 13 and entity.url == ngx.null then
                            return nil, "13 needs a url"
                        end
                        return true
                    end,
                } },
            },
        } },
    },
}
"""
MINE = {"mine": {"handler": HANDLER.replace("ACCESS", SHOWN), "schema": SCHEMA}}


def config_of(client: Client, config: dict[str, Any]) -> dict[str, Any]:
    """What an answer to a new configuration says of it: the configuration, or what is wrong."""
    reply = client.ask("POST", "/plugins", {"name": "mine", "config": config})
    answer: dict[str, dict[str, Any]] = reply.json()
    if reply.status == 201:
        assert client.ask("DELETE", f"/plugins/{answer['id']}").status == 204
        return answer["config"]
    assert reply.status == 400
    return answer["fields"]


def test_configurations_are_taken_as_kong_takes_them(gateway: Start) -> None:
    running = gateway(None, kong_plugins=MINE)
    client = Client(running)
    filled = config_of(client, {"deep": "d"})
    assert len(filled["key"]) >= 32
    assert (filled["level"], filled["limit"], filled["inner"], filled["deep"]) == (
        "low",
        10,
        {"deep": "d"},
        "d",
    )
    assert filled["redis"]["port"] == 6379
    assert filled["queue"]["max_batch_size"] == 1
    assert config_of(client, {"level": None, "limit": None})["limit"] is None
    condition = "failed conditional validation given value of field 'level'"
    for config, fields in (
        ({"level": "high"}, {"url": "required field missing", "@entity": [condition]}),
        ({"limit": 13}, {"@entity": ["13 needs a url"]}),
        (
            {"limit": 0, "leve": 1},
            {"limit": "value must be greater than 0", "leve": "unknown field"},
        ),
        ({"inner": {"deep": 1}}, {"inner": {"deep": "expected a string"}}),
        ({"url": "/x"}, {"url": "missing host in url"}),
        (
            {"deep": "d", "inner": {"deep": "e"}},
            {
                "deep": "both deprecated and new field are used but their values mismatch: "
                "deep = d vs inner.deep = e"
            },
        ),
    ):
        assert config_of(client, config) == {"config": fields}


def test_the_schema_is_shown(gateway: Start) -> None:
    running = gateway(None, kong_plugins=MINE)
    client = Client(running)
    shown = client.ask("GET", "/schemas/plugins/mine").json()
    config = next(field["config"] for field in shown["fields"] if "config" in field)
    fields = {name: field for entry in config["fields"] for name, field in entry.items()}
    assert fields["level"]["one_of"] == ["low", "high"]
    assert fields["level"]["default"] == "low"
    assert fields["inner"]["required"] is True
    valid = {"name": "mine", "config": {}}
    assert client.ask("POST", "/schemas/plugins/validate", valid).status == 200
    valid["config"] = {"limit": "x"}
    refused = client.ask("POST", "/schemas/plugins/validate", valid)
    assert refused.json()["fields"] == {"config": {"limit": "expected an integer"}}


def test_a_file_has_the_same(gateway: Start, upstream: Upstream) -> None:
    plugin = {"name": "mine", "config": {"deep": "d", "key": "k"}}
    running = gateway(proxying(upstream) | {"plugins": [plugin]}, kong_plugins=MINE)
    assert running.ask("/").status == 200
    assert upstream.last.headers.get("x-trace") == "low d 10 1"


def check(files: dict[str, dict[str, str]], config: dict[str, Any]) -> str:
    """What `sluice check`, without nginx, says of a file with one configuration of `mine`."""
    stopped = Gateway(config, kong_plugins=files)
    try:
        return stopped.command("check").stderr
    finally:
        stopped.close()


def test_the_command_line_checks_without_nginx() -> None:
    config = {"_format_version": "3.0", "plugins": [{"name": "mine", "config": {"limit": 13}}]}
    assert "13 needs a url" in check(MINE, config)
    config["plugins"] = [{"name": "mine", "config": {"limit": 12}}]
    assert "mine" not in check(MINE, config)


def test_an_unknown_word_of_a_schema_is_named() -> None:
    wrong = SCHEMA.replace("auto = true", "atuo = true")
    said = check({"mine": MINE["mine"] | {"schema": wrong}}, {"_format_version": "3.0"})
    assert "plugin 'mine': schema.lua: config.key.atuo: unknown field; did you mean auto?" in said
