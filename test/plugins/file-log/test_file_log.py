"""file-log: what its files have, which it refuses, and that nobody waits for one: pipes and a
stdout that stand still, deaths, reloads and ends.

Long on purpose: one plugin, and its tests share what reads a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from changes import document, post, stopped
from log_entries import check_http2_entry, check_switch_entry
from log_server import LATE, Clients, ask
from supervisor import Foreground
from tunnels import by_http2, by_upgrade, where_asked

import guard
from sluice import Config, Gateway, Start, proxying
from upstream import Exchange, Upstream
from wire import wait_until

Make = Callable[[Path, Path], Path | str]

DROPPED = r"file-log \S+: \d+ entr\w+ (was|were) dropped: "


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that workers of any user reach and write, unlike pytest's own."""
    path = guard.folder("sluice-file-log-")
    path.chmod(0o777)
    yield path
    guard.remove(path)


def logging_to(upstream: Upstream, *paths: Path | str, **config: object) -> dict[str, Any]:
    """The first path for all requests, the others for those of routes /1, /2 ..."""
    found = proxying(upstream)
    found["plugins"] = [{"name": "file-log", "config": {"path": str(paths[0])} | config}]
    for number, path in enumerate(paths[1:], 1):
        plugin = {"name": "file-log", "config": {"path": str(path)} | config}
        found["services"][0]["routes"].append(
            {"name": f"route{number}", "paths": [f"/{number}"], "plugins": [plugin]}
        )
    return found


def entries(path: Path) -> list[dict[str, Any]]:
    """All that a file has; each line is an entry."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def marks(path: Path) -> list[str]:
    return [entry["request"]["querystring"]["n"] for entry in entries(path)]


def wait_for(path: Path, wanted: set[str]) -> None:
    wait_until(lambda: wanted <= set(marks(path)), f"all entries in {path}", LATE)


def admin(running: Gateway, path: str) -> httpx.Response:
    return httpx.get(running.admin + path, trust_env=False)


def figures(running: Gateway) -> dict[str, Any]:
    return admin(running, "/status").json()["log_entries"]


# What a file has


def test_entries_of_what_is_proxied_and_of_what_is_not(
    gateway: Start, upstream: Upstream, folder: Path
) -> None:
    path = folder / "all.log"
    config = logging_to(upstream, path)
    config["services"][0]["routes"][0]["paths"] = ["/open"]
    config["services"][0]["routes"].append({"name": "closed", "paths": ["/closed"]})
    config["plugins"].append({"name": "key-auth", "route": "closed"})
    config["consumers"] = [{"username": "ann", "keyauth_credentials": [{"key": "k"}]}]
    running = gateway(config)
    running.ask("/open?n=1")
    running.ask("/closed?n=2", headers=[("apikey", "k")])
    assert running.ask("/closed?n=3").status == 401
    assert running.ask("/none?n=4").status == 404
    with running.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        assert wire.read_reply().status == 400
    wait_until(lambda: len(entries(path)) == 5, "five entries")

    proxied, known, refused, unrouted, broken = entries(path)
    assert proxied["source"] == "upstream"
    assert proxied["route"]["name"] == "route"
    assert proxied["route"]["service"] == {"id": proxied["service"]["id"]}
    assert proxied["service"]["host"] == "127.0.0.1"
    assert "consumer" not in proxied
    assert known["consumer"]["username"] == "ann"
    assert known["authenticated_entity"]["consumer_id"] == known["consumer"]["id"]
    assert known["request"]["headers"]["apikey"] == "REDACTED"
    assert refused["response"]["status"] == 401
    assert refused["source"] == "kong"
    assert refused["route"]["name"] == "closed"
    assert unrouted["response"]["status"] == 404
    assert "route" not in unrouted
    assert broken["response"]["status"] == 400
    # Without what is unset.
    assert None not in proxied["route"].values()
    assert "snis" not in proxied["route"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_entries_of_http2_and_of_a_switch(gateway: Start, upstream: Upstream, folder: Path) -> None:
    path = folder / "protocols.log"
    upstream.handler = where_asked(upstream)
    running = gateway(logging_to(upstream, path), tls="ssl http2")
    assert by_http2(running, "/?n=h2") == 200
    assert by_upgrade(running, "/?n=ws") == 101
    wait_for(path, {"h2", "ws"})
    check_http2_entry(running, entries(path)[0])
    check_switch_entry(running, entries(path)[1])


def test_what_stands_in_a_file_stays(gateway: Start, upstream: Upstream, folder: Path) -> None:
    path = folder / "old.log"
    path.write_text('{"request":{"querystring":{"n":"old"}}}\n')
    path.chmod(0o666)
    running = gateway(logging_to(upstream, path, path), workers=2)
    ask(running, *range(20))
    assert running.ask("/1?n=other").status == 200
    wait_for(path, {"other", *map(str, range(20))})
    assert marks(path)[0] == "old"
    assert len(marks(path)) == 22


def test_the_most_specific_configuration_counts(
    gateway: Start, upstream: Upstream, folder: Path
) -> None:
    paths = [folder / name for name in ("all", "route", "consumer")]
    config = logging_to(upstream, *paths[:2])
    config["plugins"].append({"name": "key-auth", "config": {"anonymous": "nobody"}})
    config["consumers"] = [
        {"username": "nobody"},
        {
            "username": "ann",
            "keyauth_credentials": [{"key": "k"}],
            "plugins": [{"name": "file-log", "config": {"path": str(paths[2])}}],
        },
    ]
    running = gateway(config)
    running.ask("/?n=1")
    running.ask("/1?n=2")
    running.ask("/?n=3", headers=[("apikey", "k")])
    for number, path in enumerate(paths, 1):
        wait_for(path, {str(number)})
        assert marks(path) == [str(number)]


def test_an_entry_longer_than_a_page_and_one_of_any_bytes(
    gateway: Start, upstream: Upstream, folder: Path
) -> None:
    path = folder / "long.log"
    running = gateway(logging_to(upstream, path))
    long = [(f"X-{n}", "y" * 1000) for n in range(25)]
    running.ask("/?n=long", headers=long)
    running.ask("/?n=bytes", headers=[("X-Bytes", "\xe4\n\t".replace("\n", "") + '"\\')])
    wait_for(path, {"long", "bytes"})
    assert len(entries(path)[0]["request"]["headers"]) >= 25
    assert "\n" not in entries(path)[1]["request"]["headers"]["x-bytes"]


def test_a_long_response_has_the_route_that_it_was_matched_with(
    gateway: Start, upstream: Upstream, folder: Path
) -> None:
    path, other = folder / "before.log", folder / "after.log"
    go_on = threading.Event()

    def slow(exchange: Exchange) -> None:
        exchange.head(200, {"Content-Length": "4"})
        go_on.wait(LATE)
        exchange.send(b"body")

    running = gateway(logging_to(upstream, path))
    upstream.handler = slow
    with running.wire() as wire:
        wire.send(b"GET /?n=1 HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: upstream.requests, "the request")
        changed = logging_to(upstream, other)
        changed["services"][0]["name"] = "another"
        changed["services"][0]["routes"][0]["name"] = "another"
        assert post(running, document(changed)).status_code == 201
        upstream.answer(200)
        ask(running, 2)
        go_on.set()
        assert wire.read_reply().status == 200
    wait_for(path, {"1"})
    wait_for(other, {"2"})
    assert entries(path)[0]["route"]["name"] == "route"
    assert entries(path)[0]["service"]["name"] == "service"
    assert entries(other)[0]["route"]["name"] == "another"


@pytest.mark.parametrize("reopen", [False, True])
def test_a_file_that_is_moved(
    gateway: Start, upstream: Upstream, folder: Path, reopen: bool
) -> None:
    path, moved = folder / "new.log", folder / "old.log"
    running = gateway(logging_to(upstream, path, reopen=reopen))
    ask(running, 1)
    wait_for(path, {"1"})
    path.rename(moved)
    ask(running, 2)
    wait_for(path if reopen else moved, {"2"})
    assert marks(moved) == (["1"] if reopen else ["1", "2"])
    assert path.exists() == reopen


# What is refused


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/null", "of devices only /dev/stdout and /dev/stderr are taken"),
        ("/dev/../dev/sda", "of devices only"),
        ("/proc/self/fd/1", "of devices only"),
        ("/tmp/a*", "not a valid filename"),
        ("/tmp/a\tb", "must not contain control characters"),
        ("/tmp/", "must name a file"),
        ("a.log", "must be absolute, or begin with 'logs/'"),
        ("logs/../store/a.log", "must be absolute, or begin with 'logs/'"),
        ("@prefix@/store/a.log", "in the prefix only files in logs/ are taken"),
        ("@prefix@/logs/../settings.json", "in the prefix only files in logs/ are taken"),
        ("@prefix@//./nginx.conf", "in the prefix only files in logs/ are taken"),
        ("/tmp/" + "a" * 1100, "must not be longer than"),
        ("logs/access.log", "is a log of the gateway itself"),
        ("@prefix@//logs/./error.log", "is a log of the gateway itself"),
    ],
)
def test_a_path_that_is_refused(running: Gateway, path: str, reason: str) -> None:
    path = path.replace("@prefix@", str(running.settings["prefix"]))
    config = {"name": "file-log", "config": {"path": path}}
    reply = httpx.post(f"{running.admin}/plugins", trust_env=False, json=config)
    assert reply.status_code == 400
    assert reason in reply.json()["message"]
    assert "path: " in reply.json()["message"]
    whole = {"_format_version": "3.0", "plugins": [config]}
    reply = httpx.post(f"{running.admin}/config", trust_env=False, json=whole)
    assert reply.status_code == 400
    assert reason in reply.text
    file = running.settings["prefix"].parent / "whole.json"
    file.write_text(json.dumps(whole))
    checked = running.command("check", str(file))
    assert checked.returncode == 1
    assert reason in checked.stderr
    assert re.search(r'"file-log".config(.path: |: path: )', checked.stderr)
    assert admin(running, "/plugins").json()["data"] == []


def test_logs_of_the_prefix_are_roots(gateway: Start, upstream: Upstream) -> None:
    running = gateway(logging_to(upstream, "logs/requests.log"))
    if os.getuid() != 0:
        pytest.skip("only root starts workers of another user")
    running.expect_log(DROPPED + "the workers' user may not create files in its folder", 1)
    ask(running, 1)
    wait_until(lambda: figures(running)["dropped"]["target"] == 1, "what was dropped")
    path = running.settings["prefix"] / "logs/requests.log"
    path.touch()
    shutil.chown(path, (running.settings["prefix"] / "store").owner())
    ask(running, 2)
    wait_for(path, {"2"})


def test_logs_of_the_prefix_are_taken(gateway: Start, upstream: Upstream) -> None:
    running = gateway(logging_to(upstream, "logs/requests.log"))
    # Of root's, which workers of another user do not write.
    (running.settings["prefix"] / "logs").chmod(0o777)
    ask(running, 1)
    wait_for(running.settings["prefix"] / "logs/requests.log", {"1"})


def some_link(folder: Path, prefix: Path) -> Path:
    (folder / "link").symlink_to(folder / "target")
    return folder / "link"


def some_other_name(folder: Path, prefix: Path) -> Path:
    (folder / "one").write_text("")
    (folder / "one").chmod(0o666)
    os.link(folder / "one", folder / "two")
    return folder / "two"


def some_folder(folder: Path, prefix: Path) -> Path:
    return folder


def in_the_prefix(folder: Path, prefix: Path) -> Path:
    (folder / "way").symlink_to(prefix)
    return folder / "way" / "settings.json"


def in_the_kernel(folder: Path, prefix: Path) -> Path:
    (folder / "way").symlink_to("/proc/self")
    return folder / "way" / "comm"


def above_a_link(folder: Path, prefix: Path) -> str:
    """By its text `/tmp/.../dev/shm`: the kernel follows the link before it goes up."""
    (folder / "way").symlink_to("/proc")
    return f"{folder}/way/../dev/shm/{folder.name}"


def own_log_by_another_way(folder: Path, prefix: Path) -> Path:
    (folder / "way").symlink_to(prefix / "logs")
    return folder / "way" / "error.log"


def nowhere(folder: Path, prefix: Path) -> Path:
    return folder / "none" / "a.log"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (some_link, "it is a link"),
        (some_other_name, "it has other links"),
        (some_folder, "it is neither a file nor a pipe"),
        (in_the_prefix, "in the prefix only files in logs/ are taken"),
        (in_the_kernel, "of devices only"),
        (above_a_link, "of devices only"),
        (own_log_by_another_way, "it is a log of the gateway itself"),
        (nowhere, r"open\(\) of its folder failed \(2: No such file"),
    ],
)
def test_a_file_that_is_not_written(
    gateway: Start, upstream: Upstream, folder: Path, make: Make, reason: str
) -> None:
    good = folder / "good.log"
    running = Gateway(None)
    bad = make(folder, running.settings["prefix"])
    running.write_config(logging_to(upstream, bad, good))
    running.settings["file"] = running.file
    with running:
        settings = (running.settings["prefix"] / "settings.json").read_text()
        running.expect_log(DROPPED + reason, range(1, 3))
        ask(running, 1, 2)
        assert running.ask("/1?n=3").status == 200
        wait_for(good, {"3"})
        wait_until(lambda: figures(running)["dropped"]["target"] == 2, "what was dropped")
        assert (running.settings["prefix"] / "settings.json").read_text() == settings
        assert not (folder / "target").exists()


@pytest.mark.parametrize("reopen", [False, True])
def test_half_an_entry_ends_with_its_line(
    gateway: Start, upstream: Upstream, folder: Path, reopen: bool
) -> None:
    """A disk that is full takes the beginning of one."""
    path = folder / "full.log"
    line = json.dumps({"request": {"querystring": {"n": "old"}}}) + "\n"
    path.write_text(line * 10000)
    path.chmod(0o666)
    # Only a process of one's own user can be limited without a right that containers lack.
    user = {"user": "root"} if os.getuid() == 0 else {}
    running = gateway(logging_to(upstream, path, reopen=reopen), **user)
    limits = resource.prlimit(running.control(), resource.RLIMIT_FSIZE)
    size = len(line) * 10000 + 100
    resource.prlimit(running.control(), resource.RLIMIT_FSIZE, (size, limits[1]))
    running.expect_log(DROPPED + r"write\(\) failed \(27: File too large\)")
    ask(running, 1)
    wait_until(lambda: figures(running)["dropped"]["target"] == 1, "what was dropped")
    resource.prlimit(running.control(), resource.RLIMIT_FSIZE, limits)
    ask(running, 2)
    wait_until(lambda: path.read_bytes().count(b"\n") == 10002, "another line")
    half, whole = path.read_text().splitlines()[10000:]
    assert len(half) == 100
    assert json.loads(whole)["request"]["querystring"]["n"] == "2"


# Nobody waits


@pytest.fixture
def fifo(folder: Path) -> Path:
    path = folder / "fifo"
    os.mkfifo(path)
    path.chmod(0o666)
    return path


@contextlib.contextmanager
def reading(path: Path) -> Iterator[int]:
    """A reader of a pipe who reads nothing by himself."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield fd
    finally:
        os.close(fd)


def test_a_pipe_that_stands_still_holds_up_nobody(
    gateway: Start, upstream: Upstream, folder: Path, fifo: Path
) -> None:
    good = folder / "good.log"
    config = logging_to(upstream, fifo, good)
    running = gateway(config, workers=2)
    running.expect_log(DROPPED + "stalled", range(1, 10))
    long = [(f"X-{n}", "y" * 1000) for n in range(25)]
    with reading(fifo) as fd:
        slowest, count = 0.0, 0
        # 4 MiB wait for it, and 64 KiB in the pipe.
        while figures(running)["dropped"]["target"] == 0:
            for _ in range(20):
                begun = time.monotonic()
                assert running.ask(f"/?n={count}", headers=long).status == 200
                slowest = max(slowest, time.monotonic() - begun)
                count += 1
            assert count < 2000
        assert slowest < 3
        assert running.ask("/1?n=good").status == 200
        wait_for(good, {"good"})
        dropped = figures(running)["dropped"]["target"]
        sample = re.search(r'dropped_total{reason="target"} (\d+)', admin(running, "/metrics").text)
        assert sample
        assert int(sample[1]) >= dropped

        # Whoever reads again gets whole lines, those that waited.
        text = b""

        def all_told() -> bool:
            # Another worker may make the last for the pipe after all that: dropped, or not.
            nonlocal dropped, text
            with contextlib.suppress(BlockingIOError):
                text += os.read(fd, 1 << 20)
            dropped = figures(running)["dropped"]["target"]
            return text.count(b"\n") >= count - dropped

        wait_until(all_told, "what waited", LATE)
        found = [json.loads(line) for line in text.splitlines()]
        first = {entry["request"]["querystring"]["n"] for entry in found[:60]}
        assert first >= {str(number) for number in range(50)}
        assert len(found) == count - dropped


def test_a_pipe_that_nobody_reads_loses_its_own_alone(
    gateway: Start, upstream: Upstream, folder: Path, fifo: Path
) -> None:
    good = folder / "good.log"
    running = gateway(logging_to(upstream, fifo, good))
    running.expect_log(DROPPED + r"open\(\) failed \(6", range(1, 5))
    ask(running, 1, 2, 3)
    wait_until(lambda: figures(running)["dropped"]["target"] == 3, "what was dropped")
    with reading(fifo) as fd:
        ask(running, 4)
        text = b""

        def come() -> bool:
            nonlocal text
            with contextlib.suppress(BlockingIOError):
                text += os.read(fd, 1 << 16)
            return text.endswith(b"\n")

        wait_until(come, "an entry")
        assert json.loads(text)["request"]["querystring"] == {"n": "4"}


def test_stdout_and_that_a_full_one_holds_up_nobody(upstream: Upstream, folder: Path) -> None:
    good = folder / "good.log"
    config: Config = logging_to(upstream, "/dev/stdout", good)
    with Foreground(config, workers=2) as running:
        running.expect_log(DROPPED + "stalled", range(1, 10))
        ask(running, "first")
        text = b""
        # What the command has said comes before.
        while not re.search(rb"^{.*\n", text, re.M):
            text += os.read(running.out, 1 << 16)
        line = text[text.index(b"{") :]
        assert json.loads(line)["request"]["querystring"] == {"n": "first"}
        long = [(f"X-{n}", "y" * 1000) for n in range(25)]
        slowest = 0.0
        for number in range(300):
            begun = time.monotonic()
            assert running.ask(f"/?n={number}", headers=long).status == 200
            slowest = max(slowest, time.monotonic() - begun)
        assert slowest < 3
        assert running.ask("/1?n=good").status == 200
        wait_for(good, {"good"})
        wait_until(lambda: figures(running)["dropped"]["target"] > 0, "what was dropped")
    os.close(running.out)


def test_stderr_is_nginxs_own(gateway: Start, upstream: Upstream) -> None:
    running = gateway(logging_to(upstream, "/dev/stderr"))
    ask(running, 1)
    wait_until(lambda: '"querystring":{"n":"1"}' in running.error_log(), "the entry")


def test_a_control_worker_that_stands_still_holds_up_nobody(
    gateway: Start, upstream: Upstream, folder: Path
) -> None:
    path = folder / "a.log"
    running = gateway(logging_to(upstream, path), log_buffer_size="64k")
    ask(running, "first")
    wait_for(path, {"first"})
    with stopped(running.control()):
        begun = time.monotonic()
        ask(running, *range(200))
        assert time.monotonic() - begun < 20

    def all_read() -> dict[str, Any] | None:
        found = figures(running)
        # The worker makes the last entry after its answer: the rest may be read before.
        is_made = found["written"] + found["dropped"]["full"] == 201
        return found if is_made and found["waiting_bytes"] == 0 else None

    found = wait_until(all_read, "all entries to be made and the buffer to be read")
    assert found["dropped"]["full"] > 50
    wait_until(lambda: len(marks(path)) == found["written"], "what had room")
    # The newest are dropped; the last entry comes after its answer, so it may find room again.
    *kept, last = marks(path)
    assert kept == ["first", *map(str, range(len(kept) - 1))]
    assert last in (str(len(kept) - 1), "199")


def test_an_entry_without_room_is_dropped(gateway: Start, upstream: Upstream, folder: Path) -> None:
    path = folder / "a.log"
    running = gateway(logging_to(upstream, path), log_buffer_size="64k")
    long = [(f"X-{n}", "y" * 1000) for n in range(25)]
    running.ask("/?n=long", headers=long)
    ask(running, 1)
    wait_for(path, {"1"})
    assert marks(path) == ["1"]
    assert figures(running)["dropped"]["large"] == 1


# Deaths


def test_the_next_control_worker_reads_on(gateway: Start, upstream: Upstream, folder: Path) -> None:
    path = folder / "a.log"
    running = gateway(logging_to(upstream, path), workers=2)
    running.expect_log("exited on signal 9")
    control = running.control()
    with stopped(control):
        wanted = ask(running, *range(100))
        assert not marks(path)
        os.kill(control, signal.SIGKILL)
    wait_for(path, wanted)
    assert sorted(marks(path)) == sorted(wanted)


def test_workers_that_are_killed_leave_whole_entries(
    gateway: Start, upstream: Upstream, folder: Path
) -> None:
    path = folder / "a.log"
    running = gateway(logging_to(upstream, path), workers=3)
    running.expect_log("exited on signal 9", range(1, 100))
    clients = Clients(running)
    for _ in range(10):
        clients.wait_for(20)
        traffic = [pid for pid in running.workers() if pid != running.control()]
        with contextlib.suppress(ProcessLookupError):  # nginx may not have noticed the last
            os.kill(traffic[0], signal.SIGKILL)
    clients.wait_for(20)
    clients.stop()
    ask(running, "last")
    wait_for(path, {"last"})
    found = marks(path)
    assert len(found) == len(set(found))


@pytest.mark.parametrize("workers", [1, 2])
def test_reloads_under_load_lose_nothing(
    gateway: Start, upstream: Upstream, folder: Path, workers: int
) -> None:
    path = folder / "a.log"
    config = logging_to(upstream, path)
    running = gateway(config, workers=workers)
    clients = Clients(running)
    for _ in range(3):
        clients.wait_for(60)
        running.reload(config)
    clients.wait_for(60)
    wanted = clients.stop()
    wait_until(lambda: figures(running)["waiting_bytes"] == 0, "the buffer to be read")
    assert not any(figures(running)["dropped"].values())
    wait_for(path, wanted)
    assert len(marks(path)) == len(set(marks(path)))


@pytest.mark.parametrize("how", ["quit", "stop"])
def test_an_end_writes_what_there_is(
    gateway: Start, upstream: Upstream, folder: Path, how: str
) -> None:
    path = folder / "a.log"
    running = gateway(logging_to(upstream, path), workers=2)
    wanted = ask(running, *range(50))
    if how == "stop":
        # The control worker does not wait for entries that others still make.
        wait_until(lambda: figures(running)["written"] == 50, "all entries")
    running.stop(how)
    assert set(marks(path)) == wanted


def test_a_graceful_quit_logs_the_last_request(
    gateway: Start, upstream: Upstream, folder: Path
) -> None:
    path = folder / "a.log"
    running = gateway(logging_to(upstream, path), workers=2)
    go_on = threading.Event()

    def slow(exchange: Exchange) -> None:
        go_on.wait(LATE)
        exchange.reply(200)

    upstream.handler = slow
    with running.wire() as wire:
        wire.send(b"GET /?n=last HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_until(lambda: upstream.requests, "the request")
        master = running.master()
        os.kill(master, signal.SIGQUIT)
        wait_until(lambda: "gracefully shutting down" in running.error_log(), "the end to begin")
        time.sleep(0.5)
        go_on.set()
        assert wire.read_reply().status == 200
    running.started = False
    Gateway.live.remove(running)
    wait_for(path, {"last"})
