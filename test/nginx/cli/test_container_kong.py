"""What people run Kong's image with, on ours: the environments, commands and files of public
compose files and Dockerfiles, each reduced to a row."""

import dataclasses
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from container import KONG, ROOT_USER, STRANGER, Contained, Container, can_contain, one, reader_of

import guard
from sluice import ROOT
from upstream import Upstream
from wire import DEADLINE, Wire, request_bytes, wait_until

pytestmark = pytest.mark.skipif(
    not can_contain(), reason="needs root, namespaces, and a checkout that any user may enter"
)

FILE = "/usr/local/kong/declarative/kong.yml"
OFF = {"KONG_DATABASE": "off", "KONG_DECLARATIVE_CONFIG": FILE}
STDOUT = {
    "KONG_PROXY_ACCESS_LOG": "/dev/stdout",
    "KONG_ADMIN_ACCESS_LOG": "/dev/stdout",
    "KONG_PROXY_ERROR_LOG": "/dev/stderr",
    "KONG_ADMIN_ERROR_LOG": "/dev/stderr",
}
DATABASE = {
    "KONG_DATABASE": "postgres",
    "KONG_PG_HOST": "kong-database",
    "KONG_PG_USER": "kong",
    "KONG_PG_PASSWORD": "kong",
    "SLUICE_SINGLE_NODE": "on",
}

OWN_ENTRY = """#!/bin/bash
set -e
echo "before the gateway"
exec /docker-entrypoint.sh "$@"
"""

# As those that were copied from Kong's image: it prepares, links the logs, and runs nginx.
COPIED_ENTRY = """#!/usr/bin/env bash
set -Eeo pipefail
export KONG_NGINX_DAEMON=${KONG_NGINX_DAEMON:=off}
if [[ "$1" == "kong" ]]; then
  PREFIX=${KONG_PREFIX:=/usr/local/kong}
  if [[ "$2" == "docker-start" ]]; then
    kong prepare -p "$PREFIX" "$@"
    ln -sfn /dev/stdout $PREFIX/logs/access.log
    ln -sfn /dev/stderr $PREFIX/logs/error.log
    exec /usr/local/openresty/nginx/sbin/nginx -p "$PREFIX" -c nginx.conf
  fi
fi
exec "$@"
"""


@dataclasses.dataclass
class Row:
    """One that serves /one, and says `seen` on its standard output or error."""

    environment: dict[str, str]
    command: list[str] | None = None
    entrypoint: list[str] | None = None
    files: dict[str, str] = dataclasses.field(default_factory=dict)
    path: str = FILE
    """Where the declarative file is."""
    options: list[str] = dataclasses.field(default_factory=list)
    user: str = KONG
    seen: str = r'"GET /one HTTP/1\.1" 200'
    has_admin: bool = True


ROWS = {
    "a file copied into the image, all logs on the standard output": Row(
        OFF
        | STDOUT
        | {"KONG_PROXY_ERROR_LOG": "/dev/stdout", "KONG_ADMIN_ERROR_LOG": "/dev/stdout"},
        seen="start worker process",
    ),
    "nothing but the two settings": Row(OFF),
    "compose: admin for everybody, logs of the manager": Row(
        OFF
        | STDOUT
        | {
            "KONG_ADMIN_LISTEN": "0.0.0.0:8001",
            "KONG_STATUS_LISTEN": "0.0.0.0:8100",
            "KONG_ADMIN_GUI_ACCESS_LOG": "/dev/stdout",
            "KONG_ADMIN_GUI_ERROR_LOG": "/dev/stderr",
        },
        seen="everybody who can connect to 0.0.0.0",
    ),
    "compose: read-only, a prefix on a tmpfs, secrets in files": Row(
        STDOUT
        | {
            "KONG_DATABASE": "off",
            "KONG_DECLARATIVE_CONFIG": "/opt/kong/kong.yaml",
            "KONG_PREFIX": "/var/run/kong",
            "KONG_PG_DATABASE": "kong",
            "KONG_PG_HOST": "db",
            "KONG_PG_USER": "kong",
            "KONG_PG_PASSWORD_FILE": "/run/secrets/kong_postgres_password",
            "KONG_ADMIN_GUI_LISTEN": "0.0.0.0:8002",
            "KONG_ADMIN_LISTEN": "0.0.0.0:8001",
        },
        path="/opt/kong/kong.yaml",
        options=["tmpfs=/var/run/kong", "tmpfs=/tmp", "read-only"],
        files={"/run/secrets/kong_postgres_password": "secret\n"},
        seen="KONG_PG_USER, KONG_PG_PASSWORD_FILE",
    ),
    "a Dockerfile with kong start, and no Admin API": Row(
        OFF | STDOUT | {"KONG_ADMIN_LISTEN": "off"}, ["kong", "start"], has_admin=False
    ),
    "kong docker-start as the entry point": Row(
        OFF, command=[], entrypoint=["kong", "docker-start"]
    ),
    "a kong.conf that is named": Row(
        {"KONG_NGINX_DAEMON": "off"},
        ["kong", "docker-start", "--conf", "/etc/kong/my.conf"],
        files={
            "/etc/kong/my.conf": f"database = off\ndeclarative_config = {FILE} # here\n"
            "proxy_error_log = /dev/stderr\n"
        },
    ),
    "a kong.conf where Kong looks for it": Row(
        {},
        files={"/etc/kong/kong.conf": f"database = off\ndeclarative_config = {FILE}\n"},
    ),
    "an entry point of its own before the image's": Row(
        OFF, entrypoint=["/start.sh"], files={"/start.sh": OWN_ENTRY}, seen="before the gateway"
    ),
    "an entry point that was copied from Kong's image": Row(
        OFF, entrypoint=["/start.sh"], files={"/start.sh": COPIED_ENTRY}
    ),
    "a shell that starts a daemon and waits": Row(
        OFF | STDOUT,
        command=[],
        entrypoint=["/bin/sh", "-c", "kong start && tail -f /dev/null"],
        seen="Kong started",
    ),
    "a shell that starts a daemon and follows its log": Row(
        OFF,
        command=[],
        entrypoint=["sh", "-c", "kong start; tail -f /usr/local/kong/logs/access.log"],
    ),
    "a shell behind the entry point: it stays in the foreground": Row(
        OFF | STDOUT, ["/bin/sh", "-c", "kong migrations bootstrap && kong start"]
    ),
    "root": Row(OFF | STDOUT, user=ROOT_USER),
    "root, with ports that only it may open elsewhere": Row(
        OFF | {"KONG_NGINX_USER": "kong kong"}, user=ROOT_USER
    ),
    "a user whom nobody knows": Row(OFF | STDOUT, user=STRANGER),
    "a user whom nobody knows, and another prefix": Row(
        OFF | {"KONG_PREFIX": "/tmp/kong"}, user=STRANGER
    ),
}


@pytest.fixture
def contained() -> Iterator[Callable[..., Container]]:
    """Starts containers; what each takes is what `Container` does."""
    started: list[Container] = []

    def start(*words: object, **how: object) -> Container:
        started.append(Container(*words, **how))
        return started[-1]

    yield start
    for container in started:
        container.close()


@pytest.mark.parametrize("what", ROWS)
def test_it_serves_as_kongs_image_does(what: str, contained: Contained, upstream: Upstream) -> None:
    """And its health check, its log and its reload work as there."""
    row = ROWS[what]
    container = contained(
        row.environment,
        row.command,
        entrypoint=row.entrypoint,
        files={row.path: one(upstream.url)} | row.files,
        options=row.options,
        user=row.user,
    )
    container.serves()
    container.sees(row.seen)
    healthy = container.run("kong", "health")
    prefix = container.run("realpath", container.environment["KONG_PREFIX"]).stdout.strip()
    assert (healthy.returncode, healthy.stderr) == (0, "")
    assert healthy.stdout == f"nginx.......running\n\nKong is healthy at {prefix}\n"
    if row.has_admin:
        assert container.status_of("/routes/one", container.admin) == 200
    assert container.run("kong-health").stdout == healthy.stdout
    if "KONG_STATUS_LISTEN" in row.environment:
        assert container.status_of("/status/ready", container.status) == 200
    container.write(row.path, one(upstream.url).replace("/one", "/two"))
    done = container.run("kong", "reload")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Kong reloaded"), done.stderr
    assert container.status_of("/two") == 200
    container.write(row.path, one(upstream.url).replace("/one", "/three"))
    done = container.run("kong", "reload", user=ROOT_USER)
    assert done.returncode == 0, done.stderr
    assert container.status_of("/three") == 200
    assert container.run("kong", "reload").returncode == 0
    container.sees_no_trouble()


def bound(path: Path) -> dict[Path, str]:
    """A folder of the machine's as the volume of the prefix, as some platforms give one."""
    path.chmod(0o777)
    return {path: "/usr/local/kong"}


@pytest.fixture
def volume() -> Iterator[dict[Path, str]]:
    """A volume that outlives containers."""
    folder = guard.folder("sluice-volume-")
    yield bound(folder)
    guard.remove(folder)


MIGRATIONS = {
    ("bootstrap",): "Database is up-to-date",
    ("up",): "Database is already up-to-date",
    ("finish",): "No pending migrations to finish",
    ("up", "&&", "kong", "migrations", "finish"): "Database is already up-to-date",
    ("list",): "Executed migrations: none",
    ("up", "-q"): "",
    ("reset", "--yes"): "Database successfully reset",
    ("bootstrap", "--force"): "Database is up-to-date",
}


@pytest.mark.parametrize("words", MIGRATIONS)
def test_migrations_in_a_container_of_their_own(
    words: tuple[str, ...], contained: Contained
) -> None:
    container = contained(DATABASE, ["kong", "migrations", *words])
    assert container.end() == 0, container.err.decode()
    assert MIGRATIONS[words] in container.out.decode()
    if "-q" not in words:
        assert "this node keeps its own store in /usr/local/kong" in container.out.decode()


def test_what_scripts_read_of_the_migrations(contained: Contained) -> None:
    container = contained(DATABASE, ["kong", "migrations", "status"])
    assert container.end() == 0
    found = json.loads(container.out.decode())
    assert found["needs_bootstrap"] is False
    assert "new_migrations" not in found
    assert "pending_migrations" not in found


def test_a_database_is_refused_where_nobody_has_agreed_to_do_without(contained: Contained) -> None:
    """By every command that would rely on it, in one sentence."""
    without = {name: text for name, text in DATABASE.items() if name != "SLUICE_SINGLE_NODE"}
    implied = {name: text for name, text in without.items() if name != "KONG_DATABASE"}
    container = contained(implied)
    assert container.end() == 1, "Kong's default, where its host is named"
    assert "SLUICE_SINGLE_NODE=on" in container.err.decode()
    for command in (
        ["docker-start"],
        ["start"],
        ["migrations", "bootstrap"],
        ["config", "parse", "/k"],
    ):
        container = contained(without, ["kong", *command], files={"/k": "{}"})
        assert container.end() == 1
        assert "SLUICE_SINGLE_NODE=on" in container.err.decode()
        assert "'postgres' needs a cluster" in container.err.decode()


def test_what_the_admin_api_makes_outlives_the_container(
    contained: Contained, upstream: Upstream, volume: dict[Path, str]
) -> None:
    """On a volume, imported before by a container of its own, twice, and exported after."""
    text = one(upstream.url)
    for _ in range(2):
        done = contained(
            DATABASE,
            ["kong", "config", "db_import", "/kong.yml"],
            files={"/kong.yml": text},
            binds=volume,
        )
        assert done.end() == 0, done.err.decode()
        assert "import successful" in done.out.decode()
    first = contained(DATABASE | STDOUT, binds=volume)
    first.serves()
    assert "ends with this container" not in first.err.decode()
    more = text.replace("one", "two")
    done = first.run(
        "sh", "-c", f"echo '{more}' > /tmp/more.yml; kong config db_import /tmp/more.yml"
    )
    assert done.returncode == 0, done.stderr
    assert first.status_of("/one") == 200, "an import deletes nothing, as Kong's"
    assert first.status_of("/two") == 200
    os.kill(first.first(), signal.SIGQUIT)
    assert first.end() == 0
    lacking = contained(
        DATABASE,
        ["kong", "config", "db_import", "/kong.yml"],
        files={"/kong.yml": text},
        binds=volume,
    )
    assert lacking.end() == 1
    assert "lacks 2 entities of the store, which an import would delete" in lacking.err.decode()
    killed = contained(DATABASE, binds=volume)
    killed.serves()
    os.kill(killed.first(), signal.SIGKILL)
    killed.process.wait(DEADLINE)
    second = contained(DATABASE, binds=volume)
    second.serves()
    assert second.status_of("/two") == 200
    done = second.run("sh", "-c", "cd /tmp && kong config db_export && cat kong.yml")
    assert done.returncode == 0, done.stderr
    assert "name: two" in done.stdout
    again = second.run("sh", "-c", "cd /tmp && kong config db_export")
    assert again.returncode == 1
    assert "kong.yml already exists" in again.stderr
    assert second.run("kong", "migrations", "reset", "-y").returncode == 0
    assert second.status_of("/two") == 404


def test_a_store_that_ends_with_its_container_is_said(contained: Contained) -> None:
    container = contained(DATABASE)
    container.sees("the store in /usr/local/kong ends with this container")


def test_files_are_checked_in_ci(contained: Contained, upstream: Upstream) -> None:
    """No gateway runs, and nothing is left behind."""
    right, wrong = one(upstream.url), one(upstream.url).replace("url:", "ulr:")
    for text, code, said in ((right, 0, "parse successful"), (wrong, 1, "line 4: services[0]")):
        container = contained(
            {"KONG_DATABASE": "off"},
            ["kong", "config", "parse", "/kong.yml"],
            files={"/kong.yml": text},
            options=["read-only"],
        )
        assert container.end() == code, container.err.decode()
        assert said in (container.out + container.err).decode()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGQUIT"])
def test_it_ends_within_the_grace(name: str, contained: Contained, upstream: Upstream) -> None:
    """After its requests, with nothing left of what other commands have left behind."""
    container = contained(OFF, files={FILE: one(upstream.url)})
    container.serves()
    assert container.run("sh", "-c", "sleep 0.2 & exec true").returncode == 0
    wait_until(lambda: "sleep" not in container.processes(), "an orphan to end")

    def reaped() -> bool:
        return "Z" not in {state for _, state in container.states()}

    wait_until(reaped, "what has ended to be reaped")
    seen = len(upstream.requests)
    held = upstream.hold()
    with Wire(container.port) as wire:
        wire.send(request_bytes("/one"))
        wait_until(lambda: len(upstream.requests) > seen, "the request")
        os.kill(container.first(), getattr(signal, name))
        wait_until(lambda: container.status_of("/nothing") == 0, "nobody to be let in")
        held.set()
        assert wire.read_reply("GET").status == 200
    assert container.process.wait(DEADLINE) == 0
    container.sees_no_trouble()


def test_a_hang_up_loads_what_has_changed(contained: Contained, upstream: Upstream) -> None:
    container = contained(OFF, files={FILE: one(upstream.url)})
    container.serves()
    container.write(FILE, one(upstream.url).replace("/one", "/two"))
    os.kill(container.first(), signal.SIGHUP)
    wait_until(lambda: container.status_of("/two") == 200, "the changed file")
    container.sees("Kong reloaded")


def quits(container: Container, upstream: Upstream, wait_s: int) -> bool:
    """Ends it by `quit`. False: no request was answered before the wait may have been over."""
    container.serves()
    held = upstream.hold()
    seen = len(upstream.requests)
    with Wire(container.port) as wire:
        wire.send(request_bytes("/one"))
        wait_until(lambda: len(upstream.requests) > seen, "the request")
        begun = time.monotonic()
        quitting = container.begin("kong", "quit", f"--wait={wait_s}", "-t", "1")
        answered = container.status_of("/nothing")
        in_time = time.monotonic() < begun + wait_s
        assert answered == 404 or not in_time
        wait_until(lambda: container.status_of("/nothing") == 0, "nobody to be let in")
        assert container.process.wait(DEADLINE) == 0
    held.set()
    quitting.wait(DEADLINE)
    return in_time


def test_quit_before_a_pod_ends(contained: Contained, upstream: Upstream) -> None:
    """Waits, while it serves on; then cuts off what takes too long, as Kong does."""

    def end_one(wait_s: int) -> bool:
        return quits(contained(OFF, files={FILE: one(upstream.url)}), upstream, wait_s)

    # Longer ones where a machine is slow.
    assert any(end_one(wait_s) for wait_s in (1, 5, 20))


def test_other_commands_are_run_as_they_are(contained: Contained) -> None:
    container = contained({}, ["sh", "-c", "echo $KONG_NGINX_DAEMON; id -u; exit 7"])
    assert container.end() == 7
    assert container.out.decode() == "off\n1000\n"
    version = contained({}, ["kong", "version"])
    assert version.end() == 0
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", version.out.decode())


def test_health_of_what_does_not_serve_yet(contained: Contained) -> None:
    """While it reads its file, and where it was never started."""
    fifo = guard.folder("sluice-fifo-") / "kong.yml"
    os.mkfifo(fifo)
    container = contained({"KONG_DECLARATIVE_CONFIG": "/kong.yml"}, binds={fifo: "/kong.yml"})
    end = wait_until(lambda: reader_of(fifo), "it to read its file")
    done = container.run("kong", "health")
    assert done.returncode == 1
    assert done.stdout == "nginx.......not running\n\n"
    assert done.stderr == "Error: Kong is not running at /usr/local/kong\n"
    done = container.run("kong", "health", "-p", "/nowhere")
    assert (done.returncode, done.stderr) == (1, "Error: no such prefix: /nowhere\n")
    os.close(end)
    guard.remove(fifo.parent)


def test_the_recipe_is_kongs_in_what_others_rely_on() -> None:
    """Ports, signal, health check, words."""
    text = (ROOT / "packaging" / "container" / "Containerfile").read_text()
    for line in (
        "EXPOSE 8000 8443 8001 8444",
        "STOPSIGNAL SIGQUIT",
        'CMD ["kong", "docker-start"]',
        'ENTRYPOINT ["/docker-entrypoint.sh"]',
    ):
        assert f"\n{line}\n" in text
    assert 'CMD ["kong", "health"]' in text
