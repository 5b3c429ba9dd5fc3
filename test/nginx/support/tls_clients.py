"""Clients with certificates, and a gateway that asks for them."""

import ssl

from certificates import Pair, connect, context, get, make
from sluice import Gateway, Start
from upstream import Upstream

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


ROOT_ID, OTHER_ID = (f"00000000-0000-4000-8000-00000000000{i}" for i in (1, 2))


class World:
    """Two CAs, and clients of each."""

    def __init__(self) -> None:
        self.root, self.other = make("root", is_ca=True), make("other", is_ca=True)
        self.middle = make("middle", is_ca=True, issuer=self.root)
        self.good = make("good client", issuer=self.root)
        self.deep = make("deep client", issuer=self.middle)
        self.foreign = make("foreign client", issuer=self.other)
        self.own = make("own client")


def config(world: World, upstream: Upstream, *routes: dict, **more: object) -> dict:
    """Routes with the plugin, one for all where none is given; `more`: of its configuration."""
    plugin = {"name": "mtls-auth", "config": {"ca_certificates": [ROOT_ID]} | more}
    guarded = [r | {"plugins": [plugin]} for r in routes or ({"name": "r", "paths": ["/"]},)]
    free = {"name": "free", "paths": ["/free"]}
    return {
        "ca_certificates": [
            {"id": ROOT_ID, "cert": world.root.cert},
            {"id": OTHER_ID, "cert": world.other.cert},
        ],
        "services": [{"name": "s", "url": upstream.url, "routes": [*guarded, free]}],
    }


def start(gateway: Start, given: dict | None, **settings: object) -> Gateway:
    settings = {"tls": "ssl", "ask_client_certificate": True} | settings
    return gateway(given, **settings)


def asked(
    running: Gateway,
    client: Pair | None,
    name: str | None = "localhost",
    host: str = "localhost",
    version: ssl.TLSVersion | None = None,
    **more: object,
) -> bytes:
    using = context(client=client, version=version)
    with connect(running.tls_port, name, using) as wrapped:
        return get(wrapped, host=host, **more)
