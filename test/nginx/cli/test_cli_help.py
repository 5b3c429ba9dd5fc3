"""Every command: its help, what it says of wrong use, its exit codes, and how it names kinds."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from admin_client import Client

from certificates import make
from instance import AS_ROOT, SECONDS, Instance
from processes import ran
from sluice import COMMAND, ROOT, Gateway

COMMANDS = {
    "apply": ["none.yaml"],
    "backup": ["/none/copy.db"],
    "check": [],
    "completion": ["bash"],
    "delete": ["routes", "x"],
    "diff": ["none.yaml"],
    "events": [],
    "export": [],
    "get": ["routes"],
    "help": ["start"],
    "history": [],
    "import": ["none.yaml"],
    "nginx-conf": [],
    "plugins": [],
    "quit": [],
    "reload": [],
    "reopen": [],
    "restart": ["--file", "none.yaml"],
    "restore": ["none.db"],
    "rollback": ["1"],
    "start": ["--file", "none.yaml"],
    "status": [],
    "stop": [],
    "timers": [],
    "token": ["remove", "x"],
    "upgrade": [],
    "version": [],
}
"""What each needs; nothing of it is there."""

NO_FAILURE = {"completion", "help", "nginx-conf", "plugins", "quit", "stop", "version"}
"""Where nothing runs, and nothing is there."""

WITHOUT_SETTINGS = {"help", "plugins", "version"}


def sluice(*words: str, **how: object) -> subprocess.CompletedProcess[str]:
    """A command without any setting of the environment's."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
    how.setdefault("stdout", subprocess.PIPE)
    return subprocess.run(
        [str(COMMAND), *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
        **how,
    )


def documented(code: int) -> set[str]:
    """The commands that docs/commands.md names beside an exit code."""
    page = (ROOT / "docs" / "commands.md").read_text()
    (row,) = re.findall(rf"^\| {code} \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    return set(re.findall(r"`([a-z-]+)`", row))


def test_these_are_all_commands() -> None:
    shown = sluice("help").stdout
    assert set(re.findall(r"^   ([a-z-]+)  ", shown, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_the_same_however_it_is_asked_for(name: str) -> None:
    asked = [sluice("help", name), sluice(name, "-h"), sluice(name, "--bogus", "--help")]
    for done in asked:
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == asked[0].stdout
    assert asked[0].stdout.startswith(f"Usage: sluice {name} ")
    assert sluice(name, "-v").stdout == sluice("version").stdout


def test_help_of_nothing_is_wrong_use() -> None:
    done = sluice("help", "strat")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "sluice: there is no command or setting 'strat'; did you mean 'start'?\n"
    assert sluice("strat", "-h").stderr == done.stderr


def test_help_that_cannot_be_written_is_a_failure() -> None:
    with Path("/dev/full").open("w") as full:
        done = sluice("help", "start", stdout=full)
    assert done.returncode == 1
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = sluice("--help", stdout=pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_flag_shows_how_the_command_is_used(name: str) -> None:
    done = sluice(name, *COMMANDS[name], "--prefxi")
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("sluice: unknown option '--prefxi'")
    assert lines[1].startswith(f"  usage: sluice {name} ")
    assert lines[2] == f"  more:  sluice help {name}"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_SETTINGS))
def test_exit_codes_where_nothing_runs(name: str, tmp_path: Path) -> None:
    """Nothing is there: neither gateway nor store nor file."""
    prefix = [] if name in ("completion", "nginx-conf") else ["--prefix", str(tmp_path / "none")]
    done = sluice(name, *COMMANDS[name], *prefix, cwd=tmp_path)
    expected = 3 if name in documented(3) else 0 if name in NO_FAILURE else 1
    assert done.returncode == expected, done.stderr
    if expected == 3:
        assert f"not running in {tmp_path}/none" in done.stdout + done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(not AS_ROOT, reason="needs root to hide the other processes of the machine")
def test_exit_codes_on_a_machine_where_nothing_runs(tmp_path: Path) -> None:
    """No gateway at all, nothing in the default prefix, and no prefix named."""
    lines = [shlex.join([str(COMMAND), name, *words]) for name, words in COMMANDS.items()]
    script = "mount -t proc proc /proc; mount -t tmpfs none /var/lib\n"
    script += "".join(f"{line} >/dev/null; echo $? $(ls -d /var/lib/*)\n" for line in lines)
    command = ["unshare", "--pid", "--fork", "--mount", "sh", "-c", script]
    clean = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
    done = ran(command, env=clean, cwd=tmp_path)
    codes = dict(zip(COMMANDS, done.stdout.splitlines(), strict=True))
    expected = {
        name: "3" if name in documented(3) else "0" if name in NO_FAILURE else "1"
        for name in COMMANDS
    }
    assert codes == expected, done.stderr
    start = f"sluice: not running in /var/lib/sluice; `{COMMAND} start` starts a gateway there"
    assert start in done.stderr.splitlines()


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - WITHOUT_SETTINGS))
def test_a_bad_setting_is_wrong_use(name: str, tmp_path: Path) -> None:
    done = sluice(name, *COMMANDS[name], "--conf", str(tmp_path / "missing.conf"), cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert "missing.conf" in done.stderr


def test_commands_that_run_nothing_say_what_runs(instance: Instance) -> None:
    instance.succeed("start")
    line = f"--prefix {instance.prefix}"
    for words in (["status"], ["get", "routes"], ["stop"], ["export"], ["reload"]):
        done = sluice(*words)
        said = (done.stdout + done.stderr).splitlines()
        assert "/var/lib/sluice" in said[0], said
        assert said[1].startswith("  running on this machine: --prefix /"), said
        assert f"{line}," in said[1] + ",", said
    named = sluice("stop", "--prefix", str(instance.folder / "none"))
    first, others = named.stdout.splitlines()
    assert first == f"not running in {instance.folder}/none, which does not exist"
    assert f"{line}," in others + ","
    instance.succeed("stop")
    assert line not in sluice("status").stdout


# A running one


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    with Gateway(None, tls="ssl") as gateway:
        yield gateway


@pytest.fixture
def client(running: Gateway) -> Client:
    client = Client(running)
    client.must(201, "POST", "/config", {"_format_version": "3.0"})
    return client


def run(running: Gateway, *words: str, code: int = 0) -> list[str]:
    done = running.command(*words)
    assert done.returncode == code, done.stdout + done.stderr
    return (done.stderr if code else done.stdout).splitlines()


def test_a_kind_has_many_names(running: Gateway, client: Client, tmp_path: Path) -> None:
    client.must(200, "PUT", "/services/web", {"url": "http://127.0.0.1:1"})
    client.must(200, "PUT", "/services/web/routes/r", {"paths": ["/r"]})
    client.must(200, "PUT", "/consumers/bob")
    client.must(201, "POST", "/consumers/bob/key-auth", {"key": "k"})
    for kind in ("services", "service", "services/web", "SERVICE/web"):
        assert run(running, "get", kind)[1].split()[0] == "web", kind
    for kind in ("service/web/route", "services/web/routes/r", "routes"):
        assert run(running, "get", kind)[1].split()[0] == "r", kind
    keys = ("key-auths", "key-auth", "key_auth", "keyauth_credentials", "consumer/bob/key-auths")
    for kind in keys:
        assert run(running, "get", kind)[1].split()[0] == "bob", kind
    assert run(running, "get", "services/web", "web", code=2) == [
        "sluice: 'services/web' already names an entity"
    ]
    assert run(running, "get", "serivces", code=2) == [
        "sluice: unknown kind 'serivces'; did you mean services?"
    ]
    listed = tmp_path / "list.json"
    for kind in ("consumer", "consumers"):
        listed.write_text(json.dumps([{"username": kind}]))
        assert run(running, "apply", str(listed), "--kind", kind)[0] == f"+ consumer {kind}"
    assert run(running, "apply", str(listed), "--kind", "consumres", code=2) == [
        "sluice: unknown kind 'consumres'; did you mean consumers?"
    ]


def test_get_without_a_kind_lists_the_kinds(running: Gateway) -> None:
    kinds = run(running, "get")
    assert {"services", "routes", "plugins", "key-auths", "certificates"} <= set(kinds)
    assert json.loads("".join(run(running, "get", "--json"))) == kinds
    for kind in kinds:
        run(running, "get", kind)


def test_certificates_are_shown_with_their_names(running: Gateway, client: Client) -> None:
    pair = make("shop.example")
    body = {"cert": pair.cert, "key": pair.key, "snis": ["shop.example", "www.shop.example"]}
    made = client.must(201, "POST", "/certificates", body)
    title, row = run(running, "get", "certificates")
    assert title.split() == ["snis", "names", "expires", "id"]
    assert sorted(row.split()[0].split(",")) == ["shop.example", "www.shop.example"]
    assert row.split()[-1] == made["id"]


def test_who_names_a_plugin_as_no_entity_is_told_how(running: Gateway, client: Client) -> None:
    client.must(201, "POST", "/plugins", {"name": "key-auth", "instance_name": "mine"})
    absent = "sluice: no plugin named key-auth; name a plugin by its id or instance_name"
    assert run(running, "get", "plugins", "key-auth", code=1) == [absent]
    nothing = "sluice: nothing was deleted"
    assert run(running, "delete", "plugins", "key-auth", code=1) == [absent, nothing]
    run(running, "delete", "plugins", "mine", "--yes")


def test_delete_takes_names_with_their_kinds(running: Gateway, client: Client) -> None:
    for name in ("a", "b", "c"):
        client.must(200, "PUT", f"/consumers/{name}")
    client.must(200, "PUT", "/services/web", {"url": "http://127.0.0.1:1"})
    for words, said in (
        (["delete", "consumers"], "missing argument 'name'"),
        (["delete", "consumers/a", "b"], "unknown kind 'b'"),
        (["delete", "consumers/a", "consumers"], "'consumers' is not valid; expected KIND/NAME"),
    ):
        assert said in run(running, *words, code=2)[0]
    assert run(running, "delete", "consumers/a", "services/none", code=1) == [
        "sluice: no service named none",
        "sluice: nothing was deleted",
    ]
    *said, count = run(running, "delete", "consumer/a", "service/web")
    assert said == ["- consumer a", "- service web"]
    assert count.startswith("2 deleted: revision ")
    assert run(running, "delete", "consumer", "b", "c")[:2] == ["- consumer b", "- consumer c"]


def test_an_empty_table_says_so(running: Gateway, client: Client) -> None:
    assert client.must(200, "GET", "/services")["data"] == []
    assert run(running, "get", "services") == ["no services"]
    assert run(running, "get", "service", "--tags", "x") == ["no services with these tags"]
    assert run(running, "get", "services", "--json") == ["[]"]


def test_what_entities_are_called_is_no_command_to_a_terminal(
    running: Gateway, client: Client
) -> None:
    name = "a\x1b]0;owned\x07\u009b31m"
    client.must(201, "POST", "/consumers", {"username": name})
    shown = "a?]0;owned??31m"
    assert run(running, "get", "consumers")[1].startswith(shown)
    (text,) = run(running, "get", "consumers", "--json")
    assert not re.search("[\x00-\x1f\x7f-\x9f]", text)
    assert json.loads(text)[0]["username"] == name
    assert run(running, "delete", "consumers", name)[0] == f"- consumer {shown}"
    assert run(running, "get", "consumers", name, code=1) == [f"sluice: no consumer named {shown}"]


HOSTILE = "a\x1b]0;owned\x07\u009b31m\x7f\n\tb"
"""A name with commands to a terminal, and what ends a cell of a table."""


def test_a_name_stays_in_its_cell_and_line(
    running: Gateway, client: Client, tmp_path: Path
) -> None:
    client.must(201, "POST", "/consumers", {"username": HOSTILE, "tags": ["x"]})
    file = tmp_path / "file.json"
    file.write_text(json.dumps({"_format_version": "3.0", "consumers": [{"username": "c"}]}))
    shown = r"a?]0;owned??31m?\n\tb"
    title, row = run(running, "get", "consumers")
    assert title.split() == ["username", "tags", "id"]
    assert row.split()[:2] == [shown, "x"]
    assert shown in run(running, "history")[1]
    assert f"- consumer {shown}" in running.command("diff", str(file)).stdout.splitlines()
    assert run(running, "delete", "consumers", HOSTILE, "--dry-run")[0] == f"- consumer {shown}"
    absent = run(running, "get", "routes", HOSTILE, code=1)
    assert absent == [f"sluice: no route named {shown}"]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_repeats_a_command_to_a_terminal(
    running: Gateway, client: Client, tmp_path: Path, name: str
) -> None:
    """What they are given, and what entities are called: in words and in complaints."""
    client.must(201, "POST", "/consumers", {"username": HOSTILE})
    path = str(tmp_path / HOSTILE)
    asked = [[path], [f"--{HOSTILE}"], ["--json", path], ["--prefix", path]]
    # These say something of what runs, and change nothing.
    harmless = {"events", "get", "history", "plugins", "status", "timers"}
    asked += [[], ["--json"]] if name in harmless else []
    for words in asked:
        done = running.command(name, *COMMANDS[name], *words)
        said = done.stdout + done.stderr
        assert said, words
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said), (words, said)
        if words == ["--json"]:
            json.loads(done.stdout)


@pytest.mark.parametrize("name", ["events", "timers"])
def test_figures_are_the_json_of_the_gateway(running: Gateway, client: Client, name: str) -> None:
    """Empty lists as lists, numbers with all their digits."""
    (line,) = run(running, name, "--json")
    target = {"events": "/events", "timers": "/timers?workers=all"}[name]
    told, found = client.must(200, "GET", target), json.loads(line)

    def shape(value: object) -> object:
        if isinstance(value, dict):
            return {key: shape(each) for key, each in value.items()}
        return type(value).__name__ if isinstance(value, list | str | bool) else "number"

    assert shape(found) == shape(told)


def typed(command: str) -> str:
    """A command as hints name it where no shell finds the checkout's."""
    return f"{'bin/sluice' if Path.cwd() == ROOT else COMMAND} {command}"


def test_status_shows_logs_certificates_and_what_to_type(running: Gateway, client: Client) -> None:
    prefix = running.settings["prefix"]
    pair = make("shop.example")
    client.must(
        201, "POST", "/certificates", {"cert": pair.cert, "key": pair.key, "snis": ["shop.example"]}
    )
    said = run(running, "status")
    text = "\n".join(said)
    assert f"logs     {prefix}/logs/error.log\n         {prefix}/logs/access.log\n" in text
    assert re.search(r"^tls      shop\.example until \d{4}-\d\d-\d\d \(\d+ days?\)$", text, re.M)
    assert re.search(r"^         other names: self-signed, until \d{4}-", text, re.M)
    assert said[-2] == f"next     {typed('get routes')} --prefix {prefix}"
    (line,) = run(running, "status", "--json")
    found = json.loads(line)
    assert found["logs"][0] == f"{prefix}/logs/error.log"
    (certificate,) = found["certificates"]["list"]
    assert certificate["names"] == ["shop.example"]
    assert certificate["expires"] < found["certificates"]["self_signed_expires"]


def test_a_stopped_gateway_says_what_to_type(instance: Instance) -> None:
    done = instance.run("status")
    assert done.returncode == 3
    beginning = f"next     {COMMAND} start --prefix {instance.prefix}"
    assert done.stdout.splitlines()[1:] == [beginning]
    token = {"SLUICE_ADMIN_TOKEN": "of-the-first-start"}
    instance.environment |= token
    instance.succeed("start")
    instance.succeed("stop")
    for name in token:
        del instance.environment[name]
    again = f"{COMMAND} restart --prefix {instance.prefix}"
    assert instance.run("status").stdout.splitlines()[1:] == [
        f"next     {again}",
        f"         see {instance.prefix}/logs/error.log",
    ]
    # It keeps flags, and what the environment had.
    done = ran(again.split(), env=instance.environment, cwd=instance.folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert instance.get("/one") == 502
    assert instance.get("/services", instance.admin_port) == 401


def test_a_start_says_what_the_last_one_had(instance: Instance) -> None:
    """The flags and the environment of the last start are not those of the next."""
    instance.environment["SLUICE_ADMIN_TOKEN"] = "of-the-first-start"
    instance.succeed("start")
    instance.succeed("stop")
    instance.succeed("start")
    instance.succeed("stop")
    del instance.environment["SLUICE_ADMIN_TOKEN"]
    admin, file = instance.flags["--admin-listen"], instance.flags["--file"]
    done = instance.run("start", admin_listen="off", worker_connections=None, file=None)
    assert done.returncode == 0, done.stderr
    said, _, flags = done.stderr.partition("; its flags were ")
    assert said == (
        "sluice: warning: settings differ from the last start: "
        f"file {file} -> (unset); admin_listen {admin} -> off; admin_token is no longer set; "
        "worker_connections 512 -> 16384"
    )
    # As they are typed: a start with them is as the last one.
    words, _, remark = flags.partition("; ")
    assert remark == f"{instance.hint('restart')} in place of stop and start keeps settings\n"
    typed = shlex.split(words)
    assert dict(zip(typed[::2], typed[1::2], strict=True)) == instance.flags


@pytest.mark.parametrize("verb", ["restart", "reload"])
def test_from_a_file_to_the_store_and_back(instance: Instance, verb: str) -> None:
    """As the refusals say; a reload once looked for a file without a name, each time."""
    instance.succeed("start")
    said = instance.refuse("delete", "services/one")[0]
    assert said.startswith("sluice: read-only: this instance is configured from a file; edit the ")
    assert instance.hint("reload") in said
    assert instance.hint("reload --no-file") in said
    services = instance.succeed("get", "services")
    said = instance.succeed(verb, "--no-file")
    assert f"~ setting file: {instance.file} -> (unset)" in said
    assert instance.status()["file"] == ""
    assert instance.succeed("reload").startswith("nothing has changed; ")
    assert instance.succeed("get", "services") == services
    instance.succeed("reload", "--new-workers")
    assert instance.status()["file"] == ""
    instance.succeed("delete", "routes", "one")
    why, ways, _ = instance.refuse("restart", file=str(instance.file))
    assert instance.hint(f"diff {instance.file}") in why
    assert instance.hint(f"import {instance.file}") in ways
    assert "--no-file" in ways
    instance.succeed("import", str(instance.file))
    instance.succeed("restart", file=str(instance.file))
    assert instance.status()["file"] == str(instance.file)
    assert instance.succeed("get", "services") == services
