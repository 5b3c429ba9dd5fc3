"""Plugins' own kinds of entities, and `kong.db`: stored, found, changed, gone."""

import json

import pytest
from admin_client import Client, uuid
from kit_entities import GADGETS, headers_of, one, refused, result_header, run

from sluice import Config, Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

PLUGINS = {"plugins": [{"name": "gadget"}]}
GONE = "00000000-0000-4000-8000-00000000dead"


@pytest.fixture
def made(gateway: Start, upstream: Upstream) -> Gateway:
    """With a store, three workers, and the plugin on every request."""
    running = gateway(None, plugins={"gadget": GADGETS}, workers=3)
    client = Client(running)
    client.must(201, "POST", "/services", {"name": "echo", "url": upstream.url})
    client.must(201, "POST", "/services/echo/routes", {"paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "gadget"})
    client.must(201, "POST", "/consumers", {"username": "ann", "id": uuid(1), "custom_id": "A/1"})
    return running


def in_file(upstream: Upstream, more: dict[str, object]) -> Config:
    return proxying(upstream) | PLUGINS | more


# The Admin API, files ------------------------------------------------------------------------


def test_the_admin_api_has_them(made: Gateway) -> None:
    client = Client(made)
    first = client.must(201, "POST", "/gadget-box", {"name": "one", "tags": ["a", "b"]})
    assert first["color"] == "red"
    assert first["ttl"] is None
    nested = client.must(201, "POST", "/consumers/ann/gadget", {"name": "two", "tags": ["a"]})
    assert nested["owner"] == {"id": uuid(1)}
    assert client.must(200, "GET", "/gadget-box/one")["id"] == first["id"]
    assert client.must(200, "GET", f"/consumers/ann/gadget/{nested['id']}")["name"] == "two"
    page = client.must(200, "GET", "/gadget-box?size=1")
    assert [each["name"] for each in page["data"]] == ["one"]
    rest = client.must(200, "GET", page["next"])
    assert [each["name"] for each in rest["data"]] == ["two"]
    tagged = client.must(200, "GET", "/gadget-box?tags=a,b")["data"]
    assert [each["name"] for each in tagged] == ["one"]
    assert client.must(409, "POST", "/gadget-box", {"name": "one"})["code"] == 5
    assert client.must(400, "POST", "/gadget-box", {"name": "x", "colour": 1})["code"] == 2
    client.must(404, "GET", "/hidden")
    client.must(404, "GET", "/services/echo/hidden")
    client.must(204, "DELETE", "/gadget-box/one")
    client.must(404, "GET", "/gadget-box/one")


def test_files_have_them_nested(gateway: Start, upstream: Upstream) -> None:
    gadgets = [{"name": "one", "serial": 7}, {"name": "two"}]
    people = [{"username": "ann", "gadgets": gadgets, "gizmos": [{"place": "here"}]}]
    running = gateway(in_file(upstream, {"consumers": people}), plugins={"gadget": GADGETS})
    found = one(running, "kong.db.gadgets:select_by_serial(7)")
    consumer = one(running, 'kong.db.consumers:select_by_username("ann")')
    assert (found["name"], found["owner"]) == ("one", {"id": consumer["id"]})
    exported = Client(running).must(200, "GET", "/config")["config"]
    assert "gadgets" in exported
    assert "gizmos" in exported
    assert "hidden" not in exported
    # the same file, the same ids
    again = gateway(in_file(upstream, {"consumers": people}), plugins={"gadget": GADGETS})
    assert one(again, "kong.db.gadgets:select_by_serial(7)")["id"] == found["id"]


def test_a_plugin_adds_pages_to_the_admin_api(made: Gateway) -> None:
    client = Client(made)
    client.must(201, "POST", "/gadget-box", {"name": "one"})
    reply = client.ask("POST", "/gadget-box/one/paint/blue", {"why": "so"})
    assert (reply.status, reply.text) == (200, "painted one blue so\n")
    assert client.must(200, "GET", "/gadget-box/one")["color"] == "blue"
    assert client.must(404, "POST", "/gadget-box/two/paint/blue")["code"] == 6
    error = client.must(400, "POST", "/gadget-box/one/paint/green")
    assert (error["code"], error["fields"]) == (2, {"color": "expected one of: red, blue"})
    made.expect_log(r"plugin 'gadget' failed in admin_api: .*no brush")
    error = client.must(500, "GET", "/gadget-box/one/paint/blue")
    assert error == {"message": "An unexpected error occurred"}
    client.must(405, "DELETE", "/gadget-box/one/paint/blue")
    # what entities answer, with a change before it
    client.must(201, "POST", "/gadget-box", {"name": "two"})
    assert client.must(200, "GET", "/gadget-box/TWO")["name"] == "two"
    assert client.must(200, "PATCH", "/gadget-box/two", {"serial": 4})["color"] == "blue"
    assert client.must(200, "GET", "/gadget-box/two")["serial"] == 4
    client.must(204, "DELETE", "/gadget-box/TWO")
    # by kong.api.endpoints
    added = client.must(201, "POST", "/red-gadgets", {"name": "three", "tags": []})
    assert (added["color"], added["tags"], added["serial"]) == ("red", [], None)
    page = client.must(200, "GET", "/red-gadgets?size=1")
    assert [each["name"] for each in page["data"]] == ["one"]
    assert page["next"].startswith("/gadget-box?offset=")
    assert client.must(200, "GET", "/red-gadgets/three")["id"] == added["id"]
    client.must(204, "DELETE", "/red-gadgets/three")
    assert client.must(404, "GET", "/red-gadgets/three") == {"message": "Not found"}
    paths = client.must(200, "GET", "/endpoints")["data"]
    assert "/gadget-box/{gadgets}/paint/{color}" in paths
    assert paths.count("/gadget-box/{gadgets}") == 1


# Reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["rewrite", "access", "header_filter"])
def test_one_is_found_in_every_phase(made: Gateway, phase: str) -> None:
    client = Client(made)
    gadget = client.must(201, "POST", "/consumers/ann/gadget", {"name": "one", "serial": 12})
    gizmo = client.must(201, "POST", "/gizmos", {"consumer": {"id": uuid(1)}, "place": "a:b"})
    gizmo_key = f'{{ consumer = {{ id = "{uuid(1)}" }}, place = "a:b" }}'
    for code in (
        f'kong.db.gadgets:select({{ id = "{gadget["id"]}" }})',
        'kong.db.gadgets:select_by_name("one")',
        # by its own class
        'kong.db.gadgets:select_by_name("ONE")',
        "kong.db.gadgets:select_by_serial(12)",
        'kong.db.gadgets:select_by_cache_key("one")',
        'kong.db.gadgets:select_by_cache_key({ name = "one" })',
    ):
        found = one(made, code, phase)
        assert (found["id"], found["serial"]) == (gadget["id"], 12), code
        assert found["owner"] == {"id": uuid(1)}
    for code in (
        f'kong.db.gizmos:select({{ id = "{gizmo["id"]}" }})',
        f'kong.db.gizmos:select_by_cache_key(kong.db.gizmos:cache_key("{uuid(1)}", "a:b"))',
        f"kong.db.gizmos:select_by_cache_key({gizmo_key})",
    ):
        assert one(made, code, phase)["id"] == gizmo["id"], code
    for code in (
        f'kong.db.gadgets:select({{ id = "{gizmo["id"]}" }})',
        'kong.db.gadgets:select_by_name("12")',
        "kong.db.gadgets:select_by_serial(13)",
        'kong.db.gizmos:select_by_cache_key("gizmos:x:::::")',
        'kong.db.gizmos:select_by_cache_key("")',
    ):
        assert one(made, code, phase) is None, code
    assert (
        one(made, f'kong.db.consumers:select({{ id = "{uuid(1)}" }})', phase)["username"] == "ann"
    )
    assert one(made, 'kong.db.consumers:select_by_username("ann")', phase)["id"] == uuid(1)


def test_what_images_do_not_find_is_asked_for(made: Gateway) -> None:
    assert one(made, 'kong.db.consumers:select_by_custom_id("A/1")')["id"] == uuid(1)
    service = one(made, 'kong.db.services:select_by_name("echo")')
    assert one(made, f'kong.db.services:select({{ id = "{service["id"]}" }})') == service
    assert one(made, "(kong.db.plugins:each()())")["name"] == "gadget"
    assert one(made, 'kong.db.services:select_by_name("none")') is None
    client = Client(made)
    client.must(201, "POST", "/consumers/ann/acls", {"group": "a:b"})
    key = f'kong.db.acls:cache_key("{uuid(1)}", "a:b")'
    assert one(made, f"kong.db.acls:select_by_cache_key({key})")["group"] == "a:b"
    client.must(201, "POST", "/consumers/ann/key-auth", {"key": "k"})
    found = one(made, 'kong.db.keyauth_credentials:select_by_key("k")', "header_filter")
    assert found["consumer"] == {"id": uuid(1)}
    assert one(made, f'kong.db.keyauth_credentials:select({{ id = "{found["id"]}" }})') == found


def test_lists_are_asked_for(made: Gateway) -> None:
    client = Client(made)
    for number in range(7):
        path = "/consumers/ann/gadget" if number % 2 else "/gadget-box"
        client.must(201, "POST", path, {"name": f"g{number}", "tags": [f"t{number % 3}", "all"]})
    names = """
        local names = {}
        for row, err in %s do names[#names + 1] = row and row.name or err end
        return table.concat(names, " ")"""
    assert run(made, names % "kong.db.gadgets:each()") == ["g0 g1 g2 g3 g4 g5 g6"]
    assert run(made, names % "kong.db.gadgets:each(2)") == ["g0 g1 g2 g3 g4 g5 g6"]
    owned = f'kong.db.gadgets:each_for_owner({{ id = "{uuid(1)}" }}, 2)'
    assert run(made, names % owned) == ["g1 g3 g5"]
    tagged = 'kong.db.gadgets:each(nil, { tags = { "t0", "t1" }, tags_cond = "%s" })'
    assert run(made, names % (tagged % "or")) == ["g0 g1 g3 g4 g6"]
    assert run(made, names % (tagged % "and")) == [""]
    page, _, _, offset = run(made, "return kong.db.gadgets:page(3)")
    assert [each["name"] for each in page] == ["g0", "g1", "g2"]
    rest = run(made, f'return kong.db.gadgets:page(9, "{offset}")')
    assert [each["name"] for each in rest[0]] == ["g3", "g4", "g5", "g6"]
    assert rest[3:] in ([], [None])
    assert one(made, "kong.db.gadgets:count()") == 7
    assert refused(made, "kong.db.gadgets:page(0)")["code"] == 9
    assert refused(made, 'kong.db.gadgets:page(1, "x")')["code"] == 7
    assert refused(made, "kong.db.gizmos:page(1, nil, { tags = { 'a' } })")["code"] == 11


def test_who_cannot_wait_is_told(made: Gateway) -> None:
    for code, name in {
        "kong.db.gadgets:each()": "gadgets:each",
        "kong.db.gadgets:page()": "gadgets:page",
        'kong.db.gadgets:insert({ name = "x" })': "gadgets:insert",
        'kong.db.services:select_by_name("echo")': "services:select_by_name",
    }.items():
        reply = made.ask("/", headers=headers_of("header_filter", f"return {code}"))
        ok, message = json.loads(result_header(reply))
        assert not ok
        assert f"kong.db.{name}() cannot be called in header_filter phase (only in: " in message


# Changing ------------------------------------------------------------------------------------


def test_what_is_written_is_seen_by_all_at_once(made: Gateway) -> None:
    for number in range(10):
        insert = f'kong.db.gadgets:insert({{ name = "n{number}", serial = {number} }})'
        added = one(made, insert)
        assert added["color"] == "red"
        # each request is another connection, of some worker
        for _ in range(6):
            found = one(made, f"kong.db.gadgets:select_by_serial({number})", "header_filter")
            assert found["id"] == added["id"]
        one(made, f'kong.db.gadgets:update({{ id = "{added["id"]}" }}, {{ color = "blue" }})')
        for _ in range(6):
            found = one(made, f'kong.db.gadgets:select_by_name("n{number}")', "header_filter")
            assert found["color"] == "blue"
        assert one(made, f'kong.db.gadgets:delete({{ id = "{added["id"]}" }})') is True
        for _ in range(6):
            assert one(made, f"kong.db.gadgets:select_by_serial({number})") is None


def test_each_verb_changes(made: Gateway) -> None:
    client = Client(made)
    added = one(made, 'kong.db.gadgets:insert({ name = "a", owner = { username = "ann" } })')
    assert added["owner"] == {"id": uuid(1)}
    assert client.must(200, "GET", "/gadget-box/a")["id"] == added["id"]
    found = one(made, 'kong.db.gadgets:update_by_name("a", { serial = 3, owner = ngx.null })')
    assert (found["id"], found["serial"], found.get("owner")) == (added["id"], 3, None)
    found = one(made, 'kong.db.gadgets:upsert_by_name("a", { color = "blue" })')
    assert (found["id"], found["color"], found.get("serial")) == (added["id"], "blue", None)
    found = one(made, 'kong.db.gadgets:upsert_by_name("b", {})')
    assert found["name"] == "b"
    found = one(made, f'kong.db.gadgets:upsert({{ id = "{uuid(9)}" }}, {{ name = "c" }})')
    assert found["id"] == uuid(9)
    assert one(made, 'kong.db.gadgets:delete_by_name("c")') is True
    assert one(made, 'kong.db.gadgets:delete_by_name("c")') is True
    assert one(made, f'kong.db.gadgets:delete({{ id = "{GONE}" }})') is True
    assert [each["name"] for each in client.must(200, "GET", "/gadget-box")["data"]] == ["a", "b"]
    route = one(made, 'kong.db.routes:insert({ name = "more", paths = { "/more" } })')
    assert client.must(200, "GET", "/routes/more")["id"] == route["id"]
    by = client.must(200, "GET", "/history")["data"][0]["by"]
    assert by == "plugin gadget"
    made.stop()
    made.start()
    assert one(made, 'kong.db.gadgets:select_by_name("a")')["color"] == "blue"


def test_errors_are_kongs(made: Gateway) -> None:
    one(made, f'kong.db.gadgets:insert({{ id = "{uuid(3)}", name = "a" }})')
    error = refused(made, 'kong.db.gadgets:insert({ name = "a" })')
    assert (error["code"], error["name"]) == (5, "unique constraint violation")
    assert error["fields"] == {"name": "a"}
    assert error["strategy"] == "postgres"
    error = refused(made, f'kong.db.gadgets:insert({{ id = "{uuid(3)}", name = "b" }})')
    assert (error["code"], error["fields"]) == (3, {"id": uuid(3)})
    error = refused(made, 'kong.db.gadgets:insert({ name = "b", color = "green" })')
    assert (error["code"], error["name"]) == (2, "schema violation")
    assert error["fields"] == {"color": "expected one of: red, blue"}
    error = refused(made, f'kong.db.gadgets:insert({{ name = "b", owner = {{ id = "{GONE}" }} }})')
    assert (error["code"], error["fields"]) == (4, {"owner": {"id": GONE}})
    error = refused(made, f'kong.db.gadgets:update({{ id = "{GONE}" }}, {{ color = "red" }})')
    assert error["code"] == 6
    assert error["message"] == (f"could not find the entity with primary key '{{id=\"{GONE}\"}}'")
    error = refused(made, 'kong.db.gadgets:update_by_name("x", { color = "red" })')
    assert error["message"] == "could not find the entity with '{name=\"x\"}'"
    for key in ("{}", "{ id = ngx.null }", '{ id = "x" }', "{ id = 1 }"):
        assert refused(made, f"kong.db.gadgets:select({key})")["code"] == 1, key
    for code, words in {
        'select("x")': "primary_key must be a table",
        "insert(1)": "entity must be a table",
        "update_by_name(1, {})": "name must be a string",
        "select_by_serial('1')": "serial must be a number",
        "page('x')": "size must be a number",
        "page(1, 2)": "offset must be a string",
        "insert({}, 1)": "options must be a table when specified",
    }.items():
        reply = made.ask("/", headers=headers_of("access", f"return kong.db.gadgets:{code}"))
        ok, message = json.loads(reply.text)
        assert not ok, code
        assert words in message


def test_what_belongs_to_others_goes_with_them(made: Gateway) -> None:
    client = Client(made)
    gadget = client.must(201, "POST", "/gadget-box", {"name": "one"})
    gizmo = client.must(
        201,
        "POST",
        "/gizmos",
        {"consumer": {"id": uuid(1)}, "place": "x", "gadget": {"id": gadget["id"]}},
    )
    mine = client.must(201, "POST", "/consumers/ann/gadget", {"name": "mine"})
    client.must(204, "DELETE", "/gadget-box/one")
    select = f'kong.db.gizmos:select({{ id = "{gizmo["id"]}" }})'
    assert "gadget" not in one(made, select)
    assert client.must(200, "GET", f"/gizmos/{gizmo['id']}")["gadget"] is None
    service = one(made, 'kong.db.services:insert({ host = "a.example" })')
    of_service = f'{{ service = {{ id = "{service["id"]}" }} }}'
    one(made, f"kong.db.hidden:insert({of_service})")
    error = refused(made, f'kong.db.services:delete({{ id = "{service["id"]}" }})')
    assert (error["code"], error["fields"]) == (4, {"@referenced_by": "hidden"})
    client.must(204, "DELETE", "/consumers/ann")
    assert one(made, select, "header_filter") is None
    code = f'kong.db.gadgets:select({{ id = "{mine["id"]}" }})'
    assert one(made, code, "header_filter") is None


def test_an_end_is_looked_at_when_it_is_found(made: Gateway) -> None:
    added = one(made, 'kong.db.gadgets:insert({ name = "brief", serial = 5 }, { ttl = 2 })')
    assert added["ttl"] in (1, 2)
    assert one(made, 'kong.db.gadgets:insert({ name = "long", ttl = 1000 })')["ttl"] > 900
    assert "ttl" not in one(made, 'kong.db.gadgets:insert({ name = "always" })')
    for code in (
        'kong.db.gadgets:select_by_name("brief")',
        "kong.db.gadgets:select_by_serial(5)",
        f'kong.db.gadgets:select({{ id = "{added["id"]}" }})',
    ):
        wait_until(lambda code=code: one(made, code, "header_filter") is None, f"{code}: an end")
    assert one(made, 'kong.db.gadgets:select_by_name("long")')["ttl"] > 900
    assert refused(made, "kong.db.gizmos:insert({}, { ttl = 1 })")["code"] == 11


def test_hostile_values_are_values(made: Gateway) -> None:
    for number, name in enumerate(
        (
            "'; DROP TABLE e_gadgets; --",
            "a:b:::::",
            '"\\',
            "x" * 60000,
            "\u00e9/%2F?#",
        )
    ):
        text = json.dumps(name, ensure_ascii=False).replace("\\\\", "\\\\")
        added = Client(made).must(201, "POST", "/gadget-box", {"name": name, "serial": number})
        if len(name) < 1000:
            code = f"kong.db.gadgets.super.select_by_name(kong.db.gadgets, {text})"
            assert one(made, code)["id"] == added["id"], name
            assert one(made, code, "header_filter")["id"] == added["id"], name
        assert one(made, f"kong.db.gadgets:select_by_serial({number})")["name"] == name
    # nobody reads the environment by the name of an entity
    assert refused(made, 'kong.db.gadgets:insert({ name = "{vault://env/HOME}" })')["code"] == 2
    code = "kong.db.gadgets:insert({ name = function() end })"
    assert "not serialisable" in refused(made, code)["message"]
    assert refused(made, 'kong.db.gadgets:insert({ name = "a\\0b" })')["code"] == 2


def test_no_key_has_a_nul_byte(made: Gateway) -> None:
    for code in (
        'gadgets:select_by_name("a\\0b")',
        'gadgets:update_by_name("a\\0b", { color = "blue" })',
        'gadgets:upsert_by_name("a\\0b", { color = "blue" })',
        'gadgets:delete_by_name("a\\0b")',
        'consumers:select_by_username("ann\\0")',
        'gizmos:select_by_cache_key("gizmos:\\0:x::::")',
    ):
        name = "cache_key" if "cache_key" in code else code.split("_by_")[1].split("(")[0]
        error = refused(made, f"kong.db.{code}")
        assert (error["code"], error["name"]) == (10, f"invalid unique {name}"), code
        assert error["message"] == f"{name} must not contain a NUL byte"
    reply = made.ask(
        "/", headers=headers_of("header_filter", 'return kong.db.gadgets:select_by_name("\\0")')
    )
    assert "must not contain a NUL byte" in result_header(reply)
    error = refused(made, 'kong.db.gadgets:page(1, nil, { tags = { "a\\0" } })')
    assert error["code"] == 11
    error = refused(made, 'kong.db.gadgets:upsert_by_name("\\255", { color = "blue" })')
    assert (error["code"], list(error["fields"])) == (2, ["name"])
    assert one(made, "kong.db.gadgets:count()") == 0


# A file is the configuration -----------------------------------------------------------------


def test_in_file_mode_changes_fail_in_kongs_words(gateway: Start, upstream: Upstream) -> None:
    more = {"gadgets": [{"name": "one"}]}
    running = gateway(in_file(upstream, more), plugins={"gadget": GADGETS})
    assert run(running, "return kong.db.strategy, kong.configuration.database") == ["off", "off"]
    found = one(running, 'kong.db.gadgets:select_by_name("one")')
    key = f'{{ id = "{found["id"]}" }}'
    for code, words in {
        'insert({ name = "x" })': "cannot create 'gadgets' entities",
        f"update({key}, {{}})": "cannot update 'gadgets' entities",
        f"upsert({key}, {{}})": "cannot create or update 'gadgets' entities",
        f"delete({key})": "cannot remove 'gadgets' entities",
        'update_by_name("one", {})': "cannot update 'gadgets' entities by 'name'",
        'upsert_by_name("one", {})': "cannot create or update 'gadgets' entities by 'name'",
        'delete_by_name("one")': "cannot remove 'gadgets' entities by 'name'",
    }.items():
        error = refused(running, f"kong.db.gadgets:{code}")
        assert error["message"] == f"{words} when not using a database"
        assert (error["code"], error["name"]) == (12, "operation unsupported")
    assert one(running, "kong.db.gadgets:count()") == 1


def test_there_is_no_sql(made: Gateway) -> None:
    assert run(made, "return kong.db.connector:query('SELECT 1')") == [
        None,
        "Sluice has no SQL; use kong.db.<entity>",
    ]
    assert run(made, "return kong.db.strategy, kong.db.nothing") in (
        ["postgres"],
        ["postgres", None],
    )
    assert one(made, "kong.db.gadgets.schema.cache_key[1]") == "name"
    assert one(made, "kong.db.daos.gadgets == kong.db.gadgets") is True
