"""Upstreams that say what their TLS was."""

import json
import ssl

from upstream import Exchange

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def answer(exchange: Exchange) -> None:
    """Says how a request came."""
    exchange.read_body()
    request, sock = exchange.request, exchange.sock
    assert isinstance(sock, ssl.SSLSocket)
    certificate = sock.getpeercert()
    subject = dict(part[0] for part in certificate["subject"]) if certificate else {}
    said = {
        "connection": request.connection,
        "nth": request.nth,
        "resumed": sock.session_reused,
        "version": sock.version(),
        "client": subject.get("commonName"),
    }
    exchange.reply(200, body=json.dumps(said).encode())
