"""What plugins are configured with: all of it at once, and one table for each configuration."""

from typing import Any

from admin_client import Client
from changes import document, post

from processes import ran
from sluice import COMMAND, Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

CONFIG = '{ tag = { type = "string", default = "none" } }'

# In each worker, of which there is one that serves traffic.
CONFIGURE = """
return {
    VERSION = "1.0.0", PRIORITY = 1,
    configure = function(self, configs)
        local tags = {}
        for i, conf in ipairs(configs or {}) do
            tags[i] = conf.tag
            if conf.tag == "bad" then error({}) end
        end
        table.sort(tags)
        kong.log.notice("given ", configs and table.concat(tags, "+") or "nil", ";")
    end,
}
"""


def lists(tags: str, upstream: Upstream) -> dict[str, Any]:
    """A configuration in which the plugin has these tags, each on a route of its own."""
    config = proxying(upstream)
    config["services"][0]["routes"] = [
        {
            "name": f"r{number}",
            "paths": [f"/{number}"],
            "plugins": [{"name": "lists", "config": {"tag": tag}}],
        }
        for number, tag in enumerate(tags)
    ]
    return config


def change(running: Gateway, config: dict[str, Any]) -> None:
    """Makes it live, in the workers that there are."""
    assert post(running, document(config)).status_code == 201


def test_a_worker_is_given_all_of_them_after_each_change(
    gateway: Start, upstream: Upstream
) -> None:
    """Without a request; nil where there are none; a change of something else gives nothing."""
    running = gateway(
        lists("ab", upstream), kong_plugins={"lists": {"handler": CONFIGURE, "config": CONFIG}}
    )

    def given() -> list[str]:
        lines = running.error_log().split("[lists] given ")[1:]
        return [line.partition(";")[0] for line in lines]

    wait_until(lambda: given() == ["a+b"], "the first list")
    change(running, lists("abc", upstream))
    wait_until(lambda: given() == ["a+b", "a+b+c"], "the second list")
    other = lists("abc", upstream)
    other["services"][0]["retries"] = 1
    change(running, other)
    change(running, lists("", upstream))
    wait_until(lambda: given()[-1] == "nil", "a list without any")
    assert given() == ["a+b", "a+b+c", "nil"]


def test_a_configuration_of_a_consumer_or_of_a_group(gateway: Start, upstream: Upstream) -> None:
    """What stands for them before it is known who asks has no configuration, and nobody sees it."""
    config = lists("a", upstream)
    plugin = {"name": "lists", "config": {"tag": "c"}}
    config["consumers"] = [{"username": "ann", "plugins": [plugin]}]
    config["consumer_groups"] = [{"name": "gold"}]
    config["plugins"] = [{**plugin, "config": {"tag": "g"}, "consumer_group": "gold"}]
    running = gateway(config, kong_plugins={"lists": {"handler": CONFIGURE, "config": CONFIG}})
    wait_until(lambda: "[lists] given a+c+g;" in running.error_log(), "the list")
    assert running.get("/0").status_code == 200


def test_one_that_throws_is_named_until_it_does_not(gateway: Start, upstream: Upstream) -> None:
    config = lists("a", upstream)
    running = gateway(config, kong_plugins={"lists": {"handler": CONFIGURE, "config": CONFIG}})
    running.expect_log(r"plugin 'lists' failed in configure: table:", range(1, 9))
    change(running, config | {"plugins": [bad()]})
    admin = Client(running)

    def failures() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = admin.must(200, "GET", "/status")["plugins_failed"]
        return found

    (failure,) = wait_until(failures, "the failure")
    assert (failure["plugin"], failure["phase"]) == ("lists", "configure")
    change(running, lists("b", upstream))
    wait_until(lambda: not failures(), "the failure to be forgotten")


def bad() -> dict[str, Any]:
    """A configuration that the plugin throws on."""
    return {"name": "lists", "config": {"tag": "bad"}}


TABLES = """
local seen = setmetatable({}, { __mode = "k" })
return {
    VERSION = "1.0.0", PRIORITY = 1,
    access = function(self, conf)
        seen[conf] = (seen[conf] or 0) + 1
        conf.mine = (conf.mine or 0) + 1
        if conf.tag == "held" then self.held = conf end
        ngx.header["X-Seen"] = seen[conf] .. " " .. conf.mine
        ngx.header["X-Of"] = table.concat({
            tostring(conf.route_id), tostring(conf.service_id), tostring(conf.consumer_id),
            conf.__plugin_id, tostring(kong.plugin.get_id()), conf.__key__,
        }, " ")
    end,
}
"""


def test_a_configuration_is_one_table_that_plugins_may_write_to(
    gateway: Start, upstream: Upstream
) -> None:
    """As long as anybody holds it, whatever else the worker has met between."""
    tags = ["held"] + ["other"] * 2100
    config = proxying(upstream)
    config["services"][0]["routes"] = [
        {"name": f"r{number}", "paths": [f"/{number}/"], "plugins": [tables(tag)]}
        for number, tag in enumerate(tags)
    ]
    running = gateway(config, kong_plugins={"tables": {"handler": TABLES, "config": CONFIG}})
    first = running.ask("/0/")
    assert first.headers.get("x-seen") == "1 1"
    assert running.ask("/0/").headers.get("x-seen") == "2 2"
    for number in range(1, 2101):
        assert running.ask(f"/{number}/").status == 200
    assert running.ask("/0/").headers.get("x-seen") == "3 3"


def tables(tag: str) -> dict[str, Any]:
    """A configuration of the plugin above."""
    return {"name": "tables", "config": {"tag": tag}}


def test_it_says_whose_it_is(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream)
    config["services"][0]["routes"][0]["plugins"] = [tables("a")]
    running = gateway(config, kong_plugins={"tables": {"handler": TABLES, "config": CONFIG}})
    admin = Client(running)
    (route,) = admin.must(200, "GET", "/routes")["data"]
    (plugin,) = admin.must(200, "GET", "/plugins")["data"]
    of = running.ask("/").headers.get("x-of")
    key = f"plugins:tables:{route['id']}:::"
    assert of == f"{route['id']} nil nil {plugin['id']} {plugin['id']} {key}:"


FAILS = """
local function fail(phase) return function(_, conf)
    local is_last = phase ~= "body_filter" or ngx.arg[2]
    if conf.tag == phase and is_last then error({}) end
end end
return {
    VERSION = "1.0.0", PRIORITY = 1,
    rewrite = fail("rewrite"), access = fail("access"), header_filter = fail("header_filter"),
    body_filter = fail("body_filter"), log = fail("log"),
}
"""


def test_a_plugin_that_throws_is_named(gateway: Start, upstream: Upstream) -> None:
    """In the log, the status and the metrics; what it can hurt is its own request."""
    phases = ["access", "header_filter", "body_filter", "log"]
    config = proxying(upstream)
    config["services"][0]["routes"] = [
        {"name": tag, "paths": [f"/{tag}"], "plugins": [{"name": "fails", "config": {"tag": tag}}]}
        for tag in [*phases, "none"]
    ]
    running = gateway(config, kong_plugins={"fails": {"handler": FAILS, "config": CONFIG}})
    for phase in phases:
        running.expect_log(f"plugin 'fails' failed in {phase}: table:", 1)
        assert running.ask(f"/{phase}").status == (500 if phase == "access" else 200)
    assert running.ask("/none").status == 200
    admin = Client(running)
    text = admin.ask("GET", "/metrics").body.decode()
    for phase in phases:
        assert f'sluice_plugin_failures_total{{plugin="fails",phase="{phase}"}} 1' in text
    status = admin.must(200, "GET", "/status")
    failed = status["plugins_failed"]
    assert {entry["phase"] for entry in failed} == set(phases)
    assert {entry["plugin"] for entry in failed} == {"fails"}
    counts = [(one["plugin"], one["phase"], one["count"]) for one in status["plugin_failures"]]
    assert sorted(counts) == sorted(("fails", phase, 1) for phase in phases)
    said = ran([COMMAND, "status"], env=running.environment()).stdout
    for phase in phases:
        assert f" fails: 1 error in {phase} since the last start or reload; see error.log\n" in said
