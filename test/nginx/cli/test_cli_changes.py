"""What changes entities: one plan, shown in one way, and the question before entities go."""

import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

from admin_client import Client

from processes import cpu_seconds
from sluice import COMMAND, COMMAND_SECONDS, Gateway, Start
from upstream import Upstream
from wire import wait_until

BEFORE = """\
_format_version: "3.0"
services:
  - name: orders
    url: {url}
    routes:
      - name: web
        paths: [/web]
        plugins:
          - name: rate-limiting
            config: {{minute: 5, redis: {{password: first-password}}}}
      - name: old
        paths: [/old]
consumers:
  - username: alice
    keyauth_credentials: [{{key: first-key}}]
"""

AFTER = """\
_format_version: "3.0"
services:
  - name: orders
    url: {url}
    retries: 2
    routes:
      - name: web
        paths: [/web, /www]
        strip_path: false
        plugins:
          - name: rate-limiting
            config: {{minute: 10, redis: {{password: second-password}}}}
      - name: new
        paths: [/new]
consumers:
  - username: alice
    keyauth_credentials: [{{key: second-key}}]
"""

WITHOUT_OLD = [
    "~ service orders: retries 5 -> 2",
    "~ route web of service orders",
    '    paths ["/web"] -> ["/web","/www"]',
    "    strip_path true -> false",
    "~ plugin rate-limiting on route web",
    "    config.minute 5 -> 10",
    "    config.redis.password changed",
]
CHANGES = ["- route old of service orders", *WITHOUT_OLD]
COUNTS = "1 created, 4 changed, 1 deleted, 1 unchanged"


def write(running: Gateway, text: str, url: str, name: str) -> str:
    """A file; its path."""
    path = running.prefix / name
    path.write_text(text.format(url=url))
    return str(path)


def changes(lines: list[str]) -> list[str]:
    """The lines of a plan without those of the credential, which has no name."""
    return [line for line in lines if "key-auth" not in line]


def on_terminal(
    running: Gateway, answer: str, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """A command that reads an answer from a terminal; what it has written there."""
    parent, child = pty.openpty()
    os.write(parent, answer.encode())
    done = subprocess.run(
        [str(COMMAND), *arguments],
        env=running.environment(),
        stdin=child,
        stdout=subprocess.PIPE,
        stderr=child,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    os.close(child)
    text = ""
    # Linux answers EIO where nobody has the other side any more.
    try:
        while part := os.read(parent, 65536).decode():
            text += part
    except OSError:
        pass
    os.close(parent)
    return done, text


def interrupted(running: Gateway, when: str | None, *arguments: str) -> tuple[int, str]:
    """A command of a terminal's session that gets Ctrl-C once it has written a text, or has worked
    for a while; its exit code and what it has written.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(COMMAND, [str(COMMAND), *arguments], running.environment())
    text = ""
    if when:
        while when not in text:
            text += os.read(terminal, 65536).decode()
    else:
        wait_until(lambda: cpu_seconds(pid) > 0.2, "the command to work")
    os.write(terminal, b"\3")
    # Linux answers EIO where nobody has the other side any more.
    try:
        while part := os.read(terminal, 65536).decode():
            text += part
    except OSError:
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.replace("\r", "")


def names(client: Client, kind: str) -> set[str]:
    """The names of the entities of a kind."""
    return {each["name"] for each in client.must(200, "GET", f"/{kind}")["data"]}


def succeed(running: Gateway, *arguments: str) -> list[str]:
    """The lines of a command that has to succeed."""
    done = running.command(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_all_show_the_same_plan(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    after = write(running, AFTER, upstream.url, "after.yaml")
    said = succeed(running, "import", before)
    assert {"+ service orders", "+ plugin rate-limiting on route web"} <= set(said)
    plans = {}
    done = running.command("diff", after)
    assert (done.returncode, done.stderr) == (1, "")
    plans["diff"] = done.stdout.splitlines()
    plans["import"] = succeed(running, "import", after, "--dry-run")
    assert changes(plans["diff"]) == [*CHANGES, "+ route new of service orders", COUNTS]
    assert plans["import"][:-1] == plans["diff"][:-1]
    assert plans["import"][-1] == f"dry run: {COUNTS}"
    # What is not in the file stays.
    applied = changes(succeed(running, "apply", after, "--dry-run"))
    assert applied[:-1] == [*WITHOUT_OLD, "+ route new of service orders"]
    assert names(Client(running), "routes") == {"web", "old"}
    said = succeed(running, "import", after)
    assert said[:-2] == plans["diff"][:-1]
    assert said[-2] == f"{COUNTS}: revision 2"
    assert said[-1].startswith("live on 1 worker in ")
    assert names(Client(running), "routes") == {"web", "new"}
    assert succeed(running, "diff", after) == ["no changes, 6 unchanged"]


def test_no_secret_is_shown(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    after = write(running, AFTER, upstream.url, "after.yaml")
    succeed(running, "import", before)
    for arguments in (
        ("diff", after),
        ("diff", after, "--json"),
        ("import", after, "--dry-run", "--json"),
        ("apply", after, "--dry-run", "--json"),
        ("apply", after),
        ("delete", "consumers", "alice", "--json"),
    ):
        said = running.command(*arguments).stdout
        for secret in ("first", "second"):
            assert f"{secret}-key" not in said
            assert f"{secret}-password" not in said


def test_the_plan_as_json(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    after = write(running, AFTER, upstream.url, "after.yaml")

    def ask(*arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(running.command(*arguments).stdout)
        return found

    assert ask("import", before, "--json")["revision"] == 1
    plan = ask("diff", after, "--json")
    assert [plan[name] for name in ("created", "changed", "deleted", "unchanged")] == [1, 4, 1, 1]
    (limits,) = [each for each in plan["entities"] if each["kind"] == "plugins"]
    assert limits["name"] == "rate-limiting"
    assert limits["change"] == "changed"
    assert limits["owners"] == [{"kind": "routes", "name": "web"}]
    assert limits["fields"] == [
        {"field": "config.minute", "old": 5, "new": 10},
        {"field": "config.redis.password", "secret": True},
    ]
    applied = ask("apply", after, "--json")
    assert (applied["revision"], applied["created"], applied["deleted"]) == (2, 2, 0)
    gone = ask("delete", "routes", "old", "--json")
    assert (gone["revision"], gone["deleted"]) == (3, 1)


def test_what_goes_is_asked_for_on_a_terminal(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    client = Client(running)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    after = write(running, AFTER, upstream.url, "after.yaml")
    # Nothing goes: nothing is asked.
    done, shown = on_terminal(running, "", "import", before)
    assert (done.returncode, shown) == (0, "")
    for answer in ("n\n", "\n", "\4"):
        done, shown = on_terminal(running, answer, "import", after)
        assert (done.returncode, done.stdout) == (1, "")
        assert "- route old of service orders" in shown
        assert "delete 1 entity? [y/N]" in shown
        assert "sluice: nothing was changed" in shown
    done, shown = on_terminal(running, "y\n", "import", after)
    assert done.returncode == 0
    assert "- route old" not in done.stdout
    assert names(client, "routes") == {"web", "new"}
    done, shown = on_terminal(running, "n\n", "delete", "routes/new")
    assert done.returncode == 1
    assert "- route new of service orders" in shown
    done, shown = on_terminal(running, "", "delete", "routes/new", "-y")
    assert (done.returncode, shown) == (0, "")
    assert done.stdout.splitlines() == ["- route new of service orders", "1 deleted: revision 3"]


def test_ctrl_c_ends_a_command_at_once(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    succeed(running, "import", before)
    code, shown = interrupted(running, "[y/N] ", "delete", "routes", "old")
    assert code == 130
    assert shown.startswith("- route old of service orders\ndelete 1 entity? [y/N] ")
    assert shown.endswith("\nsluice: nothing was changed\n")
    assert "interrupted!" not in shown
    assert names(Client(running), "routes") == {"web", "old"}
    # One that has nothing to say ends as other programs do.
    large = running.prefix / "large.yaml"
    large.write_text("services:\n" + "".join(f"- {{name: s{n}, host: h}}\n" for n in range(20000)))
    code, shown = interrupted(running, None, "check", str(large))
    assert code == -signal.SIGINT
    assert shown in ("", "^C")


def test_a_deletion_names_what_goes_with_it(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    succeed(running, "import", write(running, BEFORE, upstream.url, "before.yaml"))
    said = succeed(running, "delete", "routes", "web", "--dry-run")
    assert said == [
        "- route web of service orders",
        "- plugin rate-limiting on route web",
        "dry run: 2 deleted",
    ]
    done = running.command("delete", "services", "orders", "--dry-run")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "sluice: service orders was not deleted: route web of service orders refers to it",
        "sluice: nothing was deleted",
    ]
    said = succeed(running, "delete", "services/orders", "routes/web", "routes/old", "--dry-run")
    assert said[-1] == "dry run: 4 deleted"


def test_the_way_back_is_shown_before_it_is_gone(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    client = Client(running)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    after = write(running, AFTER, upstream.url, "after.yaml")
    succeed(running, "import", before)
    succeed(running, "import", after)
    origin, *lines = succeed(running, "history", "2")
    assert re.match(rf"revision 2, \S+ \S+ by file {re.escape(after)} \(", origin)
    was = changes(lines)
    assert was == [*CHANGES, "+ route new of service orders", "1 created, 4 changed, 1 deleted"]
    back = succeed(running, "rollback", "1", "--dry-run")
    assert "- route new of service orders" in back
    assert "~ service orders: retries 2 -> 5" in back
    assert "+ route old of service orders" in back
    assert back[-1] == "dry run: 1 created, 4 changed, 1 deleted"
    done, shown = on_terminal(running, "n\n", "rollback", "1")
    assert done.returncode == 1
    assert "- route new of service orders" in shown
    assert names(client, "routes") == {"web", "new"}
    said = running.command("rollback", "1", "--yes", "--json").stdout
    assert json.loads(said)["revision"] == 3
    assert names(client, "routes") == {"web", "old"}
    plan = json.loads(running.command("history", "3", "--json").stdout)
    assert (plan["created"], plan["changed"], plan["deleted"]) == (1, 4, 1)
    assert "first" not in said


def test_an_import_while_it_does_not_run(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    after = write(running, AFTER, upstream.url, "after.yaml")
    succeed(running, "import", before)
    running.stop("quit")
    assert changes(succeed(running, "import", after, "--dry-run"))[:-1] == [
        *CHANGES,
        "+ route new of service orders",
    ]
    said = succeed(running, "import", after)
    prefix = running.settings["prefix"]
    assert said[-2:] == [COUNTS, f"the store in {prefix} has the contents of {Path(after)}"]


def test_a_reload_and_a_restart_show_what_the_file_changes(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(BEFORE.format(url=upstream.url))
    before, after = running.file.read_text(), AFTER.format(url=upstream.url)
    plan = [*CHANGES, "+ route new of service orders"]
    counts = "1 created, 4 changed, 1 deleted, 1 unchanged"
    setting = "~ setting log_level: notice -> warn"
    for command in ("reload", "restart"):
        running.file.write_text(after)
        dry = succeed(running, command, "--dry-run")
        assert changes(dry) == [*plan, f"dry run: {counts}"]
        assert running.ask("/old").status == 200
        done, shown = on_terminal(running, "n\n", command, "--log-level", "warn")
        assert done.returncode == 1
        assert f"{setting}\r\n- route old of service orders" in shown
        assert running.ask("/old").status == 200
        said = changes(succeed(running, command))
        assert said[1:] == [*plan, counts]
        assert (running.ask("/old").status, running.ask("/new").status) == (404, 200)
        running.file.write_text(before)
        found = json.loads(running.command(command, "--json", "--yes").stdout)
        assert (found["created"], found["changed"], found["deleted"]) == (1, 4, 1)
    # Nothing of the file has changed, but a setting.
    dry = succeed(running, "reload", "--dry-run", "--log-level", "warn")
    assert dry == [setting, "dry run: 1 setting changed"]
    said = succeed(running, "reload", "--log-level", "warn")
    assert said[1:] == [setting, "1 setting changed"]
    found = json.loads(running.command("restart", "--dry-run", "--json", "--no-file").stdout)
    assert [each["field"] for each in found["settings"]] == ["file"]
    assert found["entities"] == []


ENTITIES = (
    ("services", {"name": "orders", "host": "127.0.0.1"}),
    ("services/orders/routes", {"name": "web", "paths": ["/web"]}),
    ("services/orders/plugins", {"name": "rate-limiting", "config": {"minute": 5}}),
    ("consumers", {"username": "alice"}),
    ("consumers/alice/basic-auth", {"username": "al", "password": "open sesame"}),
    ("consumers/alice/key-auth", {"key": "alices-key"}),
    ("upstreams", {"name": "pool"}),
    ("upstreams/pool/targets", {"target": "10.0.0.1:80"}),
)

SAME = """\
_format_version: "3.0"
services:
  - name: orders
    host: 127.0.0.1
    routes:
      - name: web
        paths: [/www]
    plugins:
      - name: rate-limiting
        config: {minute: 5}
consumers:
  - username: alice
    basicauth_credentials: [{username: al, password: open sesame}]
    keyauth_credentials: [{key: alices-key}]
upstreams:
  - name: pool
    targets: [{target: "10.0.0.1:80"}]
"""


def test_an_import_keeps_the_ids_of_entities_of_the_same_name(gateway: Start) -> None:
    running = gateway(None)
    client = Client(running)
    for path, body in ENTITIES:
        client.must(201, "POST", f"/{path}", body)

    def ids() -> set[str]:
        found = set()
        for kind in ("services", "routes", "plugins", "consumers", "basic-auths", "key-auths"):
            found |= {each["id"] for each in client.must(200, "GET", f"/{kind}")["data"]}
        targets = client.must(200, "GET", "/upstreams/pool/targets")["data"]
        return found | {each["id"] for each in targets}

    before = ids()
    assert len(before) == 7
    file = running.prefix / "same.yaml"
    file.write_text(SAME)
    done = running.command("diff", str(file))
    assert done.stdout.splitlines() == [
        '~ route web of service orders: paths ["/web"] -> ["/www"]',
        "1 changed, 7 unchanged",
    ]
    assert succeed(running, "import", str(file))[1].startswith("1 changed, 7 unchanged: revision ")
    assert ids() == before
    file.write_text(SAME.replace("/www", "/w3"))
    running.stop("quit")
    assert succeed(running, "import", str(file))[:2] == [
        '~ route web of service orders: paths ["/www"] -> ["/w3"]',
        "1 changed, 7 unchanged",
    ]
    running.start()
    assert ids() == before
    # One that the file names by another id is another one.
    other = "11111111-1111-4111-8111-111111111111"
    file.write_text(SAME.replace("- name: orders", f"- id: {other}\n    name: orders"))
    succeed(running, "import", str(file), "--yes")
    assert client.must(200, "GET", "/services/orders")["id"] == other


def test_where_a_file_is_the_configuration_ids_are_the_same_on_each_node(gateway: Start) -> None:
    def ids(running: Gateway) -> set[str]:
        routes = Client(running).must(200, "GET", "/routes")["data"]
        return {each["id"] for each in routes}

    first, second = gateway(SAME), gateway(SAME.replace("/www", "/w3"))
    assert ids(first) == ids(second)
    first.file.write_text(SAME.replace("/www", "/w3"))
    first.command("reload")
    assert ids(first) == ids(second)


def test_what_ends_is_shown_with_its_time(gateway: Start) -> None:
    running = gateway(None)
    before = '{_format_version: "3.0", consumers: [{username: a, keyauth_credentials: '
    file = running.prefix / "keys.yaml"
    for ttl in (100, 200000):
        file.write_text(f"{before}[{{key: k, ttl: {ttl}}}]}}]}}")
        said = succeed(running, "apply", str(file))
    (line,) = [each for each in said if "expires_at" in each]
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    assert re.search(rf"expires_at {time} -> {time}$", line), line


def test_the_admin_api_shows_a_plan(gateway: Start, upstream: Upstream) -> None:
    """dry_run of /config and of /rollback: the plan of the command, and nothing is changed."""
    running = gateway(None)
    before = write(running, BEFORE, upstream.url, "before.yaml")
    after = write(running, AFTER, upstream.url, "after.yaml")
    succeed(running, "import", before)
    client = Client(running)
    headers = [("Content-Type", "application/yaml")]
    sent = Path(after).read_bytes()
    for query in ("?dry_run=1", "?dry_run=1&flatten_errors=1"):
        reply = client.ask("POST", f"/config{query}", sent, headers)
        assert reply.status == 200, reply
        plan = json.loads(running.command("diff", after, "--json").stdout)
        assert reply.json() == plan | {"revision": None}
        assert names(client, "routes") == {"web", "old"}
    reply = client.ask("POST", "/config?dry_run=1", b"services: 1", headers)
    assert reply.status == 400
    succeed(running, "import", after)
    plan = json.loads(running.command("rollback", "1", "--dry-run", "--json").stdout)
    reply = client.ask("POST", "/rollback?dry_run=1", {"revision": 1})
    assert (reply.status, reply.json()) == (200, plan | {"revision": None})
    assert names(client, "routes") == {"web", "new"}
    assert client.ask("POST", "/rollback?dry_run=2", {"revision": 1}).status == 400
    assert client.ask("POST", "/rollback?dry_run=1", {"revision": 9}).status == 404


def test_all_show_what_is_probably_not_meant(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    text = BEFORE.replace("[/old]", '["/old/(a|b)"]')
    path = write(running, text, upstream.url, "odd.yaml")
    for command in ("check", "diff", "import --dry-run", "import", "apply --dry-run", "apply"):
        verb, *more = command.split()
        done = running.command(verb, path, *more)
        (said,) = done.stderr.splitlines()
        assert said.startswith("sluice: warning: "), command
        assert re.search(r'line \d+: .*routes\[\d\] "old"\.paths\[0\]: ', said), said
        assert "'/old/(a|b)' looks like a regex, but without a leading ~ it is a fixed " in said
    other = gateway(text.format(url=upstream.url))
    other.file.write_text(text.format(url=upstream.url) + "# changed\n")
    for more in (["--dry-run"], []):
        done = other.command("reload", *more)
        assert (done.returncode, done.stderr.count("looks like a regex")) == (0, 1)


def test_a_file_has_no_history(gateway: Start, upstream: Upstream) -> None:
    running = gateway(BEFORE.format(url=upstream.url))
    said = "no history: this instance is configured from a file"
    assert succeed(running, "history") == [said]
