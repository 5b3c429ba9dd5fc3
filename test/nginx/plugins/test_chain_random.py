"""Random chains of plugins, and of their failures, against a slow model of what must happen.

The model knows nothing of how chains are compiled: for each plugin and request it asks the scopes
in the order of their precedence, one by one. Plugins are in Lua and in C, and some rounds have an
upstream that is dead. The check makes a few hundred requests, the long run ten thousand (25 a
round); SEED makes others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from changes import document, post
from seeds import seed_of
from soaks import soak

from sluice import Gateway, Start
from upstream import DeadPort, Upstream

SEED = seed_of("chain_random")
ROUNDS = soak(12, 400)
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
    for _, conf in ipairs(confs or {}) do
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
    body: str = ""
    """In Lua; "" of one in C."""

    def source(self) -> str:
        """As a module of Lua."""
        head = 'local pdk = require("gateway.pdk") return { name = "%s", VERSION = "1", '
        schema = SCHEMA % self.name
        return head % self.name + f"PRIORITY = {self.priority}, {schema} {self.body} }}"

    def has(self, phase: str) -> bool:
        """Whether it runs there."""
        return f"{phase} = function" in self.body


PLUGINS = [
    Plugin("first", 3000, ACCESS + HEADER_FILTER),
    Plugin("auth", 2000, AUTH),
    Plugin("key-auth", 1250),
    Plugin("alpha", 1000, ACCESS + CONFIGURE),
    Plugin("rate-limiting", 910),
    Plugin("beta", 500, HEADER_FILTER),
    Plugin("gamma", 500, ACCESS),
    Plugin("omega", 1, ACCESS + HEADER_FILTER + CONFIGURE),
]
ORDER = sorted(PLUGINS, key=lambda plugin: (plugin.priority, plugin.name), reverse=True)

SERVICES = ["s0", "s1"]
ROUTES = {"r0": "s0", "r1": "s0", "r2": "s1"}
CONSUMERS = ["ann", "ben"]
GROUPS = ["gold", "gol", "silver"]

# Kong's: whether a route, whether a service, and whose.
PRECEDENCE = [
    (True, True, "consumer"),
    (True, True, "group"),
    (True, False, "consumer"),
    (False, True, "consumer"),
    (True, False, "group"),
    (False, True, "group"),
    (True, True, ""),
    (False, False, "consumer"),
    (False, False, "group"),
    (True, False, ""),
    (False, True, ""),
    (False, False, ""),
]

Binding = dict[str, Any]
Groups = dict[str, list[str]]
"""By consumer."""


def make_binding(chosen: random.Random, number: int) -> Binding:
    """Any plugin but auth, in any scope."""
    name = chosen.choice([plugin.name for plugin in PLUGINS if plugin.name != "auth"])
    binding: Binding = {"name": name, "config": {"tag": f"t{number}"}}
    if name == "key-auth":
        binding["config"] = {"anonymous": chosen.choice([None, *CONSUMERS])}
    elif name == "rate-limiting":
        limits = [2, 7, 1000 + number]
        binding["config"] = {"year": chosen.choice(limits), "limit_by": "service"}
    owner, owners = chosen.choice([("consumer", CONSUMERS), ("consumer_group", GROUPS)])
    for kind, names in (("route", list(ROUTES)), ("service", SERVICES), (owner, owners)):
        if chosen.random() < 0.4 and not (name == "key-auth" and kind == owner):
            binding[kind] = chosen.choice(names)
    if name in ("key-auth", "rate-limiting"):
        return binding
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
    kinds = ("route", "service", "consumer", "consumer_group")
    return (binding["name"], *(binding.get(kind) for kind in kinds))


def make_crowd(chosen: random.Random, number: int) -> list[Binding]:
    """Of one plugin in many scopes that one request has: any two of them may meet."""
    name, route = chosen.choice(["alpha", "rate-limiting"]), chosen.choice(list(ROUTES))
    consumer, crowd = chosen.choice(CONSUMERS), []
    for i, (has_route, has_service, owner) in enumerate(PRECEDENCE):
        config = {"tag": f"c{number}.{i}"}
        limits = {"year": 10_000 + 100 * number + i, "limit_by": "service"}
        binding: Binding = {"name": name, "config": config if name == "alpha" else limits}
        if has_route:
            binding["route"] = route
        if has_service:
            binding["service"] = ROUTES[route]
        if owner == "consumer":
            binding["consumer"] = consumer
        elif owner:
            binding["consumer_group"] = chosen.choice(GROUPS)
        if chosen.random() < 0.4:
            crowd.append(binding)
    return crowd


def change(chosen: random.Random, bindings: list[Binding], number: int) -> list[Binding]:
    """Some go, some come, some are others now."""
    kept = [binding for binding in bindings if chosen.random() < 0.8]
    for i in range(chosen.randrange(1, 8)):
        kept.append(make_binding(chosen, number * 10 + i))
    kept += make_crowd(chosen, number)
    return list({scope_of(binding): binding for binding in kept}.values())


@dataclass
class Expected:
    """What a request must be answered with."""

    status: int = 200
    access: list[str] = field(default_factory=list)
    filtered: list[str] = field(default_factory=list)
    limit: tuple[int, int] | None = None
    """Of the rule that has counted it, and how many are left."""
    # The request ended by an error, which leaves the headers of access to nginx.
    is_error: bool = False


class Model:
    """All that is configured, asked one scope after the other."""

    def __init__(
        self, bindings: list[Binding], groups: Groups, dead: str, before: Model | None
    ) -> None:
        self.bindings = [binding for binding in bindings if binding.get("enabled", True)]
        self.groups = groups
        self.dead = dead
        scopes = {scope_of(binding) for binding in bindings}
        counted = before.counted if before else {}
        self.counted = {
            (scope, service): count
            for (scope, service), count in counted.items()
            if scope in scopes
        }
        """By rule and service; a rule that is gone for a while begins anew."""

    def find(self, name: str, route: str, consumer: str | None) -> Binding | None:
        """The configuration of a plugin that a request has."""
        service = ROUTES[route]
        groups = sorted(self.groups.get(consumer or "", []))
        scopes: list[tuple[str | None, ...]] = []
        for has_route, has_service, owner in PRECEDENCE:
            where = (route if has_route else None, service if has_service else None)
            if owner == "consumer" and consumer:
                scopes.append((*where, consumer, None))
            elif owner == "group":
                scopes += [(*where, None, group) for group in groups]
            elif not owner:
                scopes.append((*where, None, None))
        for scope in scopes:
            for binding in self.bindings:
                if scope_of(binding) == (name, *scope):
                    return binding
        return None

    def expect(self, route: str, who: str | None, key: str | None) -> Expected:
        """What the request must be answered with."""
        expected, consumer, has_credential, ended = Expected(), None, False, False
        for plugin in ORDER:
            if plugin.name == "auth":
                consumer, has_credential = who, who is not None
                continue
            binding = self.find(plugin.name, route, consumer)
            if not binding or not (plugin.has("access") or not plugin.body):
                continue
            config = binding["config"]
            if config.get("fail") == "access":
                expected.status, expected.is_error, ended = 500, True, True
                break
            if plugin.name == "key-auth":
                if has_credential and config["anonymous"]:
                    continue
                consumer = key if key in CONSUMERS else config["anonymous"]
                has_credential = key in CONSUMERS
                if not consumer:
                    expected.status, consumer = 401, who
            elif plugin.name == "rate-limiting":
                expected.status = self.count(expected, binding, ROUTES[route])
            else:
                expected.access.append(f"{plugin.name}:{config['tag']}")
                expected.status = config.get("stop", expected.status)
            ended = expected.status != 200 or "stop" in config
            if ended:
                break
        if not ended and ROUTES[route] == self.dead:
            expected.status, expected.is_error = 502, True
        for plugin in ORDER:
            binding = self.find(plugin.name, route, consumer)
            if not binding or not plugin.has("header_filter"):
                continue
            if binding["config"].get("fail") != "header_filter":
                tag = binding["config"]["tag"]
                expected.filtered.append(f"{plugin.name}:{tag}:{consumer or '-'}")
        return expected

    def count(self, expected: Expected, binding: Binding, service: str) -> int:
        """The status after a rule has counted a request, or has not."""
        limit, rule = binding["config"]["year"], (scope_of(binding), service)
        used = self.counted.get(rule, 0)
        if used < limit:
            self.counted[rule] = used + 1
        expected.limit = (limit, max(0, limit - used - 1))
        return 200 if used < limit else 429


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
        "consumers": [
            {"username": name, "keyauth_credentials": [{"key": name}]} for name in CONSUMERS
        ],
        "consumer_groups": [{"name": name} for name in GROUPS],
        "plugins": [{"name": "auth"}],
    }
    sources = {plugin.name: plugin.source() for plugin in PLUGINS if plugin.body}
    running = gateway(config, plugins=sources)
    running.expect_log("failed on purpose", range(100_000))
    running.expect_log(r"connect\(\) failed", range(100_000))
    bindings: list[Binding] = []
    model: Model | None = None
    with DeadPort() as port:
        for number in range(ROUNDS):
            bindings = change(chosen, bindings, number)
            config["plugins"] = [{"name": "auth"}, *bindings]
            groups = {name: [g for g in GROUPS if chosen.random() < 0.5] for name in CONSUMERS}
            for consumer in config["consumers"]:
                consumer["groups"] = [{"name": name} for name in groups[consumer["username"]]]
            dead = chosen.choice([*SERVICES, "", "", ""])
            for service in services:
                service["url"] = port.url if service["name"] == dead else upstream.url
            answer = post(running, document(config))
            assert answer.status_code == 201, answer.text
            model = Model(bindings, groups, dead, model)
            where = f"round {number} of SEED={SEED}, {dead} is dead, {groups}, {bindings}"
            for _ in range(REQUESTS):
                check(running, model, chosen, where)


def check(running: Gateway, model: Model, chosen: random.Random, where: str) -> None:
    """Asks for a random route as anybody."""
    route, who = chosen.choice(list(ROUTES)), chosen.choice([None, *CONSUMERS])
    key = chosen.choice([None, "wrong", *CONSUMERS])
    expected = model.expect(route, who, key)
    headers = {"X-Who": who, "apikey": key}
    reply = running.ask(f"/{route}", headers={n: v for n, v in headers.items() if v})
    where = f"{route} by {who} with {key}: {where}"
    assert reply.status == expected.status, where
    assert split(reply.headers.get("x-filter")) == expected.filtered, where
    if expected.is_error:
        return
    assert split(reply.headers.get("x-access")) == expected.access, where
    told = [reply.headers.get(f"x-ratelimit-{what}-year") for what in ("limit", "remaining")]
    assert told == ([str(n) for n in expected.limit] if expected.limit else [None, None]), where
