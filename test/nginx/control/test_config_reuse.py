"""Files that differ little from the one that is live: only what differs is checked."""

import os
import signal

from admin_client import JSON, Client
from changes import Later, document, post

from sluice import Gateway, Start, alive
from upstream import Upstream
from wire import Wire, request_bytes, wait_until


def checking(running: Gateway) -> list[int]:
    """The bytes of the files that are being checked."""
    status = Client(running).must(200, "GET", "/status")
    return [each["bytes"] for each in status["control"]["checking"]]


def numbered(upstream: Upstream, paths: list[str]) -> str:
    """A large file of services, each with a route of its path."""
    services = [
        {"name": f"s{n}", "url": upstream.url, "routes": [{"name": f"r{n}", "paths": [path]}]}
        for n, path in enumerate(paths)
    ]
    return document({"services": services})


def test_what_differs_little_waits_for_no_check(gateway: Start, upstream: Upstream) -> None:
    """A large file of which the last one had all but a route is live while another is checked,
    which is seen by what checks: that of a whole file would wait for its turn."""
    running = gateway({}, workers=1)
    paths = [f"/p{n}" for n in range(5_000)]
    other = document({"services": [{"host": "127.0.0.1"}] * 400_000}).encode()
    assert post(running, numbered(upstream, paths)).status_code == 201
    with Wire(running.admin_port) as wire:
        wire.send(request_bytes("/config", "POST", JSON, other))
        wait_until(lambda: checking(running), "the check of another file")
        assert running.get("/p7").status_code == 200
        changed = numbered(upstream, ["/changed", *paths[1:]])
        answer = post(running, changed, "?check_hash=1")
        assert answer.status_code == 201, answer.text
        assert [running.get(path).status_code for path in ("/changed", "/p0")] == [200, 404]
        assert checking(running) == [len(other)]
        # The one after that is known, too; what it refers to is looked at again.
        assert post(running, changed, "?check_hash=1").status_code == 304
        again = post(running, numbered(upstream, [*paths, "/more"]))
        assert again.status_code == 201, again.text
        assert [running.get(path).status_code for path in ("/more", "/changed")] == [200, 404]
        assert checking(running) == [len(other)]
    wait_until(lambda: checking(running) == [], "the check to end")
    # Who finds something wrong in it is the check of all of it, by its lines.
    broken = numbered(upstream, paths).replace('"/p4999"', '"p4999"')
    refused = post(running, broken, "?flatten_errors=1")
    assert refused.status_code == 400
    assert [each["entity_name"] for each in refused.json()["flattened_errors"]] == ["r4999"]
    twice = numbered(upstream, paths).replace('"r4998"', '"r1"')
    refused = post(running, twice)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["path"] == "services[4998].routes[0].name"
    assert post(running, numbered(upstream, paths)).status_code == 201


def state(running: Gateway) -> tuple[str, list[str]]:
    """The hash of what is live, and all entities with their ids, but no dates."""
    client = Client(running)
    digest = client.must(200, "GET", "/status")["configuration_hash"]
    dump = client.must(200, "GET", "/config")["config"]
    return digest, [line for line in dump.split("\n") if "_at:" not in line]


def kill_control(running: Gateway) -> None:
    """Kills the control worker, and waits for its successor."""
    running.expect_log("exited on signal 9", 1)
    victim = running.control()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not alive(victim), "its end")
    wait_until(lambda: running.control() != victim, "another control worker")


def test_many_pushes_lead_to_what_the_last_one_alone_does(
    gateway: Start, upstream: Upstream
) -> None:
    """Over changes, a death of the control worker, a reload, and two files at once."""
    running, other = gateway({}, workers=1), gateway({}, workers=1)
    paths = [f"/p{n}" for n in range(3_000)]
    for happens in (lambda: kill_control(running), running.reload, lambda: None):
        for number in range(2):
            paths[number] += "-changed"
            assert post(running, numbered(upstream, paths)).status_code == 201
        racing = [numbered(upstream, [f"/race{n}", *paths[1:]]) for n in range(2)]
        answers = [each.answer() for each in [Later(running, text) for text in racing]]
        assert [answer.status_code for answer in answers] == [201, 201]
        served = [running.get(f"/race{n}").status_code for n in range(2)]
        assert sorted(served) == [200, 404]
        assert post(other, racing[served.index(200)]).status_code == 201
        assert state(running) == state(other)
        happens()
