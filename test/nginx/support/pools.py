"""An nginx with a pool of upstream connections, upstreams that say who asked, and what a pool does
at its simplest: a list.
"""

import dataclasses
import json
import random
import socket
import ssl
from pathlib import Path

from nginx import Nginx
from upstream import Exchange, Upstream, self_signed
from wire import Reply

# `to` is the upstream's address, `as` its TLS name. A second try goes to @second@.
HTTP = """
    @index@
    upstream pooled {
        server 0.0.0.1;
        balancer_by_lua_block {
            local tried = ngx.var.upstream_addr ~= ""
            local host, port = (tried and "@second@" or ngx.var.arg_to):match("^(.*):(%d+)$")
            assert(require("ngx.balancer").set_current_peer(host, tonumber(port)))
        }
        sluice_upstream keepalive=@pool@;
    }
    server {
        listen 127.0.0.1:@port@;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_set_header Host $arg_as;
        proxy_buffer_size 4k;
        proxy_ssl_server_name on;
        proxy_ssl_name $arg_as;
        # nginx's round robin keeps the last session and never frees it.
        proxy_ssl_session_reuse off;
        location /alive { return 204; }
        location /http { proxy_pass http://pooled; }
        location /https { proxy_pass https://pooled; }
        @more@
    }
"""


def pooled(pool: str, second: str = "0.0.0.1:1", more: str = "") -> Nginx:
    """An nginx of one worker with a pool of these parameters."""
    return Nginx(HTTP, workers=1, pool=pool, second=second, more=more)


def ask(
    running: Nginx, server: Upstream, name: str = "", path: str = "", method: str = "GET"
) -> Reply:
    """One request to a server, by its scheme where no path says more."""
    path = path or ("/https" if server.tls else "/http")
    return running.ask(f"{path}?to={server.address}&as={name}", method)


@dataclasses.dataclass(frozen=True)
class Use:
    """What an upstream has seen of a request's connection."""

    connection: int
    nth: int
    name: str | None
    """What the client said in its handshake (SNI)."""
    certificate: bool
    """Whether it has shown one."""


def used(reply: Reply) -> Use:
    """What the upstream says in its answer."""
    assert reply.status == 200, (reply.status, reply.body)
    return Use(**reply.json())


def named(folder: Path) -> ssl.SSLContext:
    """A server's TLS that keeps the name each client asks for, in its socket's `name`."""
    context = self_signed(folder)

    def note(sock: ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        sock.name = name  # type: ignore[attr-defined]

    context.sni_callback = note  # type: ignore[assignment]
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(folder / "cert.pem")
    return context


def answer(exchange: Exchange) -> None:
    """Says over what a request came."""
    exchange.read_body()
    request, sock = exchange.request, exchange.sock
    tls = isinstance(sock, ssl.SSLSocket)
    use = Use(
        request.connection,
        request.nth,
        sock.name if tls else None,  # type: ignore[attr-defined]
        bool(tls and sock.getpeercert(binary_form=True)),
    )
    exchange.reply(200, {"Content-Type": "application/json"}, json.dumps(vars(use)).encode())


class Either(Upstream):
    """With TLS for who begins with a handshake, without for others."""

    def _secured(self, sock: socket.socket) -> socket.socket:
        is_tls = sock.recv(1, socket.MSG_PEEK) == b"\x16"
        return super()._secured(sock) if is_tls else sock


class List:
    """A pool: whom each idle connection is to, the latest first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.idle: list[tuple[object, Use]] = []

    def take(self, key: object) -> Use | None:
        """The latest connection of this key, as it was used last."""
        for at, (held, use) in enumerate(self.idle):
            if held == key:
                del self.idle[at]
                return use
        return None

    def keep(self, key: object, use: Use) -> None:
        """Puts it in front; the last goes if there are too many."""
        self.idle.insert(0, (key, use))
        del self.idle[self.size :]


def walk(running: Nginx, servers: list[Upstream], pool: List, chosen: random.Random) -> int:
    """One request after another to any of the servers by any name, each over the connection that
    the list says; how many of them were not new.
    """
    reused = 0
    made = {server.port: 0 for server in servers}
    for _ in range(400):
        server = chosen.choice(servers)
        scheme = chosen.choice(["http", "https"])
        name = chosen.choice(["a.test", "b.test", "A.test", "a.test:8443", ""])
        sni = name.partition(":")[0] if scheme == "https" else None
        key = (server.port, scheme, sni)
        before = pool.take(key)
        use = used(ask(running, server, name, f"/{scheme}"))
        if before:
            assert (use.connection, use.nth) == (before.connection, before.nth + 1)
            reused += 1
        else:
            assert (use.connection, use.nth) == (made[server.port], 0)
            made[server.port] += 1
        assert use.name == (sni or None)
        pool.keep(key, use)
    return reused
