"""Large files are checked beside the control worker's loop, in memory that comes back.

Long on purpose: one check, and all that may come beside it.
"""

import itertools
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from admin_client import FORM, JSON, Client
from changes import Later, document, live, post
from turns import WATCH

import guard
from sluice import COMMAND, Gateway, Start, sanitizers
from wire import Wire, request_bytes, wait_until

# Of a file that takes a second or more to check.
BYTES = 4_000_000
HOST = '"h%d.a"'
VALUES = "an entity can have at most 200000 values"
# What may stay of a check, beside hundreds that it takes.
LEFT_MB = 40
# Of what a starved machine may be too late for.
TRIES = 5


def memory_mb(running: Gateway) -> float:
    """What the control worker has for itself."""
    status = Path(f"/proc/{running.control()}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024


def checking(running: Gateway) -> list[dict[str, Any]]:
    """What `/status` says of files that are being checked."""
    return Client(running).must(200, "GET", "/status")["control"]["checking"]


def large(count: int = 150_000) -> bytes:
    """A file that is right, of a second or more to check."""
    return document({"services": [{"host": "127.0.0.1"}] * count}).encode()


def answered(running: Gateway, path: str) -> list[int]:
    """The statuses of the answers to POSTs, as the log of the admin listener has them."""
    log = running.settings["prefix"] / "logs" / "admin_access.log"
    pattern = rf'"POST {path}(?:\?\S*)? HTTP/1.1" (\d+) '
    return [int(status) for status in re.findall(pattern, log.read_text())]


# Has the checks of large files wait for as long as there is a file; a worker that leaves does not.
HOLDING = """
local function is_held()
    local file = io.open("@path@")
    if file then
        file:close()
    end
    return file and not ngx.worker.exiting()
end

return {
    VERSION = "0.1.0",
    PRIORITY = 1,
    schema = { name = "holding", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        local run = ngx.run_worker_thread
        ngx.run_worker_thread = function(pool, ...)
            while pool == "sluice_check_large" and is_held() do
                ngx.sleep(0.005)
            end
            return run(pool, ...)
        end
    end,
}
"""


@pytest.fixture
def fuse() -> Iterator[Path]:
    """The file that checks wait for."""
    folder = guard.folder("sluice-checks-")
    yield folder / "fuse"
    guard.remove(folder)


def holding(fuse: Path) -> dict[str, dict[str, str]]:
    """What a gateway is started with that waits for it."""
    return {"plugins": {"holding": HOLDING.replace("@path@", str(fuse))}}


@contextmanager
def held(fuse: Path) -> Iterator[None]:
    """In which no check of a large file ends."""
    fuse.touch()
    try:
        yield
    finally:
        fuse.unlink()


def refusal(running: Gateway, text: bytes) -> dict[str, Any] | None:
    """What a file is refused with, where it is before one that is checked; else it leaves."""
    with suppress(httpx.ReadTimeout):
        answer = httpx.post(
            f"{running.admin}/config", content=text, headers=JSON, trust_env=False, timeout=0.5
        )
        assert answer.status_code == 503, answer.text
        return dict(answer.json())
    return None


def many(form: str, size: int = BYTES) -> str:
    """Numbered texts, separated by commas."""
    return ",".join(form % number for number in range(size // (len(form) + 5)))


def with_route(fields: str) -> str:
    """A file with one route that has these fields."""
    return '{"_format_version": "3.0", "routes": [{' + fields + "}]}"


def of_entities() -> tuple[str, dict[str, str]]:
    """Many entities, and one that is wrong behind them: it is seen last."""
    services = many('{"name": "s%d", "host": "127.0.0.1"}')
    wrong = '{"paths": ["/"], "service": {"name": "nobody"}}'
    return '{"_format_version": "3.0", "services": [' + services + f'], "routes": [{wrong}]}}', JSON


def of_a_list() -> tuple[str, dict[str, str]]:
    """One entity with a list that no entity may have."""
    return with_route(f'"hosts": [{many(HOST)}]'), JSON


def of_fields() -> tuple[str, dict[str, str]]:
    """One entity with fields that there are not."""
    return with_route(many('"f%d": 1')), JSON


def of_collections() -> tuple[str, dict[str, str]]:
    """A file of collections that there are not."""
    return "{" + many('"c%d": 1') + "}", JSON


def in_json() -> tuple[str, dict[str, str]]:
    """As Kong's clients wrap it."""
    return json.dumps({"config": of_a_list()[0]}), JSON


def in_a_form() -> tuple[str, dict[str, str]]:
    """As a form has it."""
    return "config=" + quote(of_fields()[0]), FORM


def test_what_is_live_already_waits_for_no_check(gateway: Start, fuse: Path) -> None:
    """A large file that is unchanged is answered at once, and no state is made to check it."""
    running = gateway({}, workers=1, **holding(fuse))
    same = large(15_000)
    assert post(running, same).status_code == 201
    with held(fuse):
        later = Later(running, large(20_000).decode())
        (other,) = wait_until(lambda: checking(running), "the check of another file")
        assert other["bytes"] == len(large(20_000))
        assert post(running, same, "?check_hash=1").status_code == 304
        assert checking(running) == [other]
    assert later.answer().status_code == 201


@pytest.mark.parametrize(
    "make", [of_entities, of_a_list, of_fields, of_collections, in_json, in_a_form]
)
def test_a_refused_file_holds_nobody_up(
    gateway: Start, make: Callable[[], tuple[str, dict[str, str]]]
) -> None:
    """The longest that the loop works on anything meanwhile is no tenth of what the file takes;
    without turns it was two thirds. Then the memory is there again."""
    folder = guard.folder("sluice-checks-")
    folder.chmod(0o777)
    path = folder / "turns"
    running = gateway(None, plugins={"turns": WATCH.replace("@path@", str(path))})
    assert post(running, document({})).status_code == 201
    before = memory_mb(running)
    path.unlink(missing_ok=True)
    wait_until(path.exists, "the plugin to begin anew")
    text, headers = make()
    answer = post(running, text, headers=headers)
    assert answer.status_code == 400, answer.text[:300]
    wait_until(lambda: checking(running) == [], "the check to end")
    longest_us = int(path.read_text().split()[1])
    guard.remove(folder)
    took_us = answer.elapsed.total_seconds() * 1e6
    assert longest_us < took_us / 10, f"{longest_us / 1e3:.0f} of {took_us / 1e3:.0f} ms"
    if not sanitizers():
        wait_until(lambda: memory_mb(running) < before + LEFT_MB, "the memory to come back")


@pytest.mark.parametrize("make", [of_a_list, of_collections, in_json])
def test_writes_beside_a_refused_file_wait_little(
    gateway: Start, make: Callable[[], tuple[str, dict[str, str]]]
) -> None:
    """Without a thread one of them waited for nearly all that the file takes."""
    running = gateway(None)
    client = Client(running)
    client.must(200, "PUT", "/consumers/one", {"custom_id": "first"})
    text, headers = make()
    answers: list[httpx.Response] = []
    posting = threading.Thread(target=lambda: answers.append(post(running, text, headers=headers)))
    posting.start()
    waits = []
    while posting.is_alive():
        begun = time.monotonic()
        client.must(200, "PUT", "/consumers/one", {"custom_id": str(len(waits))})
        waits.append(time.monotonic() - begun)
    posting.join()
    assert answers[0].status_code == 400, answers[0].text[:300]
    took = answers[0].elapsed.total_seconds()
    assert max(waits) < took / 3, f"{max(waits):.2f} of {took:.2f} s"


def test_writes_and_small_files_are_answered_while_a_large_one_is_checked(
    gateway: Start, fuse: Path
) -> None:
    """And a client that leaves ends the check: what it has sent is not made, and nothing stays."""
    running = gateway(None, **holding(fuse))
    client = Client(running)
    before = memory_mb(running)
    services = [{"name": f"s{n}", "host": "127.0.0.1"} for n in range(200_000)]
    with held(fuse), Wire(running.admin_port) as wire:
        wire.send(request_bytes("/config", "POST", JSON, document({"services": services}).encode()))
        (of,) = wait_until(lambda: checking(running), "the check to begin")
        assert of["bytes"] > 8_000_000
        for number in range(10):
            client.must(200, "PUT", "/consumers/one", {"custom_id": str(number)})
        small = post(running, document({"consumers": [{"username": "small"}]}))
        assert small.status_code == 201, small.text
        assert checking(running) == [of]
    wait_until(lambda: checking(running) == [], "the check to end")
    assert live(running)[0] == small.json()["version"]
    assert client.must(200, "GET", "/services")["data"] == []
    assert [one["username"] for one in client.must(200, "GET", "/consumers")["data"]] == ["small"]
    if not sanitizers():
        wait_until(lambda: memory_mb(running) < before + LEFT_MB, "the memory to come back")
    # The next large one has its turn.
    assert post(running, document({}) + " " * 300_000).status_code == 201


def test_a_configuration_that_is_being_written_is_shown(gateway: Start) -> None:
    running = gateway(None)

    def seen_in_time(number: int) -> list[dict[str, Any]]:
        """What `/status` says meanwhile; nothing where it was asked too late."""
        services = [{"name": f"s{number}-{n}", "host": "127.0.0.1"} for n in range(30_000)]
        later = Later(running, document({"services": services}))
        seen = []
        while later.is_alive():
            control = Client(running).must(200, "GET", "/status")["control"]
            seen += [control["writing"]] if "writing" in control else []
        answer = later.answer()
        assert answer.status_code == 201, answer.text
        return seen

    numbers = itertools.count()
    seen = wait_until(lambda: seen_in_time(next(numbers)), "one that is being written")
    assert {writing["entities"] for writing in seen} == {30_000}
    assert "writing" not in Client(running).must(200, "GET", "/status")["control"]


def test_more_entities_than_are_allowed(gateway: Start) -> None:
    """Posted or read; nested ones count."""
    routes = [{"name": f"r{n}", "paths": [f"/{n}"]} for n in range(4)]
    config = {"services": [{"name": "s", "host": "127.0.0.1", "routes": routes}]}
    running = gateway(config, max_entities=5)
    before = live(running)
    routes.append({"name": "one-more", "paths": ["/5"]})
    message = "the file has 6 entities, more than the setting max_entities allows: 5"
    for query in ("", "?flatten_errors=1"):
        answer = post(running, document(config), query)
        assert answer.status_code == 400
        assert answer.json()["errors"] == [{"path": "", "message": message}]
        assert answer.json()["fields"] == {"@document": message}
    running.write_config(config)
    for command in ("check", "reload", "restart"):
        done = running.command(command)
        assert done.returncode == 1, done.stderr
        assert message in done.stderr
    assert live(running) == before
    routes.pop()
    running.write_config(config)
    assert running.command("reload").returncode == 0


def test_an_operation_of_a_batch_is_no_larger_than_an_entity(client: Client) -> None:
    """To check an entity takes no turns."""
    client.must(200, "PUT", "/consumers/one", {})
    hosts = [f"host-{n}.example" for n in range(150_000)]
    operations = [
        {"method": "PUT", "path": "/consumers/two", "body": {}},
        {"method": "PUT", "path": "/routes/r", "body": {"hosts": hosts}},
    ]
    refused = client.must(413, "POST", "/batch", operations)
    assert refused["message"] == "the operation is larger than 2097152 bytes"
    assert (refused["operation"], refused["path"]) == (1, "/routes/r")
    names = [one["username"] for one in client.must(200, "GET", "/consumers")["data"]]
    assert names == ["one"]


def test_a_client_that_leaves_while_it_waits(gateway: Start, fuse: Path) -> None:
    """Its file is not checked when its turn has come. The end of its connection comes with the last
    bytes of the body: nginx does not notice."""
    running = gateway(None, **holding(fuse))
    with held(fuse), Wire(running.admin_port) as first:
        first.send(request_bytes("/config", "POST", JSON, large()))
        wait_until(lambda: checking(running), "the check to begin")
        with Wire(running.admin_port) as second:
            second.send(request_bytes("/config", "POST", JSON, large()))
        wait_until(lambda: answered(running, "/config") == [499], "the one that waits to end")
        assert len(checking(running)) == 1
    wait_until(lambda: answered(running, "/config") == [499, 499], "both to end")
    assert Client(running).must(200, "GET", "/services")["data"] == []


def leave(running: Gateway, fuse: Path, path: str) -> list[int]:
    """Posts a file and leaves: while it is checked, or of `/apply` behind that. How it ended."""
    fuse.touch()
    with Wire(running.admin_port) as wire:
        wire.send(request_bytes(path, "POST", JSON, large(90_000)))
        wait_until(lambda: checking(running), "the check to begin")
        if path == "/apply":
            fuse.unlink()
            wait_until(lambda: not checking(running), "the check to end")
    fuse.unlink(missing_ok=True)
    return wait_until(lambda: answered(running, path), "the request to end")


@pytest.mark.parametrize("path", ["/config", "/apply"])
def test_a_client_that_leaves_ends_what_its_file_takes(
    gateway: Start, fuse: Path, path: str
) -> None:
    """The check, and what comes behind it: of `/apply` one entity after the other."""
    for _ in range(TRIES):
        running = gateway(None, **holding(fuse))
        left = leave(running, fuse, path)
        # All is applied, where this process gets no processor before it closes its connection.
        if (path, left) != ("/apply", [200]):
            break
    assert left == [499]
    assert answered(running, path) == [499]
    assert checking(running) == []
    assert Client(running).must(200, "GET", "/services")["data"] == []


def begin_and_kill(running: Gateway, command: list[str | Path], output: Path) -> None:
    """Runs a command until the file that it posts is being checked, and then kills it."""
    with (
        output.open("wb") as said,
        subprocess.Popen(
            command, env=running.environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said
        ) as process,
    ):
        try:
            wait_until(
                lambda: checking(running) or process.poll() is not None, "the check to begin"
            )
            assert checking(running), f"the command has ended: {process.returncode}"
        except AssertionError as problem:
            problem.add_note(f"what the command said:\n{output.read_text()}")
            raise
        finally:
            process.kill()


def test_a_command_that_is_ended_ends_the_check(gateway: Start, fuse: Path) -> None:
    """`sluice reload` posts the file: what it leaves behind is what was live."""
    config = {"services": [{"name": "first", "host": "127.0.0.1"}]}
    running = gateway(config, **holding(fuse))
    before = live(running)
    running.write_config({"services": [{"host": "127.0.0.1"}] * 100_000})
    with held(fuse):
        begin_and_kill(running, [COMMAND, "reload"], fuse.with_name("said"))
    wait_until(lambda: checking(running) == [], "the check to end")
    wait_until(lambda: answered(running, "/config") == [499], "the request to end")
    assert live(running) == before


def test_more_files_than_may_wait(gateway: Start, fuse: Path) -> None:
    """Sixteen wait for one that is checked; the next one is refused at once, small ones are not."""
    running = gateway(None, **holding(fuse))
    filler = (document({}) + " " * 300_000).encode()
    with held(fuse), ExitStack() as stack:
        wires = [stack.enter_context(Wire(running.admin_port)) for _ in range(17)]
        wires[0].send(request_bytes("/config", "POST", JSON, large(20_000)))
        (of,) = wait_until(lambda: checking(running), "the check to begin")
        for wire in wires[1:]:
            wire.send(request_bytes("/config", "POST", JSON, filler))
        refused = wait_until(lambda: refusal(running, filler), "the last one to be refused")
        assert refused == {"name": "busy", "message": "16 other files are waiting to be checked"}
        assert post(running, document({})).status_code == 201
        assert checking(running) == [of]
    wait_until(lambda: checking(running) == [], "the check to end")
    assert post(running, filler).status_code == 201


def test_a_control_worker_that_dies_meanwhile(gateway: Start, fuse: Path) -> None:
    """What was live stays, and its successor takes files."""
    running = gateway(None, **holding(fuse))
    assert post(running, document({"consumers": [{"username": "one"}]})).status_code == 201
    before = live(running)
    victim = running.control()
    running.expect_log(rf"worker process {victim} exited on signal 9", 1)
    with held(fuse), Wire(running.admin_port) as wire:
        wire.send(request_bytes("/config", "POST", JSON, large()))
        wait_until(lambda: checking(running), "the check to begin")
        os.kill(victim, signal.SIGKILL)
        assert wire.read_to_end() == b""
    assert live(running) == before
    assert checking(running) == []
    assert post(running, (document({}) + " " * 300_000)).status_code == 201


def test_a_stop_does_not_wait_for_a_check(gateway: Start) -> None:
    """nginx waits for its threads; where that takes a second it is killed, which the log has. That
    happens to one that gets no processor for so long, too, but not each time."""
    running = gateway(None)
    killed = "exited on signal 9"
    running.expect_log(killed, range(100))

    def stops_in_time() -> bool:
        before = running.error_log().count(killed)
        with Wire(running.admin_port) as wire:
            wire.send(request_bytes("/config", "POST", JSON, large(300_000)))
            wait_until(lambda: checking(running), "the check to begin")
            assert running.command("stop").returncode == 0
        assert running.command("start").returncode == 0
        return running.error_log().count(killed) == before

    wait_until(stops_in_time, "a stop that does not wait")


@pytest.mark.parametrize("how", ["reload", "quit"])
def test_a_worker_that_leaves_waits_for_no_large_check(
    gateway: Start, fuse: Path, how: str
) -> None:
    """It ends the check and refuses the file, whose client asks the next worker."""
    running = gateway(None, **holding(fuse))
    with held(fuse), Wire(running.admin_port) as wire:
        wire.send(request_bytes("/config", "POST", JSON, large(200_000)))
        wait_until(lambda: checking(running), "the check to begin")
        if how == "quit":
            running.stop("quit")
        else:
            os.kill(running.master(), signal.SIGHUP)
        reply = wire.read_reply("POST")
        assert (reply.status, reply.headers.get("Retry-After")) == (503, "1"), reply.body[:300]
        assert reply.json() == {
            "name": "not ready",
            "message": "the control worker is shutting down",
        }


def test_more_memory_than_is_allowed(gateway: Start) -> None:
    """One entity may be a large one. What was live stays, and the memory comes back."""
    running = gateway(None, max_entities=1000)
    assert post(running, document({"consumers": [{"username": "one"}]})).status_code == 201
    before, memory = live(running), memory_mb(running)
    answer = post(running, with_route('"hosts": [' + "[1]," * 6_000_000 + "[1]]"))
    message = (
        "checking the file takes more than 256 MiB of memory, which is the limit for the number "
        "of entities that the setting max_entities allows: 1000"
    )
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"path": "", "message": message}]
    assert live(running) == before
    if not sanitizers():
        wait_until(lambda: memory_mb(running) < memory + LEFT_MB, "the memory to come back")


def test_more_entities_than_can_be_applied(gateway: Start) -> None:
    """Each is an operation in the control worker itself."""
    running = gateway(None)
    consumers = [{"username": f"c{n}"} for n in range(100_001)]
    answer = Client(running).must(400, "POST", "/apply", {"consumers": consumers})
    message = "the file has 100001 entities, more than can be applied at once: 100000"
    assert answer["errors"] == [{"path": "", "message": message}]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (with_route(f'"hosts": [{many(HOST, 3_000_000)}]'), "routes[0]", VALUES),
        (with_route(many('"f%d": [[1], {"a": 2}]', 3_000_000)), "routes[0]", VALUES),
        ("{" + many('"f%d": 1', 20_000) + "}", "", "a file can have at most 1000 fields"),
    ],
)
def test_more_in_one_than_can_be_looked_at(
    gateway: Start, text: str, path: str, message: str
) -> None:
    """To check one entity takes no pauses, in which a client is looked after."""
    answer = post(gateway(None), text)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert (error["path"], error["message"]) == (path, message)


def test_a_name_of_any_size(gateway: Start) -> None:
    """An answer quotes the beginning of what was sent."""
    running = gateway(None)
    answer = post(running, '{"_format_version": "3.0", "' + "x" * 2_000_000 + '": 1}')
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["message"] == "unknown field"
    assert len(answer.content) < 10_000


# Has the next check, or what follows it, fail at the place that a file names, once.
FAILING = """
local blocks = require("gateway.threads.blocks")
local path = "@path@"

local function is_to_fail(what)
    local file = io.open(path)
    local text = file and file:read("*a") or ""
    if file then
        file:close()
    end
    if text == what then
        os.remove(path)
    end
    return text == what
end

local function failing(of, name, what)
    local fn = of[name]
    of[name] = function(...)
        if is_to_fail(what) then
            error("it was told to fail: " .. what, 0)
        end
        return fn(...)
    end
end

return {
    VERSION = "0.1.0",
    PRIORITY = 1,
    schema = { name = "failing", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        if ngx.worker.id() ~= 0 then
            return
        end
        failing(ngx.thread, "spawn", "spawn")
        failing(blocks, "each", "each")
        local run, free = ngx.run_worker_thread, blocks.free
        ngx.run_worker_thread = function(pool, ...)
            local is_check = pool == "sluice_check_small"
            if is_check and is_to_fail("thread") then
                error("it was told to fail: thread", 0)
            elseif is_check and is_to_fail("memory") then
                return false, "not enough memory"
            end
            return run(pool, ...)
        end
        blocks.free = function(...)
            ngx.log(ngx.ERR, "blocks are freed")
            return free(...)
        end
    end,
}
"""


def test_a_check_that_fails_is_no_hindrance(gateway: Start) -> None:
    """Its request is answered, what it made is given back, and the next file is checked."""
    folder = guard.folder("sluice-checks-")
    folder.chmod(0o777)
    path = folder / "fail"
    running = gateway(None, plugins={"failing": FAILING.replace("@path@", str(path))})
    client = Client(running)
    file = {"_format_version": "3.0", "consumers": [{"username": "one"}]}
    pid = running.control()
    for what, status in {"thread": 500, "spawn": 500, "memory": 507, "each": 500}.items():
        path.write_text(what)
        refused = client.ask("POST", "/apply", file)
        assert refused.status == status, (what, refused.text)
        assert not path.exists()
        if status == 507:
            assert refused.json() == {"name": "full", "message": "not enough memory"}
        assert checking(running) == []
    client.must(200, "POST", "/apply", file)
    assert running.control() == pid
    guard.remove(folder)
    running.expect_log("it was told to fail", range(3, 7))
    # Of the one whose list was made, and of the last one.
    running.expect_log("blocks are freed", 2)
