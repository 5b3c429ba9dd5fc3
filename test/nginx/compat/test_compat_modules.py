"""Modules of compat/ as a plugin of the gateway has them."""

import json

from tracer import plugin

import certificates
from sluice import Gateway, Start, proxying
from upstream import Upstream

BODY = """access = function(self, conf)
    local http = require("resty.http").new()
    local res, err = http:request_uri("{url}/", {{ {params} }})
    local status, own = res and res.status, require("resty.http").own
    return pdk.exit(200, {{ status = status, err = err, own = own }})
end,"""


def asking(url: str, params: str = "") -> dict[str, str]:
    """A plugin that asks a server and answers with what came of it."""
    return {"asks": plugin("asks", 1, BODY.format(url=url, params=params))}


def test_a_name_that_only_the_hosts_file_knows(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "asks"}]}
    running = gateway(config, plugins=asking(f"http://localhost:{upstream.port}"))
    assert json.loads(running.ask("/").body) == {"status": 200}
    assert upstream.last.headers.get("host") == f"localhost:{upstream.port}"


def test_certificates_are_verified(gateway: Start, upstream: Upstream) -> None:
    """With the distribution's CAs, where a plugin of the user can ask; bundled ones need none."""
    pair = certificates.make("localhost", names=("DNS:localhost",))
    config = proxying(upstream) | {"plugins": [{"name": "asks"}]}
    with Upstream(tls=certificates.server(pair)) as beyond:
        running = gateway(config, plugins=asking(f"https://localhost:{beyond.port}"))
        assert json.loads(running.ask("/").body) == {"err": "18: self-signed certificate"}
    directive = "lua_ssl_trusted_certificate"
    assert directive in (running.prefix / "run/nginx.conf").read_text()
    plain = gateway(proxying(upstream))
    assert directive not in (plain.prefix / "run/nginx.conf").read_text()


def test_a_library_of_the_user_wins(upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "asks"}]}
    made = Gateway(config, plugins=asking("http://x"))
    own = made.prefix / "lua/resty/http.lua"
    own.parent.mkdir(parents=True)
    own.write_text(
        "return { own = true, new = function() return "
        '{ request_uri = function() return nil, "mine" end } end }'
    )
    with made as running:
        assert json.loads(running.ask("/").body) == {"err": "mine", "own": True}
