"""Files of images that are damaged while they are live: workers may die of it, but once, and what
was answered is served again within seconds."""

import contextlib
import json
import mmap
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from changes import document, post, stopped
from seeds import seed_of
from soaks import soak

from processes import switches
from sluice import Gateway, Start, alive
from upstream import Upstream
from wire import request_bytes, wait_until

ROUNDS = soak(1, 10)
ROUTES = 1000
BITS = 200
TRAFFIC_WORKERS = 2
SAMPLE = 100
READS = r"AddressSanitizer|/module/core/(?:image|router)/[^/]+: runtime error: "
NOTE_SECONDS = 5
"""How long a worker's note is good that it cannot map what is live (lib/sluice/ffi/images.lua)."""
QUIET_SECONDS = 3
"""Longer than a check of files that were written to is put off."""


def config(upstream: Upstream, more: int = 0) -> dict[str, Any]:
    """A service a route, and so many routes beside them."""
    services = [
        {
            "name": f"s{n}",
            "url": upstream.url,
            "routes": [{"name": f"r{n}", "paths": [f"/{n}/"], "strip_path": False}],
        }
        for n in range(ROUTES)
    ]
    services[0]["routes"] += [
        {"name": f"more{n}", "paths": [f"/more/{n}/"], "strip_path": False} for n in range(more)
    ]
    return {"services": services}


def start(gateway: Start, upstream: Upstream) -> Gateway:
    """Most of what is live stands in the base, and some in the delta."""
    running = gateway(config(upstream), workers=TRAFFIC_WORKERS, idle_grace=0)
    assert post(running, document(config(upstream, 50))).status_code == 201
    # Each process once; and what damaged bytes make nginx say before.
    running.expect_log("exited on signal", range(TRAFFIC_WORKERS + 2))
    running.expect_log(r"\[(?:error|crit|alert|emerg)\] (?!.*exited)", range(100000))
    # Damaged lengths and places lead who reads out of the file, which a sanitizer reports as well;
    # whatever it says of other code, and that memory is written, is trouble all the same.
    running.expect_log(READS, range(100))
    return running


def status(running: Gateway) -> dict[str, Any]:
    """What the command says of the control worker, in any state of that."""
    return json.loads(running.command("status", "--json").stdout)["control"]


def live_files(running: Gateway) -> dict[str, Path]:
    """The base and the delta that are live, the last ones."""
    settings = json.loads((running.settings["prefix"] / "settings.json").read_text())
    folder = Path(settings["image_dir"])
    files = [path for path in folder.iterdir() if path.suffix[1:].isdigit()]
    return {path.stem: path for path in sorted(files, key=lambda path: int(path.suffix[1:]))}


def used_bytes(path: Path) -> int:
    """Of a delta what has been written; of a base all of it."""
    return len(path.read_bytes().rstrip(b"\0"))


def flip(path: Path, chance: random.Random) -> None:
    """Flips bits where the file is used, in place."""
    size = used_bytes(path)
    with path.open("r+b") as file:
        for _ in range(BITS):
            at = chance.randrange(size)
            file.seek(at)
            (byte,) = file.read(1)
            file.seek(at)
            file.write(bytes([byte ^ 1 << chance.randrange(8)]))


class Requests:
    """Requests to routes by chance, until it is left."""

    def __init__(self, running: Gateway) -> None:
        self.running, self.done = running, threading.Event()
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(2)]

    def ask(self) -> None:
        while not self.done.is_set():
            is_right(self.running, path_of(random.randrange(ROUTES + 50)))

    def __enter__(self) -> None:
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()


def path_of(number: int) -> str:
    return f"/{number}/x" if number < ROUTES else f"/more/{number - ROUTES}/x"


def is_right(running: Gateway, path: str) -> bool:
    """Whether a request gets the upstream's answer to it."""
    with contextlib.suppress(OSError, ValueError, AssertionError):
        reply = running.ask(path)
        return reply.status == 200 and reply.json()["target"] == path
    return False


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """A damaged path may make of a request what is none."""
    with Upstream() as server:
        yield server
        server.problems.clear()


def all_are_right(running: Gateway) -> bool:
    numbers = [*random.sample(range(ROUTES), SAMPLE), *range(ROUTES, ROUTES + 50)]
    return all(is_right(running, path_of(number)) for number in numbers)


def is_mended(running: Gateway, damaged: Path) -> bool:
    return live_files(running)[damaged.stem] != damaged and status(running)["state"] == "live"


@pytest.mark.parametrize("what", ["base", "delta"])
@pytest.mark.parametrize("round_", range(ROUNDS))
def test_flipped_bits(gateway: Start, upstream: Upstream, what: str, round_: int) -> None:
    """At random, under traffic; whether anybody dies of them or only answers are wrong."""
    running = start(gateway, upstream)
    seed = seed_of(f"flipped_bits {what} {round_}")
    print(f"seed {seed}")
    damaged = live_files(running)[what]
    with Requests(running):
        flip(damaged, random.Random(seed))
        wait_until(lambda: is_mended(running, damaged), "new files")
        wait_until(lambda: all_are_right(running), "right answers")


def change_text(path: Path, text: bytes) -> None:
    """Writes another digit into a path of a route."""
    content = path.read_bytes()
    assert text in content
    with path.open("r+b") as file:
        file.seek(content.rindex(text) + len(text) - 2)
        file.write(b"8")


def has_come(running: Gateway, before: Path, text: bytes) -> bool:
    path = live_files(running)[before.stem]
    return path != before and text in path.read_bytes()


@pytest.mark.parametrize(("what", "text"), [("base", b"/777/"), ("delta", b"/more/7/")])
def test_a_text_that_is_changed(gateway: Start, upstream: Upstream, what: str, text: bytes) -> None:
    """Nobody dies of it: it leads nowhere, and no request is needed to find it. Also in the new
    files, before the control worker has looked at them once."""
    running = start(gateway, upstream)
    for _ in range(2):
        damaged = live_files(running)[what]
        change_text(damaged, text)
        wait_until(lambda damaged=damaged: has_come(running, damaged, text), "new files")
    wait_until(lambda: status(running)["state"] == "live" and all_are_right(running), "an end")
    assert status(running)["crashes"] == 0


@pytest.mark.parametrize("what", ["base", "delta"])
@pytest.mark.parametrize("how", ["written over", "renamed"])
def test_an_older_file_in_its_place(
    gateway: Start, upstream: Upstream, what: str, how: str, tmp_path: Path
) -> None:
    """It is sound, as it was when it was live: but not what was answered since."""
    running = start(gateway, upstream)
    older = live_files(running)[what].read_bytes()
    if what == "base":
        # A new base, of a newer revision: without its copy on the disk it is built.
        assert post(running, document(config(upstream, 60))).status_code == 201
        (running.settings["prefix"] / "store" / "base").unlink()
        first = live_files(running)["base"]
        os.truncate(first, 4096)
        wait_until(lambda: is_mended(running, first), "another base")
    assert post(running, document(config(upstream, 70))).status_code == 201
    damaged = live_files(running)[what]
    if how == "renamed":
        (tmp_path / "older").write_bytes(older)
        (tmp_path / "older").chmod(0o600)
        shutil.copystat(damaged, tmp_path / "older")
        shutil.move(tmp_path / "older", damaged)
    else:
        damaged.write_bytes(older)
    wait_until(lambda: is_mended(running, damaged), "new files")
    wait_until(lambda: all_are_right(running), "right answers")
    assert all(is_right(running, f"/more/{number}/x") for number in range(70))


@pytest.mark.parametrize("what", ["base", "delta"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_file_that_is_cut(gateway: Start, upstream: Upstream, what: str, share: float) -> None:
    """Whoever reads behind its end dies by SIGBUS."""
    running = start(gateway, upstream)
    damaged = live_files(running)[what]
    with Requests(running):
        os.truncate(damaged, int(damaged.stat().st_size * share))
        wait_until(lambda: is_mended(running, damaged), "new files")
        wait_until(lambda: all_are_right(running), "right answers")


def are_replaced(running: Gateway, victims: list[int], crashes: int) -> bool:
    """Whether others have taken the place of all, and it is known that these have crashed."""
    workers = set(running.workers()) - {running.control()}
    return (
        len(workers) == len(victims)
        and not workers & set(victims)
        and status(running)["crashes"] > crashes
    )


def test_what_is_said_until_it_is_mended(gateway: Start, upstream: Upstream) -> None:
    """While the control worker stands still, nothing mends it: no worker dies again and again, none
    serves, and the status is not what it was."""
    running = start(gateway, upstream)
    before = status(running)
    assert before["state"] == "live"
    with stopped(running.control()):
        victims = [pid for pid in running.workers() if pid != running.control()]
        damaged = live_files(running)["base"]
        flip(damaged, random.Random(26))
        for victim in victims:
            os.kill(victim, signal.SIGSEGV)
        wait_until(lambda: not any(map(alive, victims)), "their ends")
        # It is a successor that counts a crash, as it begins.
        wait_until(lambda: are_replaced(running, victims, before["crashes"]), "their successors")
        assert status(running)["state"] in ("checking", "damaged")
        wait_until(lambda: running.ask("/1/x").status == 503, "an answer")
        successors = set(running.workers())
        for number in range(100):
            assert running.ask(path_of(number)).status == 503
        assert set(running.workers()) == successors
        assert status(running)["state"] == "damaged"
    wait_until(lambda: is_mended(running, damaged), "new files")
    assert all_are_right(running)
    assert post(running, document(config(upstream, 60))).status_code == 201
    assert is_right(running, "/more/59/x")


def are_quiet(pids: list[int]) -> bool:
    """Whether nothing has woken them for a while: nothing is due that would look at the files."""
    before = [switches(pid) for pid in pids]
    time.sleep(QUIET_SECONDS)
    return before == [switches(pid) for pid in pids]


def damage_head(path: Path) -> None:
    """Through a mapping, of which the kernel tells nobody."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:8] = bytes(8)


@pytest.mark.parametrize("what", ["base", "delta"])
def test_a_worker_that_cannot_map_has_it_mended(
    gateway: Start, upstream: Upstream, what: str
) -> None:
    """Nobody has died, and the kernel does not tell the control worker of such a change."""
    running = start(gateway, upstream)
    wait_until(lambda: are_quiet([running.control()]), "the control worker to sleep")
    victims = [pid for pid in running.workers() if pid != running.control()]
    damaged = live_files(running)[what]
    damage_head(damaged)
    for victim in victims:
        os.kill(victim, signal.SIGQUIT)
    wait_until(lambda: is_mended(running, damaged), "new files")
    wait_until(lambda: all_are_right(running), "right answers")
    assert status(running)["crashes"] == 0


def test_the_status_until_it_is_mended(gateway: Start, upstream: Upstream) -> None:
    """It says so as long as a worker could answer nothing else, whether or not it is asked."""
    running = start(gateway, upstream)
    with stopped(running.control()):
        victims = [pid for pid in running.workers() if pid != running.control()]
        damaged = live_files(running)["base"]
        damage_head(damaged)
        for victim in victims:
            os.kill(victim, signal.SIGQUIT)
        wait_until(lambda: running.ask("/1/x").status == 503, "an answer")
        time.sleep(NOTE_SECONDS + 1)
        assert status(running)["state"] == "damaged"
        assert running.ask("/1/x").status == 503
    wait_until(lambda: is_mended(running, damaged), "new files")
    wait_until(lambda: all_are_right(running), "right answers")


def test_a_request_that_has_begun_ends(gateway: Start, upstream: Upstream) -> None:
    """Its worker cannot map what is live any more; the Lua of its plugins runs with what it has."""
    slow = {
        "access": ['kong.log.notice("waits for its body") kong.request.get_raw_body()'],
        "header_filter": ['kong.response.set_header("X-Filtered", "yes")'],
        "log": ['kong.log.notice("logs its end")'],
    }
    files = config(upstream)
    files["services"][1]["routes"][0]["plugins"] = [{"name": "pre-function", "config": slow}]
    running = gateway(files, workers=1)
    running.expect_log("cannot map", range(1, 100))
    (worker,) = running.workers()
    with running.wire() as wire:
        wire.send(request_bytes(path_of(1), "POST", {"Content-Length": "4"}))
        wait_until(lambda: "waits for its body" in running.error_log(), "the request to wait")
        with stopped(worker):
            before = live_files(running)
            before["base"].unlink()
            # The control worker removes what is not live once it has published what is.
            wait_until(lambda: not before["delta"].exists(), "new files to be live")
            with stopped(running.control()):
                damage_head(live_files(running)["base"])
                os.kill(worker, signal.SIGCONT)
                wait_until(lambda: running.ask(path_of(2)).status == 503, "it to map nothing")
                wire.send(b"body")
                reply = wire.read_reply()
    assert (reply.status, reply.headers.get("X-Filtered")) == (200, "yes")
    wait_until(lambda: "logs its end" in running.error_log(), "the log phase")
    wait_until(lambda: running.ask(path_of(2)).status == 200, "new files once more")
    assert running.workers() == [worker]


def test_answered_writes_are_kept(gateway: Start, upstream: Upstream) -> None:
    """Also those that come while what is live is damaged, and is read to make new files."""
    running = start(gateway, upstream)
    kept = 50
    damaged = live_files(running)["base"]
    flip(damaged, random.Random(seed_of("answered_writes")))

    def write() -> bool:
        nonlocal kept
        with contextlib.suppress(OSError, ValueError, Exception):
            if post(running, document(config(upstream, kept + 1))).status_code == 201:
                kept += 1
                return True
        return False

    wait_until(lambda: write() and is_mended(running, damaged), "a write, and new files")
    wait_until(lambda: all_are_right(running), "right answers")
    assert all(is_right(running, f"/more/{number}/x") for number in range(kept))


def test_a_death_without_damage(gateway: Start, upstream: Upstream) -> None:
    """Files that are sound stay."""
    running = start(gateway, upstream)
    before = live_files(running)
    victim = next(pid for pid in running.workers() if pid != running.control())
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not alive(victim) and status(running)["crashes"] == 1, "its successor")
    wait_until(lambda: status(running)["state"] == "live", "the check")
    assert all_are_right(running)
    assert live_files(running) == before
