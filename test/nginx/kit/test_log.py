"""`kong.log`: the log entry of a request as plugins have it, and change it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from log_server import LogServer, logging_to

import guard
from sluice import Config, Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

HANDLER = """
return {
    VERSION = "1.0.0", PRIORITY = 1,
    access = function()
        kong.log.set_serialize_value("mine.deep", 1)
        kong.log.set_serialize_value("request.method", "OTHER", { mode = "add" })
        kong.log.set_serialize_value("client_ip", nil)
        local ok, err = pcall(kong.log.serialize)
        kong.log.notice("refused: ", err:match("function.*"))
    end,
    log = function()
        local entry = kong.log.serialize()
        kong.log.notice("entry: ", entry.mine.deep, " ", entry.request.method, " ",
            entry.response.status, " ", entry.client_ip, " ", entry.route.name, " end")
    end,
}
"""


def test_an_entry_has_what_plugins_set(gateway: Start, upstream: Upstream) -> None:
    config = proxying(upstream) | {"plugins": [{"name": "entries"}]}
    running = gateway(config, kong_plugins={"entries": {"handler": HANDLER}})
    running.expect_log(
        r"\[entries\] refused: function cannot be called in access phase \(only in: log\)", 1
    )
    running.expect_log(r"\[entries\] entry: 1 GET 200 nil route end", 1)
    assert running.ask("/").status == 200


SETTER = """
return {
    VERSION = "1.0.0", PRIORITY = 1000,
    access = function()
        local set = kong.log.set_serialize_value
        set("mine", { list = { 1, 2 }, deep = { text = 'a"b', yes = true } })
        set("mine.deep.more", 1.5)
        set("made.on.the.way", "x")
        set("request.method", "OTHER", { mode = "add" })
        set("request.extra", "new", { mode = "add" })
        set("request.absent", "no", { mode = "replace" })
        set("absent.deep", "no", { mode = "replace" })
        set("client_ip", "hidden", { mode = "replace" })
        set("latencies", nil)
        set("request.headers.x-remove", nil)
        set("gone", 1)
        set("gone", nil)
        set("bytes", "\\255")
        set("micros", 1700000000123456)
        set("empty", setmetatable({}, require("cjson").empty_array_mt))
        set("null", ngx.null)
        if ngx.req.get_headers()["x-wrong"] then
            set("client_ip.below", 1)
            set("broken", { print })
            local list = {}
            list[1] = list
            set("endless", list)
            set("kept", true)
        end
        if ngx.req.get_headers()["x-many"] then
            for i = 1, 2000 do set("many", i) end
        end
    end,
    header_filter = HEADER_FILTER
}
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that workers of any user write."""
    path = guard.folder("sluice-kit-log-")
    path.chmod(0o777)
    yield path
    guard.remove(path)


def log_values(gateway: Start, config: Config, setter: str, **more: str) -> Gateway:
    """With a plugin that sets values, and others by the phase that they have."""
    plugins = {"setter": {"handler": setter}}
    for name, source in more.items():
        plugins[name] = {"handler": source}
    config["plugins"] += [{"name": name} for name in plugins]
    return gateway(config, kong_plugins=plugins)


def test_entries_of_log_plugins_have_them(
    gateway: Start, upstream: Upstream, log: LogServer, folder: Path
) -> None:
    """Of a plugin without a log phase, by which no Lua runs there."""
    path = folder / "entries"
    config = logging_to(upstream, log.port)
    config["plugins"].append({"name": "file-log", "config": {"path": str(path)}})
    running = log_values(gateway, config, SETTER.replace("HEADER_FILTER", "nil"))
    assert running.ask("/?n=1", headers=[("X-Remove", "r"), ("X-Stay", "s")]).status == 200
    log.wait_for_marks({"1"})
    wait_until(path.exists, "the file")
    wait_until(lambda: path.read_text().endswith("\n"), "a line of the file")
    line = json.loads(path.read_text())
    for entry in (log.entries[0], line):
        assert entry["mine"] == {
            "list": [1, 2],
            "deep": {"text": 'a"b', "yes": True, "more": 1.5},
        }
        assert entry["made"] == {"on": {"the": {"way": "x"}}}
        request = entry["request"]
        assert (request["method"], request["extra"]) == ("GET", "new")
        assert "absent" not in request
        assert entry["client_ip"] == "hidden"
        assert request["headers"]["x-stay"] == "s"
        assert "x-remove" not in request["headers"]
        assert not {"absent", "latencies", "gone"} & set(entry)
        assert (entry["bytes"], entry["micros"]) == ("?", 1700000000123456)
        assert (entry["empty"], entry["null"]) == ([], None)
        assert entry["route"]["name"] == "route"


def test_values_of_later_phases_are_in_entries(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    later = 'function() kong.log.set_serialize_value("status", ngx.status) end,'
    last = (
        'return { VERSION = "1.0.0", PRIORITY = 1, log = function()'
        ' kong.log.set_serialize_value("mine.log", kong.log.serialize().mine.deep.text) end }'
    )
    setter = SETTER.replace("HEADER_FILTER", later)
    running = log_values(gateway, logging_to(upstream, log.port), setter, last=last)
    assert running.ask("/?n=1").status == 200
    log.wait_for_marks({"1"})
    assert log.entries[0]["status"] == 200
    assert log.entries[0]["mine"]["log"] == 'a"b'


def test_a_value_that_cannot_be_set_leaves_the_others(
    gateway: Start, upstream: Upstream, log: LogServer
) -> None:
    setter = SETTER.replace("HEADER_FILTER", "nil")
    running = log_values(gateway, logging_to(upstream, log.port), setter)
    running.expect_log(
        'the log entry is without the value of "client_ip.below": "client_ip" is no table', 1
    )
    running.expect_log("log entries are without the value of '(broken|endless)': value must be", 2)
    assert running.ask("/?n=1", headers=[("X-Wrong", "1")]).status == 200
    log.wait_for_marks({"1"})
    entry = log.entries[0]
    assert (entry["client_ip"], entry["kept"]) == ("hidden", True)
    assert not {"broken", "endless"} & set(entry)


def test_values_are_bounded(gateway: Start, upstream: Upstream, log: LogServer) -> None:
    setter = SETTER.replace("HEADER_FILTER", "nil")
    running = log_values(gateway, logging_to(upstream, log.port), setter)
    running.expect_log("no more than 1000 values, of 4 MiB, of a request's log entry can be set")
    assert running.ask("/?n=1", headers=[("X-Many", "1")]).status == 500
    log.wait_for_marks({"1"})
    assert log.entries[0]["many"] > 900
