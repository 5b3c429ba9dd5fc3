"""The admin listener, as Kong's clients read it."""

import gzip
import re
from collections.abc import Iterator

import pytest
from admin_starts import CONFIG, SERVICE_ID, Admin

from sluice import Gateway, Start
from wire import Wire

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def admin() -> Iterator[Admin]:
    """The admin listener of a gateway that runs CONFIG; nothing here changes what it shows."""
    with Gateway(CONFIG) as running:
        yield Admin(running)


def test_the_node_describes_itself(gateway: Start) -> None:
    running = gateway(CONFIG, workers=2)
    admin = Admin(running)
    node = admin.get("/")
    assert re.match(r"3\.\d+", node["version"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", node["sluice"]["version"])
    assert "tagline" not in node
    assert node["hostname"]
    assert UUID.fullmatch(node["node_id"])
    assert node["lua_version"].startswith("LuaJIT")
    assert node["pids"]["master"] == running.master()
    assert sorted(node["pids"]["workers"]) == sorted(running.workers())
    configuration = node["configuration"]
    assert configuration["router_flavor"] == "traditional_compatible"
    assert configuration["database"] == "off"
    assert configuration["prefix"] == str(running.settings["prefix"])
    assert configuration["trusted_ips"] == []
    (listener,) = configuration["proxy_listeners"]
    assert (listener["ip"], listener["port"]) == ("127.0.0.1", running.proxy_port)
    assert configuration["admin_listeners"][0]["port"] == running.admin_port
    available = node["plugins"]["available_on_server"]
    assert available["key-auth"]["priority"] == 1250
    assert available["rate-limiting"]["priority"] == 910
    assert sorted(node["plugins"]["enabled_in_cluster"]) == ["key-auth", "rate-limiting"]
    enabled = admin.get("/plugins/enabled")["enabled_plugins"]
    assert {"access-log", "key-auth", "http-log"} <= set(enabled)
    assert set(enabled) == set(available)
    assert enabled == sorted(enabled, key=lambda name: -available[name]["priority"])
    first = node["node_id"]
    running.reload()
    assert admin.get("/")["node_id"] == first


def test_an_empty_node(gateway: Start) -> None:
    admin = Admin(gateway({}))
    assert admin.get("/")["plugins"]["enabled_in_cluster"] == []
    for collection in (
        "services",
        "routes",
        "upstreams",
        "consumers",
        "plugins",
        "key-auths",
        "certificates",
        "snis",
        "ca_certificates",
        "consumer_groups",
        "vaults",
        "key-sets",
        "keys",
    ):
        assert admin.ask(f"/{collection}?size=1000").text == '{"data":[],"next":null}'


def test_status(gateway: Start) -> None:
    running = gateway(CONFIG, workers=2)
    admin = Admin(running)
    before = admin.get("/status?unit=b")
    server = before["server"]
    assert set(server) == {
        "connections_accepted",
        "connections_active",
        "connections_handled",
        "connections_reading",
        "connections_waiting",
        "connections_writing",
        "total_requests",
    }
    assert server["connections_accepted"] >= server["connections_active"] >= 1
    for _ in range(3):
        running.ask("/none")
    assert admin.get("/status")["server"]["total_requests"] >= server["total_requests"] + 4
    assert before["memory"]["lua_shared_dicts"] == {}
    workers = before["memory"]["workers_lua_vms"]
    assert sorted(w["pid"] for w in workers) == sorted([*running.workers(), running.control()])
    assert all(w["resident"] > 2**20 for w in workers)
    assert any(w.get("http_allocated_gc", 0) > 2**16 for w in workers)
    assert before["database"] == {"reachable": True}
    assert re.fullmatch(r"[0-9a-f]{32}", before["configuration_hash"])
    running.reload(CONFIG | {"plugins": []})
    assert admin.get("/status")["configuration_hash"] != before["configuration_hash"]


@pytest.mark.parametrize(
    ("query", "pattern", "bytes_of_one"),
    [
        ("", r"[\d]+\.\d\d MiB", 2**20),
        ("?unit=k", r"[\d]+\.\d\d KiB", 2**10),
        ("?unit=G&scale=4", r"0\.\d{4} GiB", 2**30),
        ("?unit=m&scale=0", r"\d+ MiB", 2**20),
    ],
)
def test_status_in_other_units(admin: Admin, query: str, pattern: str, bytes_of_one: int) -> None:
    for worker in admin.get(f"/status{query}")["memory"]["workers_lua_vms"]:
        assert re.fullmatch(pattern, worker["resident"])
        assert 2**20 < float(worker["resident"].split()[0]) * bytes_of_one < 2**30


@pytest.mark.parametrize("query", ["unit=x", "unit", "unit=k&unit=m", "scale=-1", "scale=1.5"])
def test_status_in_no_unit(admin: Admin, query: str) -> None:
    reply = admin.ask(f"/status?{query}")
    assert reply.status == 400
    assert isinstance(reply.json()["message"], str)


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        ('{"_format_version": "3.0", "services": [{"name": "a", "name": "b"}]}',
         "services[0].name", "line 1, column 55"),
        ('{"config": "_format_version: \\"3.0\\"", "config": ""}', "config", "line 1, column 40"),
    ],
)  # fmt: skip
def test_a_posted_key_that_stands_twice_is_refused(
    admin: Admin, text: str, path: str, place: str
) -> None:
    reply = admin.ask(
        "/config", "POST", headers={"Content-Type": "application/json"}, body=text.encode()
    )
    assert reply.status == 400
    message = f"{place}: duplicate key '{path.rpartition('.')[2]}', first in line 1"
    assert reply.json()["fields"] == {path: message}


def test_entities_are_whole(admin: Admin) -> None:
    orders = admin.get("/services/orders")
    assert orders == admin.get(f"/services/{SERVICE_ID}") == admin.get("/services")["data"][0]
    assert (
        orders.items()
        >= {
            "id": SERVICE_ID,
            "protocol": "http",
            "port": 80,
            "path": "/v1",
            "retries": 5,
            "connect_timeout": 60000,
            "enabled": True,
            "client_certificate": None,
            "tags": ["blue", "team-a"],
        }.items()
    )
    assert all(type(orders[name]) is int for name in ("port", "created_at", "updated_at"))
    route = admin.get("/routes/r1")
    assert (
        route.items()
        >= {
            "service": {"id": SERVICE_ID},
            "methods": ["PUT", "GET"],
            "hosts": None,
            "headers": None,
            "snis": None,
            "strip_path": True,
            "https_redirect_status_code": 426,
        }.items()
    )
    assert UUID.fullmatch(route["id"])
    empty = admin.get("/routes/r2")
    assert (empty["tags"], empty["methods"]) == ([], None)  # given as empty, and not given
    assert admin.get("/routes/r3")["headers"] == {"x-tenant": ["one"]}
    upstream = admin.get("/upstreams/pool")
    assert upstream["slots"] == 10000
    assert upstream["healthchecks"]["active"]["http_path"] == "/"


def test_a_plugin_shows_all_of_its_settings(admin: Admin) -> None:
    plugin = admin.get("/plugins/slow")
    assert plugin["service"] == {"id": SERVICE_ID}
    assert plugin["route"] is None
    config = plugin["config"]
    assert (
        config.items()
        >= {
            "second": None,
            "minute": 5,
            "limit_by": "consumer",
            "policy": "local",
            "error_code": 429,
            "sync_rate": -1,
            "path": None,
        }.items()
    )
    assert not [key for key in config if key.startswith("_")]
    (key_auth,) = [p for p in admin.get("/plugins")["data"] if p["name"] == "key-auth"]
    assert key_auth["config"] == {
        "anonymous": None,
        "hide_credentials": False,
        "identity_realms": None,
        "key_in_body": False,
        "key_in_header": True,
        "key_in_query": True,
        "key_names": ["apikey"],
        "realm": None,
        "run_on_preflight": True,
    }


def test_credentials_name_their_consumer(admin: Admin) -> None:
    alice = admin.get("/consumers/alice")
    keys = admin.get("/key-auths")["data"]
    assert [key["key"] for key in keys] == ["secret-1", "secret-2", "secret/3"]
    assert keys[0]["consumer"] == {"id": alice["id"]}
    assert admin.get("/key-auths/secret-1") == keys[0]
    assert admin.get(f"/key-auths/{keys[0]['id']}") == keys[0]
    assert admin.names("/consumers/alice/key-auth", "key") == ["secret-1", "secret-2"]
    assert admin.get("/consumers/alice/key-auth/secret-1") == keys[0]
    assert admin.ask("/consumers/bob/key-auth/secret-1").status == 404


def test_nested_views(admin: Admin) -> None:
    assert admin.names("/services/orders/routes") == ["r1", "r2"]
    assert admin.names(f"/services/{SERVICE_ID}/plugins") == ["rate-limiting"]
    assert admin.names("/services/stock/plugins") == []
    assert admin.names("/routes/r1/plugins") == []
    assert admin.names("/consumers/alice/plugins") == []
    assert admin.names("/upstreams/pool/targets", "target") == ["127.0.0.1:1111", "127.0.0.1:2222"]
    assert admin.names("/upstreams/pool/targets/all", "weight") == [7, 100]
    assert admin.get("/upstreams/pool/targets/127.0.0.1:1111")["weight"] == 7
    assert admin.get("/services/orders/routes/r1") == admin.get("/routes/r1")
    assert admin.ask("/services/stock/routes/r1").status == 404
    assert admin.names("/services/orders/routes?tags=blue") == ["r1"]


def test_names_may_be_escaped(admin: Admin) -> None:
    assert admin.get("/key-auths/secret%2F3")["key"] == "secret/3"
    assert admin.ask("/key-auths/secret/3").status == 404
    assert admin.get("/services/%6frders")["name"] == "orders"
    assert admin.get("/services/")["data"]


def test_pages(admin: Admin) -> None:
    seen: list[str] = []
    target: str | None = "/routes?size=2"
    for size in (2, 1):
        page = admin.get(target or "")
        assert len(page["data"]) == size
        seen += [route["name"] for route in page["data"]]
        assert bool(page["next"]) == ("offset" in page)
        target = page["next"]
    assert target is None
    assert seen == ["r1", "r2", "r3"]
    page = admin.get("/services/orders/routes?size=1")
    assert page["next"] == f"/services/{SERVICE_ID}/routes?offset={page['offset']}&size=1"
    assert admin.names(page["next"]) == ["r2"]
    page = admin.get("/services?size=1&tags=blue")
    assert admin.names(page["next"]) == ["stock"]
    assert "offset" not in admin.get("/routes?size=3")


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        ("blue", ["orders", "stock"]),
        ("blue,team-a", ["orders"]),
        ("team-a/blue", ["orders", "stock"]),
        ("team-a/none", ["orders"]),
        ("none", []),
        ("blue%2Cteam-a", ["orders"]),
    ],
)
def test_tags_choose(admin: Admin, tags: str, names: list[str]) -> None:
    assert admin.names(f"/services?tags={tags}") == names


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("size=0", "invalid size"),
        ("size=1001", "invalid size"),
        ("size=1.5", "invalid size"),
        ("size=many", "invalid size"),
        ("size=", "invalid size"),
        ("size=1&size=2", "invalid size"),
        ("offset=there", "invalid offset"),
        ("offset=", "invalid offset"),
        ("offset=-1", "invalid offset"),
        ("offset=1&offset=2", "invalid offset"),
        ("offset=%ff", "invalid offset"),
        ("offset=99999999999999999999", "invalid offset"),
        ("tags=a,b/c", "invalid options"),
        ("tags=", "invalid options"),
        ("tags", "invalid options"),
        ("tags=a,,b", "invalid options"),
        ("tags=a&tags=b", "invalid options"),
    ],
)
def test_bad_arguments_are_refused(admin: Admin, query: str, name: str | None) -> None:
    reply = admin.ask(f"/services?{query}")
    if name is None:
        assert reply.json() == {"data": [], "next": None}
        return
    assert reply.status == 400
    assert reply.json()["name"] == name
    assert isinstance(reply.json()["message"], str)
    assert "table:" not in reply.json()["message"]
    assert isinstance(reply.json()["code"], int)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET /%zz HTTP/1.1", 400),
        (b"GET /../status HTTP/1.1", 400),
        (b"TRACE / HTTP/1.1", 405),
        (b"GET /" + b"a" * 40000 + b" HTTP/1.1", 414),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 40000, 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip", 501),
        (b"GET / HTTP/3.0", 505),
    ],
)
def test_what_nginx_refuses_is_json_too(admin: Admin, request_line: bytes, status: int) -> None:
    with Wire(admin.port) as wire:
        wire.send(request_line + b"\r\nHost: a\r\n\r\n")
        reply = wire.read_reply()
    assert reply.status == status
    assert isinstance(reply.json()["message"], str)


@pytest.mark.parametrize(
    "target",
    [
        "/nothing",
        "/services/orders/nothing",
        "/services/orders/consumers",
        "/services/orders/routes/r1/plugins",
        "/services//routes",
        "/targets",
        "/consumer_group_consumers",
        "/oauth2",
        "/status/dns",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_what_is_not_there(admin: Admin, method: str, target: str) -> None:
    reply = admin.ask(target, method)
    assert (reply.status, reply.json()) == (404, {"message": "Not found"})


@pytest.mark.parametrize("target", ["/services/none", "/services/none/routes"])
def test_who_is_not_there(admin: Admin, target: str) -> None:
    reply = admin.ask(target)
    assert (reply.status, reply.json()) == (404, {"message": "Not found"})


def test_methods(admin: Admin) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        for target in ("/", "/status", "/plugins/enabled"):
            reply = admin.ask(target, method, body=b"{}")
            assert (reply.status, reply.headers.get("allow")) == (405, "GET, HEAD, OPTIONS")
        for target in ("/services", f"/services/{SERVICE_ID}", "/services/orders/routes"):
            assert admin.ask(target, method, body=b"{}").status == 405
    head = admin.ask("/services", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers.get("content-length") == str(len(admin.ask("/services").body))
    options = admin.ask("/services", "OPTIONS")
    assert (options.status, options.headers.get("allow")) == (204, "GET, HEAD, OPTIONS")


def test_a_connection_is_kept(admin: Admin) -> None:
    with Wire(admin.port) as wire:
        for _ in range(3):
            assert wire.ask("/services", "POST", body=b'{"name": "x"}').status == 405
            reply = wire.ask("/services", headers={"Accept-Encoding": "gzip"})
            body = reply.body
            if reply.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert body.startswith(b'{"data":[{')


def test_text_is_escaped(gateway: Start) -> None:
    name = 'q"\\/\n\x01\u00e9'
    config = {"consumers": [{"username": "x", "custom_id": name}]}
    admin = Admin(gateway(config))
    assert admin.get("/consumers/x")["custom_id"] == name


def test_a_full_page(gateway: Start) -> None:
    services = [{"name": f"s{i}", "url": "http://127.0.0.1:1"} for i in range(1001)]
    admin = Admin(gateway({"services": services}))
    page = admin.get("/services?size=1000")
    assert [entity["name"] for entity in page["data"]] == [f"s{i}" for i in range(1000)]
    assert admin.names(page["next"]) == ["s1000"]
    assert len(admin.get("/services")["data"]) == 100
