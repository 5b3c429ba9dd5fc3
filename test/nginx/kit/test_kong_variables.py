"""nginx variables of Kong's configuration: what plugins read of the upstream's request."""

import base64
from typing import Any

from kit_asking import ASKING, ask, headers, read

from sluice import Gateway, Start, proxying
from upstream import Upstream

NAMES = [
    "upstream_uri",
    "upstream_scheme",
    "upstream_host",
    "upstream_x_forwarded_for",
    "upstream_x_forwarded_proto",
    "upstream_x_forwarded_host",
    "upstream_x_forwarded_port",
    "upstream_x_forwarded_path",
    "upstream_x_forwarded_prefix",
    "kong_proxy_mode",
    "no_such_variable",
]
READ = f"""
    local found = {{}}
    for name in ("{" ".join(NAMES)}"):gmatch("%S+") do found[name] = ngx.var[name] end
    return found
"""


def start(gateway: Start, upstream: Upstream, **settings: Any) -> Gateway:
    config = proxying(upstream, service={"url": upstream.url + "/base"}, paths=["/pre"])
    config["services"][0]["routes"].append(
        {"name": "kept", "paths": ["/kept"], "strip_path": False, "preserve_host": True}
    )
    return gateway(config | {"plugins": [{"name": "asking"}]}, kong_plugins=ASKING, **settings)


def late(running: Gateway, target: str, sent: dict[str, str] | None = None) -> dict[str, str]:
    """What they are when the response's head has come."""
    reply = running.ask(target, headers=headers(READ, "header_filter") | (sent or {}))
    assert reply.status == 200
    return read(base64.b64decode(reply.headers.get("answer") or "")).value


def test_what_the_upstream_will_be_asked(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, upstream)
    before = ask(running, READ, "/pre/a//b?c=d", headers={"Host": "Some.Host:1"}).value
    assert before == {
        "upstream_uri": "/base/a/b",
        "upstream_scheme": "http",
        "upstream_host": "",
        "upstream_x_forwarded_for": "127.0.0.1",
        "upstream_x_forwarded_proto": "http",
        "upstream_x_forwarded_host": "some.host",
        "upstream_x_forwarded_port": str(running.proxy_port),
        "upstream_x_forwarded_path": "/pre/a//b",
        "upstream_x_forwarded_prefix": "/pre",
        "kong_proxy_mode": "http",
    }
    after = late(running, "/pre/a//b?c=d", {"Host": "Some.Host:1"})
    port = upstream.url.rpartition(":")[2]
    assert after == before | {
        "upstream_uri": "/base/a/b?c=d",
        "upstream_host": f"127.0.0.1:{port}",
    }
    assert upstream.last.target == "/base/a/b?c=d"
    assert upstream.last.headers.get("x-forwarded-prefix") == "/pre"
    assert upstream.last.headers.get("x-forwarded-path") == "/pre/a//b"


def test_a_route_that_keeps_path_and_host(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, upstream)
    found = ask(running, READ, "/kept/x", headers={"Host": "Some.Host"}).value
    assert found["upstream_uri"] == "/base/kept/x"
    assert found["upstream_host"] == "some.host"
    assert found["upstream_x_forwarded_prefix"] == ""
    assert late(running, "/kept/x", {"Host": "Some.Host"})["upstream_host"] == "some.host"


def test_what_a_trusted_proxy_has_said(gateway: Start, upstream: Upstream) -> None:
    """To read them early does not change what is sent."""
    running = start(gateway, upstream, trusted_ips="127.0.0.1")
    told = {"X-Forwarded-Prefix": "/outer", "X-Forwarded-Path": "/outer/x"}
    for sent, prefix, path in ((told, "/outer", "/outer/x"), ({}, "/pre", "/pre/x")):
        found = ask(running, READ, "/pre/x?y", headers=sent).value
        assert found["upstream_x_forwarded_prefix"] == prefix
        assert found["upstream_x_forwarded_path"] == path
        code = READ.replace("return found", "")
        assert running.ask("/pre/x?y", headers=headers(code, "through") | sent).status == 200
        assert upstream.last.headers.get("x-forwarded-prefix") == prefix
        assert upstream.last.headers.get("x-forwarded-path") == path
        assert late(running, "/pre/x?y", sent)["upstream_x_forwarded_prefix"] == prefix


def test_without_a_route_they_are_empty(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, upstream)
    reply = running.ask("/none", headers=headers(READ, "header_filter"))
    assert reply.status == 404
    found = read(base64.b64decode(reply.headers.get("answer") or "")).value
    assert {found[name] for name in NAMES[:9]} == {""}


LINES = ("for", "proto", "host", "port", "path", "prefix")


def write(values: dict[str, str]) -> str:
    """Code that writes them, and adds what it reads then to the request."""
    lines = [f"ngx.var.upstream_x_forwarded_{name} = {value}" for name, value in values.items()]
    return (
        "\n".join(lines)
        + """
        local found = {}
        for name in ("for proto host port path prefix"):gmatch("%S+") do
            found[#found + 1] = tostring(ngx.var["upstream_x_forwarded_" .. name])
        end
        ngx.req.set_header("Read", table.concat(found, " | "))
    """
    )


def sent_up(upstream: Upstream) -> dict[str, list[str]]:
    """The lines that the upstream has got."""
    lines = upstream.last.headers
    return {name: lines.all(f"X-Forwarded-{name}") for name in LINES}


def test_what_a_plugin_writes_goes_up(gateway: Start, upstream: Upstream) -> None:
    """In one line, in place of the gateway's and of the client's; whoever is trusted."""
    values = {name: f"'own {name}'" for name in LINES} | {"port": "8"}
    expected = {name: [f"own {name}"] for name in LINES} | {"port": ["8"]}
    for trusted in ("", "127.0.0.1"):
        running = start(gateway, upstream, trusted_ips=trusted)
        sent = {f"X-Forwarded-{name}": "client" for name in LINES}
        reply = running.ask("/pre/x", headers=headers(write(values), "through") | sent)
        assert reply.status == 200
        assert sent_up(upstream) == expected
        assert upstream.last.headers.get("read") == " | ".join(e[0] for e in expected.values())
        assert late(running, "/pre/x")["upstream_x_forwarded_for"] != "own for"


def test_what_a_plugin_takes_away_is_not_sent(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, upstream)
    code = write({"prefix": "''", "path": "nil"})
    assert running.ask("/pre/x", headers=headers(code, "through")).status == 200
    found = sent_up(upstream)
    assert (found["prefix"], found["path"]) == ([], [])
    assert (found["proto"], found["for"]) == (["http"], ["127.0.0.1"])
    code = (
        "ngx.var.upstream_x_forwarded_prefix = '/mine' "
        "ngx.req.set_header('Read', kong.request.get_forwarded_prefix())"
    )
    assert running.ask("/pre/x", headers=headers(code, "through")).status == 200
    assert upstream.last.headers.get("read") == "/mine"


def test_what_a_plugin_writes_makes_no_second_line(gateway: Start, upstream: Upstream) -> None:
    running = start(gateway, upstream)
    code = write({"for": r"'1.2.3.4\r\nEvil: yes\0\127'"})
    assert running.ask("/pre/x", headers=headers(code, "through")).status == 200
    assert sent_up(upstream)["for"] == ["1.2.3.4%0D%0AEvil: yes%00%7F"]
    assert upstream.last.headers.get("evil") is None


def test_what_is_written_before_there_is_a_route_is_lost(
    gateway: Start, upstream: Upstream
) -> None:
    source = "return { VERSION = '1.0.0', PRIORITY = 1, rewrite = function() CODE end }"
    code = "ngx.var.upstream_x_forwarded_for = '1.2.3.4'"
    config = proxying(upstream) | {"plugins": [{"name": "early"}]}
    running = gateway(config, kong_plugins={"early": {"handler": source.replace("CODE", code)}})
    assert running.ask("/").status == 200
    assert sent_up(upstream)["for"] == ["127.0.0.1"]


def test_a_retry_sends_what_was_written(gateway: Start, upstream: Upstream) -> None:
    """The head is made again for each try."""
    config = proxying(upstream, service={"url": "http://several/"})
    port = upstream.url.rpartition(":")[2]
    targets = [{"target": "127.0.0.1:1"}, {"target": f"127.0.0.1:{port}"}]
    config["upstreams"] = [{"name": "several", "targets": targets}]
    running = gateway(config | {"plugins": [{"name": "asking"}]}, kong_plugins=ASKING)
    running.expect_log("Connection refused", range(9))
    code = write({"for": "'1.2.3.4'"})
    for _ in range(4):
        assert running.ask("/", headers=headers(code, "through")).status == 200
        assert sent_up(upstream)["for"] == ["1.2.3.4"]
