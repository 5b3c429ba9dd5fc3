"""The example of the page of mtls-auth, which needs certificates."""

import json
from pathlib import Path

from plugin_pages import example, typed
from tls_clients import World

from sluice import Start
from upstream import Upstream


def test_the_example_of_mtls_auth(gateway: Start, upstream: Upstream, tmp_path: Path) -> None:
    world = World()
    (tmp_path / "client.pem").write_text(world.good.cert)
    (tmp_path / "client.key").write_text(world.good.key)
    text = example("mtls-auth", upstream.url)
    place = "'-----BEGIN CERTIFICATE----- ...'"
    assert place in text
    text = text.replace(place, json.dumps(world.root.cert))
    running = gateway(text, tls="ssl", ask_client_certificate=True)
    typed("mtls-auth", running, "sluice start --ask-client-certificate on", tmp_path)
    assert upstream.last.headers.get("X-Client-Cert-DN") == "CN=good client"
