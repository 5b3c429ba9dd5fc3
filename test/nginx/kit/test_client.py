"""`kong.client`, `kong.router`, `kong.node`, `kong.nginx`, `kong.table`: who asks, and where."""

import base64
import re
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from kit_asking import ASKING, Answer, ask, headers, read

from certificates import Pair, connect, context, make
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Stream, Wire, parse_head, request_bytes, wait_until

ID = "0e8c9d4a-77e6-4f7a-9d7b-0c6f0f1c5a11"


def config(upstream: Upstream) -> dict[str, Any]:
    """Two consumers, one with a key; key-auth where a request asks for it."""
    found = proxying(upstream)
    found["services"][0]["routes"].append(
        {
            "name": "guarded",
            "paths": ["/guarded"],
            "plugins": [{"name": "key-auth", "config": {"anonymous": "bob"}}],
        }
    )
    return found | {
        "plugins": [
            {"name": "asking"},
            {
                "name": "request-termination",
                "consumer": "anna",
                "config": {"status_code": 418},
            },
        ],
        "consumers": [
            {
                "id": ID,
                "username": "anna",
                "custom_id": "a1",
                "keyauth_credentials": [{"key": "secret", "id": ID.replace("0e8c", "1111")}],
            },
            {"username": "bob"},
        ],
    }


@pytest.fixture(scope="module")
def shared() -> Iterator[Gateway]:
    """One for most tests."""
    with Upstream() as upstream, Gateway(config(upstream), kong_plugins=ASKING) as running:
        yield running


# The connection


def test_addresses(shared: Gateway) -> None:
    code = """
        local c = kong.client
        return c.get_ip(), c.get_forwarded_ip(), c.get_port(), c.get_forwarded_port()
    """
    with Wire(shared.proxy_port) as wire:
        port = wire.sock.getsockname()[1]
        wire.send(request_bytes("/", headers={"X-Forwarded-For": "1.2.3.4"} | headers(code)))
        assert read(wire.read_reply().body).values == ["127.0.0.1", "127.0.0.1", port, port]


def test_addresses_of_a_trusted_proxy(gateway: Start, upstream: Upstream) -> None:
    running = gateway(
        proxying(upstream) | {"plugins": [{"name": "asking"}]},
        kong_plugins=ASKING,
        trusted_ips="127.0.0.1",
        real_ip_header="X-Forwarded-For",
    )
    code = """
        local c = kong.client
        return c.get_ip(), c.get_forwarded_ip(), c.get_port() > 0, c.get_forwarded_port()
    """
    told = ask(running, code, headers={"X-Forwarded-For": "1.2.3.4"}).values
    assert told[:3] == ["127.0.0.1", "1.2.3.4", True]
    protocol = "return kong.client.get_protocol(true), kong.client.get_protocol()"
    assert ask(running, protocol, headers={"X-Forwarded-Proto": "HTTPS"}).values == [
        "https",
        "http",
    ]
    told = ask(running, protocol, headers={"X-Forwarded-Proto": "https, http"})
    assert told.values[0] is None


# Authentication


def test_nobody(shared: Gateway) -> None:
    code = "return kong.client.get_consumer(), kong.client.get_credential()"
    assert ask(shared, code).values == [None, None]


def test_who_a_native_plugin_has_found(shared: Gateway) -> None:
    code = """
        local consumer, credential = kong.client.get_consumer(), kong.client.get_credential()
        return consumer.username, consumer.custom_id, consumer.id, credential.consumer.id,
            ngx.ctx.authenticated_consumer == consumer,
            ngx.ctx.authenticated_credential == credential, kong.client.get_consumer() == consumer
    """
    told = ask(shared, code, "/guarded", headers={"apikey": "secret"}).values
    assert told == ["anna", "a1", ID, ID, True, True, True]
    code = "return kong.client.get_consumer().username, kong.client.get_credential()"
    assert ask(shared, code, "/guarded").values == ["bob", None]


def test_each_request_has_its_own(shared: Gateway) -> None:
    """On one connection, one worker: nobody is told of another one's."""
    code = "local c = kong.client.get_consumer() return c and c.username"
    with Wire(shared.proxy_port) as wire:
        for key, found in [("secret", "anna"), ("", "bob"), ("secret", "anna"), ("x", "bob")] * 3:
            sent = headers(code) | ({"apikey": key} if key else {})
            wire.send(request_bytes("/guarded", headers=sent))
            assert read(wire.read_reply().body).value == found
            wire.send(request_bytes("/", headers=headers(code)))
            assert read(wire.read_reply().body).value is None


def test_authenticate(gateway: Start, upstream: Upstream) -> None:
    """Later plugins run as for that consumer; the upstream is told what the plugin tells it."""
    code = """
        local own = { id = "%s", username = "made", mine = { 1 } }
        local before = kong.client.get_consumer()
        kong.client.authenticate(own, { id = "of my own" })
        ngx.req.set_header("Said", tostring(before) .. " " .. tostring(
            kong.client.get_consumer() == own and kong.client.get_credential().id))
    """
    running = gateway(config(upstream), kong_plugins=ASKING)
    with Wire(running.proxy_port) as wire:
        sent = headers(code % ID, "through")
        wire.send(request_bytes("/", headers=sent))
        assert wire.read_reply().status == 418, "the consumer's plugin has run"
    assert not upstream.requests
    assert running.ask("/", headers=headers(code % "x", "through")).status == 200
    assert upstream.last.headers.get("said") == "nil of my own"
    names = upstream.last.headers.names()
    assert not names & {"x-consumer-id", "x-anonymous-consumer", "x-credential-identifier"}


def test_a_request_sent_elsewhere_is_nobodys_again(gateway: Start, upstream: Upstream) -> None:
    """ngx.exec begins with a new ngx.ctx, as in Kong."""
    code = """
        if not ngx.req.is_internal() then
            kong.client.authenticate({ id = "x" }, { id = "y" })
            assert(kong.client.get_consumer().id == "x")
            return ngx.exec("/elsewhere", "a=1")
        end
        local found = tostring(kong.client.get_consumer())
        kong.client.authenticate({ id = "z" })
        ngx.req.set_header("Said", found .. " " .. kong.client.get_consumer().id)
    """
    running = gateway(config(upstream), kong_plugins=ASKING)
    for _ in range(3):
        assert running.ask("/", headers=headers(code, "through")).status == 200
        assert upstream.last.headers.get("said") == "nil z"


def test_authenticate_by_ngx_ctx(shared: Gateway) -> None:
    """As old plugins do it."""
    code = """
        ngx.ctx.authenticated_credential = { id = "c" }
        ngx.ctx.authenticated_consumer = { id = "x", username = "y" }
        local found = kong.client.get_consumer()
        ngx.ctx.authenticated_consumer = { id = "z" }
        return found.username, kong.client.get_credential().id, kong.client.get_consumer().id,
            rawget(ngx.ctx, "authenticated_consumer")
    """
    assert ask(shared, code).values == ["y", "c", "z", None]


def test_authenticate_checks_its_arguments(shared: Gateway) -> None:
    for call, message in {
        "authenticate()": "either credential or consumer must be provided",
        "authenticate('x')": "consumer must be a table or nil",
        "authenticate(nil, 1)": "credential must be a table or nil",
        "load_consumer()": "consumer_id must be a string",
        "load_consumer('x')": "cannot load a consumer with an id that is not a uuid",
    }.items():
        told = ask(shared, f"kong.client.{call}")
        assert not told.ok
        assert told.values == [f'[string "asked"]:1: {message}']


def test_load_consumer(shared: Gateway) -> None:
    code = """
        local load = kong.client.load_consumer
        local function name(...) local found = load(...) return found and found.username end
        return name(ID), name(ID, true), name("anna", true), name("bob", true), name("x", true),
            name("00000000-0000-4000-8000-000000000000"), name(ID:upper())
    """.replace("ID", f'("{ID}")')
    assert ask(shared, code).values == ["anna", "anna", "anna", "bob", None, None, "anna"]


# Routes


def test_the_route_and_its_service(shared: Gateway) -> None:
    code = """
        local route, service = kong.router.get_route(), kong.router.get_service()
        return route.name, service.name, route.paths, ngx.ctx.route == route,
            ngx.ctx.service == service, kong.client.get_protocol()
    """
    told = ask(shared, code, "/guarded/x").values
    assert told == ["guarded", "service", ["/guarded"], True, True, "http"]


def test_before_a_route_is_matched(shared: Gateway) -> None:
    code = "return kong.router.get_route()"
    told = read(shared.ask("/", headers=headers(code, "rewrite")).body)
    assert not told.ok
    assert "cannot be called in rewrite phase (only in: access, response, " in told.values[0]
    reply = shared.ask("/", headers=headers("return ngx.ctx.route, ngx.ctx.nothing", "rewrite"))
    assert read(reply.body).values == [None, None]


# TLS


def test_the_certificates_of_a_client(gateway: Start, upstream: Upstream) -> None:
    """Its own first, as it has sent them; and what logs say of them."""
    root = make("root", is_ca=True)
    middle = make("middle", is_ca=True, issuer=root)
    shown = make("client", issuer=middle)
    running = gateway(
        proxying(upstream) | {"plugins": [{"name": "asking"}]},
        kong_plugins=ASKING,
        tls="ssl",
        ask_client_certificate=True,
    )
    code = "return kong.client.tls.get_full_client_certificate_chain()"
    assert over_tls(running, code, shown).values == [shown.cert]
    assert over_tls(running, code, None).values == [None, None]
    assert ask(running, code).values == [None, None]
    verify = """
        kong.client.tls.set_client_verify("FAILED:by me")
        return pcall(kong.client.tls.set_client_verify, "other")
    """
    ok, why = over_tls(running, verify, shown).values
    assert not ok
    assert "unknown client verify value: other" in why
    for name in ("request_client_certificate", "disable_session_reuse", "disable_http2_alpn"):
        told = over_tls(running, f"kong.client.tls.{name}()", None)
        assert "function cannot be called in access phase" in told.values[0]


def over_tls(running: Gateway, code: str, shown: Pair | None) -> Answer:
    """Asks with a certificate, or without one."""
    with connect(running.tls_port, "h", context(client=shown)) as wrapped:
        stream = Stream(wrapped)
        stream.send(request_bytes("/", headers=headers(code)))
        head, found = parse_head(stream.read_until(b"\r\n\r\n"))
        assert head.split(" ")[1] == "200"
        return read(stream.read_exactly(int(found.get("content-length") or 0)))


# The node


def test_the_node(shared: Gateway) -> None:
    code = """
        local n = kong.node
        return n.get_id(), n.get_id() == n.get_id(), n.get_hostname(), kong.nginx.get_subsystem(),
            kong.nginx.get_statistics(), kong.version_num
    """
    found, same, name, subsystem, statistics, number = ask(shared, code).values
    assert found == httpx.get(shared.admin, trust_env=False).json()["node_id"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found)
    assert (same, name, subsystem) == (True, socket.gethostname(), "http")
    assert statistics["total_requests"] >= 1
    assert statistics["connections_active"] >= 1
    assert number == 3009003


def test_memory(shared: Gateway) -> None:
    code = """
        local bytes, texts = kong.node.get_memory_stats(), kong.node.get_memory_stats("K", 1)
        local dictionary = bytes.lua_shared_dicts.kong
        return dictionary.capacity, dictionary.allocated_slabs > 0, bytes.workers_lua_vms,
            texts.lua_shared_dicts.kong.capacity, texts.workers_lua_vms[1].http_allocated_gc
    """
    capacity, used, heaps, text, heap = ask(shared, code).values
    assert (capacity, used, text) == (5 << 20, True, "5120.0 KiB")
    assert {row["pid"] for row in heaps} >= set(shared.workers())
    assert all(row["http_allocated_gc"] > 100_000 for row in heaps)
    assert re.fullmatch(r"\d+\.\d KiB", heap)
    told = ask(shared, 'kong.node.get_memory_stats("x")')
    assert (told.ok, "invalid unit 'x'" in told.values[0]) == (False, True)


def test_dictionaries_of_kong(shared: Gateway) -> None:
    code = """
        local names = {}
        for name in pairs(ngx.shared) do names[#names + 1] = name end
        table.sort(names)
        return names, (ngx.shared.kong_rate_limiting_counters:set("a", 1))
    """
    names, done = ask(shared, code).values
    assert {"kong", "kong_db_cache", "kong_locks", "prometheus_metrics"} <= set(names)
    assert done is True


HIDES = """
return {
    VERSION = "1.0.0", PRIORITY = 1,
    access = function()
        local found = kong.cache:get("a", nil, function() return "loaded" end)
        kong.response.exit(200, found .. " " .. tostring(kong.cache:probe("a")))
    end,
}
"""


def test_a_plugin_that_hides_a_bundled_one_has_them(gateway: Start, upstream: Upstream) -> None:
    """By its name it is Sluice's; `kong.cache` shares what it has by dictionaries."""
    config = proxying(upstream) | {"plugins": [{"name": "cors"}]}
    running = gateway(config, kong_plugins={"cors": {"handler": HIDES}})
    assert (running.ask("/").status, running.ask("/").text) == (200, "loaded 0")


def test_nobody_elses_plugin_needs_them(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream))
    conf = (running.prefix / "run" / "nginx.conf").read_text()
    assert "lua_shared_dict" not in conf


def test_tables(shared: Gateway) -> None:
    code = """
        local merged = kong.table.merge({ 1, 2, 3, a = "b" }, { 4, 5, c = "d" })
        local cleared = { 1, a = 2 }
        kong.table.clear(cleared)
        return merged[1], merged[3], merged.a, merged.c, next(cleared), next(kong.table.new(3, 3)),
            next(kong.table.new()), #kong.table.merge(nil, { 1 })
    """
    assert ask(shared, code).values == [4, 3, "b", "d", None, None, None, 1]


def test_telemetry_has_no_taker(shared: Gateway) -> None:
    code = 'return kong.telemetry.log("p", {}, "t", "m", {})'
    nothing, why = ask(shared, code).values
    assert nothing is None
    assert why.startswith("Telemetry logging is disabled: log entry will not be recorded.")
    for arguments, message in {
        "1": "plugin_name must be a string",
        "'p'": "plugin_config must be a table",
        "'p', {}": "message_type must be a string",
        "'p', {}, 't', 1": "message must be a string",
        "'p', {}, 't', 'm', 1": "attributes must be a table",
    }.items():
        assert ask(shared, f"return kong.telemetry.log({arguments})").values == [None, message]


# What Kong keeps in ngx.ctx


def test_times(gateway: Start, upstream: Upstream) -> None:
    """What they are made of is nginx's; they fit together."""
    code = """
        local c, now = ngx.ctx, ngx.now() * 1000
        local sum = c.KONG_PROXY_LATENCY + c.KONG_WAITING_TIME + c.KONG_RECEIVE_TIME
        assert(c.KONG_PROCESSING_START + sum <= now + 1, "the sum is more than all")
        assert(c.KONG_PROCESSING_START == kong.request.get_start_time())
        assert(c.KONG_PROXIED == true and c.KONG_RESPONSE_LATENCY == nil)
        assert(c.KONG_ACCESS_ENDED_AT == c.KONG_BALANCER_START)
        assert(c.KONG_HEADER_FILTER_START >= c.KONG_BALANCER_ENDED_AT)
        assert(c.KONG_BODY_FILTER_ENDED_AT >= c.KONG_HEADER_FILTER_START)
        assert(c.KONG_UPSTREAM_DNS_TIME == 0 and c.KONG_REWRITE_TIME == 0)
        local b = c.balancer_data
        return b.try_count, b.tries[1].ip, b.tries[1].port, b.ip, b.port, b.hostname, b.host
    """
    running = gateway(proxying(upstream) | {"plugins": [{"name": "asking"}]}, kong_plugins=ASKING)
    port = int(upstream.url.rpartition(":")[2])
    running.expect_log("asked: ", 1)
    assert running.ask("/", headers=headers(code, "log")).status == 200
    told = logged(running)
    assert told.ok, told.values
    assert told.values == [1, "127.0.0.1", port, "127.0.0.1", port, "127.0.0.1", "127.0.0.1"]
    early = "return ngx.ctx.KONG_PROXIED, ngx.ctx.KONG_ACCESS_ENDED_AT, ngx.ctx.KONG_WAITING_TIME"
    assert ask(running, early).values == [None, None, None]


def test_times_of_what_the_gateway_answers(gateway: Start, upstream: Upstream) -> None:
    running = gateway(proxying(upstream, paths=["/x"]) | {"plugins": [{"name": "asking"}]},
                      kong_plugins=ASKING)  # fmt: skip
    code = "return ngx.ctx.KONG_PROXIED, ngx.ctx.KONG_RESPONSE_LATENCY >= 0, ngx.ctx.route"
    reply = running.ask("/none", headers=headers(code, "header_filter"))
    assert reply.status == 404
    told = read(base64.b64decode(reply.headers.get("answer") or ""))
    assert told.values == [None, True, None]


def test_fields_are_a_plugins_own_once_it_has_written_them(shared: Gateway) -> None:
    code = """
        ngx.ctx.KONG_WAITING_TIME = 7
        ngx.ctx.service = "mine"
        ngx.ctx.other = 1
        return ngx.ctx.KONG_WAITING_TIME, ngx.ctx.service, ngx.ctx.other,
            kong.router.get_service().name
    """
    assert ask(shared, code).values == [7, "mine", 1, "service"]


def test_captures_where_plugins_look_for_them(gateway: Start, upstream: Upstream) -> None:
    config_ = proxying(upstream, paths=[r"~/u/(?<user>\w+)"]) | {"plugins": [{"name": "asking"}]}
    running = gateway(config_, kong_plugins=ASKING)
    code = "local c = ngx.ctx.router_matches.uri_captures return c.user, c[1], c[0]"
    assert ask(running, code, "/u/me/x").values == ["me", "me", "/u/me"]


def test_a_timer_has_no_request(gateway: Start, upstream: Upstream) -> None:
    """Nothing there is another request's, and nothing crashes."""
    code = """
        ngx.timer.at(0, function()
            local c = ngx.ctx
            local ok, err = pcall(kong.request.get_path)
            kong.log.notice("timer: ", tostring(c.service), tostring(c.route), tostring(
                c.authenticated_consumer), tostring(c.balancer_data), tostring(c.KONG_PROXIED), ok,
                " ", err:match("function.*"))
        end)
        return true
    """
    running = gateway(proxying(upstream) | {"plugins": [{"name": "asking"}]}, kong_plugins=ASKING)
    running.expect_log("timer: nilnilnilnilnilfalse function cannot be called in timer phase", 1)
    assert ask(running, code).value is True


def logged(running: Gateway) -> Answer:
    """What the plugin has written into the log."""
    running._wait_for_declared()
    (text,) = re.findall(r"asked: ([\w+/=]+)\.", running.error_log())
    return read(base64.b64decode(text))


def test_the_cluster(shared: Gateway, gateway: Start) -> None:
    """The id is the store's; with a file there is none."""
    code = "return kong.cluster.get_id()"
    assert ask(shared, code).values == [None]
    running = gateway(None, kong_plugins=ASKING)
    with httpx.Client(base_url=running.admin, trust_env=False) as admin:
        route = {"name": "r", "paths": ["/"]}
        assert admin.post("/routes", json=route).status_code == 201
        assert admin.post("/plugins", json={"name": "asking"}).status_code == 201
    wait_until(lambda: running.ask("/", headers=headers(code)).status == 200, "the plugin")
    found = ask(running, code).value
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found)
    assert ask(running, code).value == found
