"""The phase `certificate` of plugins in Lua, in handshakes."""

import json
import os
import re
import signal
import socket
import ssl

import pytest
from kit_asking import ASKING, headers, read
from proxy_protocol import v1

from certificates import connect, context, get, make
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Stream, parse_head, request_bytes, wait_until

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]

HANDLER = """
return {
    VERSION = "1.0.0", PRIORITY = 1,
    certificate = function(self, conf)
        local name = require("ngx.ssl").server_name()
        kong.log.notice("hello to ", name, " by ", conf.tag, " in ", conf.route_id or "all")
        if name == "refused.example" then error("not this name") end
    end,
}
"""
FILES = {"handler": HANDLER, "config": '{ tag = { type = "string", default = "none" } }'}


def test_a_plugin_sees_each_handshake(gateway: Start, upstream: Upstream) -> None:
    """With its global configuration; what it throws lets nobody in."""
    config = proxying(upstream) | {"plugins": [{"name": "hello", "config": {"tag": "one"}}]}
    running = gateway(config, kong_plugins={"hello": FILES}, tls="ssl")
    running.expect_log(r"\[kong\] handler\.lua:\d+ \[hello\] hello to a\.example by one in all", 1)
    running.expect_log("hello to refused.example by one", 1)
    running.expect_log("plugin 'hello' failed in certificate: .*not this name", 1)
    running.expect_log("a plugin has failed in certificate", 1)
    with connect(running.tls_port, "a.example", context()) as wrapped:
        assert b" 200 " in get(wrapped, host="a.example")
    with pytest.raises(ssl.SSLError), connect(running.tls_port, "refused.example", context()):
        pass


def test_a_plugin_without_a_global_configuration_sees_none(
    gateway: Start, upstream: Upstream
) -> None:
    config = proxying(upstream)
    config["services"][0]["routes"][0]["plugins"] = [{"name": "hello"}]
    running = gateway(config, kong_plugins={"hello": FILES}, tls="ssl")
    running.expect_log("hello to", 0)
    with connect(running.tls_port, "a.example", context()) as wrapped:
        assert b" 200 " in get(wrapped, host="a.example")


PEER = """
return {
    VERSION = "1.0.0", PRIORITY = 1,
    certificate = function()
        local client = kong.client
        kong.log.notice("peer ", require("cjson").encode({
            client.get_ip(), client.get_port() or 0, client.get_forwarded_ip(),
            client.get_forwarded_port() or 0, kong.request.get_port(),
        }), ";")
    end,
}
"""


def told(running: Gateway) -> list[object]:
    """What the plugin has found out of the last handshake."""
    found = re.findall(r"peer (\[.*?\]);", running.error_log())
    return list(json.loads(found[-1]))


def test_who_connects(gateway: Start, upstream: Upstream) -> None:
    """There is no request yet: nginx has no variables to ask."""
    config = proxying(upstream) | {"plugins": [{"name": "peer"}]}
    running = gateway(config, kong_plugins={"peer": {"handler": PEER}}, tls="ssl")
    with connect(running.tls_port, "a.example", context()) as wrapped:
        port = wrapped.getsockname()[1]
        assert b" 200 " in get(wrapped, host="a.example")
    assert told(running) == ["127.0.0.1", port, "127.0.0.1", port, running.tls_port]


@pytest.mark.parametrize("header", ["proxy_protocol", "X-Real-IP"])
@pytest.mark.parametrize("trusted", ["127.0.0.1", "10.0.0.1"])
def test_who_connects_behind_a_balancer(
    gateway: Start, upstream: Upstream, header: str, trusted: str
) -> None:
    """The PROXY protocol is believed from whom the settings say, if they say so."""
    config = proxying(upstream) | {"plugins": [{"name": "peer"}]}
    running = gateway(
        config,
        kong_plugins={"peer": {"handler": PEER}},
        tls="ssl proxy_protocol",
        trusted_ips=trusted,
        real_ip_header=header,
    )
    with socket.create_connection(("127.0.0.1", running.tls_port), timeout=20) as plain:
        port = plain.getsockname()[1]
        plain.sendall(v1("192.0.2.7"))
        with context().wrap_socket(plain, server_hostname="a.example") as wrapped:
            assert b" 200 " in get(wrapped, host="a.example")
    is_believed = (header, trusted) == ("proxy_protocol", "127.0.0.1")
    forwarded = ["192.0.2.7", 56324] if is_believed else ["127.0.0.1", port]
    assert told(running) == ["127.0.0.1", port, *forwarded, running.tls_port]


CALLS = """
return {
    VERSION = "1.0.0", PRIORITY = 1,
    certificate = function(self, conf)
        kong.log.notice("told ", require("cjson").encode({ CALL }), ";")
    end,
}
"""


def calls(gateway: Start, upstream: Upstream, call: str) -> Gateway:
    """A gateway with a plugin that evaluates this in each handshake, and `asking`."""
    plugins = {"calls": {"handler": CALLS.replace("CALL", call)}} | ASKING
    config = proxying(upstream) | {"plugins": [{"name": "calls"}, {"name": "asking"}]}
    return gateway(config, kong_plugins=plugins, tls="ssl")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_is_asked_for_a_certificate(
    gateway: Start, upstream: Upstream, version: ssl.TLSVersion
) -> None:
    running = calls(gateway, upstream, "kong.client.tls.request_client_certificate()")
    running.expect_log(r"told \[true\]", 2)
    shown = make("client")
    code = "return kong.client.tls.get_full_client_certificate_chain()"
    for pair in (shown, None):
        with connect(running.tls_port, "h", context(version=version, client=pair)) as wrapped:
            stream = Stream(wrapped)
            stream.send(request_bytes("/", headers=headers(code)))
            _, found = parse_head(stream.read_until(b"\r\n\r\n"))
            body = stream.read_exactly(int(found.get("content-length") or 0))
        assert read(body).values == ([pair.cert] if pair else [None, None])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tickets", [True, False])
def test_a_session_is_not_resumed(
    gateway: Start, upstream: Upstream, version: ssl.TLSVersion, tickets: bool
) -> None:
    """Neither at once nor by the next connection."""
    running = calls(gateway, upstream, "kong.client.tls.disable_session_reuse()")
    using = context(version=version)
    if not tickets:
        using.options |= ssl.OP_NO_TICKET
    session = None
    for _ in range(4):
        with connect(running.tls_port, "a.example", using, session) as wrapped:
            assert not wrapped.session_reused
            assert b" 200 " in get(wrapped, host="a.example")
            session = wrapped.session
    running.expect_log(r"told \[true\]", 4)


def test_a_session_is_not_resumed_from_a_cache(gateway: Start, upstream: Upstream) -> None:
    """Which nginx.conf has where its owner has written it: of TLS 1.2, by the session's id."""
    running = calls(gateway, upstream, "kong.client.tls.disable_session_reuse()")
    conf, old = running.prefix / "run" / "nginx.conf", set(running.workers())
    text = conf.read_text()
    assert "ssl_session_cache off;" in text
    conf.write_text(text.replace("ssl_session_cache off;", "ssl_session_cache shared:kept:1m;"))
    os.kill(running.master(), signal.SIGHUP)
    wait_until(lambda: running.workers() and not old & set(running.workers()), "new workers")
    using = context(version=ssl.TLSVersion.TLSv1_2)
    using.options |= ssl.OP_NO_TICKET
    session = None
    for _ in range(8):  # at once: what is old is not resumed anyhow
        with connect(running.tls_port, "a.example", using, session) as wrapped:
            assert not wrapped.session_reused
            assert b" 200 " in get(wrapped, host="a.example")
            session = wrapped.session


def test_what_a_handshake_has_not(gateway: Start, upstream: Upstream) -> None:
    """In Kong's words."""
    running = calls(gateway, upstream, "pcall(kong.request.get_path)")
    refused = "function cannot be called in certificate phase .only in: rewrite, access, balancer, "
    running.expect_log("told .false,.*" + refused, 1)
    with connect(running.tls_port, "a.example", context()) as wrapped:
        assert b" 200 " in get(wrapped, host="a.example")
