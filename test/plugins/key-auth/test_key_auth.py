"""The key-auth plugin, field by field, with Kong's messages and headers: where keys are found, who
is let in, what the upstream sees of it."""

import json
from typing import Any

import pytest

from processes import check_cost
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Pairs, Reply

ALICE_ID = "6f2c1a30-0000-4000-8000-000000000001"
KEY_ID = "6f2c1a30-0000-4000-8000-0000000000aa"

CONSUMERS = [
    {
        "id": ALICE_ID,
        "username": "alice",
        "custom_id": "a-1",
        "keyauth_credentials": [{"id": KEY_ID, "key": "alice key+1"}, {"key": "second"}],
    },
    {"username": "nobody"},
]

FORM = "application/x-www-form-urlencoded"
IDENTITY = (
    "X-Consumer-ID",
    "X-Consumer-Custom-ID",
    "X-Consumer-Username",
    "X-Credential-Identifier",
    "X-Anonymous-Consumer",
)


def protected(upstream: Upstream, **config: Any) -> dict[str, Any]:
    """One route behind key-auth, and two consumers."""
    plugin = {"name": "key-auth", "config": config}
    return proxying(upstream) | {"consumers": CONSUMERS, "plugins": [plugin]}


def identity(upstream: Upstream) -> dict[str, str]:
    """What the latest request told the upstream about its sender."""
    headers = upstream.last.headers
    assert all(len(headers.all(name)) <= 1 for name in IDENTITY)
    return {name: value for name in IDENTITY if (value := headers.get(name)) is not None}


def refused(reply: Reply, message: str, challenge: str = "Key") -> bool:
    """True for Kong's 401."""
    assert reply.status == 401
    assert reply.headers.all("www-authenticate") == [challenge]
    assert reply.json()["message"] == message
    return True


JSON = {"Accept": "application/json"}
ALICE = {
    "X-Consumer-ID": ALICE_ID,
    "X-Consumer-Custom-ID": "a-1",
    "X-Consumer-Username": "alice",
    "X-Credential-Identifier": KEY_ID,
}


@pytest.mark.parametrize(
    ("target", "headers"),
    [
        ("/", {"apikey": "alice key+1"}),
        ("/", {"APIKEY": "alice key+1"}),
        ("/?apikey=alice%20key%2b1", {}),
        ("/?a=1&apikey=alice+key%2B1&b=2", {}),
        ("/?%61pikey=alice%20key%2b1", {}),
        ("/?apikey=second", {"apikey": "alice key+1"}),
    ],
)
def test_a_key_says_who_asks(
    serving: Start, upstream: Upstream, target: str, headers: dict[str, str]
) -> None:
    running = serving(protected(upstream))
    assert running.ask(target, headers=headers).status == 200
    assert identity(upstream) == ALICE
    assert upstream.last.target == target
    assert upstream.last.headers.get("apikey") == headers.get("apikey", headers.get("APIKEY"))


def test_nobody_speaks_in_the_gateways_name(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream))
    forged = dict.fromkeys(IDENTITY, "forged")
    assert running.ask("/", headers=forged | {"apikey": "second"}).status == 200
    told = identity(upstream)
    assert "forged" not in told.values()
    assert told["X-Consumer-Username"] == "alice"
    assert "X-Anonymous-Consumer" not in told


def test_the_upstream_is_told_no_control_characters(serving: Start, upstream: Upstream) -> None:
    """Wherever they stand in a name, which is looked at eight bytes at once."""
    names = [
        "a" * length + control + "b" * rest
        for control in ("\n", "\x1f", "\x7f", "\x20", "\x80")
        for length in (0, 6, 7, 8, 15)
        for rest in (0, 1, 9)
    ]
    names = [name for name in names if name != " "]
    consumers = [
        {"username": name, "keyauth_credentials": [{"key": f"key-{number}"}]}
        for number, name in enumerate(names)
    ]
    running = serving(protected(upstream) | {"consumers": consumers})
    for number, name in enumerate(names):
        assert running.ask("/", headers={"apikey": f"key-{number}"}).status == 200
        told = "".join(f"%{ord(c):02X}" if c < " " or c == "\x7f" else c for c in name)
        seen = upstream.last.headers.get("X-Consumer-Username")
        assert seen is not None
        assert seen.encode("latin-1") == told.encode().strip()


def test_requests_without_a_valid_key_are_refused(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream))
    none = "No API key found in request"
    assert refused(running.ask("/", headers=JSON), none)
    assert refused(running.ask("/?apikey=", headers=JSON), none)
    assert refused(running.ask("/?apikey", headers=JSON), none)
    assert refused(running.ask("/?APIKEY=second", headers=JSON), none)
    assert refused(running.ask("/?xapikey=second", headers=JSON), none)
    assert refused(running.ask("/?apikey=", headers=JSON | {"apikey": ""}), none)
    assert refused(running.ask("/", headers=JSON | {"apikey": "wrong"}), "Unauthorized")
    assert refused(running.ask("/?apikey=Second", headers=JSON), "Unauthorized")
    assert upstream.requests == []


def test_one_key_only(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, key_in_body=True))
    message = "Duplicate API key found"
    twice: Pairs = [("apikey", "second"), ("ApiKey", "second"), *JSON.items()]
    assert refused(running.ask("/", headers=twice), message)
    assert refused(running.ask("/?apikey=second&apikey=x", headers=JSON), message)
    assert refused(running.ask("/?apikey&apikey=second", headers=JSON), message)
    for content_type, body in (
        (FORM, b"apikey=second&a=1&apikey=second"),
        ("application/json", b'{"apikey": ["second", "x"]}'),
        ("application/json", b'{"apikey": "second", "apikey": "x"}'),
    ):
        headers = JSON | {"Content-Type": content_type}
        assert refused(running.ask("/", "POST", headers=headers, body=body), message)


def test_many_headers_hide_no_key(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream))
    others = [(f"X-Other-{i}", "v") for i in range(300)]
    assert running.ask("/", headers=[*others, ("apikey", "second")]).status == 200
    assert running.ask("/", headers=[("apikey", "second"), *others]).status == 200
    both = [("apikey", "second"), *others, ("apikey", "second"), *JSON.items()]
    assert refused(running.ask("/", headers=both), "Duplicate API key found")


def test_the_realm_is_named(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, realm="my api"))
    reply = running.ask("/", headers=JSON)
    assert refused(reply, "No API key found in request", 'Key realm="my api"')


def test_the_realm_stays_between_its_quotes(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, realm='a "b" \\'))
    reply = running.ask("/", headers=JSON)
    assert refused(reply, "No API key found in request", r'Key realm="a \"b\" \\"')


def test_names_are_tried_in_order(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, key_names=["X-First", "my_key"]))
    assert running.ask("/", headers={"x-first": "second"}).status == 200
    assert running.ask("/", headers={"My_Key": "second"}).status == 200
    assert running.ask("/", headers={"my-key": "second"}).status == 200
    assert running.ask("/?X-First=second", headers={"my_key": "wrong"}).status == 200
    assert running.ask("/?my_key=second").status == 200
    assert refused(running.ask("/?my-key=second", headers=JSON), "No API key found in request")
    assert running.ask("/?my_key=second", headers={"X-First": "wrong"}).status == 401
    assert running.ask("/", headers={"apikey": "second"}).status == 401


def test_places_can_be_closed(gateway: Start, upstream: Upstream) -> None:
    in_query = gateway(protected(upstream, key_in_header=False))
    assert in_query.ask("/", headers={"apikey": "second"}).status == 401
    assert in_query.ask("/?apikey=second").status == 200
    in_header = gateway(protected(upstream, key_in_query=False))
    assert in_header.ask("/", headers={"apikey": "second"}).status == 200
    assert in_header.ask("/?apikey=second").status == 401
    form = {"Content-Type": FORM}
    assert in_header.ask("/", "POST", headers=form, body=b"apikey=second").status == 401


def multipart(*fields: tuple[str, str]) -> bytes:
    """A body of multipart/form-data with the boundary xx."""
    parts = [
        f'--xx\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in fields
    ]
    return ("".join(parts) + "--xx--\r\n").encode()


BODIES = [
    (FORM, b"a=%31&apikey=second&b", b"a=%31&b"),
    (FORM, b"apikey=second", b""),
    (
        "application/json; charset=utf-8",
        b'{"n": 12345678901234567890, "apikey": "second", "empty": []}',
        b'{"n": 12345678901234567890, "empty": []}',
    ),
    (
        "multipart/form-data; boundary=xx",
        multipart(("a", "1"), ("apikey", "second"), ("b", "x\r\ny")),
        multipart(("a", "1"), ("b", "x\r\ny")),
    ),
]


@pytest.mark.parametrize(("content_type", "body", "rest"), BODIES)
def test_a_key_in_the_body(
    gateway: Start, upstream: Upstream, content_type: str, body: bytes, rest: bytes
) -> None:
    headers = {"Content-Type": content_type}
    open_gateway = gateway(protected(upstream, key_in_body=True))
    assert open_gateway.ask("/", "POST", headers=headers, body=body).status == 200
    assert upstream.last.body == body
    hiding = gateway(protected(upstream, key_in_body=True, hide_credentials=True))
    assert hiding.ask("/", "POST", headers=headers, body=body).status == 200
    assert upstream.last.body == rest
    assert upstream.last.headers.get("content-length") == str(len(rest))
    assert identity(upstream)["X-Consumer-Username"] == "alice"


def test_bodies_without_a_key_to_read(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, key_in_body=True), client_body_buffer_size="1k")
    large = b"a=" + b"x" * 4000 + b"&apikey=second"
    none = "No API key found in request"
    for content_type, body in (
        ("text/plain", b"apikey=second"),
        ("application/json", b'{"apikey": "second"'),
        ("application/json", b'{"apikey": 7, "nested": {"apikey": "second"}}'),
        ("multipart/form-data", multipart(("apikey", "second"))),
        (FORM, large),
        (FORM, b""),
    ):
        headers = JSON | {"Content-Type": content_type}
        assert refused(running.ask("/", "POST", headers=headers, body=body), none)
    assert refused(running.ask("/", "POST", headers=JSON, body=b"apikey=second"), none)
    assert (
        running.ask("/?apikey=second", "POST", headers={"Content-Type": FORM}, body=large).status
        == 200
    )
    assert upstream.last.body == large


def test_hidden_keys_do_not_reach_the_upstream(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, hide_credentials=True))
    reply = running.ask("/x?a=%2f&apikey=q&b=1+2", headers={"apikey": "second", "other": "1"})
    assert reply.status == 200
    assert "apikey" not in upstream.last.headers
    assert upstream.last.headers.get("other") == "1"
    assert upstream.last.target == "/x?a=%2f&b=1+2"
    assert not [value for _, value in upstream.last.headers if "apikey" in value]
    assert running.ask("/x?apikey=second").status == 200
    assert upstream.last.target in ("/x", "/x?")
    assert running.ask("/x?b&%61pikey=second&apikeys=1").status == 200
    assert upstream.last.target == "/x?b&apikeys=1"


@pytest.mark.parametrize("name", ["nobody", "id"])
def test_anonymous_requests_pass_as_that_consumer(
    serving: Start, upstream: Upstream, name: str
) -> None:
    nobody_id = "6f2c1a30-0000-4000-8000-000000000002"
    config = protected(upstream, anonymous=nobody_id if name == "id" else name)
    config["consumers"] = [CONSUMERS[0], {"id": nobody_id, "username": "nobody"}]
    running = serving(config)
    anonymous = {
        "X-Consumer-ID": nobody_id,
        "X-Consumer-Username": "nobody",
        "X-Anonymous-Consumer": "true",
    }
    for headers in ({}, {"apikey": "wrong"}, dict.fromkeys(IDENTITY, "forged")):
        assert running.ask("/", headers=headers).status == 200
        assert identity(upstream) == anonymous
    assert running.ask("/", headers={"apikey": "alice key+1"}).status == 200
    assert identity(upstream) == ALICE


def test_a_missing_anonymous_consumer_is_said(serving: Start, upstream: Upstream) -> None:
    config = protected(upstream, anonymous="ghost")
    config["services"][0]["routes"][0]["paths"] = ["/api"]
    running = serving(config)
    message = "anonymous consumer ghost is configured but doesn't exist"
    running.expect_log(message)
    reply = running.ask("/api", headers=JSON)
    assert (reply.status, reply.json()["message"]) == (500, message)


def test_preflight_requests(gateway: Start, upstream: Upstream) -> None:
    asks = gateway(protected(upstream))
    assert asks.ask("/", "OPTIONS").status == 401
    passes = gateway(protected(upstream, run_on_preflight=False))
    assert passes.ask("/", "OPTIONS").status == 200
    assert identity(upstream) == {}
    assert passes.ask("/").status == 401


def test_answers_follow_accept(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream))
    reply = running.ask("/", headers={"Accept": "text/html"})
    assert reply.status == 401
    assert "No API key found in request" in reply.text
    assert "text/html" in (reply.headers.get("content-type") or "")


def test_a_reload_changes_the_keys(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream))
    assert running.ask("/", headers={"apikey": "second"}).status == 200
    config = json.loads(json.dumps(protected(upstream)))
    config["consumers"][0]["keyauth_credentials"] = [{"key": "third"}]
    running.reload(config)
    assert running.ask("/", headers={"apikey": "second"}).status == 401
    assert running.ask("/", headers={"apikey": "third"}).status == 200


def test_bad_settings_are_refused(gateway: Start, upstream: Upstream) -> None:
    broken = Gateway(protected(upstream, key_names=["a b"], keys_in_header=True))
    done = broken.command("check")
    broken.close()
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert 'plugins[0] "key-auth".config.key_names[0]' in output
    assert 'plugins[0] "key-auth".config.keys_in_header: unknown field' in output


def test_key_names_are_bounded(gateway: Start, upstream: Upstream) -> None:
    names = [f"name-{number}" for number in range(101)]
    broken = Gateway(protected(upstream, key_names=names))
    done = broken.command("check")
    broken.close()
    assert done.returncode != 0
    assert "key_names: length must be at most 100" in done.stdout + done.stderr


def test_fields_by_names_are_no_product(gateway: Start, upstream: Upstream) -> None:
    """Thousands of fields, fifty names to look for: the query and the body are cut once."""
    names = [f"none{number}" for number in range(50)]
    running = gateway(protected(upstream, key_names=names, key_in_body=True))
    (worker,) = running.workers()
    fields = "%41&" * 1900

    def ask() -> None:
        for _ in range(5):
            reply = running.ask(f"/?{fields}", "POST", {"Content-Type": FORM}, fields.encode())
            assert reply.status == 401

    check_cost(worker, 5 * 0.008, ask)


@pytest.mark.parametrize("field", [b"a&", b"a=&", b"&", b"=&", b"=", b"%", b"+"])
def test_a_body_is_cut_in_one_pass(gateway: Start, upstream: Upstream, field: bytes) -> None:
    """As long as a body may be, of fields as short as they can be."""
    running = gateway(protected(upstream, key_in_body=True), client_body_buffer_size="1m")
    (worker,) = running.workers()
    body = field * (800000 // len(field))

    def ask() -> None:
        assert running.ask("/", "POST", {"Content-Type": FORM}, body).status == 401

    check_cost(worker, 0.7, ask)


def test_a_key_of_a_megabyte(gateway: Start, upstream: Upstream) -> None:
    """That is the most; one more byte is refused by the name of its field."""
    key = "k" * (1 << 20)
    config = protected(upstream, key_in_body=True)
    config["consumers"] = [{"username": "alice", "keyauth_credentials": [{"key": key}]}]
    running = gateway(config, client_body_buffer_size="2m")
    for sent, status in ((key, 200), (key[1:], 401), (key + "k", 401)):
        body = f"apikey={sent}".encode()
        reply = running.ask("/", "POST", JSON | {"Content-Type": FORM}, body)
        assert reply.status == status
    assert len(upstream.requests) == 1
    config["consumers"][0]["keyauth_credentials"] = [{"key": key + "k"}]
    running.write_config(config)
    checked = running.command("check")
    assert checked.returncode == 1
    assert "keyauth_credentials[0].key: is longer than 1 MiB" in checked.stderr
