"""Random chains of plugins, and of their failures, against a slow model of what must happen.

The model knows nothing of how chains are compiled: for each plugin and request it asks the scopes
in the order of their precedence, one by one. The suite makes a few hundred requests;
CHAIN_ROUNDS=400 makes ten thousand (25 requests a round), CHAIN_SEED others.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from changes import document, post

from sluice import Gateway
from upstream import Upstream

Start = Callable[..., Gateway]

SEED = int(os.environ.get("CHAIN_SEED", "1"))
ROUNDS = int(os.environ.get("CHAIN_ROUNDS", "12"))
REQUESTS = 25

SCHEMA = """
schema = { name = "%s", fields = { { config = { type = "record", fields = {
    { tag = { type = "string" } },
    { stop = { type = "integer" } },
    { fail = { type = "string" } },
} } } } },
"""

# In access the plugin may yield, end the request or throw; each phase leaves its tag.
ACCESS = """
access = function(self, conf)
    if conf.fail == "yield" then ngx.sleep(0.001) end
    if conf.fail == "access" then error("failed on purpose") end
    ngx.header["X-Access"] = (ngx.header["X-Access"] or "") .. self.name .. ":" .. conf.tag .. " "
    if conf.stop then pdk.exit(conf.stop) end
end,
"""

HEADER_FILTER = """
header_filter = function(self, conf)
    if conf.fail == "header_filter" then error("failed on purpose") end
    local seen, consumer = ngx.header["X-Filter"] or "", pdk.consumer()
    local who = consumer and consumer.username or "-"
    ngx.header["X-Filter"] = seen .. self.name .. ":" .. conf.tag .. ":" .. who .. " "
end,
"""

CONFIGURE = """
configure = function(self, confs)
    for _, conf in ipairs(confs) do
        if conf.fail == "configure" then error("failed on purpose") end
    end
end,
"""

AUTH = """
access = function(self)
    local name = pdk.header("X-Who")
    local consumer = name and pdk.store():get("consumers", name)
    if consumer then pdk.authenticate(consumer, { id = "c" }) end
end,
"""


@dataclass(frozen=True)
class Plugin:
    """One of those that the chains are made of; equal priorities run by name, backwards."""

    name: str
    priority: int
    body: str

    def source(self) -> str:
        """As a module of Lua."""
        head = 'local pdk = require("gateway.plugin.pdk") return { name = "%s", version = "1", '
        schema = SCHEMA % self.name
        return head % self.name + f"priority = {self.priority}, {schema} {self.body} }}"

    def has(self, phase: str) -> bool:
        """Whether it runs there."""
        return f"{phase} = function" in self.body


PLUGINS = [
    Plugin("first", 3000, ACCESS + HEADER_FILTER),
    Plugin("auth", 2000, AUTH),
    Plugin("alpha", 1000, ACCESS + CONFIGURE),
    Plugin("beta", 500, HEADER_FILTER),
    Plugin("gamma", 500, ACCESS),
    Plugin("omega", 1, ACCESS + HEADER_FILTER + CONFIGURE),
]
ORDER = sorted(PLUGINS, key=lambda plugin: (plugin.priority, plugin.name), reverse=True)

SERVICES = ["s0", "s1"]
ROUTES = {"r0": "s0", "r1": "s0", "r2": "s1"}
CONSUMERS = ["ann", "ben"]

Binding = dict[str, Any]


def make_binding(chosen: random.Random, number: int) -> Binding:
    """Any plugin but auth, in any scope."""
    name = chosen.choice([plugin.name for plugin in PLUGINS if plugin.name != "auth"])
    binding: Binding = {"name": name, "config": {"tag": f"t{number}"}}
    for kind, names in (("route", list(ROUTES)), ("service", SERVICES), ("consumer", CONSUMERS)):
        if chosen.random() < 0.4:
            binding[kind] = chosen.choice(names)
    if chosen.random() < 0.1:
        binding["config"]["stop"] = chosen.choice([200, 403])
    if chosen.random() < 0.15:
        kinds = ["access", "header_filter", "yield", "configure"]
        binding["config"]["fail"] = chosen.choice(kinds)
    if chosen.random() < 0.1:
        binding["enabled"] = False
    return binding


def scope_of(binding: Binding) -> tuple[Any, ...]:
    """What only one configuration of a plugin may have."""
    return (binding["name"], *(binding.get(kind) for kind in ("route", "service", "consumer")))


def change(chosen: random.Random, bindings: list[Binding], number: int) -> list[Binding]:
    """Some go, some come, some are others now."""
    kept = [binding for binding in bindings if chosen.random() < 0.8]
    for i in range(chosen.randrange(1, 8)):
        kept.append(make_binding(chosen, number * 10 + i))
    return list({scope_of(binding): binding for binding in kept}.values())


@dataclass
class Expected:
    """What a request must be answered with."""

    status: int = 200
    access: list[str] = field(default_factory=list)
    filtered: list[str] = field(default_factory=list)
    # The request ended by an error, which leaves the headers of access to nginx.
    is_error: bool = False


class Model:
    """All that is configured, asked one scope after the other."""

    def __init__(self, bindings: list[Binding]) -> None:
        self.bindings = [binding for binding in bindings if binding.get("enabled", True)]

    def find(self, name: str, route: str, consumer: str | None) -> Binding | None:
        """The configuration of a plugin that a request has."""
        service = ROUTES[route]
        scopes = [(None, None, None)]
        scopes += [(None, service, None), (route, None, None)]
        if consumer:
            scopes += [(None, None, consumer)]
        scopes += [(route, service, None)]
        if consumer:
            scopes += [(None, service, consumer), (route, None, consumer)]
            scopes += [(route, service, consumer)]
        for scope in reversed(scopes):
            for binding in self.bindings:
                if scope_of(binding) == (name, *scope):
                    return binding
        return None

    def expect(self, route: str, who: str | None) -> Expected:
        """What the request must be answered with."""
        expected, consumer = Expected(), None
        for plugin in ORDER:
            binding = self.find(plugin.name, route, None)
            if binding and self.fails(plugin, binding, "configure"):
                # Before any step: nobody knows what the plugin would have refused.
                expected.status, expected.is_error = 500, True
        for plugin in ORDER if expected.status == 200 and not expected.is_error else []:
            if plugin.name == "auth":
                consumer = who
                continue
            binding = self.find(plugin.name, route, consumer)
            if not binding or not plugin.has("access"):
                continue
            config = binding["config"]
            if self.fails(plugin, binding, "configure") or config.get("fail") == "access":
                expected.status, expected.is_error = 500, True
                break
            expected.access.append(f"{plugin.name}:{config['tag']}")
            if "stop" in config:
                expected.status = config["stop"]
                break
        for plugin in ORDER:
            binding = self.find(plugin.name, route, consumer)
            if not binding or not plugin.has("header_filter"):
                continue
            failed = self.fails(plugin, binding, "configure")
            if not failed and binding["config"].get("fail") != "header_filter":
                tag = binding["config"]["tag"]
                expected.filtered.append(f"{plugin.name}:{tag}:{consumer or '-'}")
        return expected

    def fails(self, plugin: Plugin, binding: Binding, phase: str) -> bool:
        """Whether a configuration throws in a phase that its plugin has."""
        return plugin.has(phase) and binding["config"].get("fail") == phase


def split(value: str | None) -> list[str]:
    """The tags of a header."""
    return value.split() if value else []


def test_random_chains_do_what_a_slow_model_says(gateway: Start, upstream: Upstream) -> None:
    chosen = random.Random(SEED)
    services: list[dict[str, Any]] = []
    for service in SERVICES:
        routes = [{"name": r, "paths": [f"/{r}"]} for r, s in ROUTES.items() if s == service]
        services.append({"name": service, "url": upstream.url, "routes": routes})
    config: dict[str, Any] = {
        "services": services,
        "consumers": [{"username": name} for name in CONSUMERS],
        "plugins": [{"name": "auth"}],
    }
    running = gateway(config, plugins={plugin.name: plugin.source() for plugin in PLUGINS})
    running.expect_log("failed on purpose", range(100_000))
    bindings: list[Binding] = []
    for number in range(ROUNDS):
        bindings = change(chosen, bindings, number)
        config["plugins"] = [{"name": "auth"}, *bindings]
        answer = post(running, document(config))
        assert answer.status_code == 201, answer.text
        model = Model(bindings)
        for _ in range(REQUESTS):
            route, who = chosen.choice(list(ROUTES)), chosen.choice([None, *CONSUMERS])
            expected = model.expect(route, who)
            reply = running.ask(f"/{route}", headers={"X-Who": who} if who else None)
            where = f"round {number} of CHAIN_SEED={SEED}, {route} by {who}: {bindings}"
            assert reply.status == expected.status, where
            assert split(reply.headers.get("x-filter")) == expected.filtered, where
            if not expected.is_error:
                assert split(reply.headers.get("x-access")) == expected.access, where
