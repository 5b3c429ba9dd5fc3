"""pre-function: which code of a configuration runs when, what it has, and what does not compile."""

import ssl
import threading
from typing import Any

import pytest
from admin_client import Client
from changes import document, post
from functions import entity, on_routes, running

from certificates import connect, context, get
from sluice import Start
from upstream import Exchange, Upstream

PLUGIN = "pre-function"


def access(upstream: Upstream, *codes: str) -> dict[str, Any]:
    return running(upstream, entity(PLUGIN, *codes))


# As in the cases of Kong's own tests of it.
ANSWERS = {
    "ngx.status = 503 ngx.exit(ngx.status)": (503, None),
    'ngx.status = 404 ngx.say("Not Found") ngx.exit(ngx.status)': (404, b"Not Found\n"),
    'return kong.response.exit(406, { message = "Invalid" })': (406, b'{"message":"Invalid"}'),
    'return function() kong.response.exit(418, "short") end': (418, b"short"),
    "ngx.say(kong.configuration.plugins[1]) ngx.exit(200)": (200, b"bundled\n"),
    "ngx.say(tostring(kong.configuration.pg_password)) ngx.exit(200)": (200, b"nil\n"),
    "ngx.say(tostring(kong.configuration.admin_token)) ngx.exit(200)": (200, b"nil\n"),
    'kong.cache:get("foo", nil, function() return "val" end) ngx.say((kong.cache:get("foo"))) '
    "ngx.exit(200)": (200, b"val\n"),
    "ngx.say(tostring(kong.cache.cluster_events)) ngx.exit(200)": (200, b"nil\n"),
    "ngx.say(kong.db.strategy) ngx.exit(200)": (200, b"off\n"),
    'ngx.say(kong.db.consumers:select_by_username("ann").username) ngx.exit(200)': (200, b"ann\n"),
    "ngx.var.args = nil": (200, None),
    'ngx.ctx.mine = 1 kong.ctx.shared.mine = 2 kong.ctx.plugin.mine = 3 kong.log("said")': (
        200,
        None,
    ),
}


def test_what_functions_do(serving: Start, upstream: Upstream) -> None:
    codes = [*ANSWERS]
    config = on_routes(upstream, {f"/{n}": entity(PLUGIN, code) for n, code in enumerate(codes)})
    config["consumers"] = [{"username": "ann"}]
    started = serving(config)
    started.expect_log(r"\[kong\] .*\[pre-function\] said", 2)
    for _ in range(2):
        for n, code in enumerate(codes):
            status, body = ANSWERS[code]
            reply = started.ask(f"/{n}?a=1")
            assert reply.status == status, code
            assert body is None or reply.body == body, code


def test_functions_run_one_after_another(serving: Start, upstream: Upstream) -> None:
    """Until one answers."""
    codes = [
        'kong.service.request.set_header("X-Order", "one")',
        'local had = kong.request.get_header("X-Order") '
        'kong.service.request.set_header("X-Order", had .. " two")',
        'if kong.request.get_header("X-Ends") then kong.response.exit(204) end',
        'kong.service.request.set_header("X-Last", "yes")',
    ]
    started = serving(access(upstream, *codes))
    assert started.ask("/").status == 200
    assert upstream.last.headers.get("X-Order") == "one two"
    assert upstream.last.headers.get("X-Last") == "yes"
    assert started.ask("/", headers={"X-Ends": "1"}).status == 204
    assert len(upstream.requests) == 1


COUNTS = """
local count = 0
kong.log.notice("made")
return function()
    count = count + 1
    kong.response.exit(200, tostring(count))
end
"""


def test_what_a_chunk_returns_keeps_its_upvalues(serving: Start, upstream: Upstream) -> None:
    """It is made once in a worker, and anew for a changed configuration."""
    started = serving(access(upstream, COUNTS))
    started.expect_log("made", 2)
    assert [started.ask("/").body for _ in range(5)] == [b"1", b"2", b"3", b"4", b"5"]
    changed = document(access(upstream, COUNTS + "-- changed"))
    assert post(started, changed).status_code == 201
    assert started.ask("/").body == b"1"


LATE = """
if not ngx.var.http_x_ready then error("not ready") end
if ngx.var.http_x_slow then ngx.sleep(0.3) end
return function() kong.response.exit(403, "checked") end
"""


def test_a_chunk_that_has_not_come_to_its_end_is_run_again(
    gateway: Start, upstream: Upstream
) -> None:
    """The function that it would have returned may be the one that refuses: nobody passes."""
    started = gateway(access(upstream, LATE))
    started.expect_log("plugin 'pre-function' failed in access: .*not ready", 2)
    assert [started.ask("/").status for _ in range(2)] == [500, 500]
    found: list[int] = []

    def ask(headers: dict[str, str]) -> None:
        found.append(started.ask("/", headers={"X-Ready": "1", **headers}).status)

    threads = [threading.Thread(target=ask, args=[{"X-Slow": "1"}]) for _ in range(3)]
    for thread in threads:
        thread.start()
    ask({})
    for thread in threads:
        thread.join()
    assert found == [403] * 4
    assert not upstream.requests


@pytest.mark.parametrize("code", ["return 7", "local x = 1", 'return "text"'])
def test_a_chunk_that_returns_no_function_runs_each_time(
    serving: Start, upstream: Upstream, code: str
) -> None:
    head = 'kong.service.request.set_header("X-Runs", ngx.var.arg_n) '
    started = serving(access(upstream, head + code))
    for n in "12":
        assert started.ask(f"/?n={n}").status == 200
        assert upstream.last.headers.get("X-Runs") == n


EACH = {
    "rewrite": 'kong.ctx.shared.seen = "rewrite"',
    "access": 'kong.ctx.shared.seen = kong.ctx.shared.seen .. " access"',
    "header_filter": 'kong.response.set_header("X-Seen", kong.ctx.shared.seen) '
    'kong.response.clear_header("Content-Length")',
    "body_filter": "if ngx.arg[2] then ngx.arg[1] = ngx.arg[1] .. 'more' end",
    "log": 'kong.log.notice("logged after ", kong.ctx.shared.seen)',
}


def test_each_phase(serving: Start, upstream: Upstream) -> None:
    upstream.answer(200, {}, b"body")
    started = serving(running(upstream, entity(PLUGIN, **EACH)))
    started.expect_log("logged after rewrite access", 1)
    reply = started.ask("/")
    assert reply.headers.get("x-seen") == "rewrite access"
    assert reply.body == b"bodymore"


def test_a_handshake(serving: Start, upstream: Upstream) -> None:
    """Only where a configuration that is bound to nothing has code for it, also after a change."""
    code = 'kong.log.notice("hello in ", ngx.get_phase())'
    started = serving(running(upstream, entity(PLUGIN, "local x")), tls="ssl")
    started.expect_log("hello in ssl_cert", 1)

    def shake() -> None:
        with connect(started.tls_port, "a.example", context()) as wrapped:
            assert b" 200 " in get(wrapped, host="a.example")

    shake()
    for plugins, bound in ([code, False], ["local x", False], [code, True]):
        config = running(upstream, entity(PLUGIN, certificate=plugins))
        if bound:
            config["services"][0]["routes"][0]["plugins"] = config.pop("plugins")
        assert post(started, document(config)).status_code == 201
        shake()


def test_a_handshake_that_its_code_refuses(serving: Start, upstream: Upstream) -> None:
    started = serving(running(upstream, entity(PLUGIN, certificate="error('nobody')")), tls="ssl")
    started.expect_log("plugin 'pre-function' failed in certificate: .*nobody")
    started.expect_log("a plugin has failed in certificate")
    with pytest.raises(ssl.SSLError), connect(started.tls_port, "a.example", context()):
        pass
    assert started.ask("/").status == 200


def test_an_error_is_a_500_before_the_response_and_a_line_after_it(
    gateway: Start, upstream: Upstream
) -> None:
    throws = "error('thrown here')"
    started = gateway(
        on_routes(
            upstream,
            {f"/{phase}": entity(PLUGIN, **{phase: throws}) for phase in ("access", "log")},
        )
    )
    started.expect_log("plugin 'pre-function' failed in access: .*:1: thrown here", 1)
    started.expect_log("plugin 'pre-function' failed in log: .*:1: thrown here", 1)
    reply = started.ask("/access")
    assert reply.status == 500
    assert b"An unexpected error occurred" in reply.body
    assert started.ask("/log").status == 200
    text = Client(started).ask("GET", "/metrics").body.decode()
    assert 'sluice_plugin_failures_total{plugin="pre-function",phase="access"} 1' in text


def test_what_does_not_compile_is_refused(gateway: Start) -> None:
    started = gateway(None)
    admin = Client(started)
    reply = admin.ask("POST", "/plugins", entity(PLUGIN, "local x = 1", "print("))
    assert reply.status == 400
    words = "error parsing pre-function: [string \"print(\"]:1: unexpected symbol near '<eof>'"
    assert reply.json()["fields"]["config"]["access"] == [None, words]
    reply = admin.ask("POST", "/plugins", {"name": PLUGIN, "config": {}})
    assert reply.status == 400
    assert "at least one of these fields must be non-empty: 'config.certificate'" in reply.text
    for field, value in (("ws_handshake", ["local x"]), ("functions", ["local x"])):
        reply = admin.ask("POST", "/plugins", {"name": PLUGIN, "config": {field: value}})
        assert reply.status == 400
        assert reply.json()["fields"]["config"] == {field: "unknown field"}
    assert admin.ask("POST", "/plugins", entity(PLUGIN, "error('not run')")).status == 201


def test_it_waits_where_it_may(serving: Start, upstream: Upstream) -> None:
    """A body that is still coming, and a server that it asks."""
    asked: list[str] = []

    def answer(exchange: Exchange) -> None:
        asked.append(exchange.request.target)
        exchange.reply(200, {}, b"fine")

    upstream.handler = answer
    code = f"""
    local body = kong.request.get_raw_body()
    local socket = ngx.socket.tcp()
    assert(socket:connect("127.0.0.1", {upstream.port}))
    assert(socket:send("GET /aside HTTP/1.0\\r\\nHost: h\\r\\n\\r\\n"))
    local line = socket:receive()
    socket:close()
    kong.service.request.set_header("X-Told", #body .. " " .. line)
    """
    started = serving(access(upstream, code))
    assert started.ask("/", method="POST", body=b"x" * 100).status == 200
    assert asked == ["/aside", "/"]
    assert upstream.last.headers.get("X-Told", "").startswith("100 HTTP/1.")
