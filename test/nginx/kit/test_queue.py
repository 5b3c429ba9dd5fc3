"""`kong.tools.queue`: batches, retries, bounds."""

from __future__ import annotations

import json

from kit_runner import RUNNER, Worker, running, workers

from sluice import Start
from upstream import Upstream
from wire import wait_until

# Notes each batch, and fails so often.
ENQUEUE = """
    local queue = require("kong.tools.queue")
    local conf = { name = "NAME", max_batch_size = 2, max_coalescing_delay = 0.01,
        max_entries = 4, max_retry_time = 60, initial_retry_delay = 0.01, max_retry_delay = 0.01,
        concurrency_limit = 1, MORE }
    for _, value in ipairs({ VALUES }) do
        local ok, err = queue.enqueue(conf, function(own, entries)
            local shared = ngx.shared.kong
            if shared:incr("calls", 1, 0) <= FAILURES then return false, "not now" end
            for i, entry in ipairs(entries) do
                entries[i] = type(entry) == "table" and entry.name or entry
            end
            shared:rpush("batches", require("cjson").encode({ own.tag, entries }))
            return true
        end, { tag = "TAG" }, value)
        if not ok then return ok, err end
    end
    return true
"""


def enqueue(worker: Worker, values: str, failures: int = 0, more: str = "", tag: str = "t") -> list:
    code = ENQUEUE.replace("VALUES", values).replace("FAILURES", str(failures))
    return worker.run(code.replace("MORE", more).replace("TAG", tag).replace("NAME", "mine"))


def batches(worker: Worker, count: int) -> list[list]:
    """The next batches that a handler has taken."""
    found: list[list] = []

    def take() -> bool:
        text = worker.run('return ngx.shared.kong:lpop("batches")')[0]
        if text is not None:
            found.append(json.loads(text))
        return len(found) >= count

    wait_until(take, "batches")
    return found


def test_entries_of_any_kind_come_in_batches_and_in_order(
    gateway: Start, upstream: Upstream
) -> None:
    (one,) = workers(gateway(running(upstream), plugins=RUNNER))
    assert enqueue(one, '"a", { name = "b" }, 3')[0] is True
    assert batches(one, 2) == [["t", ["a", "b"]], ["t", [3]]]
    assert one.run('return require("kong.tools.queue").exists("mine")')[0] is False


def test_a_batch_is_tried_again_with_the_latest_configuration(
    gateway: Start, upstream: Upstream
) -> None:
    started = gateway(running(upstream), plugins=RUNNER)
    (one,) = workers(started)
    started.expect_log(r"queue mine: not delivered, \d entries wait: not now", range(1, 4))
    started.expect_log(r"queue mine: delivered again", range(1, 4))
    enqueue(one, '"a"', failures=2)
    wait_until(lambda: one.run('return ngx.shared.kong:get("calls") == 3')[0], "three calls")
    assert batches(one, 1) == [["t", ["a"]]]
    enqueue(one, '"b"', tag="other")
    assert batches(one, 1) == [["other", ["b"]]]


def test_what_is_wrong_is_told_in_kong_s_words(gateway: Start, upstream: Upstream) -> None:
    started = gateway(running(upstream), plugins=RUNNER)
    (one,) = workers(started)
    call = 'return require("kong.tools.queue").enqueue(%s)'
    for arguments, words in (
        ("1, print, {}, 1", "arg #1 (queue_conf) must be a table"),
        ("{}, 1, {}, 1", "arg #2 (handler) must be a function"),
        ("{}, print, 1, 1", "arg #3 (handler_conf) must be a table or nil"),
        ("{}, print, {}, 1", "arg #1 (queue_conf) must include a name"),
        ('{ name = "a" }, print, {}, 1', "arg #1 (queue_conf) max_batch_size must be a number"),
    ):
        told = one.ask(call % arguments)
        assert told["status"] == 500
        assert told["values"][0].endswith(words), told
    started.expect_log(r"string to be queued is longer \(5 bytes\) than", 1)
    refused = enqueue(one, '"12345"', more="max_bytes = 4")
    assert refused[1].startswith("string to be queued is longer (5 bytes)")


def test_a_plugin_s_parameters_have_its_name_and_former_words(
    gateway: Start, upstream: Upstream
) -> None:
    started = gateway(running(upstream), plugins=RUNNER)
    (one,) = workers(started)
    started.expect_log(r"the queue_size parameter is deprecated, please update", 1)
    code = """
        local conf = { __plugin_id = "id", queue_size = 7, queue = { max_batch_size = 1 } }
        local found = require("kong.tools.queue").get_plugin_params("mine", conf)
        return found.name, found.log_tag, found.max_batch_size
    """
    assert one.run(code)[:3] == ["id", "mine plugin id", 7]
