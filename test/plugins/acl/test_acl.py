"""The acl plugin: whose groups may pass, and what the upstream sees of them."""

from typing import Any

import pytest
from admin_client import Client, uuid
from tunnels import by_http2, by_upgrade, where_asked

from sluice import Start, proxying
from upstream import Upstream
from wire import Headers, Pairs, outcome

JSON = {"Accept": "application/json"}
MANY = [f"group-{number}" for number in range(2000)]

CONSUMERS = [
    {
        "username": "both",
        "keyauth_credentials": [{"key": "both"}],
        "acls": [{"group": "a"}, {"group": "b"}],
    },
    {"username": "one", "keyauth_credentials": [{"key": "one"}], "acls": [{"group": "a"}]},
    {"username": "none", "keyauth_credentials": [{"key": "none"}]},
    {
        "username": "many",
        "keyauth_credentials": [{"key": "many"}],
        "acls": [{"group": group} for group in MANY],
    },
    {"username": "somebody"},
    {"username": "member", "acls": [{"group": "a"}]},
]

FORBIDDEN = (403, "You cannot consume this service")
UNAUTHORIZED = (401, "Unauthorized")
PASSES = (200, None)


def guarded(upstream: Upstream, anonymous: str | None = None, **config: Any) -> dict[str, Any]:
    """One route behind key-auth and acl."""
    plugins = [
        {"name": "key-auth", "config": {"anonymous": anonymous} if anonymous else {}},
        {"name": "acl", "config": config},
    ]
    return proxying(upstream) | {"consumers": CONSUMERS, "plugins": plugins}


def key(name: str) -> Pairs:
    """Headers of a consumer's request."""
    return JSON | {"apikey": name}


CASES = [
    ({"allow": ["a"]}, "one", PASSES),
    ({"allow": ["b", "c", "a"]}, "one", PASSES),
    ({"allow": ["b"]}, "one", FORBIDDEN),
    ({"allow": ["A"]}, "one", FORBIDDEN),
    ({"allow": ["a "]}, "one", FORBIDDEN),
    ({"allow": ["aa"]}, "one", FORBIDDEN),
    ({"allow": ["b"]}, "both", PASSES),
    ({"allow": ["a"]}, "none", FORBIDDEN),
    ({"allow": ["a"]}, "many", FORBIDDEN),
    ({"allow": ["group-1999"]}, "many", PASSES),
    ({"deny": ["a"]}, "one", FORBIDDEN),
    ({"deny": ["b"]}, "both", FORBIDDEN),
    ({"deny": ["b"]}, "one", PASSES),
    ({"deny": ["a"]}, "none", PASSES),
    ({"deny": ["group-1999"]}, "many", FORBIDDEN),
]


@pytest.mark.parametrize(("config", "name", "expected"), CASES)
def test_groups_decide(
    serving: Start,
    upstream: Upstream,
    config: dict[str, Any],
    name: str,
    expected: tuple[int, str | None],
) -> None:
    running = serving(guarded(upstream, **config))
    assert outcome(running.ask("/", headers=key(name))) == expected
    assert len(upstream.requests) == (expected == PASSES)


@pytest.mark.parametrize(
    ("config", "anonymous", "expected"),
    [
        ({"allow": ["a"]}, None, UNAUTHORIZED),
        ({"deny": ["a"]}, None, UNAUTHORIZED),
        ({"allow": ["a"]}, "somebody", UNAUTHORIZED),
        ({"allow": ["a"]}, "member", PASSES),
        ({"allow": ["b"]}, "member", FORBIDDEN),
        ({"deny": ["a"]}, "somebody", PASSES),
        ({"deny": ["a"]}, "member", FORBIDDEN),
    ],
)
def test_who_has_no_credential(
    serving: Start,
    upstream: Upstream,
    config: dict[str, Any],
    anonymous: str | None,
    expected: tuple[int, str | None],
) -> None:
    """Nobody without an authenticator, else the anonymous consumer, who may be in groups."""
    document = guarded(upstream, anonymous, **config)
    if anonymous is None:
        del document["plugins"][0]
    running = serving(document)
    assert outcome(running.ask("/", headers=JSON)) == expected


def groups(headers: Headers) -> set[str]:
    """The groups that the upstream was told."""
    assert len(headers.all("X-Consumer-Groups")) == 1
    return set((headers.get("X-Consumer-Groups") or "").split(", "))


def test_the_upstream_is_told_the_groups(serving: Start, upstream: Upstream) -> None:
    running = serving(guarded(upstream, deny=["c"]))
    for name, expected in (("both", {"a", "b"}), ("none", {""}), ("many", set(MANY))):
        assert running.ask("/", headers=key(name)).status == 200
        assert groups(upstream.last.headers) == expected


def test_http2_and_a_switch(gateway: Start, upstream: Upstream) -> None:
    """The groups decide there, too; whoever is refused gets no tunnel."""
    upstream.handler = where_asked(upstream)
    running = gateway(guarded(upstream, allow=["a"]), tls="ssl http2")
    for name, status in (("one", None), ("both", None), ("none", 403), ("nobody", 401)):
        count = len(upstream.requests)
        assert by_http2(running, headers={"apikey": name}) == (status or 200)
        assert by_upgrade(running, headers={"apikey": name}) == (status or 101)
        told = [groups(each.headers) for each in upstream.requests[count:]]
        assert told == ([] if status else [{"a", "b"} if name == "both" else {"a"}] * 2)


ALWAYS, HIDE = "always_use_authenticated_groups", "hide_groups_header"
SAYS = "kong.ctx.shared.authenticated_groups = "
FINDS_BOTH = "local both = kong.client.load_consumer('both', true) "
IS_BOTH = FINDS_BOTH + "kong.client.authenticate(both, "
OF_BOTH = FINDS_BOTH + "kong.client.authenticate(nil, {id = 'c', consumer_id = both.id}) "
OWN, TOLD = "X-Consumer-Groups", "X-Authenticated-Groups"


def says(document: dict[str, Any], code: str, phase: str = "access") -> dict[str, Any]:
    """A plugin in Lua in front of the others."""
    document["plugins"].append({"name": "pre-function", "config": {phase: [code]}})
    return document


@pytest.mark.parametrize(
    ("config", "name", "code", "expected", "told"),
    [
        # Nobody is known, or nobody with a credential.
        ({"allow": ["a"]}, None, SAYS + "{'a', 'z'}", PASSES, (TOLD, "a, z")),
        ({"allow": ["a"]}, None, SAYS + "{'z'}", FORBIDDEN, None),
        ({"allow": ["a"]}, None, SAYS + "{}", FORBIDDEN, None),
        ({"deny": ["a"]}, None, SAYS + "{'z', 'a'}", FORBIDDEN, None),
        ({"deny": ["a"]}, None, SAYS + "{'z'}", PASSES, (TOLD, "z")),
        ({"deny": ["a"]}, None, SAYS + "{}", PASSES, (TOLD, "")),
        ({"allow": ["a"]}, None, "ngx.ctx.authenticated_groups = {'a'}", PASSES, (TOLD, "a")),
        # It may have been said before the route was known.
        ({"deny": ["a"]}, None, "rewrite: " + SAYS + "{'a'}", FORBIDDEN, None),
        ({"allow": ["a"]}, None, "rewrite: " + SAYS + "{'a'}", PASSES, (TOLD, "a")),
        # What is no string makes nobody a member.
        ({"allow": ["1", "true"]}, None, SAYS + "{1, true}", FORBIDDEN, None),
        ({"deny": ["1", "a"]}, None, SAYS + "{1, 'a'}", FORBIDDEN, None),
        # Those of a consumer with a credential are his own, unless it is said otherwise.
        ({"allow": ["a"]}, "one", SAYS + "{'z'}", PASSES, (OWN, "a")),
        ({"deny": ["z"]}, "one", SAYS + "{'z'}", PASSES, (OWN, "a")),
        ({"allow": ["a"], ALWAYS: True}, "one", SAYS + "{'z'}", FORBIDDEN, None),
        ({"deny": ["z"], ALWAYS: True}, "one", SAYS + "{'z'}", FORBIDDEN, None),
        ({"deny": ["a"], ALWAYS: True}, "one", SAYS + "{'z'}", PASSES, (TOLD, "z")),
        ({"allow": ["a"], ALWAYS: True}, "one", "ngx.ctx.a = 1", PASSES, (OWN, "a")),
        # It is somebody's all the same if it has no id, or no consumer but by its id.
        ({"deny": ["b"]}, None, IS_BOTH + "{key = 'x'}) " + SAYS + "{'z'}", FORBIDDEN, None),
        ({"allow": ["a"]}, None, IS_BOTH + "nil) " + SAYS + "{'a'}", PASSES, (TOLD, "a")),
        ({"deny": ["b"]}, None, OF_BOTH + SAYS + "{'z'}", FORBIDDEN, None),
        ({"allow": ["a"], HIDE: True}, None, SAYS + "{'a'}", PASSES, ("", "")),
    ],
)
def test_groups_that_a_plugin_has_authenticated(
    serving: Start,
    upstream: Upstream,
    config: dict[str, Any],
    name: str | None,
    code: str,
    expected: tuple[int, str | None],
    told: tuple[str, str] | None,
) -> None:
    document = guarded(upstream, **config)
    if name is None:
        del document["plugins"][0]
    phase, _, code = code.rpartition(": ")
    running = serving(says(document, code, phase or "access"))
    headers = key(name) if name else JSON
    # Nobody is told what another request was.
    for _ in range(3):
        assert outcome(running.ask("/", headers=headers)) == expected
    assert len(upstream.requests) == (3 if expected == PASSES else 0)
    if told:
        seen = upstream.last.headers
        assert {name: seen.get(name) for name in (OWN, TOLD) if name in seen} == (
            {told[0]: told[1]} if told[0] else {}
        )


@pytest.mark.parametrize(
    ("config", "expected"), [({"allow": ["a"]}, UNAUTHORIZED), ({"deny": ["a"]}, UNAUTHORIZED)]
)
def test_groups_that_are_no_table_are_none(
    serving: Start, upstream: Upstream, config: dict[str, Any], expected: tuple[int, str | None]
) -> None:
    document = guarded(upstream, **config)
    del document["plugins"][0]
    running = serving(says(document, "ngx.ctx.authenticated_groups = 'a'"))
    assert outcome(running.ask("/", headers=JSON)) == expected
    running.expect_log("invalid authenticated_groups, a table was expected", 1)


@pytest.mark.parametrize("groups", ["{nil, 'a'}", "{'z', nil, 'a'}"])
def test_a_list_with_a_hole_lets_nobody_pass(
    serving: Start, upstream: Upstream, groups: str
) -> None:
    document = guarded(upstream, deny=["a"])
    del document["plugins"][0]
    running = serving(says(document, SAYS + groups))
    assert running.ask("/", headers=JSON).status == 500
    running.expect_log("authenticated_groups lacks number [12]", 1)


def test_authenticated_groups_override_those_of_the_anonymous_consumer(
    serving: Start, upstream: Upstream
) -> None:
    running = serving(says(guarded(upstream, "member", allow=["a"]), SAYS + "{'z'}"))
    assert outcome(running.ask("/", headers=JSON)) == FORBIDDEN


def test_a_request_has_its_own_groups(serving: Start, upstream: Upstream) -> None:
    """On one connection, and none where the plugin says none of this one."""
    document = guarded(upstream, deny=["a"])
    del document["plugins"][0]
    code = SAYS + "{kong.request.get_header('X-Group')}"
    running = serving(says(document, code))
    for _ in range(3):
        assert running.get("/", headers=JSON | {"X-Group": "a"}).status_code == 403
        assert running.get("/", headers=JSON | {"X-Group": "z"}).status_code == 200
        assert upstream.last.headers.get(TOLD) == "z"
        assert running.get("/", headers=JSON).status_code == 200
        assert upstream.last.headers.get(TOLD) == ""


def test_an_authenticated_group_ends_no_header(serving: Start, upstream: Upstream) -> None:
    document = guarded(upstream, deny=["a"])
    del document["plugins"][0]
    running = serving(says(document, SAYS + r"{'z\r\nX-Evil: 1', '\0'}"))
    assert running.ask("/", headers=JSON).status == 200
    assert upstream.last.headers.get(TOLD) == "z??X-Evil: 1, ?"
    assert "X-Evil" not in upstream.last.headers


FORGED = {
    "X-Consumer-Groups": "root",
    "x_consumer_groups": "root",
    "X-Authenticated-Groups": "root",
}


@pytest.mark.parametrize("is_hidden", [False, True])
def test_nobody_speaks_of_groups_in_the_gateways_name(
    serving: Start, upstream: Upstream, is_hidden: bool
) -> None:
    running = serving(guarded(upstream, allow=["a"], hide_groups_header=is_hidden))
    assert running.ask("/", headers=key("one") | FORGED).status == 200
    headers = upstream.last.headers
    assert not [value for _, value in headers if "root" in value]
    assert is_hidden == ("X-Consumer-Groups" not in headers)


def test_a_group_ends_no_header(serving: Start, upstream: Upstream) -> None:
    document = guarded(upstream, allow=["a\r\nX-Evil: 1", "\x00"])
    document["consumers"] = [
        {
            "username": "evil",
            "keyauth_credentials": [{"key": "evil"}],
            "acls": [{"group": "a\r\nX-Evil: 1"}],
        }
    ]
    running = serving(document)
    assert running.ask("/", headers=key("evil")).status == 200
    assert upstream.last.headers.get("X-Consumer-Groups") == "a??X-Evil: 1"
    assert "X-Evil" not in upstream.last.headers


@pytest.mark.parametrize("config", [{}, {"allow": []}, {"allow": ["a"], "deny": ["b"]}])
def test_one_list_is_needed(client: Client, config: dict[str, Any]) -> None:
    reply = client.ask("POST", "/plugins", {"name": "acl", "config": config})
    assert reply.status == 400
    assert "config.allow" in reply.json()["message"]


def test_groups_come_and_go(client: Client, upstream: Upstream) -> None:
    """By id and by name, below their consumer, and live with the answer."""
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/"]})
    for name, config in (("key-auth", {}), ("acl", {"allow": ["vip"]})):
        client.must(201, "POST", "/plugins", {"name": name, "config": config})
    client.must(201, "POST", "/consumers", {"username": "u"})
    client.must(201, "POST", "/consumers/u/key-auth", {"key": "u"})
    ask = client.running.ask
    assert outcome(ask("/", headers=key("u"))) == FORBIDDEN
    made = client.must(201, "POST", "/consumers/u/acls", {"group": "vip"})
    assert ask("/", headers=key("u")).status == 200
    assert client.must(200, "GET", "/consumers/u/acls/vip") == made
    assert client.must(200, "GET", f"/acls/{made['id']}") == made
    reply = client.ask("POST", "/consumers/u/acls", {"group": "vip"})
    assert reply.status == 409
    client.must(200, "PUT", "/consumers/u/acls/staff")
    assert {row["group"] for row in client.must(200, "GET", "/acls")["data"]} == {"vip", "staff"}
    assert client.ask("DELETE", "/consumers/u/acls/vip").status == 204
    assert outcome(ask("/", headers=key("u"))) == FORBIDDEN
    assert client.ask("GET", "/consumers/u/acls/vip").status == 404
    assert client.ask("GET", f"/acls/{uuid(9)}").status == 404


@pytest.mark.parametrize("line", [b"GET /\r\n", b"GET / HTTP/1.0\r\n\r\n"])
def test_requests_without_headers(serving: Start, upstream: Upstream, line: bytes) -> None:
    """HTTP/0.9 has none to change."""
    running = serving(guarded(upstream, "member", allow=["a"]))
    with running.wire() as wire:
        wire.send(line)
        wire.read_to_end()
    assert groups(upstream.last.headers) == {"a"}
