"""A configuration change without new processes: what is taken, refused, and kept."""

import json
import os
import random
import signal
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from changes import Later, document, kill_all_workers, live, post, versions
from seeds import seed_of
from threads import beside
from versions import VERSION, versioned

from sluice import NGINX, Gateway, Start, alive, sanitizers
from upstream import Exchange, Upstream
from wire import DEADLINE, request_bytes, wait_until


@pytest.fixture
def running(gateway: Start, upstream: Upstream) -> Gateway:
    """A gateway of three workers that serves version 0."""
    return gateway(versioned(upstream, 0), workers=3, plugins=VERSION)


# What is taken


def test_a_posted_configuration_is_live_on_every_worker_of_before(
    running: Gateway, upstream: Upstream
) -> None:
    workers = running.workers()
    last = live(running)[0]
    for number in range(1, 6):
        answer = post(running, document(versioned(upstream, number)))
        assert answer.status_code == 201, answer.text
        assert answer.json()["workers"] == 3
        assert answer.json()["version"] > last
        last = answer.json()["version"]
        # At once, in whichever worker: nothing is waited for.
        assert {running.ask("/").headers.get("x-version") for _ in range(12)} == {str(number)}
        assert live(running) == (last, answer.json()["hash"])
    assert running.workers() == workers
    node = httpx.get(running.admin, trust_env=False, timeout=DEADLINE).json()
    assert node["sluice"]["configuration_version"] == last


def test_it_is_live_everywhere_when_it_is_answered_in_any_case(
    running: Gateway, upstream: Upstream
) -> None:
    answer = post(running, document(versioned(upstream, 1)), query="")
    assert answer.status_code == 201
    assert versions(running) == {"1"}


def test_what_stays_as_it_was_is_no_change(running: Gateway, upstream: Upstream) -> None:
    """Entities that the file does not date keep their dates."""

    def route() -> dict[str, Any]:
        url = f"{running.admin}/routes/route"
        return httpx.get(url, trust_env=False, timeout=DEADLINE).json()

    before, version = route(), live(running)[0]
    time.sleep(1.1)
    config = versioned(upstream, 0)
    assert post(running, document(config)).json()["version"] == version
    config["routes"] = [{"name": "another", "paths": ["/another"]}]
    assert post(running, document(config)).json()["version"] == version + 1
    assert route() == before
    config["services"][0]["routes"][0]["tags"] = ["changed"]
    assert post(running, document(config)).json()["version"] == version + 2
    assert route()["created_at"] == before["created_at"]
    assert route()["updated_at"] > before["updated_at"]


YAML = """
_format_version: "3.0"
routes: [{name: from-yaml, paths: [/yaml]}]
"""


def multipart(text: str) -> tuple[str, str]:
    """A form as curl -F makes it: its media type and text."""
    parts = [
        '--xx\r\nContent-Disposition: form-data; name="other"\r\n\r\nconfig\r\n',
        f'--xx\r\nContent-Disposition: form-data; name="config"; filename="k"\r\n\r\n{text}\r\n',
        "--xx--\r\n",
    ]
    return "multipart/form-data; boundary=xx", "".join(parts)


@pytest.mark.parametrize(
    ("media_type", "text"),
    [
        ("application/yaml", YAML),
        ("text/yaml; charset=utf-8", YAML),
        ("text/plain", YAML),
        ("application/x-www-form-urlencoded", YAML),
        ("application/x-www-form-urlencoded", str(httpx.QueryParams({"config": YAML}))),
        multipart(YAML),
        ("application/json", json.dumps({"config": YAML})),
        ("application/json", json.dumps({"_format_version": "3.0", "routes": [
            {"name": "from-yaml", "paths": ["/yaml"]}
        ]})),
    ],
)  # fmt: skip
def test_how_a_file_may_be_sent(gateway: Start, media_type: str, text: str) -> None:
    running = gateway({})
    answer = post(running, text, headers={"Content-Type": media_type})
    assert answer.status_code == 201, answer.text
    assert answer.headers["Sluice-Revision"] == str(answer.json()["version"])
    routes = httpx.get(f"{running.admin}/routes", trust_env=False, timeout=DEADLINE).json()["data"]
    assert [route["name"] for route in routes] == ["from-yaml"]


def test_a_hash_that_is_live_is_not_posted_again(running: Gateway, upstream: Upstream) -> None:
    text = document(versioned(upstream, 1))
    assert post(running, text, "?check_hash=1&wait=1").status_code == 201
    version = live(running)[0]
    assert post(running, text, "?check_hash=1&wait=1").status_code == 304
    assert live(running)[0] == version
    assert post(running, text).json()["version"] == version


def test_ten_thousand_routes(running: Gateway, upstream: Upstream) -> None:
    config = versioned(upstream, 1)
    config["services"][0]["routes"] += [
        {"name": f"r{n}", "hosts": [f"h{n}.test"], "paths": [f"/many/{n}"]} for n in range(10_000)
    ]
    answer = post(running, document(config))
    assert answer.status_code == 201, answer.text
    print(f"10,000 routes: {answer.json()['ms']:.0f} ms")
    for number in random.Random(seed_of("config_change")).sample(range(10_000), 20):
        assert running.ask(f"/many/{number}", headers={"Host": f"h{number}.test"}).status == 200
    assert versions(running) == {"1"}


def resident_mb(running: Gateway) -> float:
    """Memory of the largest worker, without what workers share: the log's pages fill as they go."""
    return max(
        int(Path(f"/proc/{pid}/status").read_text().partition("RssAnon:")[2].split()[0]) / 1024
        for pid in [*running.workers(), running.control()]
    )


@pytest.mark.skipif(bool(sanitizers()), reason="ASan keeps for a while what was freed")
def test_changes_leave_no_memory_behind_where_nothing_else_happens(
    running: Gateway, upstream: Upstream
) -> None:
    def change(times: int) -> float:
        for _ in range(times):
            config = versioned(upstream, 1)
            config["services"][0]["routes"] += [
                {"name": f"r{n}", "paths": [f"/many/{n}"]} for n in range(1000)
            ]
            assert post(running, document(config)).status_code == 201
        return resident_mb(running)

    before = change(20)
    after = change(40)
    print(f"{before:.0f} MB, then {after:.0f} MB")
    assert after < before + 20


def test_many_megabytes(running: Gateway, upstream: Upstream) -> None:
    config = versioned(upstream, 1)
    config["consumers"] = [
        {"username": f"c{n}", "custom_id": f"{n}" + "x" * (2**20 - 10)} for n in range(18)
    ]
    answer = post(running, document(config))
    assert answer.status_code == 201, answer.text[:500]
    assert versions(running) == {"1"}


# What is refused


def test_a_wrong_file_is_refused_with_all_its_errors(running: Gateway) -> None:
    before = live(running)
    bad = {"services": [{"name": "s", "url": "nonsense"}, {"bogus": 1, "host": "h"}]}
    answer = post(running, document(bad))
    assert answer.status_code == 400
    found = answer.json()
    assert (found["name"], found["code"]) == ("invalid declarative configuration", 14)
    assert isinstance(found["message"], str)
    errors = {e["path"]: e["message"] for e in found["errors"]}
    assert errors == {
        "services[0].url": "missing scheme in url",
        "services[1].bogus": "unknown field",
    }
    assert found["fields"] == errors
    assert live(running) == before


@pytest.mark.parametrize("text", ["", "not: [valid", "[]", "null", '{"a":', "\0", "x" * 3_000_000])
@pytest.mark.parametrize("media_type", ["application/json", "application/yaml", "text/plain"])
def test_no_document_at_all(running: Gateway, text: str, media_type: str) -> None:
    before = live(running)
    answer = post(running, text, headers={"Content-Type": media_type})
    assert answer.status_code == 400
    assert answer.json()["code"] == 14
    assert live(running) == before


def test_media_types_and_methods(running: Gateway) -> None:
    assert post(running, "x", headers={"Content-Type": "image/png"}).status_code == 415
    broken = {"Content-Type": "multipart/form-data; boundary=none"}
    assert post(running, "x", headers=broken).status_code == 415
    wrong = httpx.put(f"{running.admin}/config", trust_env=False, timeout=DEADLINE)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD, OPTIONS, POST")


FAILS = {
    "version": VERSION["version"].replace(
        "access = function",
        """configure = function(self, confs)
            for _, conf in ipairs(confs or {}) do
                if conf.text == "bad" then
                    error("it does not like it")
                end
            end
        end,
        access = function""",
    )
}


def test_a_plugin_that_cannot_be_configured_is_told_of(gateway: Start, upstream: Upstream) -> None:
    """As in Kong its requests go on; the status has the failure until it can be."""
    config = versioned(upstream, 0)
    running = gateway(config, workers=3, plugins=FAILS)
    config["services"][0]["routes"].append({"name": "bad", "paths": ["/bad"]})
    bad = {"name": "version", "route": {"name": "bad"}, "config": {"text": "bad"}}
    config["plugins"].append(bad)
    running.expect_log("plugin 'version' failed in configure: .*it does not like it", range(1, 100))
    assert post(running, document(config)).status_code == 201
    for _ in range(12):
        assert running.ask("/").headers.get("x-version") == "0"
        assert running.ask("/bad").headers.get("x-version") == "bad"

    def failures() -> list[dict[str, Any]]:
        url = f"{running.admin}/status"
        return httpx.get(url, trust_env=False, timeout=DEADLINE).json()["plugins_failed"]

    (failure,) = wait_until(failures, "the failure to be told")
    assert (failure["plugin"], failure["phase"]) == ("version", "configure")
    assert "it does not like it" in failure["message"]
    bad["config"] = {"text": "good"}
    assert post(running, document(config)).status_code == 201
    for _ in range(12):
        assert running.ask("/bad").headers.get("x-version") == "good"
    wait_until(lambda: not failures(), "the failure to be forgotten")


def test_a_name_that_no_resolver_knows_does_not_keep_the_rest_away(
    running: Gateway, upstream: Upstream
) -> None:
    config = versioned(upstream, 1)
    config["services"] += [
        {"name": "lost", "host": "no-such-name.invalid", "routes": [{"paths": ["/lost"]}]},
        {"name": "local", "host": "localhost", "port": int(upstream.address.rpartition(":")[2])}
        | {"routes": [{"paths": ["/local"]}]},
    ]
    running.expect_log("no-such-name.invalid: cannot be resolved", 1)
    assert post(running, document(config)).status_code == 201
    for _ in range(6):
        assert running.ask("/").headers.get("x-version") == "1"
        assert running.ask("/lost").status == 503
    # Where localhost is ::1 as well, that is tried first, and nothing listens there.
    running.expect_log(r"connect\(\) failed .*upstream: \"http://\[::1\]", range(2))
    assert running.ask("/local").status == 200


# Many at once


def test_concurrent_posts_are_one_after_the_other(running: Gateway, upstream: Upstream) -> None:
    posts = [Later(running, document(versioned(upstream, number))) for number in range(1, 13)]
    answers = [later.answer() for later in posts]
    assert [a.status_code for a in answers] == [201] * 12, [a.text for a in answers]
    order = {a.json()["version"]: str(number) for number, a in enumerate(answers, 1)}
    assert len(order) == 12
    assert versions(running) == {order[max(order)]}


def test_a_request_under_way_keeps_what_it_began_with(gateway: Start, upstream: Upstream) -> None:
    # A request that waits until the gate, an upstream of the test's, answers.
    slow = """
return {
    VERSION = "0.1.0", PRIORITY = 5000,
    schema = { name = "slow", fields = {
        { config = { type = "record", fields = { { text = { type = "string" } } } } },
    } },
    access = function(self, conf)
        local gate = ngx.socket.tcp()
        assert(gate:connect("127.0.0.1", PORT))
        assert(gate:send("GET / HTTP/1.0\\r\\n\\r\\n"))
        gate:settimeout(60000)
        assert(gate:receive())
        gate:close()
        ngx.req.set_header("X-Slow", conf.text)
    end,
}
"""
    go_on = threading.Event()

    def hold(exchange: Exchange) -> None:
        go_on.wait(DEADLINE)
        exchange.reply(200)

    def config(number: int) -> dict[str, Any]:
        made = versioned(upstream, number)
        # A key that is gone would not be found any more.
        made["consumers"] = [
            {"username": "u1", "keyauth_credentials": [{"key": "first"}]},
            {"username": "u2", "keyauth_credentials": [{"key": "second"}]},
        ]
        made["plugins"] += [
            {"name": "slow", "config": {"text": str(number)}},
            {"name": "key-auth", "config": {"key_names": [f"key{number}"]}},
        ]
        return made

    with Upstream(hold) as gate:
        plugins = VERSION | {"slow": slow.replace("PORT", str(gate.port))}
        running = gateway(config(1), workers=2, plugins=plugins)
        with running.wire() as wire:
            wire.send(request_bytes("/?key1=first"))
            gate.wait_for(1)
            other = config(2)
            assert post(running, document(other)).status_code == 201
            go_on.set()
            reply = wire.read_reply()
        first_again = running.ask("/?key1=first")
        second = running.ask("/?key2=second")
    assert (reply.status, reply.headers.get("x-version")) == (200, "1")
    assert upstream.requests[0].headers.get("x-slow") == "1"
    assert upstream.requests[0].headers.get("x-consumer-username") == "u1"
    assert first_again.status == 401
    assert second.headers.get("x-version") == "2"


def test_traffic_sees_no_error(running: Gateway, upstream: Upstream) -> None:
    seen: set[str] = set()
    wrong: list[object] = []
    done = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=running.proxy, trust_env=False, timeout=DEADLINE) as client:
            while not done.is_set():
                reply = client.get("/")
                if reply.status_code != 200:
                    wrong.append(reply)
                seen.add(reply.headers["x-version"])

    with beside(*[ask] * 4, until=done):
        for number in range(1, 31):
            assert post(running, document(versioned(upstream, number))).status_code == 201
            wait_until(lambda number=number: str(number) in seen or wrong, "traffic in between")
    assert not wrong
    assert seen >= {str(number) for number in range(1, 31)}
    assert versions(running) == {"30"}


# What outlives what


def test_a_reload_and_a_restart_read_the_file_again(running: Gateway, upstream: Upstream) -> None:
    """As Kong, if it is started with a file."""
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    assert versions(running) == {"1"}
    running.reload()
    assert versions(running) == {"0"}
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    running.settings["header_prefix"] = "X-Other"
    assert running.command("reload").stdout.startswith("reloaded: 3 new workers")
    assert versions(running) == {"0"}
    version = live(running)[0]
    assert post(running, document(versioned(upstream, 2))).json()["version"] > version
    assert running.command("restart").returncode == 0
    wait_until(lambda: len(running.workers()) == 3, "the workers")
    assert versions(running) == {"0"}


def test_a_bare_restart_of_nginx_serves_what_was_posted(
    running: Gateway, upstream: Upstream
) -> None:
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    before = live(running)
    os.kill(master := running.master(), signal.SIGQUIT)
    prefix = running.settings["prefix"]
    # Not only of its pid file: it closes what it listens on after that.
    wait_until(lambda: not alive(master), "the end")
    assert not (prefix / "run" / "nginx.pid").exists()
    subprocess.run([NGINX, "-p", f"{prefix}/", "-c", prefix / "nginx.conf"], check=True)
    assert versions(running) == {"1"}
    assert live(running) == before


def test_a_reload_whose_file_has_changed_goes_before_what_was_posted(
    running: Gateway, upstream: Upstream
) -> None:
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    running.write_config(versioned(upstream, 2))
    workers = running.workers()
    assert running.command("reload").stdout.startswith("live on 3 workers in ")
    assert (running.workers(), versions(running)) == (workers, {"2"})
    assert post(running, document(versioned(upstream, 3))).status_code == 201
    running.settings["header_prefix"] = "X-Other"
    running.write_config(versioned(upstream, 4))
    assert running.command("reload").stdout.startswith("reloaded: 3 new workers")
    assert versions(running) == {"4"}
    assert post(running, document(versioned(upstream, 5))).status_code == 201
    assert versions(running) == {"5"}


def test_a_refused_reload_keeps_what_was_posted(running: Gateway, upstream: Upstream) -> None:
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    running.write_config(versioned(upstream, 2))
    running.settings["access_log_format"] = "$no_such_variable"
    running.expect_log('unknown "no_such_variable" variable', 1)
    assert running.command("reload").returncode == 1
    running.expect_log("exited on signal 9", 3)
    kill_all_workers(running)
    assert versions(running) == {"1"}


# The control socket, and the figures


def test_the_control_socket_is_there_without_an_admin_listener(
    gateway: Start, upstream: Upstream
) -> None:
    running = gateway(versioned(upstream, 0), workers=2, plugins=VERSION, admin_listen="off")
    folder = running.settings["prefix"] / "run" / "control"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((running.settings["prefix"] / "store").stat().st_mode) == 0o700
    running.write_config(versioned(upstream, 1))
    assert running.command("reload").stdout.startswith("live on 2 workers in ")
    assert versions(running) == {"1"}


def test_a_socket_that_a_kill_has_left_is_removed(gateway: Start, upstream: Upstream) -> None:
    running = gateway(versioned(upstream, 0), plugins=VERSION)
    killed = [running.master(), *running.workers(), running.control()]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(map(alive, killed)), "all to be gone")
    assert (running.settings["prefix"] / "run" / "control" / "socket").exists()
    assert running.command("start").returncode == 0
    assert versions(running) == {"0"}


def test_a_socket_in_use_is_left_alone(gateway: Start, upstream: Upstream) -> None:
    running = gateway(versioned(upstream, 0), plugins=VERSION)
    assert running.command("stop").returncode == 0
    path = running.settings["prefix"] / "run" / "control" / "socket"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        refused = running.command("start")
        assert refused.returncode == 1
        assert "is in use by another program" in refused.stderr
    assert running.command("start").returncode == 0


def test_events_are_shown(running: Gateway, upstream: Upstream) -> None:
    assert post(running, document(versioned(upstream, 1))).status_code == 201
    found = httpx.get(f"{running.admin}/events", trust_env=False, timeout=DEADLINE).json()
    pids = [*running.workers(), running.control()]
    assert sorted(worker["pid"] for worker in found["workers"]) == sorted(pids)
    assert found["total"]["published"] == sum(w["published"] for w in found["workers"])
    assert {s["event"] for s in found["subscriptions"]} > {"ask", "report"}
    table = running.command("events")
    assert table.returncode == 0
    assert [line.split()[0] for line in table.stdout.splitlines()][-1] == "total"
    assert len(table.stdout.splitlines()) == 6
    as_json = json.loads(running.command("events", "--json").stdout)
    assert as_json["log"]["attached"] == 4
