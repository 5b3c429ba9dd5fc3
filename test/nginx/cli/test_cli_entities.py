"""get, apply, delete, history, rollback: the terminal on entities of a gateway that runs."""

import json
import os
import pty
import pwd
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from admin_client import Client, uuid

from instance import Instance
from sluice import COMMAND, COMMAND_SECONDS, Gateway, Start
from upstream import Upstream

FILE = """\
_format_version: "3.0"
services:
  - name: orders
    url: {url}
    tags: [blue]
    routes:
      - name: one
        paths: [/one]
    plugins:
      - name: rate-limiting
        config: {{minute: 1000}}
routes:
  - paths: [/two]
    service: orders
consumers:
  - username: alice
    keyauth_credentials: [{{key: alices-secret}}]
upstreams:
  - name: pool
    targets: [{{target: "10.0.0.1:80"}}, {{target: "10.0.0.2:80", weight: 5}}]
"""
COUNT = 9
USER = pwd.getpwuid(os.geteuid()).pw_name
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def run(running: Gateway, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """A command, with a text for it to read."""
    return subprocess.run(
        [str(COMMAND), *arguments],
        env=running.environment() | {"SUDO_USER": ""},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


def succeed(running: Gateway, *arguments: str, stdin: str = "") -> list[str]:
    """The lines of a command that has to succeed in silence."""
    done = run(running, *arguments, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout.splitlines()


def refuse(running: Gateway, *arguments: str, stdin: str = "", code: int = 1) -> list[str]:
    """The lines that say why a command has failed."""
    done = run(running, *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (code, ""), (done.stdout, done.stderr)
    assert "traceback" not in done.stderr
    return done.stderr.splitlines()


def apply(running: Gateway, document: object, *more: str) -> list[str]:
    """What apply says of a file."""
    text = document if isinstance(document, str) else json.dumps(document)
    return succeed(running, "apply", "-", *more, stdin=text)


def document(**kinds: Any) -> dict[str, Any]:
    """A declarative file."""
    return {"_format_version": "3.0"} | kinds


def rows(lines: list[str]) -> list[list[str]]:
    """The cells of a table, where none is empty."""
    return [line.split() for line in lines]


# apply


def test_entities_of_a_file_are_made_and_changed_and_others_stay(
    running: Gateway, client: Client, upstream: Upstream
) -> None:
    client.must(200, "PUT", "/services/other", {"host": "127.0.0.1"})
    text = FILE.format(url=upstream.url)
    dry = apply(running, text, "--dry-run")
    assert dry[0] == "+ service orders"
    assert dry[-1] == f"dry run: {COUNT} created"
    assert len(client.must(200, "GET", "/services")["data"]) == 1
    said = apply(running, text)
    assert said[:4] == [
        "+ service orders",
        "+ upstream pool",
        "+ consumer alice",
        "+ route one of service orders",
    ]
    assert re.fullmatch(rf"{COUNT} created: revision \d+", said[-1])
    assert "alices-secret" not in "".join(said)
    assert [running.ask(path).status for path in ("/one", "/two")] == [200, 200]
    revision = said[-1].split()[-1]
    # Again it changes nothing.
    assert apply(running, text) == [f"no changes, {COUNT} unchanged: revision {revision}"]
    changed = apply(running, text.replace("blue", "green").replace("weight: 5", "weight: 6"))
    assert changed[:-1] == [
        '~ service orders: tags ["blue"] -> ["green"]',
        "~ target 10.0.0.2:80 of upstream pool: weight 5 -> 6",
    ]
    # What the file leaves out stays: an entity, and what is nested in one.
    apply(running, document(services=[{"name": "orders", "url": upstream.url}]))
    assert len(client.must(200, "GET", "/services/orders/routes")["data"]) == 2
    assert client.must(200, "GET", "/services/orders")["tags"] is None
    assert client.must(200, "GET", "/services/other")["host"] == "127.0.0.1"


def test_what_is_there_is_found_by_what_is_unique(running: Gateway, client: Client) -> None:
    """Whoever made it, and whatever its id."""
    made = {
        "services": client.must(201, "POST", "/services", {"name": "s", "host": "127.0.0.1"}),
        "plugins": client.must(201, "POST", "/plugins", {"name": "key-auth"}),
        "upstreams": client.must(201, "POST", "/upstreams", {"name": "u"}),
        "consumers": client.must(201, "POST", "/consumers", {"custom_id": "7"}),
    }
    client.must(201, "POST", "/upstreams/u/targets", {"target": "10.0.0.1:80"})
    consumer = f"/consumers/{made['consumers']['id']}"
    client.must(201, "POST", f"{consumer}/key-auth", {"key": "first"})
    text = document(
        services=[
            {"name": "s", "host": "127.0.0.1"},
            {"name": "new", "host": "127.0.0.1", "plugins": [{"name": "key-auth"}]},
        ],
        plugins=[{"name": "key-auth"}, {"name": "key-auth", "service": "s"}],
        upstreams=[{"name": "u", "targets": [{"target": "10.0.0.1:80"}]}],
        consumers=[
            {"custom_id": "7", "keyauth_credentials": [{"key": "second"}, {"key": "first"}]}
        ],
    )
    said = apply(running, text)
    assert said[-1].startswith("4 created, 6 unchanged")
    assert len(client.must(200, "GET", f"{consumer}/key-auth")["data"]) == 2
    # A key of another file is another key, and not a change of the first.
    more = document(consumers=[{"custom_id": "7", "keyauth_credentials": [{"key": "third"}]}])
    assert apply(running, more)[-1].startswith("1 created, 1 unchanged")
    keys = {each["key"] for each in client.must(200, "GET", f"{consumer}/key-auth")["data"]}
    assert keys == {"first", "second", "third"}
    assert apply(running, text)[-1].startswith("no changes, 10 unchanged")


def test_references_lead_into_the_file_and_into_the_store(
    running: Gateway, client: Client, upstream: Upstream
) -> None:
    there = client.must(201, "POST", "/services", {"name": "there", "url": upstream.url})
    apply(
        running,
        document(
            routes=[
                {"name": "a", "paths": ["/a"], "service": "there"},
                {"name": "b", "paths": ["/b"], "service": {"id": there["id"]}},
                {"name": "c", "paths": ["/c"], "service": {"name": "later"}},
            ],
            services=[
                {
                    "name": "later",
                    "url": upstream.url,
                    "plugins": [
                        {"name": "rate-limiting", "consumer": "alice", "config": {"hour": 5}}
                    ],
                }
            ],
            consumers=[{"username": "alice"}],
        ),
    )
    assert [running.ask(path).status for path in ("/a", "/b", "/c")] == [200, 200, 200]


def test_all_or_none_and_errors_say_where(running: Gateway, client: Client) -> None:
    revision = client.ask("GET", "/").headers.get("sluice-revision")
    text = FILE.format(url="http://127.0.0.1:9").replace("[/one]", "[one]").replace("5}", "x}")
    said = refuse(running, "apply", "-", stdin=text)
    assert said[0] == "sluice: file: standard input has 2 errors:"
    assert [line.split(": ")[:2] for line in said[1:3]] == [
        ["  line 8", 'services[0] "orders".routes[0] "one".paths[0]'],
        ["  line 20", 'upstreams[0] "pool".targets[1] "10.0.0.2:80".weight'],
    ]
    assert said[3:] == ["sluice: nothing was changed"]
    for wrong, message in (
        (
            document(routes=[{"name": "r", "paths": ["/"], "service": "gone"}]),
            "routes[0] (r): the foreign key '{name=\"gone\"}' does not reference an existing "
            "'services' entity.",
        ),
        (
            document(routes=[{"name": "r", "paths": ["/"], "service": {"id": uuid(1)}}]),
            f"routes[0] (r): the foreign key '{{id=\"{uuid(1)}\"}}' does not reference an existing "
            "'services' entity.",
        ),
    ):
        said = refuse(running, "apply", "-", stdin=json.dumps(wrong))
        assert said == [f"sluice: standard input: {message}", "sluice: nothing was changed"]
    assert refuse(running, "apply", "/nowhere.yaml") == [
        "sluice: cannot read /nowhere.yaml: No such file or directory"
    ]
    assert client.ask("GET", "/").headers.get("sluice-revision") == revision


@pytest.mark.parametrize(
    "entities",
    [
        {"services": [{"name": "s", "host": "h", "routes": [{"name": "q"}, {"name": "r"}]}]},
        {"consumers": [{"username": "a"}, {"username": "a"}, {"username": "a"}]},
        {"consumers": [{"username": "a", "custom_id": "1"}, {"username": "b", "custom_id": "1"}]},
        {"consumers": [{"username": "a", "keyauth_credentials": [{"tags": ["t"]}]}]},
        {"services": [{"nam": "s"}], "routes": []},
    ],
)
def test_apply_says_what_check_says(
    running: Gateway, client: Client, entities: dict[str, Any]
) -> None:
    client.must(201, "POST", "/services", {"name": "there", "host": "127.0.0.1"})
    file = running.prefix / "wrong.yaml"
    file.write_text(json.dumps(document(**entities), indent=1))
    said = refuse(running, "check", str(file))
    assert re.match("  line [0-9]+: ", said[1])
    assert refuse(running, "apply", str(file)) == [*said, "sluice: nothing was changed"]
    # What it refers to may be in the store.
    text = document(**entities | {"routes": [{"name": "z", "paths": ["/"], "service": "there"}]})
    file.write_text(json.dumps(text, indent=1))
    assert refuse(running, "apply", str(file)) == [*said, "sluice: nothing was changed"]


def test_more_than_a_batch_holds_and_every_page_of_it(running: Gateway, client: Client) -> None:
    consumers = [{"username": f"c{i:04}", "tags": [f"t{i % 2}"]} for i in range(2500)]
    text = document(consumers=consumers)
    assert apply(running, text)[-1].startswith("2500 created: revision ")
    consumers[7]["tags"] = ["t3"]
    assert apply(running, text)[-1].startswith("1 changed, 2499 unchanged")
    assert len(succeed(running, "get", "consumers")) == 2501
    assert len(json.loads("".join(succeed(running, "get", "consumers", "--json")))) == 2500
    assert rows(succeed(running, "get", "consumers", "--tags", "t3"))[1][:2] == ["c0007", "t3"]
    assert len(succeed(running, "get", "consumers", "--tags", "t0/t1")) == 2500


def test_what_get_prints_can_be_applied(
    running: Gateway, client: Client, upstream: Upstream
) -> None:
    apply(running, FILE.format(url=upstream.url))
    for kind in ("services", "routes", "plugins", "consumers", "upstreams"):
        (text,) = succeed(running, "get", kind, "--json")
        assert json.loads(text) == client.must(200, "GET", f"/{kind}")["data"]
        assert apply(running, text, "--kind", kind)[-1].startswith("no changes, ")
    # A secret that was not shown is not taken for none.
    (text,) = succeed(running, "get", "key-auths", "--json")
    assert json.loads(text)[0]["key"] is None
    assert (
        "key: required field missing"
        in refuse(running, "apply", "-", "--kind", "key-auths", stdin=text)[0]
    )
    (text,) = succeed(running, "get", "key-auths", "--json", "--reveal")
    assert apply(running, text, "--kind", "key-auths")[-1].startswith("no changes, 1 unchanged")
    # A hash that is shown is not hashed again, here or elsewhere.
    name = {"username": "a", "password": "secret"}
    client.must(201, "POST", "/consumers/alice/basic-auth", name)
    (text,) = succeed(running, "get", "basic-auths", "--json", "--reveal")
    (shown,) = json.loads(text)
    assert shown["_transform"] is False
    assert apply(running, text, "--kind", "basic-auths")[-1].startswith("no changes, 1 unchanged")
    client.must(204, "DELETE", "/basic-auths/a")
    assert apply(running, text, "--kind", "basic-auths")[-1].startswith("1 created")
    (again,) = json.loads(succeed(running, "get", "basic-auths/a", "--json", "--reveal")[0])
    assert again["password"] == shown["password"]
    assert "_transform" not in client.must(200, "GET", "/basic-auths/a")
    hashed = text.replace('"_transform":false', '"_transform":true')
    assert apply(running, hashed, "--kind", "basic-auths")[-1].startswith("1 changed")
    wrong = text.replace('"_transform":false', '"_transform":0')
    said = refuse(running, "apply", "-", "--kind", "basic-auths", stdin=wrong)
    assert "_transform: expected a boolean" in said[1]
    wrong = json.dumps([{"name": "s", "host": "a", "_transform": False}])
    said = refuse(running, "apply", "-", "--kind", "services", stdin=wrong)
    assert "_transform: unknown field" in said[1]
    assert refuse(running, "apply", "-", stdin="- name: x\n", code=2) == [
        "sluice: a plain list needs --kind, for example --kind routes"
    ]


def test_of_many_who_apply_at_the_same_time_none_is_lost(running: Gateway, client: Client) -> None:
    def one(number: int) -> str:
        shared = {"name": "shared", "host": "127.0.0.1", "tags": [f"t{number}"]}
        own = {"name": f"own{number}", "host": "127.0.0.1"}
        said = apply(running, document(services=[shared, own]))
        return next(line for line in said if "own" in line)

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(one, range(8)))
    assert said == [f"+ service own{number}" for number in range(8)]
    assert len(client.must(200, "GET", "/services")["data"]) == 9


# get and delete


def test_tables_show_what_tells_and_no_secrets(
    running: Gateway, client: Client, upstream: Upstream
) -> None:
    apply(running, FILE.format(url=upstream.url))
    table = rows(succeed(running, "get", "routes", "one"))
    assert table[0] == ["name", "service", "protocols", "paths", "id"]
    assert table[1][:4] == ["one", "orders", "http,https", "/one"]
    assert len(succeed(running, "get", "routes")) == 3
    targets = rows(succeed(running, "get", "upstreams/pool/targets"))
    assert [row[:3] for row in targets] == [
        ["target", "upstream", "weight"],
        ["10.0.0.1:80", "pool", "100"],
        ["10.0.0.2:80", "pool", "5"],
    ]
    assert rows(succeed(running, "get", "services/orders/plugins"))[1][:2] == [
        "rate-limiting",
        "orders",
    ]
    assert rows(succeed(running, "get", "key-auths"))[0] == ["consumer", "id"]
    assert rows(succeed(running, "get", "consumers/alice/key-auth", "--reveal"))[1][:2] == [
        "alices-secret",
        "alice",
    ]
    assert succeed(running, "get", "vaults") == ["no vaults"]
    assert succeed(running, "get", "vaults", "--json") == ["[]"]


def test_a_group_is_shown_without_its_consumers(running: Gateway, client: Client) -> None:
    gold = client.must(201, "POST", "/consumer_groups", {"name": "gold"})
    client.must(201, "POST", "/consumers", {"username": "alice"})
    client.must(201, "POST", "/consumer_groups/gold/consumers", {"consumer": "alice"})
    assert rows(succeed(running, "get", "consumer_groups", "gold"))[1][0] == "gold"
    (text,) = succeed(running, "get", "consumer_groups", "gold", "--json")
    assert json.loads(text) == [gold]
    assert "- consumer_group gold" in succeed(running, "delete", "consumer_groups", "gold")
    assert client.must(200, "GET", "/consumer_groups")["data"] == []


def test_a_table_fits_the_terminal(running: Gateway, client: Client) -> None:
    name = "n" * 60 + "\N{LATIN SMALL LETTER E WITH ACUTE}" * 30
    client.must(200, "PUT", f"/services/{name.encode().hex()}", {"host": "h" * 60})
    client.must(201, "POST", "/services", {"name": name, "host": "127.0.0.1"})
    parent, child = pty.openpty()
    environment = running.environment()
    subprocess.run(["stty", "columns", "80"], stdin=child, check=True)
    done = subprocess.run(
        [str(COMMAND), "get", "services"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=child,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    os.close(child)
    lines = os.read(parent, 65536).decode().splitlines()
    os.close(parent)
    assert done.returncode == 0
    assert all(len(line) <= 80 for line in lines)
    assert lines[2].startswith("nnnn")
    assert "\N{HORIZONTAL ELLIPSIS}" in lines[2]


def test_deletes_all_or_none(running: Gateway, client: Client) -> None:
    for name in ("a", "b", "c"):
        client.must(200, "PUT", f"/services/{name}", {"host": "127.0.0.1"})
    client.must(201, "POST", "/services/c/routes", {"name": "r", "paths": ["/r"]})
    client.must(200, "PUT", "/consumers/alice")
    client.must(201, "POST", "/consumers/alice/key-auth", {"key": "alices-secret"})
    assert refuse(running, "delete", "services", "a", "nope") == [
        "sluice: no service named nope",
        "sluice: nothing was deleted",
    ]
    assert refuse(running, "delete", "services", "a", "c") == [
        "sluice: service c was not deleted: route r of service c refers to it",
        "sluice: nothing was deleted",
    ]
    *said, count = succeed(running, "delete", "services", "a", "b")
    assert said == ["- service a", "- service b"]
    (last,) = client.must(200, "GET", "/history?size=1")["data"]
    assert count == f"2 deleted: revision {last['revision']}"
    assert len(client.must(200, "GET", "/services")["data"]) == 1
    said, _ = succeed(running, "delete", "key-auths", "alices-secret")
    assert re.fullmatch(r"- key-auth [0-9a-f-]{36} of consumer alice", said)
    client.must(200, "PUT", "/upstreams/u")
    client.must(201, "POST", "/upstreams/u/targets", {"target": "10.0.0.1:80"})
    said, count = succeed(running, "delete", "upstreams/u/targets", "10.0.0.1:80")
    assert said == "- target 10.0.0.1:80 of upstream u"
    assert count.startswith("1 deleted: revision ")


def test_wrong_use(running: Gateway) -> None:
    (said,) = refuse(running, "get", "bogus", code=2)
    assert said.startswith("sluice: unknown kind 'bogus'; expected one of acls, ")
    assert ", ca_certificates, " in said
    assert refuse(running, "get", "services/x/bogus", code=2) == ["sluice: services have no bogus"]
    assert refuse(running, "get", "routes", "x", "--tags", "y", code=2) == [
        "sluice: --tags goes with a list, not with a name"
    ]
    assert refuse(running, "get", "routes", "x") == ["sluice: no route named x"]
    assert refuse(running, "get", "upstreams/x/targets") == ["sluice: no upstream named x"]
    path = "upstreams/x/targets/y"
    assert refuse(running, "get", path) == ["sluice: no target named y in upstreams/x"]
    assert refuse(running, "get", "routes", "--tags", "a,") == [
        "sluice: invalid option (tags: invalid filter syntax)"
    ]
    said, *_ = refuse(running, "rollback", "x", code=2)
    assert "expected the number of a revision" in said


# history and rollback


def test_history_and_the_way_back(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    assert succeed(running, "history") == ["no changes yet"]
    text = FILE.format(url=upstream.url)
    apply(running, text)
    apply(running, text.replace("/one", "/uno"))
    Client(running).must(204, "DELETE", "/consumers/alice")
    table = succeed(running, "history")
    assert [re.split(r"  +", line)[0] for line in table] == ["revision", "3", "2", "1"]
    assert [re.split(r"  +", line)[2] for line in table[1:]] == [
        "anyone from 127.0.0.1",
        f"control socket ({USER})",
        f"control socket ({USER})",
    ]
    what = re.split(r"  +", table[1])[3]
    assert re.fullmatch(r"- key-auth [0-9a-f-]{36}, - consumer alice", what)
    assert re.split(r"  +", table[2])[3] == "~ route one"
    assert re.split(r"  +", table[3])[3].endswith(", and 4 more")
    # Names are those of that time.
    assert "+ consumer alice" in table[3]
    origin, *changed = succeed(running, "history", "2")
    assert re.fullmatch(rf"revision 2, {TIME} by control socket \({re.escape(USER)}\):", origin)
    assert changed == [
        '~ route one of service orders: paths ["/one"] -> ["/uno"]',
        "1 changed",
    ]
    assert "- consumer alice" in succeed(running, "history", "3")
    assert succeed(running, "history", "1")[-1] == f"{COUNT} created"
    assert len(succeed(running, "history", "--size", "2")) == 3
    (entries,) = succeed(running, "history", "--json")
    assert [entry["revision"] for entry in json.loads(entries)] == [3, 2, 1]
    assert [running.ask(path).status for path in ("/one", "/uno")] == [404, 200]
    said = succeed(running, "rollback", "1")
    assert said[:2] == [
        '~ route one of service orders: paths ["/uno"] -> ["/one"]',
        "+ consumer alice",
    ]
    assert said[3:] == [
        "2 created, 1 changed: revision 4",
        "revision 4 is live: revision 1 restored",
    ]
    assert [running.ask(path).status for path in ("/one", "/uno")] == [200, 404]
    assert succeed(running, "rollback", "1") == ["no differences from revision 1"]
    for command, there_are in (
        ("rollback", " to go back to: there are 0 to 4"),
        ("history", ": the history has 1 to 4"),
    ):
        said = refuse(running, command, "99")
        assert said == [f"sluice: there is no revision 99{there_are}"]


# Where it cannot be


def test_where_a_file_is_the_truth_it_says_how_to_switch(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(FILE.format(url=upstream.url))
    assert len(succeed(running, "get", "routes")) == 3
    for arguments in (("apply", str(running.file)), ("delete", "routes", "one"), ("rollback", "0")):
        said = refuse(running, *arguments)
        assert "sluice reload --no-file`" in said[0], said


def test_where_it_does_not_run(instance: Instance) -> None:
    instance.file.write_text('_format_version: "3.0"\n')
    for arguments in (
        ("get", "routes"),
        ("apply", str(instance.file)),
        ("delete", "routes", "x"),
        ("history",),
        ("rollback", "1"),
    ):
        # More lines where others run.
        said = instance.refuse(*arguments, code=3)[0]
        assert said == f"sluice: not running in {instance.prefix}, which does not exist"
