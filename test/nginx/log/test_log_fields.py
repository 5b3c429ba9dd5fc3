"""Members of log entries that Lua of a configuration makes: custom_fields_by_lua of log plugins."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from admin_client import Client
from log_server import LogServer

import guard
from sluice import Gateway, Start, proxying
from upstream import Exchange, Upstream
from wire import DEADLINE, wait_until

FIELDS = {
    "who": "return kong.request.get_header('X-Who')",
    "answer.status": "return kong.response.get_status()",
    "answer.list": "return { 1, 'two', true }",
    "request.headers.x-gone": "return nil",
    "route": "return kong.router.get_route().name",
}


class Sink:
    """Where the entries of either plugin go, and what came."""

    def __init__(self, plugin: str, folder: Path, server: LogServer) -> None:
        self.plugin = plugin
        self._file = folder / "entries"
        self._server = server

    def entity(self, fields: dict[str, str] | None, **more: Any) -> dict[str, Any]:
        """A configuration of the plugin."""
        config: dict[str, Any] = {} if fields is None else {"custom_fields_by_lua": fields}
        if self.plugin == "file-log":
            config |= {"path": str(self._file)}
        else:
            config |= {"http_endpoint": f"http://127.0.0.1:{self._server.port}/"}
        return {"name": self.plugin, "config": config} | more

    def entries(self, count: int) -> list[dict[str, Any]]:
        """All, once there are so many, and the server has answered those that came to it.

        A delivery that it has not answered comes again, to the server of the next test.
        """

        def found() -> list[dict[str, Any]]:
            if self.plugin == "http-log":
                return list(self._server.entries)
            text = self._file.read_text() if self._file.exists() else ""
            return [json.loads(line) for line in text.splitlines()]

        wait_until(lambda: len(found()) >= count, f"{count} entries")
        self._server.wait_for_answers()
        return found()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that workers of any user reach and write, unlike pytest's own."""
    path = guard.folder("sluice-log-fields-")
    path.chmod(0o777)
    yield path
    guard.remove(path)


@pytest.fixture(params=["file-log", "http-log"])
def sink(request: pytest.FixtureRequest, folder: Path, log: LogServer) -> Sink:
    """One of each plugin."""
    return Sink(request.param, folder, log)


def logging(upstream: Upstream, *plugins: dict[str, Any]) -> dict[str, Any]:
    """One route, and plugins for all."""
    return proxying(upstream) | {"plugins": list(plugins)}


def test_values_of_each_kind(serving: Start, upstream: Upstream, sink: Sink) -> None:
    running = serving(logging(upstream, sink.entity(FIELDS)))
    for who in ("ann", "bob"):
        assert running.ask("/", headers={"X-Who": who, "X-Gone": "1"}).status == 200
    for who, entry in zip(("ann", "bob"), sink.entries(2), strict=True):
        assert entry["who"] == who
        assert entry["answer"] == {"status": 200, "list": [1, "two", True]}
        assert entry["route"] == "route"
        assert "x-who" in entry["request"]["headers"]
        assert "x-gone" not in entry["request"]["headers"]


def test_requests_that_are_refused_have_them(
    serving: Start, upstream: Upstream, sink: Sink
) -> None:
    """By a plugin, for want of a route, and by nginx, where the configuration is for all."""
    fields = {name: FIELDS[name] for name in ("who", "answer.status")}
    config = logging(upstream, sink.entity(fields), {"name": "key-auth"})
    config["services"][0]["routes"][0]["paths"] = ["/here"]
    running = serving(config)
    asked = [("/here", "a", 401), ("/there", "b", 404), ("/%00", "c", 400)]
    for path, who, status in asked:
        assert running.ask(path, headers={"X-Who": who}).status == status
    found = {entry["answer"]["status"]: entry.get("who") for entry in sink.entries(3)}
    # nginx has read no headers of the last one
    assert found == {401: "a", 404: "b", 400: None}


def test_a_consumers_configuration(serving: Start, upstream: Upstream, sink: Sink) -> None:
    """And that of all others, which needs no Lua."""
    config = logging(upstream, sink.entity(None), {"name": "key-auth"})
    config["consumers"] = [
        {
            "username": "ann",
            "keyauth_credentials": [{"key": "a"}],
            "plugins": [sink.entity({"mine": "return kong.client.get_consumer().username"})],
        },
        {"username": "bob", "keyauth_credentials": [{"key": "b"}]},
    ]
    running = serving(config)
    for key in ("a", "b", "a"):
        assert running.ask(f"/{key}", headers={"apikey": key}).status == 200
    # in any order: http-log has a queue for each configuration
    found = [(entry["request"]["uri"], entry.get("mine")) for entry in sink.entries(3)]
    assert sorted(found) == [("/a", "ann"), ("/a", "ann"), ("/b", None)]


def test_they_are_of_the_request_and_all_log_plugins_have_them(
    serving: Start, upstream: Upstream, folder: Path, log: LogServer
) -> None:
    sinks = [Sink(plugin, folder, log) for plugin in ("file-log", "http-log")]
    fields = [{"from": "return 'file'", "a": "return 1"}, {"from": "return 'http'"}]
    plugins = [sink.entity(one) for sink, one in zip(sinks, fields, strict=True)]
    running = serving(logging(upstream, *plugins))
    assert running.ask("/").status == 200
    for sink in sinks:
        [entry] = sink.entries(1)
        # file-log runs last
        assert (entry["from"], entry["a"]) == ("file", 1)


def test_a_change_counts_for_the_next_request(upstream: Upstream, sink: Sink) -> None:
    with Gateway(None) as running:
        client = Client(running)
        client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
        client.must(201, "POST", "/services/s/routes", {"paths": ["/"]})
        made = client.must(201, "POST", "/plugins", sink.entity({"n": "return 1"}))
        for number, fields in enumerate(({"n": "return 1"}, {"n": "return 2"}, {}, None), 1):
            patch = {"config": {"custom_fields_by_lua": fields}}
            client.must(200, "PATCH", f"/plugins/{made['id']}", patch)
            assert running.ask("/").status == 200
            sink.entries(number)
        assert [entry.get("n") for entry in sink.entries(4)] == [1, 2, None, None]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("error('a reason')", "a reason"),
        ("return os.execute('true')", "attempt to call field 'execute'"),
        ("return kong.request.exit()", "attempt to call field 'exit'"),
        ("local a = nil return a.b", "attempt to index"),
        (r"error('a\n2026/11/30 [alert] forged\0')", r"a\?2026/11/30 \[alert\] forged\?"),
        ("error({})", "table: "),
        (
            "kong.log.set_serialize_value('x', ('x'):rep(5 * 1024 * 1024))",
            "no more than 1000 values",
        ),
    ],
)
def test_code_that_fails_costs_its_member_alone(
    serving: Start, upstream: Upstream, sink: Sink, code: str, reason: str
) -> None:
    """The log says which, and the entry is there."""
    others = {f"good{number}": f"return {number}" for number in range(8)}
    running = serving(logging(upstream, sink.entity({"bad": code} | others)))
    failed = f"plugin '{sink.plugin}' failed in log: custom_fields_by_lua.bad: .*{reason}"
    running.expect_log(failed, 2)
    for _ in range(2):
        assert running.ask("/").status == 200
    for entry in sink.entries(2):
        assert "bad" not in entry
        assert [entry[f"good{number}"] for number in range(8)] == [*range(8)]
        assert entry["response"]["status"] == 200


def test_globals_are_those_of_one_request(serving: Start, upstream: Upstream, sink: Sink) -> None:
    """What a client sent is in no entry of another one."""
    last = "who = kong.request.get_header('X-Who') or who n = (n or 0) + 1 return who"
    running = serving(logging(upstream, sink.entity({"last": last, "n": "return n"})), workers=1)
    for headers in ({"X-Who": "ann"}, {}, {}):
        assert running.ask("/", headers=headers).status == 200
    found = [(entry.get("last"), entry.get("n")) for entry in sink.entries(3)]
    assert found == [("ann", None), (None, None), (None, None)]


@pytest.mark.parametrize("change", ["other", "none", "deleted", "disabled"])
def test_requests_in_progress_keep_theirs(upstream: Upstream, sink: Sink, change: str) -> None:
    """Also the first that a worker has with it: nothing is logged, and the entry is as it was."""
    with Gateway(None, workers=1) as running:
        client = Client(running)
        client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
        client.must(201, "POST", "/services/s/routes", {"paths": ["/"]})
        made = client.must(201, "POST", "/plugins", sink.entity({"n": "return 1"}))
        waits, goes = threading.Event(), threading.Event()

        def hold(exchange: Exchange) -> None:
            waits.set()
            assert goes.wait(DEADLINE)
            exchange.reply(200)

        upstream.handler = hold
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(running.ask, "/")
            assert waits.wait(DEADLINE)
            at = f"/plugins/{made['id']}"
            if change == "deleted":
                assert client.ask("DELETE", at).status == 204
            else:
                value: dict[str, Any] = {"enabled": False}
                if change != "disabled":
                    fields = {"n": "return 2"} if change == "other" else None
                    value = {"config": {"custom_fields_by_lua": fields}}
                client.must(200, "PATCH", at, value)
            goes.set()
            assert asked.result().status == 200
        if change in ("other", "none"):
            [entry] = sink.entries(1)
            assert entry["n"] == 1


def test_a_value_that_json_cannot_have(serving: Start, upstream: Upstream, sink: Sink) -> None:
    fields = {"f": "return function() end", "g": "return 1"}
    running = serving(logging(upstream, sink.entity(fields)))
    running.expect_log("log entries are without the value of 'f'", 1)
    assert running.ask("/").status == 200
    [entry] = sink.entries(1)
    assert "f" not in entry
    assert entry["g"] == 1


def test_untrusted_lua_off(serving: Start, upstream: Upstream, sink: Sink) -> None:
    running = serving(logging(upstream, sink.entity({"a": "return 1"})), untrusted_lua="off")
    running.expect_log("untrusted_lua' config option is set to 'off'", range(1, 3))
    assert running.ask("/").status == 200
    [entry] = sink.entries(1)
    assert "a" not in entry


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"a": "return return"}, "Error parsing function: "),
        ({"a": "\x1bLJ\x02"}, "Error parsing function: "),
        ({"a": ""}, "length must be at least 1"),
        ({"": "return 1"}, "length must be at least 1"),
        ({"a": 1}, "expected a string"),
    ],
)
def test_what_is_no_code_is_refused(
    client: Client, sink: Sink, fields: dict[str, Any], reason: str
) -> None:
    reply = client.ask("POST", "/plugins", sink.entity(fields))
    assert reply.status == 400
    assert reason in json.dumps(reply.json()["fields"]["config"]["custom_fields_by_lua"])
