"""resty.http: what its users expect of it, and what a server or a proxy may not do to it.

Long on purpose: one client, and all that others send it.
"""

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_server import RESPONSES
from raw_server import raw

import certificates
from nginx import Json, Nginx
from upstream import DeadPort, Exchange, Upstream, saying
from wire import Wire

CONF = """
    lua_ssl_trusted_certificate @ca@;
    lua_ssl_verify_depth 3;
    server {
        listen 127.0.0.1:@port@;
        lua_socket_read_timeout 20s;
        @runs@
    }
"""

TIMEOUT_MS, MAX_BODY = 400, 65536

CA = certificates.make("ca", is_ca=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    ca = tmp_path_factory.mktemp("tls") / "ca.pem"
    ca.write_text(CA.cert)
    with Nginx(CONF, workers=1, ca=str(ca)) as running:
        yield running


@pytest.fixture
def wire(server: Nginx) -> Iterator[Wire]:
    with server.wire() as connection:
        yield connection


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


NEW = 'local http = require("resty.http").new()\n'

BRIEF = """
    if not res then
        return { err = err }
    end
    return { status = res.status, body = res.body, headers = res.headers, reason = res.reason }
"""


def ask(server: Nginx, wire: Wire, url: str, params: str = "{}", before: str = "") -> Json:
    """What `request_uri` returns."""
    code = f"{NEW}{before}\nlocal res, err = http:request_uri([[{url}]], {params})\n{BRIEF}"
    return server.run_on(wire, code)


def test_a_request_is_what_was_asked_for(server: Nginx, wire: Wire, upstream: Upstream) -> None:
    params = """{
        method = "POST", query = { a = 1, b = { "x y", "z" } }, body = { "one", 2 },
        headers = { ["X-Many"] = { "1", "2" }, ["x-empty"] = "", ["content-type"] = "text/plain" },
    }"""
    found = ask(server, wire, f"{upstream.url}/path?lost=1", params)
    seen = json.loads(found["body"])
    headers = {name.lower(): value for name, value in seen["headers"]}
    assert (found["status"], seen["method"], seen["length"]) == (200, "POST", 4)
    assert sorted(seen["target"].partition("?")[2].split("&")) == ["a=1", "b=x%20y", "b=z"]
    assert [value for name, value in seen["headers"] if name == "X-Many"] == ["1", "2"]
    assert headers["host"] == upstream.address
    assert headers["content-length"] == "4"
    assert headers["user-agent"].startswith("Sluice (Lua) ngx_lua/")


def test_the_path_and_the_query_of_the_uri(server: Nginx, wire: Wire, upstream: Upstream) -> None:
    for given, wanted in {
        "": "/",
        "?a=b": "/?a=b",
        "/x?a=b#gone": "/x?a=b",
        "/%2e/x": "/%2e/x",
    }.items():
        ask(server, wire, upstream.url + given)
        assert upstream.last.target == wanted


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ('{ headers = { ["X-A"] = "b\\r\\nX-C: d" } }', "invalid header 'X-A'"),
        ('{ headers = { ["X-A\\r\\nX-C"] = "b" } }', "invalid header 'X-A??X-C'"),
        ('{ headers = { ["X A"] = "b" } }', "invalid header 'X A'"),
        ('{ path = "/a b" }', "invalid path: it has a space or a control character"),
        (
            '{ path = "/a HTTP/1.1\\r\\nX: y" }',
            "invalid path: it has a space or a control character",
        ),
        ('{ method = "GET /x" }', "invalid method"),
        ("{ version = 2 }", "invalid version: 1.0 or 1.1 expected"),
        (
            '{ method = "PUT" }',
            "Request body is nil but PUT method expects a body. "
            'Use an empty string "" if you want to send an empty body.',
        ),
        (
            "{ body = function() end }",
            "Request body is a function but a length or chunked encoding is not specified",
        ),
    ],
)
def test_what_would_break_a_request_is_refused(
    server: Nginx, wire: Wire, upstream: Upstream, given: str, wanted: str
) -> None:
    before = len(upstream.requests)
    assert ask(server, wire, upstream.url, given) == {"err": wanted}
    assert len(upstream.requests) == before


def test_uris_that_are_none(server: Nginx, wire: Wire) -> None:
    for uri in (
        "http:///x",
        "ftp://a/",
        "http://a:b/",
        "http://a:65536/",
        "http://user@a/",
        "http://a:1@b/",
        "http://[::1/",
        "a",
    ):
        assert ask(server, wire, uri) == {"err": f"bad uri: {uri}"}


# What a server may not do


HOSTILE = {name: response.error for name, response in RESPONSES.items()} | {
    "body": "the body of the response is too long",
    "length": "the body of the response is too long",
    "slow body": "timeout",
    "chunks": "the body of the response is too long",
    "chunk size": "the size of a chunk is too long",
    "slow chunks": "timeout",
    "trailer": "the trailer of the response is too long",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_response_without_end(server: Nginx, wire: Wire, name: str) -> None:
    """Bytes, lines and interim responses have bounds, and all of it has one deadline."""
    cut = threading.Event()

    def serve(connection: socket.socket) -> None:
        connection.recv(4096)
        try:
            for piece in RESPONSES[name].pieces():
                connection.sendall(piece)
        except OSError:
            cut.set()
            raise

    # A slow one sends a byte each 20 ms: more than a second for each 16 KB, less than each read's.
    limits = f"http:set_timeout({TIMEOUT_MS}) http:set_max_body_bytes({MAX_BODY})"
    begun = time.monotonic()
    with raw(serve) as port:
        found = ask(server, wire, f"http://127.0.0.1:{port}/", before=limits)
        assert found == {"err": HOSTILE[name]}
        assert cut.wait(20), "the server was read to its end"
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "invalid Content-Length"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "invalid Content-Length",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "unknown Transfer-Encoding"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "a chunk has no size",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
            "the end of a chunk is too long",
        ),
        (
            b"SSH-2.0-x\r\n\r\n",
            "couldn't parse HTTP version from response status line: SSH-2.0-x",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            "unknown Transfer-Encoding",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "closed"),
        (b"", "closed"),
    ],
)
def test_a_response_that_is_none(server: Nginx, wire: Wire, answer: bytes, wanted: str) -> None:
    with Upstream(saying(answer)) as upstream:
        assert ask(server, wire, upstream.url) == {"err": wanted}


def test_a_connection_with_more_than_an_answer_is_not_used_again(server: Nginx, wire: Wire) -> None:
    """What lies there would be the answer to somebody else's request."""

    def serve(connection: socket.socket) -> None:
        while connection.recv(4096):
            body = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n"
            connection.sendall(body + b"Content-Length: 6\r\n\r\nstolen")

    with raw(serve) as port:
        for _ in range(3):
            assert ask(server, wire, f"http://127.0.0.1:{port}/")["body"] == "ok"


def test_a_body_that_was_not_read_ends_its_connection(
    server: Nginx, wire: Wire, upstream: Upstream
) -> None:
    code = (
        NEW
        + f"""
        assert(http:connect({{ scheme = "http", host = "127.0.0.1", port = {upstream.port} }}))
        local res = assert(http:request({{ path = "/" }}))
        local unread = {{ http:set_keepalive() }}
        assert(http:connect({{ scheme = "http", host = "127.0.0.1", port = {upstream.port} }}))
        res = assert(http:request({{ path = "/" }}))
        local body = res:read_body()
        return {{ unread, #body > 0, {{ http:set_keepalive() }} }}
    """
    )
    assert server.run_on(wire, code) == [[2, "connection must be closed"], True, [1]]


# What a server may do


def test_interim_responses_are_passed_over(server: Nginx, wire: Wire) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    answer = early * 2 + b"HTTP/1.1 200 Fine\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nok"
    with Upstream(saying(answer)) as upstream:
        found = ask(server, wire, upstream.url)
    assert (found["status"], found["reason"], found["body"]) == (200, "Fine", "ok")
    assert found["headers"] == {"X-A": ["1", "2"], "Content-Length": "2"}


def test_trailers(server: Nginx, wire: Wire) -> None:
    answer = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        b"2\r\nab\r\n3;x=y\r\ncde\r\n0\r\nX-Sum: 5\r\n\r\n"
    )
    with Upstream(saying(answer)) as upstream:
        code = (
            NEW
            + f"""
            assert(http:connect({{ scheme = "http", host = "127.0.0.1", port = {upstream.port} }}))
            local res = assert(http:request({{}}))
            local pieces = {{ res.body_reader(), res.body_reader(1), res.body_reader(9) }}
            local last, err = res.body_reader()
            res:read_trailers()
            return {{ pieces, last == nil, err == nil, res.headers["x-sum"] }}
        """
        )
        assert server.run_on(wire, code) == [["ab", "c", "de"], True, True, "5"]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_body_that_ends_with_the_connection(server: Nginx, wire: Wire, version: str) -> None:
    with Upstream(saying(f"HTTP/{version} 200 OK\r\n\r\n".encode() + b"x" * 50000)) as upstream:
        assert len(ask(server, wire, upstream.url)["body"]) == 50000


def test_a_body_that_is_wanted_first(server: Nginx, wire: Wire) -> None:
    """100 is waited for, and a refusal is not sent a body."""

    def answer(exchange: Exchange) -> None:
        if exchange.request.path == "/no":
            exchange.send(b"HTTP/1.1 417 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            exchange.request.headers[:] = [("Connection", "close")]
        else:
            exchange.reply(200, body=exchange.read_body())

    params = '{ method = "PUT", body = "wanted", headers = { Expect = "100-continue" } }'
    with Upstream(answer) as upstream:
        for _ in range(2):
            assert ask(server, wire, upstream.url, params)["body"] == "wanted"
        assert upstream.connections == 1
        assert ask(server, wire, f"{upstream.url}/no", params)["status"] == 417


def connections_of_two(server: Nginx, wire: Wire, answer: bytes, params: str) -> int:
    """How many connections two requests take; each is answered as soon as its head has come."""
    accepted = []

    def serve(connection: socket.socket) -> None:
        accepted.append(connection)
        while connection.recv(4096):
            connection.sendall(answer)

    with raw(serve) as port:
        for _ in range(2):
            assert "status" in ask(server, wire, f"http://127.0.0.1:{port}/", params)
    return len(accepted)


EMPTY = b"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"
PUT = '{ method = "PUT", body = "wanted", headers = { Expect = "100-continue" } }'


@pytest.mark.parametrize(
    ("answer", "params", "wanted"),
    [
        (EMPTY, PUT, 2),
        (EMPTY, "{}", 1),
        (
            b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n"
            b"Transfer-Encoding: chunked\r\n\r\nok",
            "{}",
            2,
        ),
    ],
)
def test_connections_that_are_used_again(
    server: Nginx, wire: Wire, answer: bytes, params: str, wanted: int
) -> None:
    """Not one whose server waits for a body that was not sent: it would take the next request for
    it. Nor one of which nobody knows where the body ends."""
    assert connections_of_two(server, wire, answer, params) == wanted


def test_an_empty_body_need_not_be_read(server: Nginx, wire: Wire) -> None:
    with Upstream(lambda exchange: exchange.reply(200, body=b"")) as upstream:
        code = (
            NEW
            + f"""
            assert(http:connect({{ scheme = "http", host = "127.0.0.1", port = {upstream.port} }}))
            local res = assert(http:request({{}}))
            assert(res.headers["Content-Length"] == "0")
            return {{ http:set_keepalive() }}
        """
        )
        assert server.run_on(wire, code) == [1]


def test_a_request_that_was_not_sent_whole_ends_its_connection(
    server: Nginx, wire: Wire, upstream: Upstream
) -> None:
    """Its server would take the next request for the rest of the body."""
    code = (
        NEW
        + f"""
        assert(http:connect({{ scheme = "http", host = "127.0.0.1", port = {upstream.port} }}))
        local pieces = {{ "half" }}
        local res, err = http:request({{
            method = "PUT",
            headers = {{ ["Content-Length"] = 8 }},
            body = function()
                local piece = table.remove(pieces)
                return piece, not piece and "gone" or nil
            end,
        }})
        return {{ res == nil, err, {{ http:set_keepalive() }} }}
    """
    )
    assert server.run_on(wire, code) == [True, "gone", [2, "connection must be closed"]]


@pytest.mark.parametrize("method", ["HEAD", "head"])
def test_no_body_is_waited_for(server: Nginx, wire: Wire, method: str) -> None:
    """A method is sent in capitals, however it was given."""
    with Upstream(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")) as upstream:
        found = ask(server, wire, upstream.url, f'{{ method = "{method}" }}')
    assert (found.get("status"), found.get("body")) == (200, "")


def test_a_pipeline(server: Nginx, wire: Wire, upstream: Upstream) -> None:
    code = (
        NEW
        + f"""
        assert(http:connect({{ scheme = "http", host = "127.0.0.1", port = {upstream.port} }}))
        local targets = {{}}
        local responses = http:request_pipeline({{ {{ path = "/1" }}, {{ path = "/2" }} }})
        for i, response in ipairs(responses) do
            assert(response.status == 200)
            targets[i] = require("cjson").decode(response:read_body()).target
        end
        targets[3] = http:set_keepalive()
        return targets
    """
    )
    assert server.run_on(wire, code) == ["/1", "/2", 1]


# TLS

TLS = {
    "good": certificates.make("localhost", issuer=CA, names=("DNS:good.example",)),
    "other name": certificates.make("other", issuer=CA, names=("DNS:other.example",)),
    "own": certificates.make("good.example", names=("DNS:good.example",)),
}


SNI = 'ssl_server_name = "good.example",'


def said(error: str | None) -> tuple[str | None, ...]:
    """What a failed handshake may say: lua-resty-core has no words if it did not have to wait."""
    return (error, "the TLS handshake failed") if error else (None,)


def test_a_certificate_that_is_wrong(server: Nginx, wire: Wire) -> None:
    wanted = {
        "good": None,
        "other name": "certificate host mismatch",
        "own": "18: self-signed certificate",
        "expired": "10: certificate has expired",
    }
    for name, error in wanted.items():
        pair = certificates.expired(CA) if name == "expired" else TLS[name]
        with Upstream(tls=certificates.server(pair)) as upstream:
            found = ask(server, wire, upstream.url, f"{{ {SNI} }}")
            assert found.get("err") in said(error), name
            unverified = ask(server, wire, upstream.url, f"{{ {SNI} ssl_verify = false }}")
            assert unverified["status"] == 200, name
            # That connection is kept, and nobody who verifies gets it.
            assert ask(server, wire, upstream.url, f"{{ {SNI} }}").get("err") in said(error), name


def test_a_client_certificate(server: Nginx, wire: Wire, tmp_path: Path) -> None:
    client = certificates.make("client", issuer=CA)
    (tmp_path / "cert").write_text(client.cert)
    (tmp_path / "key").write_text(client.key)
    code = (
        NEW
        + """
        local ssl = require("ngx.ssl")
        local cert = assert(ssl.parse_pem_cert(io.open([[%s/cert]]):read("*a")))
        local key = assert(ssl.parse_pem_priv_key(io.open([[%s/key]]):read("*a")))
        local said = {}
        for i, given in ipairs({ { cert, key }, {}, { cert, key }, { "text", key } }) do
            local res, err = http:request_uri("%s/", {
                ssl_server_name = "good.example",
                ssl_client_cert = given[1], ssl_client_priv_key = given[2],
            })
            said[i] = res and res.status or err
        end
        return said
    """
    )
    server.expect_log(r"SSL_do_handshake\(\) failed", 1)
    of_server = certificates.server(TLS["good"], CA, version=ssl.TLSVersion.TLSv1_2)
    with Upstream(tls=of_server) as upstream:
        said = server.run_on(wire, code % (tmp_path, tmp_path, upstream.url))
        upstream.problems.clear()
    # The second has no certificate, and is not given the connection of who has.
    assert said[0] == said[2] == 200
    assert said[1] != 200
    assert said[3] == "bad ssl_client_cert: cdata expected, got string"


# Proxies


class Proxy:
    """A proxy with CONNECT; `refuses` is its answer in place of a tunnel."""

    def __init__(self, refuses: bytes = b"") -> None:
        self.refuses = refuses
        self.heads: list[str] = []

    def __call__(self, connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        self.heads.append(head.decode())
        target = head.split(b" ")[1].decode()
        if self.refuses or not head.startswith(b"CONNECT"):
            connection.sendall(self.refuses or b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nproxy")
            connection.recv(1)
            return
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as beyond:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pump, args=(beyond, connection), daemon=True)
            back.start()
            pump(connection, beyond)
            back.join(10)


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def proxied(port: int, more: str = "") -> str:
    return f"""http:set_proxy_options({{
        http_proxy = "http://127.0.0.1:{port}", http_proxy_authorization = "Basic a",
        https_proxy = "http://127.0.0.1:{port}", https_proxy_authorization = "Basic b", {more}
    }})"""


def test_a_tunnel_through_a_proxy(server: Nginx, wire: Wire) -> None:
    proxy = Proxy()
    with Upstream(tls=certificates.server(TLS["good"])) as upstream, raw(proxy) as port:
        for _ in range(2):
            found = ask(server, wire, upstream.url, f"{{ {SNI} }}", proxied(port))
            assert found["status"] == 200
        assert "proxy-authorization" not in {n.lower() for n, _ in upstream.last.headers}
        assert upstream.last.nth == 1
    assert len(proxy.heads) == 1
    assert proxy.heads[0].startswith(f"CONNECT {upstream.address} HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic b\r\n" in proxy.heads[0]
    assert f"Host: {upstream.address}\r\n" in proxy.heads[0]


def test_a_request_through_a_proxy(server: Nginx, wire: Wire) -> None:
    proxy = Proxy()
    with raw(proxy) as port:
        found = ask(server, wire, "http://a.example:81/x?y", before=proxied(port))
        assert found["body"] == "proxy"
    assert proxy.heads[0].startswith("GET http://a.example:81/x?y HTTP/1.1\r\n")
    assert "Host: a.example:81\r\n" in proxy.heads[0]
    assert "Proxy-Authorization: Basic a\r\n" in proxy.heads[0]


def test_a_proxy_that_is_not_asked(server: Nginx, wire: Wire, upstream: Upstream) -> None:
    with DeadPort() as dead:
        for excepted in ("*", "x.example, 127.0.0.1", ".0.0.1"):
            more = f'no_proxy = "{excepted}"'
            found = ask(server, wire, upstream.url, before=proxied(dead.port, more))
            assert found["status"] == 200
        for excepted in ("", "0.1.1", "27.0.0.1"):
            more = f'no_proxy = "{excepted}"'
            found = ask(server, wire, upstream.url, before=proxied(dead.port, more))
            wanted = f"failed to connect to: 127.0.0.1:{dead.port}: connection refused"
            assert found == {"err": wanted}


def test_a_proxy_that_refuses_or_cheats(server: Nginx, wire: Wire) -> None:
    refusal = "failed to establish a tunnel through a proxy: "
    for answer, wanted in (
        (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", refusal + "407"),
        (b"HTTP/1.1 200 OK\r\n\r\nextra", refusal + "it sent more than a response"),
        (
            b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300,
            "failed to issue CONNECT to proxy: the head of the response has too many lines",
        ),
    ):
        with raw(Proxy(answer)) as port:
            found = ask(server, wire, "https://a.example/", before=proxied(port))
            assert found == {"err": wanted}


def test_a_proxy_of_another_kind(server: Nginx, wire: Wire) -> None:
    before = 'http:set_proxy_options({ https_proxy = "https://p.example" })'
    wanted = "protocol https not supported for proxy connections"
    assert ask(server, wire, "https://a.example/", before=before) == {"err": wanted}


def test_the_host_is_the_name_that_is_verified(server: Nginx, wire: Wire) -> None:
    """Where `connect` is given no other: a good certificate of somebody else's is no good."""
    own = certificates.make("x", issuer=CA, names=("DNS:localhost",))
    for pair, host, error in (
        (own, "localhost", None),
        (TLS["good"], "localhost", "certificate host mismatch"),
        (TLS["good"], "127.0.0.1", None),
    ):
        with Upstream(tls=certificates.server(pair)) as upstream, raw(Proxy()) as port:
            code = f"""{NEW}{proxied(port)}
                local ok, err = http:connect({{
                    scheme = "https", host = "{host}", port = {upstream.port},
                }})
                return {{ ok = ok == true, err = err }}
            """
            found = server.run_on(wire, code)
            assert found["ok"] == (error is None)
            assert found.get("err") in said(error)
