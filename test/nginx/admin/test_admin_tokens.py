"""Tokens of the admin listener with names: the file, the command, who is noted, attacks on them."""

import contextlib
import hashlib
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from admin_ask import ask
from admin_tokens import send, with_token
from traffic import Traffic

from instance import AS_ROOT
from sluice import COMMAND, COMMAND_SECONDS, Gateway, Start
from upstream import Upstream
from wire import Wire, request_bytes, wait_until

SECRET = "key-of-a-consumer"
PRIVATE = {
    "consumers": [
        {
            "username": "alice",
            "keyauth_credentials": [{"key": SECRET}],
            "basicauth_credentials": [{"username": "alice", "password": SECRET + "-2"}],
            "jwt_secrets": [{"key": "issuer", "secret": SECRET + "-3"}],
            "hmacauth_credentials": [{"username": "alice", "secret": SECRET + "-4"}],
        }
    ],
    "plugins": [{"name": "rate-limiting", "config": {"minute": 5}}],
}


def digest(token: str) -> str:
    """What the file has of a token."""
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


def token(running: Gateway, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """`sluice token`."""
    return subprocess.run(
        [str(COMMAND), "token", *words],
        env=running.environment(),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


REQUIRED = "sluice: the Admin API now requires a token: clients without one get a 401\n"


def add(running: Gateway, *words: str) -> str:
    """A new token; says what it can do where `words` do not, and what the first one does."""
    named = any(running.settings.get(name) for name in ("admin_token", "admin_named_tokens"))
    was_open = not named and not file_of(running).exists()
    done = token(running, "add", *words)
    lines = done.stderr.splitlines(keepends=True)
    if "--replace" not in words and "--role" not in words:
        assert lines.pop(0).startswith(f"sluice: token '{words[0]}' can only read; ")
    assert (done.returncode, lines) == (0, [REQUIRED] if was_open else [])
    assert len(done.stdout) == 65
    return done.stdout.strip()


def file_of(running: Gateway) -> Path:
    """The file of tokens, where the settings name none."""
    return Path(running.settings["prefix"]) / "tokens"


def status(running: Gateway, text: str, method: str = "GET", target: str = "/services") -> int:
    """The status of a request with a token."""
    return ask(running, target, method, headers=with_token(text)).status


# What a user does ------------------------------------------------------------------


def test_tokens_are_added_replaced_and_removed(gateway: Start) -> None:
    running = gateway(None)
    assert ask(running, "/services").status == 200
    first = add(running, "ci", "--role", "write")
    assert ask(running, "/services").status == 401
    reader = add(running, "grafana")
    assert [status(running, each) for each in (first, reader)] == [200, 200]
    assert send(
        running, "PUT", "/services/a", headers=with_token(first), json={"host": "a"}
    ).is_success
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        reply = send(running, method, "/services/a", headers=with_token(reader), json={})
        assert (reply.status_code, reply.json()) == (403, {"message": "this token is read-only"})

    done = token(running, "add", "ci")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sluice: there is a token 'ci'; --replace replaces it\n"
    second = add(running, "ci", "--replace")
    assert [status(running, each) for each in (first, second, reader)] == [401, 200, 200]
    for headers, said in ((with_token(first), "is not known: it was removed"), ({}, "required")):
        assert said in ask(running, "/services", headers=headers).json()["message"]
    reply = send(running, "PUT", "/services/b", headers=with_token(second), json={"host": "b"})
    assert reply.is_success, "its role stays"

    done = token(running, "list")
    assert done.stdout == "name     role\nci       write\ngrafana  read\n"
    assert json.loads(token(running, "list", "--json").stdout) == [
        {"name": "ci", "role": "write"},
        {"name": "grafana", "role": "read"},
    ]
    done = token(running, "remove", "grafana")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "token 'grafana' removed\n"
    assert ", token required\n" in running.command("status").stdout
    done = token(running, "remove", "ci")
    assert done.returncode == 0
    closed, way = done.stderr.splitlines()
    assert closed.startswith("sluice: no client has a token now, and the Admin API still requires")
    assert way.startswith(f"  to require none: rm {file_of(running)}, then `")
    path = file_of(running)
    assert token(running, "list").stdout == f"no tokens in {path}; the Admin API requires one\n"
    # Who takes the last one away does not open the door.
    assert [status(running, each) for each in (first, second, reader)] == [401, 401, 401]
    assert ask(running, "/services").status == 401
    assert running.command("get", "services").returncode == 0
    file_of(running).unlink()
    assert "~ setting admin_named_tokens: changed" in running.command("reload").stdout
    assert ", token required\n" not in running.command("status").stdout
    assert ask(running, "/services").status == 200


def test_who_has_written_is_named(gateway: Start) -> None:
    running = gateway(None, audit_log="logs/audit.log", admin_token="correct-horse-battery")
    ci, reader = add(running, "ci", "--role", "write"), add(running, "grafana")
    tokens = (ci, reader, "correct-horse-battery", "nobodys-token-at-all")
    for i, each in enumerate(tokens):
        body = {"host": f"127.0.0.{i + 1}"}
        send(running, "PUT", "/services/a", headers=with_token(each), json=body)
    history = send(running, "GET", "/history", headers=with_token(reader)).json()["data"]
    assert [each["by"] for each in history] == ["admin_token from 127.0.0.1", "ci from 127.0.0.1"]
    assert "ci from 127.0.0.1" in running.command("history").stdout
    audit = Path(running.settings["prefix"]) / "logs" / "audit.log"
    wait_until(lambda: len(audit.read_text().splitlines()) == 4, "four lines")
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [(line["by"], line["status"]) for line in lines] == [
        ("ci", 200),
        ("grafana", 403),
        ("admin_token", 200),
        ("-", 401),
    ]


def test_a_reader_sees_no_secret(gateway: Start) -> None:
    running = gateway(PRIVATE)
    writer, reader = add(running, "w", "--role", "write"), add(running, "r")
    data = send(running, "GET", "/endpoints", headers=with_token(reader)).json()["data"]
    paths = [path for path in data if "{" not in path]
    assert "/jwts" in paths
    paths += ["/consumers/alice/key-auth", f"/key-auths/{SECRET}", "/consumers/alice/jwt"]
    shown = 0
    for path in paths:
        reply = ask(running, path, headers=with_token(reader))
        assert SECRET not in reply.text, path
        assert reply.status in (200, 404, 405), path
        shown += SECRET in ask(running, path, headers=with_token(writer)).text
        if reply.status == 200:
            reply = ask(running, path + "?reveal=1", headers=with_token(reader))
            assert SECRET not in reply.text, path
    assert shown >= 5


def test_a_token_of_the_users_own(gateway: Start) -> None:
    running = gateway(None)
    mine = "correct-horse-battery"
    assert token(running, "add", "me", "--stdin", stdin=mine + "\n").stdout == ""
    assert status(running, mine) == 200
    assert digest(mine) in file_of(running).read_text()
    blanks = ("with a blank in it", "two\nlines-of-a-token")
    for wrong in ("", "short", "x" * 513, *blanks, "\u00fc" * 20):
        done = token(running, "add", "other", "--stdin", stdin=wrong)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("sluice: standard input is not a token; expected ")
    done = token(running, "add", "other", "--stdin", stdin=mine)
    assert done.stderr.endswith(":2: 'other' is the same token as 'me'\n")
    assert status(running, mine) == 200


def test_the_file_may_be_elsewhere_and_written_by_hand(gateway: Start, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n\nci write {digest('correct-horse-battery')}\n# end\n")
    path.chmod(0o600)
    running = gateway(None, admin_named_tokens=path)
    assert status(running, "correct-horse-battery") == 200
    other = add(running, "other")
    assert path.read_text().splitlines()[:4] == [
        "# ours",
        "",
        f"ci write {digest('correct-horse-battery')}",
        "# end",
    ]
    assert token(running, "remove", "ci").returncode == 0
    assert path.read_text() == f"# ours\n\n# end\nother read {digest(other)}\n"
    assert [status(running, each) for each in ("correct-horse-battery", other)] == [401, 200]
    path.write_text(f"ci read {digest('stable-horse-reading')}\n")
    assert status(running, other) == 200
    assert running.command("reload").returncode == 0
    assert [status(running, each) for each in ("stable-horse-reading", other)] == [200, 401]


def test_tokens_outlive_a_restart_and_open_a_listener_for_others(gateway: Start) -> None:
    running = gateway(None)
    ci = add(running, "ci")
    running.settings["admin_listen"] = f"0.0.0.0:{running.admin_port}"
    running.stop()
    running.start()
    assert "token" not in running.warned
    assert [status(running, each) for each in (ci, "x")] == [200, 401]


def test_nothing_else_of_a_gateway_changes(gateway: Start) -> None:
    running = gateway({"services": [{"name": "a", "host": "a"}]}, log_level="notice")
    running.write_config({"services": [{"name": "b", "host": "b"}]})
    running.settings["log_level"] = "info"
    ci = add(running, "ci")
    data = send(running, "GET", "/services", headers=with_token(ci)).json()["data"]
    assert [each["name"] for each in data] == ["a"]
    node = send(running, "GET", "/", headers=with_token(ci)).json()
    assert node["configuration"]["log_level"] == "notice"
    assert "~ setting log_level: notice -> info" in running.command("reload").stdout
    assert status(running, ci) == 200


def test_a_control_worker_that_dies_brings_no_token_back(gateway: Start) -> None:
    running = gateway(None)
    gone, stays = add(running, "gone"), add(running, "stays")
    assert token(running, "remove", "gone").returncode == 0
    victim = running.control()
    running.expect_log(rf"worker process {victim} exited on signal 9")
    os.kill(victim, 9)
    wait_until(lambda: running.control() != victim, "another control worker")
    assert [status(running, each) for each in (gone, stays)] == [401, 200]


# Attacks ---------------------------------------------------------------------------


def test_what_is_nearly_a_token_is_none(gateway: Start) -> None:
    running = gateway(None)
    ci = add(running, "ci", "--role", "write")
    for wrong in (
        ci[:-1],
        ci + "0",
        ci.upper(),
        "ci",
        f"ci {ci}",
        f"ci:{ci}",
        digest(ci),
        digest(ci)[7:],
        file_of(running).read_text().strip(),
        "",
        " ",
    ):
        assert status(running, wrong) == 401, wrong
    twice = [("Kong-Admin-Token", ci), ("Kong-Admin-Token", ci)]
    assert ask(running, "/services", headers=twice).status == 401
    mixed = [("Kong-Admin-Token", "x"), ("Authorization", f"Bearer {ci}")]
    assert ask(running, "/services", headers=mixed).status == 401


@pytest.mark.parametrize("size", [8_000, 100_000, 1_000_000])
@pytest.mark.parametrize("header", ["Kong-Admin-Token: ", "Authorization: Bearer "])
def test_a_long_token_is_none(gateway: Start, size: int, header: str) -> None:
    running = gateway(None)
    ci = add(running, "ci")
    with Wire(running.admin_port) as wire:
        head = f"GET /services HTTP/1.1\r\nHost: localhost\r\n{header}{'a' * size}\r\n\r\n"
        # nginx may answer and close before it has read all.
        with contextlib.suppress(OSError):
            wire.send(head.encode())
            assert wire.read_reply().status in (400, 401)
    assert status(running, ci) == 200


def test_no_file_holds_a_token(gateway: Start) -> None:
    running = gateway(None, audit_log="logs/audit.log", log_level="info")
    old = add(running, "ci", "--role", "write")
    new = add(running, "ci", "--replace")
    for each in (old, new):
        send(running, "PUT", "/services/a", headers=with_token(each), json={"host": "a"})
    reply = send(running, "GET", "/", headers=with_token(new))
    assert digest(new)[7:] not in reply.text
    assert "admin_token_list" not in reply.text
    for path in Path(running.settings["prefix"]).rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert old.encode() not in data
        assert new.encode() not in data
    modes = {path.stat().st_mode & 0o777 for path in (file_of(running),)}
    assert modes == {0o600}


def spoil_mode(path: Path) -> str:
    """Others may read it."""
    path.chmod(0o640)
    return f"{path}: others have access to it (mode 0640); chmod 600 it"


def spoil_link(path: Path) -> str:
    """It is a link."""
    real = path.with_name("real")
    path.rename(real)
    path.symlink_to(real)
    return f"{path}: is a symbolic link"


def spoil_pipe(path: Path) -> str:
    """It is a pipe, which a reader would wait for."""
    path.unlink()
    os.mkfifo(path, 0o600)
    return f"{path}: is not a regular file"


def spoil_folder(path: Path) -> str:
    """It is a folder."""
    path.unlink()
    path.mkdir(0o700)
    return f"{path}: is not a regular file"


def spoil_size(path: Path) -> str:
    """It is too large."""
    path.write_text("# " + "x" * 2_000_000)
    return f"{path}: is larger than 1048576 bytes"


def spoil_owner(path: Path) -> str:
    """It belongs to another user."""
    if not AS_ROOT:
        pytest.skip("only root gives files away")
    os.chown(path, 1, 1)
    return f"{path}: belongs to user 1, not to {os.geteuid()}"


@pytest.mark.parametrize(
    "spoil", [spoil_mode, spoil_link, spoil_pipe, spoil_folder, spoil_size, spoil_owner]
)
def test_a_file_that_others_could_use_is_refused(gateway: Start, spoil: object) -> None:
    running = gateway(None)
    ci = add(running, "ci")
    reason = spoil(file_of(running))
    assert running.command("reload").stderr == (
        f"sluice: admin_named_tokens: cannot read {reason}\n"
        "sluice: reload refused: the running configuration is kept\n"
    )
    for words in (("add", "b"), ("remove", "ci"), ("list",)):
        done = token(running, *words)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"sluice: admin_named_tokens: cannot read {reason}\n"
    assert status(running, ci) == 200
    assert ask(running, "/services").status == 401


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "expected `name role sha256:DIGEST`"),
        ("b admin " + digest("b"), "the role of 'b' is neither read nor write"),
        ("b read correct-horse-battery", "'b' has no digest; expected sha256: and 64 hexadecimal"),
        ("ci read " + digest("b"), "'ci' is on line 1 already"),
        ("anyone read " + digest("b"), "'anyone' is the name of another"),
    ],
)
def test_a_broken_line_is_named_and_changes_nothing(gateway: Start, line: str, why: str) -> None:
    running = gateway(None)
    ci = add(running, "ci")
    path = file_of(running)
    text = path.read_text() + f"# next\n{line}\n"
    path.write_text(text)
    pids = running.workers()
    for done in (running.command("reload"), token(running, "add", "c"), token(running, "list")):
        assert done.returncode == 1
        assert done.stderr.startswith(f"sluice: admin_named_tokens: {path}:3: {why}")
        assert "horse" not in done.stderr
    assert path.read_text() == text
    assert running.workers() == pids
    assert status(running, ci) == 200
    running.stop()
    done = running.command("start")
    assert f"admin_named_tokens: {path}:3: {why}" in done.stderr


def test_one_token_has_one_name(gateway: Start) -> None:
    running = gateway(None, admin_token="correct-horse-battery")
    done = token(running, "add", "ci", "--stdin", stdin="correct-horse-battery")
    path = file_of(running)
    said = f"sluice: admin_named_tokens: 'ci' in {path} is the same token as admin_token\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert not path.exists()
    assert status(running, "correct-horse-battery") == 200


@pytest.mark.parametrize("name", ["", "-x", "a b", "\u00e4", "a\x1b[2J", "x" * 65, "admin_token"])
def test_a_name_is_one(gateway: Start, name: str) -> None:
    running = gateway(None)
    done = token(running, "add", "--", name)
    assert done.returncode in (1, 2)
    assert "\x1b" not in done.stderr
    assert not file_of(running).exists()
    assert ask(running, "/services").status == 200


def test_wrong_use(gateway: Start) -> None:
    running = gateway(None)
    for words in (("add",), ("remove",), (), ("show",), ("add", "a", "--role", "admin")):
        assert token(running, *words).returncode == 2
    done = token(running, "remove", "a")
    assert (done.returncode, done.stderr) == (
        1,
        f"sluice: there is no token 'a' in {file_of(running)}\n",
    )


# While others work -----------------------------------------------------------------


def test_a_replacement_loses_no_request(gateway: Start) -> None:
    with Upstream() as upstream:
        route = {"name": "r", "paths": ["/"]}
        running = gateway({"services": [{"name": "s", "url": upstream.url, "routes": [route]}]})
        keeps = add(running, "keeps")
        done, seen = threading.Event(), []

        def read() -> None:
            while not done.is_set():
                seen.append(status(running, keeps))

        reader = threading.Thread(target=read, daemon=True)
        with Traffic(running) as traffic:
            reader.start()
            for _ in range(5):
                new = add(running, "ci", "--replace", "--role", "write")
                assert status(running, new) == 200
            traffic.goes_on()
            done.set()
            reader.join()
        assert traffic.failed == []
        assert set(seen) == {200}


def test_a_write_that_was_begun_with_a_removed_token_is_not_made(gateway: Start) -> None:
    running = gateway(None)
    keeps, leaver = add(running, "keeps"), add(running, "leaver", "--role", "write")
    body = b'{"name": "late", "host": "127.0.0.1"}'
    head = request_bytes(
        "/services",
        "POST",
        headers=[
            ("Kong-Admin-Token", leaver),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        ],
    )
    with Wire(running.admin_port) as wire:
        wire.send(head + body[:9])
        # Until it is read: the next request on the listener is answered after it was taken.
        assert status(running, keeps) == 200
        assert token(running, "remove", "leaver").returncode == 0
        with contextlib.suppress(OSError):
            wire.send(body[9:])
            assert wire.read_reply("POST").status == 503
    assert ask(running, "/services", headers=with_token(keeps)).json()["data"] == []


def test_commands_at_once_lose_no_token(gateway: Start) -> None:
    running = gateway(None)
    running.stop()
    codes: dict[str, int] = {}

    def run(name: str) -> None:
        codes[name] = token(running, "add", name).returncode

    threads = [threading.Thread(target=run, args=(f"t{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = {each["name"] for each in json.loads(token(running, "list", "--json").stdout)}
    assert names == {name for name, code in codes.items() if code == 0}
    assert names
