"""resty.redis: commands, TLS, and servers that do what they should not."""

import socket
import time
from collections.abc import Callable, Iterator

import pytest
from raw_server import raw

import certificates
from nginx import Nginx
from wire import Wire

CA = certificates.make("ca", is_ca=True)
PAIR = certificates.make("redis", issuer=CA, names=("DNS:redis.example",))

CONF = """
    lua_ssl_trusted_certificate @ca@;
    lua_ssl_verify_depth 3;
    server { listen 127.0.0.1:@port@; @runs@ }
"""


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


class Redis:
    """Answers commands as `answers` says, by their text; all others with their text as a status."""

    def __init__(self, answers: dict[str, bytes] | None = None) -> None:
        self.answers = answers or {}
        self.seen: list[str] = []
        self.connections = 0

    def __call__(self, connection: socket.socket) -> None:
        self.connections += 1
        file = connection.makefile("rb")
        while first := file.readline():
            parts = []
            for _ in range(int(first[1:])):
                size = int(file.readline()[1:])
                parts.append(file.read(size + 2)[:-2].decode("latin-1"))
            self.seen.append(" ".join(parts))
            answer = self.answers.get(self.seen[-1], f"+{self.seen[-1]}\r\n".encode("latin-1"))
            connection.sendall(answer)


def code_for(port: int, body: str, options: str = "{}") -> str:
    return f"""
        local redis = require("resty.redis"):new()
        redis:set_timeout(400)
        local ok, err = redis:connect("127.0.0.1", {port}, {options})
        if not ok then return {{ "connect", err }} end
        {body}
    """


def test_commands_and_replies(server: Nginx, wire: Wire) -> None:
    redis = Redis(
        {
            "get a": b"$5\r\nab\r\nc\r\n",
            "get none": b"$-1\r\n",
            "get empty": b"$0\r\n\r\n",
            "incr n": b":-7\r\n",
            "keys *": b"*3\r\n$1\r\na\r\n*1\r\n:1\r\n-ERR in\r\n",
            "wrong": b"-ERR no\r\n",
            "json.get x": b"+module\r\n",
            "set k v\r\nx EX 10": b"+OK\r\n",
        }
    )
    body = """
        redis.register_module_prefix("json")
        local null = ngx.null
        local wrong, words = redis:wrong()
        return {
            redis:get("a"), redis:get("none") == null, redis:get("empty"), redis:incr("n"),
            redis:keys("*"), wrong == false and words, redis:hmset("h", { f = 1 }),
            redis:set("k", "v\\r\\nx", "EX", 10), redis:json():get("x"),
            redis:array_to_hash({ "a", 1, "b", 2 }), redis:set_keepalive(),
        }
    """
    with raw(redis) as port:
        assert server.run_on(wire, code_for(port, body)) == [
            *["ab\r\nc", True, "", -7],
            *[["a", [1], [False, "ERR in"]], "ERR no", "hmset h f 1"],
            *["OK", "module", {"a": 1, "b": 2}, 1],
        ]


def test_a_pipeline(server: Nginx, wire: Wire) -> None:
    redis = Redis({"b": b"-ERR b\r\n"})
    body = """
        redis:init_pipeline()
        redis:a() redis:b() redis:c("d")
        local replies = redis:commit_pipeline()
        redis:init_pipeline() redis:lost() redis:cancel_pipeline()
        return { replies, select(2, redis:commit_pipeline()), redis:set_keepalive() }
    """
    with raw(redis) as port:
        assert server.run_on(wire, code_for(port, body)) == [
            ["a", [False, "ERR b"], "c d"],
            "no pipeline",
            1,
        ]
    assert redis.seen == ["a", "b", "c d"]


def test_subscriptions(server: Nginx, wire: Wire) -> None:
    def message(kind: str, rest: str) -> bytes:
        return f"*3\r\n${len(kind)}\r\n{kind}\r\n$1\r\nc\r\n{rest}\r\n".encode()

    redis = Redis(
        {
            "subscribe c": message("subscribe", ":1") + message("message", "$2\r\nhi"),
            "unsubscribe c": message("unsubscribe", ":0"),
        }
    )
    body = """
        local early = select(2, redis:read_reply())
        local first, message = redis:subscribe("c"), redis:read_reply()
        local nothing, why = redis:read_reply()
        return {
            early, first, message, why, select(2, redis:set_keepalive()),
            redis:unsubscribe("c"), redis:set_keepalive(),
        }
    """
    with raw(redis) as port:
        assert server.run_on(wire, code_for(port, body)) == [
            "not subscribed",
            ["subscribe", "c", 1],
            ["message", "c", "hi"],
            "timeout",
            "subscribed state",
            ["unsubscribe", "c", 0],
            1,
        ]


def test_tls_is_spoken_and_verified(server: Nginx, wire: Wire) -> None:
    redis, context = Redis(), certificates.server(PAIR)
    auth = 'return { redis:auth("secret"), redis:set_keepalive() }'
    verified = '{ ssl = true, ssl_verify = true, server_name = "redis.example" }'
    with raw(redis, context) as port:
        assert server.run_on(wire, code_for(port, auth, verified)) == ["auth secret", 1]
        said = server.run_on(wire, code_for(port, auth, "{ ssl = true, ssl_verify = true }"))
        assert said[0] == "connect"
        assert said[1].startswith("failed to do ssl handshake: ")
        # An unverified one is kept apart from those that are verified.
        assert server.run_on(wire, code_for(port, auth, "{ ssl = true }")) == ["auth secret", 1]
        said = server.run_on(wire, code_for(port, auth, "{ ssl = true, ssl_verify = true }"))
        assert said[0] == "connect"
        assert server.run_on(wire, code_for(port, auth, verified)) == ["auth secret", 1]
    assert redis.seen == ["auth secret"] * 3


def test_no_password_goes_to_a_server_without_tls(server: Nginx, wire: Wire) -> None:
    seen: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        seen.append(connection.recv(4096))
        connection.sendall(b"-ERR\r\n" * 10)

    server.expect_log(r"SSL_do_handshake\(\) failed", 1)
    with raw(listen) as port:
        said = server.run_on(wire, code_for(port, 'return redis:auth("secret")', "{ ssl = true }"))
    assert said[0] == "connect"
    assert all(b"secret" not in data for data in seen)


def sending(begin: bytes, more: bytes, pause: float = 0) -> Callable[[socket.socket], None]:
    def send(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(begin)
        for _ in range(100000):
            time.sleep(pause)
            connection.sendall(more if pause else more * 1000)

    return send


@pytest.mark.parametrize(
    ("begin", "more", "pause", "wanted"),
    [
        (b"+", b"a", 0, "a line of the reply is too long"),
        (b"+", b"a", 0.02, "timeout"),
        (b"$99999999999\r\n", b"a", 0, "the reply is too long"),
        (b"$9999\r\n", b"a", 0.02, "timeout"),
        (b"*99999999\r\n", b":1\r\n", 0, "the reply is too long"),
        (b"", b"*1\r\n", 0, "the reply is too long"),
        (b"*2000\r\n", b":1\r\n", 0.02, "timeout"),
        (b"*1000\r\n", b"*1000\r\n", 0, "the reply is too long"),
        (b"$x\r\n", b"", 0.1, "invalid length in the reply"),
        (b":0x1\r\n", b"", 0.1, "invalid number in the reply"),
        (b"$1\r\nabc", b"", 0.1, "invalid end of a text in the reply"),
        (b"?\r\n", b"", 0.1, 'unknown prefix: "?"'),
        (b"\r\n", b"", 0.1, 'unknown prefix: ""'),
    ],
)
def test_a_reply_without_end(
    server: Nginx, wire: Wire, begin: bytes, more: bytes, pause: float, wanted: str
) -> None:
    body = 'local a, err = redis:get("a") return { a == nil, err, select(2, redis:get("b")) }'
    begun = time.monotonic()
    with raw(sending(begin, more, pause)) as port:
        assert server.run_on(wire, code_for(port, body)) == [True, wanted, "closed"]
    assert time.monotonic() - begun < 5


def test_what_was_not_asked_for_is_nobodys_answer(server: Nginx, wire: Wire) -> None:
    redis = Redis({"get a": b"+a\r\n+stolen\r\n"})
    body = 'return { redis:get("a"), select(2, redis:set_keepalive()) }'
    with raw(redis) as port:
        for _ in range(2):
            assert server.run_on(wire, code_for(port, body)) == ["a", "unread replies"]
    assert redis.connections == 2


def test_arguments(server: Nginx, wire: Wire) -> None:
    code = """
        local redis = require("resty.redis")
        local one = redis:new()
        local said = {}
        for i, args in ipairs({ { 1, 2 }, { "a", "b" }, { "a", 1, "x" }, { "unix:/x", "y" } }) do
            said[i] = select(2, pcall(one.connect, one, unpack(args))):match("bad argument.*")
        end
        said[5] = select(2, redis.close({}))
        return said
    """
    assert server.run_on(wire, code) == [
        "bad argument #1 host: string expected, got number",
        "bad argument #2 port: number expected, got string",
        "bad argument #3 opts: nil or table expected, got string",
        "bad argument #2 opts: nil or table expected, got string",
        "not initialized",
    ]
