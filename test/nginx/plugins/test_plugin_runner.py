"""The plugin runner with plugins made up here: phases, order, scopes, precedence, failures."""

from typing import Any

import pytest
from tracer import plugin, tracer

from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

ONE = {"one": tracer("one", 100, "access")}

AUTH = """
    access = function(self, conf)
        local name = pdk.header("X-Who")
        local consumer = name and pdk.store():get("consumers", name)
        if consumer then pdk.authenticate(consumer, { id = "c" }) end
    end,
"""


def traced(upstream: Upstream) -> str | None:
    """What the plugins wrote into the latest request."""
    return upstream.last.headers.get("x-trace")


# Phases


def test_all_phases_run_in_kongs_order(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200, body=b"body", chunked=True)
    phases = ["rewrite", "access", "header_filter", "body_filter", "log"]
    note = """%s = function(self, conf)
        ngx.ctx.seen = (ngx.ctx.seen or "") .. "%s "
        %s
    end,"""
    bodies = [note % (p, p, "") for p in phases[:3]]
    bodies.append(note % ("body_filter", "x", 'ngx.ctx.seen = ngx.ctx.seen:gsub("x $", "")'))
    bodies.append(note % ("log", "log", 'ngx.log(ngx.NOTICE, "phases: ", ngx.ctx.seen)'))
    config = proxying(upstream) | {"plugins": [{"name": "all"}]}
    running = gateway(config, plugins={"all": plugin("all", 1, "\n".join(bodies))})
    running.expect_log("phases: rewrite access header_filter log ", 1)
    assert running.ask("/").status == 200


def test_a_plugin_that_ends_the_access_phase_says_so(gateway: Start, upstream: Upstream) -> None:
    """Neither the plugins after it have run then, nor is there a Host header or a path."""
    early = plugin("early", 1, "access = function() return ngx.exit(ngx.OK) end,")
    config = proxying(upstream) | {"plugins": [{"name": "early"}]}
    running = gateway(config, plugins={"early": early})
    running.expect_log("a plugin has ended the access phase before the request had a peer")
    assert running.ask("/").status == 500
    assert not upstream.requests


def test_init_worker_and_configure(gateway: Start, upstream: Upstream) -> None:
    source = plugin(
        "life",
        1,
        """
        init_worker = function(self) ngx.log(ngx.NOTICE, "life: init_worker") end,
        configure = function(self, confs)
            local tags = {}
            for i, conf in ipairs(confs) do tags[i] = conf.tag end
            table.sort(tags)
            ngx.log(ngx.NOTICE, "life: configured ", table.concat(tags, "+"), ";")
        end,
        """,
    )
    config = proxying(upstream) | {
        "plugins": [
            {"name": "life", "config": {"tag": "a"}},
            {"name": "life", "config": {"tag": "b"}, "service": "service"},
            {"name": "life", "config": {"tag": "c"}, "route": "route", "enabled": False},
        ]
    }
    running = gateway(config, plugins={"life": source})
    running.expect_log("life: init_worker", 2)  # in the control worker, too
    running.expect_log(r"life: configured a\+b;", 1)  # both at once, without the disabled one
    for _ in range(2):
        assert running.ask("/").status == 200


def test_a_failed_init_worker_keeps_nobody_from_starting(
    gateway: Start, upstream: Upstream
) -> None:
    """Neither the plugins behind it nor its own requests, as in Kong; the log names it."""
    sources = {
        "broken": plugin("broken", 9, "init_worker = function() error({}) end,"),
        "behind": plugin(
            "behind",
            1,
            """
            init_worker = function(self) self.is_ready = true end,
            access = function(self)
                ngx.req.set_header("X-Trace", self.is_ready and "ready" or "not ready")
            end,
            """,
        ),
    }
    config = proxying(upstream) | {"plugins": [{"name": "broken"}, {"name": "behind"}]}
    running = gateway(config, plugins=sources)
    running.expect_log("plugin 'broken' failed in init_worker: table", 4)  # two workers, and again
    assert running.ask("/").status == 200
    assert traced(upstream) == "ready"
    running.reload(running.file.read_text().replace('"paths": ["/"]', '"paths": ["/other"]'))
    assert running.ask("/other").status == 200


def test_response_phases_change_the_answer(gateway: Start, upstream: Upstream) -> None:
    upstream.answer(200, body=b"body", chunked=True)
    config = proxying(upstream) | {"plugins": [{"name": "one", "config": {"tag": "t"}}]}
    running = gateway(config, plugins={"one": tracer("one", 1)})
    running.expect_log(r"logged by one:t 200", 1)
    reply = running.ask("/")
    assert (reply.headers.get("x-filtered"), reply.body) == ("one:t", b"body one")


@pytest.mark.parametrize("buffering", [True, False])
@pytest.mark.parametrize("phase", ["access", "header_filter", "body_filter", "log"])
def test_each_phase_alone(gateway: Start, upstream: Upstream, phase: str, buffering: bool) -> None:
    upstream.answer(200, body=b"body", chunked=True)
    route = {"request_buffering": buffering, "response_buffering": buffering}
    config = proxying(upstream, **route) | {"plugins": [{"name": "one"}]}
    running = gateway(config, plugins={"one": tracer("one", 1, phase)})
    running.expect_log("logged by one:default 200", 2 if phase == "log" else 0)
    for _ in range(2):
        reply = running.ask("/x?y", "POST", body=b"x" * 20_000)
        assert reply.status == 200
        assert upstream.last.target == "/x?y"
        assert len(upstream.last.body) == 20_000
        assert reply.body == (b"body one" if phase == "body_filter" else b"body")
        assert ("x-filtered" in reply.headers) == (phase == "header_filter")
        assert ("x-trace" in upstream.last.headers) == (phase == "access")


def test_order_is_by_priority(gateway: Start, upstream: Upstream) -> None:
    sources = {n: tracer(n, p) for n, p in (("low", 10), ("high", 1000), ("mid", 500))}
    config = proxying(upstream) | {"plugins": [{"name": name} for name in sources]}
    running = gateway(config, plugins=sources)
    reply = running.ask("/")
    assert traced(upstream) == "high:default mid:default low:default"
    assert reply.headers.get("x-filtered") == "high:default mid:default low:default"


# Scopes


def scoped(upstream: Upstream, *scopes: str) -> dict[str, Any]:
    """A configuration with plugin `one` in each scope, its tag naming the scope."""
    plugins = []
    for scope in scopes:
        entity: dict[str, Any] = {"name": "one", "config": {"tag": scope}}
        for kind in ("route", "service", "consumer"):
            if kind[0] in scope:
                entity[kind] = {"route": "route", "service": "service", "consumer": "anna"}[kind]
        plugins.append(entity)
    plugins.append({"name": "auth"})
    other = {"name": "other", "url": upstream.url, "routes": [{"paths": ["/other"]}]}
    config = proxying(upstream)
    config["services"].append(other)
    return config | {"plugins": plugins, "consumers": [{"username": "anna"}, {"username": "bob"}]}


# r route, s service, c consumer; "-" is global. In order: the most specific first.
SCOPES = ["rsc", "rc", "sc", "rs", "c", "r", "s", "-"]


@pytest.mark.parametrize("first", range(len(SCOPES)), ids=lambda n: SCOPES[n])
def test_the_most_specific_scope_wins(gateway: Start, upstream: Upstream, first: int) -> None:
    scopes = SCOPES[first:]
    sources = ONE | {"auth": plugin("auth", 1000, AUTH)}
    running = gateway(scoped(upstream, *reversed(scopes)), plugins=sources)

    def ran(target: str, who: str | None) -> str:
        headers = {"X-Who": who} if who else None
        assert running.ask(target, headers=headers).status == 200
        return (traced(upstream) or ":none").split(":")[1]

    def best(*allowed: str) -> str:
        return next((scope for scope in scopes if scope in allowed), "none")

    assert ran("/", "anna") == scopes[0]
    assert ran("/", "bob") == best("rs", "r", "s", "-")
    assert ran("/", None) == best("rs", "r", "s", "-")
    assert ran("/other", "anna") == best("c", "-")
    assert ran("/other", "bob") == best("-")


def test_a_disabled_plugin_does_not_run(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {
        "plugins": [
            {"name": "one", "config": {"tag": "global"}},
            {"name": "one", "config": {"tag": "route"}, "route": "route", "enabled": False},
        ]
    }
    running = gateway(config, plugins=ONE)
    assert running.ask("/").status == 200
    assert traced(upstream) == "one:global"


def test_unmatched_requests_pass_the_late_phases_of_global_plugins(
    gateway: Start, upstream: Upstream
) -> None:
    config = proxying(upstream, paths=["/x"]) | {"plugins": [{"name": "one"}]}
    running = gateway(config, plugins={"one": tracer("one", 1, "header_filter log")})
    running.expect_log("logged by one:default 404", 1)
    reply = running.ask("/")
    assert (reply.status, reply.headers.get("x-filtered")) == (404, "one:default")


def test_what_a_rewrite_answers_passes_the_late_phases_of_global_plugins(
    gateway: Start, upstream: Upstream
) -> None:
    gate = plugin(
        "gate",
        500,
        """
        rewrite = function(self, conf)
            if pdk.header("X-Stop") then return pdk.exit(403, "stop") end
        end,
        """,
    )
    config = proxying(upstream) | {"plugins": [{"name": "gate"}, {"name": "one"}]}
    plugins = {"gate": gate, "one": tracer("one", 1, "header_filter log")}
    running = gateway(config, plugins=plugins)
    running.expect_log("logged by one:default 403", 1)
    running.expect_log("logged by one:default 200", 1)
    stopped = running.ask("/", headers={"X-Stop": "1"})
    assert (stopped.status, stopped.headers.get("x-filtered")) == (403, "one:default")
    assert running.ask("/").headers.get("x-filtered") == "one:default"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 400),
    ],
)
def test_refused_requests_are_logged_by_global_plugins(
    gateway: Start, upstream: Upstream, data: bytes, status: int
) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "one"}]}
    running = gateway(config, plugins={"one": tracer("one", 1, "log")})
    before = running.error_log().count("logged by one:")
    with running.wire() as wire:
        wire.send(data)
        assert wire.read_reply().status == status
    wait_until(lambda: running.error_log().count("logged by one:") > before, "the log phase")


def test_errors_of_the_upstream_pass_the_late_phases(gateway: Start) -> None:
    config = proxying("http://127.0.0.1:1", service={"retries": 0})
    config["plugins"] = [{"name": "one"}]
    running = gateway(config, plugins={"one": tracer("one", 1)})
    running.expect_log(r"connect\(\) failed", 1)
    running.expect_log(r"logged by one:default 502", 1)
    reply = running.ask("/", headers={"Accept": "text/plain"})
    assert (reply.status, reply.headers.get("x-filtered")) == (502, "one:default")
    assert reply.body.endswith(b" one")


# Ends and failures


def test_a_plugin_can_end_the_request(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {
        "plugins": [{"name": "first", "config": {"stop": 403}}, {"name": "second"}]
    }
    sources = {"first": tracer("first", 2), "second": tracer("second", 1)}
    running = gateway(config, plugins=sources)
    with running.wire() as wire:
        reply = wire.ask("/", "POST", body=b"x" * 1000)
        assert reply.status == 403
        assert reply.body.startswith(b'{"by":"first"}')
        # Later phases run for all plugins, as in Kong.
        assert reply.headers.get("x-filtered") == "first:default second:default"
        assert wire.ask("/").status == 403
    assert upstream.requests == []


def test_an_error_in_access_answers_500(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "one", "config": {"fail": "access"}}]}
    running = gateway(config, plugins={"one": tracer("one", 1, "access")})
    running.expect_log("failed on purpose", 1)
    reply = running.ask("/", headers={"Accept": "application/json"})
    assert reply.status == 500
    assert reply.json()["message"] == "An unexpected error occurred"
    assert upstream.requests == []


@pytest.mark.parametrize("phase", ["header_filter", "body_filter", "log"])
def test_an_error_in_a_late_phase_is_logged_and_the_others_run(
    gateway: Start, upstream: Upstream, phase: str
) -> None:
    upstream.answer(200, body=b"body", chunked=True)
    config = proxying(upstream) | {
        "plugins": [{"name": "bad", "config": {"fail": phase}}, {"name": "good"}]
    }
    sources = {"bad": tracer("bad", 2, phase), "good": tracer("good", 1, phase)}
    running = gateway(config, plugins=sources)
    running.expect_log("failed on purpose", range(1, 4))
    if phase == "log":
        running.expect_log("logged by good", 1)
    reply = running.ask("/")
    assert reply.status == 200
    if phase == "header_filter":
        assert reply.headers.get("x-filtered") == "good:default"
    if phase == "body_filter":
        assert reply.text.endswith(" good")


def test_a_plugin_may_yield_in_access(gateway: Start, upstream: Upstream) -> None:
    """Many requests asleep at once each keep their own context."""
    source = plugin(
        "sleepy",
        1,
        """
        access = function(self, conf)
            ngx.ctx.mine = ngx.var.arg_n
            ngx.sleep(0.01)
            ngx.req.set_header("X-Mine", ngx.ctx.mine)
        end,
        header_filter = function(self, conf) ngx.header["X-Mine"] = ngx.ctx.mine end,
        """,
    )
    config = proxying(upstream) | {"plugins": [{"name": "sleepy"}]}
    running = gateway(config, plugins={"sleepy": source})
    wires = [running.wire() for _ in range(40)]
    for number, wire in enumerate(wires):
        wire.send(f"GET /?n={number} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    for number, wire in enumerate(wires):
        reply = wire.read_reply()
        assert reply.headers.get("x-mine") == str(number)
        seen = dict(map(tuple, reply.json()["headers"]))
        assert seen["X-Mine"] == str(number)
        wire.close()


def test_contexts_do_not_leak_between_requests_of_a_connection(
    gateway: Start, upstream: Upstream
) -> None:
    source = plugin(
        "once",
        1,
        """
        access = function(self, conf)
            ngx.header["X-Before"] = ngx.ctx.mark or "nothing"
            ngx.ctx.mark = "marked"
        end,
        """,
    )
    config = proxying(upstream) | {"plugins": [{"name": "once"}]}
    with gateway(config, plugins={"once": source}).wire() as wire:
        assert {wire.ask("/").headers.get("x-before") for _ in range(5)} == {"nothing"}


def test_a_plugin_sees_kongs_entities(gateway: Start, upstream: Upstream) -> None:
    source = plugin(
        "look",
        1,
        """
        access = function(self, conf)
            pdk.exit(200, {
                route = pdk.route().name,
                service = pdk.service().name,
                path = pdk.path(),
                ip = pdk.client_ip(),
                header = pdk.header("X-A"),
            })
        end,
        """,
    )
    config = proxying(upstream) | {"plugins": [{"name": "look"}]}
    running = gateway(config, plugins={"look": source})
    reply = running.ask("/a/../b%41?c", headers={"X-A": "1"})
    assert reply.json() == {
        "route": "route",
        "service": "service",
        "path": "/bA",
        "ip": "127.0.0.1",
        "header": "1",
    }


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("return 1", "plugin 'broken': handler.lua: does not return a table"),
        ('error("bang")', "bang"),
        (
            'return { VERSION = "1" }',
            "plugin 'broken': handler.lua: lacks PRIORITY, an integer; write PRIORITY = 1000",
        ),
        (
            "return { PRIORITY = 1 }",
            "plugin 'broken': handler.lua: lacks VERSION, a text; write VERSION =",
        ),
        (
            "return { PRIORITY = 1, VERSION = 1 }",
            "plugin 'broken': handler.lua: VERSION: text of the form",
        ),
        ('return { VERSION = "1", PRIORITY = 1, log = 1 }', "handler.lua: log: function expected"),
        (
            'return { VERSION = "1", PRIORITY = 1, native = true, pack = print, log = print }',
            "handler.lua: log: a native plugin has its phases in C",
        ),
        ('return { VERSION = "1", PRIORITY = 1, native = true }', "pack: function expected"),
        (
            'return { VERSION = "1", PRIORITY = 1, schema = { name = "broken" } }',
            "plugin 'broken': schema.lua: fields: 'fields' must be a table",
        ),
        (
            'return { VERSION = "1", PRIORITY = 1, schema = { name = "else", fields = {} } }',
            "schema.lua: the schema's name is 'else'; expected 'broken', the name of its folder",
        ),
        (
            """return { VERSION = "1", PRIORITY = 1, schema = { name = "broken", fields = {} },
            daos = { {} } }""",
            "plugin 'broken': daos.lua: schemas with a name expected",
        ),
        (
            """return { VERSION = "1", PRIORITY = 1, schema = { name = "broken", fields = {} },
            daos = { { name = "routes", primary_key = { "id" },
            fields = { { id = { type = "string", uuid = true } } } } } }""",
            "plugin 'broken': daos.lua: the kind 'routes' exists already",
        ),
    ],
)
def test_a_broken_plugin_refuses_to_start(source: str, words: str) -> None:
    broken = Gateway({}, plugins={"broken": source})
    done = broken.command("start")
    broken.discard()
    assert done.returncode != 0
    assert words in done.stderr


def test_an_unknown_plugin_refuses_to_start(upstream: Upstream) -> None:
    unknown = Gateway(proxying(upstream) | {"plugins": [{"name": "no-such"}]})
    done = unknown.command("start")
    unknown.discard()
    assert done.returncode != 0
    assert "no-such" in done.stderr
