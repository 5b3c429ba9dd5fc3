"""The socket transport: a broker in one worker, the others connected to it."""

import os
import signal
import socket
import time
from collections import Counter

import pytest

from events_nginx import Events, names, over_socket
from processes import switches
from sluice import alive
from wire import wait_until

NAMES_3 = ["1", "2", "3"]


def test_only_one_worker_is_the_broker() -> None:
    with over_socket("broker_id = 1", workers=3) as events:
        events.ready()
        stats = events.all("/stats")
        assert ["broker_frames" in stats[worker] for worker in range(3)] == [False, True, False]
        assert stats[1]["broker_connections"] == 3


def test_a_worker_that_is_not_there_is_counted() -> None:
    with over_socket() as events:
        events.ready()
        events.publish(worker=7)
        wait_until(
            lambda: events.at(0, "/stats")["broker_unrouted"] == 1, "the event to be counted"
        )


def test_any_number_of_keys_is_unique() -> None:
    with over_socket("unique_timeout = 600, queue_len = 100000") as events:
        events.ready()
        for worker in range(2):
            events.publish_at(worker, keys=1, count=20000)
        wait_until(
            lambda: events.at(0, "/stats")["broker_repeats"] == 20000, "the repeats to be counted"
        )
        wait_until(
            lambda: sum(events.all("/heard-count").values()) == 20000, "each key to be heard once"
        )
        shares = events.all("/heard-count")
        assert all(share == 10000 for share in shares.values()), "one worker after the other"


@pytest.mark.parametrize("data", ["table", "text0", "text65536", "text5000000", "text16777000"])
def test_data_arrives_as_it_was(data: str) -> None:
    with over_socket() as events:
        events.ready()
        assert events.publish(data=data)[1] == {"true": 1}
        for heard in events.heard(1).values():
            if data == "table":
                expected = {"yes": True, "list": [1, 2.5, "three"], "nested": [{"a": "b"}]}
                assert heard[0]["data"] == expected
            else:
                size = int(data[4:])
                assert heard[0]["data"] == (size or "")


def test_what_waits_is_bounded_and_not_lost() -> None:
    """The broker stands still: its clients' queues fill, refuse, and drain afterwards."""
    with over_socket("queue_len = 1000, stall_timeout = 60") as events:
        events.ready()
        broker = events.all("/stats")[0]["pid"]
        with events.connection(1) as wire:
            os.kill(broker, signal.SIGSTOP)
            try:
                accepted = 0
                refused = 0
                while not refused:
                    target = f"/publish?first={accepted + 1}&count=200&data=text2000"
                    counts = events._ask(wire, target)[1]
                    accepted += counts.get("true", 0)
                    refused = counts.get("full", 0)
                assert events._ask(wire, "/stats")[1]["queue_depth"] <= 1000
            finally:
                os.kill(broker, signal.SIGCONT)
        assert accepted >= 1000
        for heard in events.heard(accepted).values():
            assert names(heard) == [str(i) for i in range(1, accepted + 1)]
        assert events.at(1, "/stats")["queue_depth"] == 0


def test_a_killed_broker_is_back_at_once() -> None:
    with over_socket(workers=3) as events:
        events.expect_log("exited on signal 9", 3)
        events.expect_log(r"missed perhaps some events \(broker lost\)", range(6, 10))
        events.ready()
        for turn in range(3):
            events.forget()
            broker = events.at(0, "/stats")["pid"]
            before = turn + 1
            with events.connection(1) as wire:
                os.kill(broker, signal.SIGKILL)
                wait_until(
                    lambda wire=wire, before=before: (
                        not events._ask(wire, "/stats")[1]["is_ready"]
                        or events._ask(wire, "/stats")[1]["connects"] > before
                    ),
                    "the worker to see it",
                )
                counts = events._ask(wire, "/publish?count=500")[1]
                assert set(counts) <= {"queued", "true"}
                assert sum(counts.values()) == 500
            events.ready()
            for heard in events.heard(500).values():
                assert names(heard) == [str(i) for i in range(1, 501)]
        overruns = events.all("/overrun")
        assert overruns[1]["count"] == 3
        assert overruns[1]["last"] == {"missed": 0, "reason": "broker lost"}
        assert overruns[0]["count"] == 0, "a new process has missed nothing"


def test_a_killed_worker_is_back_at_once() -> None:
    with over_socket(workers=3) as events:
        events.expect_log("exited on signal 9", 1)
        events.ready()
        victim = events.at(2, "/stats")["pid"]
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: events.at(2, "/stats")["pid"] != victim, "the worker to be replaced")
        events.ready()
        events.publish(count=3)
        assert all(names(heard) == NAMES_3 for heard in events.heard(3).values())
        assert events.at(0, "/stats")["broker_connections"] == 3


def test_keys_sent_to_a_dead_worker_go_to_another() -> None:
    """What a stopped worker did not take is not lost with it."""
    with over_socket("stall_timeout = 60, queue_len = 100000", workers=2) as events:
        events.expect_log("exited on signal 9", 1)
        events.ready()
        victim = events.at(1, "/stats")["pid"]
        with events.connection(0) as wire:
            os.kill(victim, signal.SIGSTOP)
            events._ask(wire, "/publish?keys=1&count=2000&data=text4000")
            wait_until(
                lambda: events._ask(wire, "/stats")[1]["broker_queue_bytes"] > 1024 * 1024,
                "the broker to stop reading",
            )
            waiting = events._ask(wire, "/stats")[1]["broker_queue_depth"]
            os.kill(victim, signal.SIGKILL)
            wait_until(
                lambda: (
                    events._ask(wire, "/stats")[1]["broker_frames"] == 2000
                    and events._ask(wire, "/stats")[1]["broker_queue_depth"] == 0
                ),
                "the rest to be taken over",
            )
        events.ready()
        events.publish(event="end")
        heard = events.heard_through("end")
        found = Counter(names(heard[0]) + names(heard[1]))
        assert found.pop("end") == 2
        assert set(found.values()) == {1}, "twice"
        lost = 2000 - len(found)
        assert lost < waiting, "only what had left the broker is lost"


def test_a_worker_that_takes_nothing_is_cut_off_and_told() -> None:
    with over_socket("stall_timeout = 3, queue_len = 100000", workers=3) as events:
        events.expect_log("takes nothing: closed", 1)
        events.expect_log(r"missed \d+ events \(stalled\)", 1)
        events.ready()
        stopped = events.at(2, "/stats")["pid"]
        with events.connection(0) as wire, events.connection(1) as other:
            os.kill(stopped, signal.SIGSTOP)
            try:
                events._ask(wire, "/publish?count=2000&data=text2000")
                for each in (wire, other):
                    wait_until(
                        lambda each=each: events._ask(each, "/heard-count")[1] == 2000,
                        "the others to hear all",
                    )
                assert events._ask(wire, "/stats")[1]["broker_stalled"] == 1
                events._ask(wire, "/publish?first=2001&count=100")
            finally:
                os.kill(stopped, signal.SIGCONT)
        events.ready()
        wait_until(lambda: events.at(2, "/overrun")["count"] == 1, "the notice")
        told = events.at(2, "/overrun")["last"]
        assert told["reason"] == "stalled"
        heard = len(events.heard_at(2))
        # What was on its way through the kernel is neither heard nor known to be missed.
        assert 0 < told["missed"] <= 2100 - heard
        events.publish(event="on")
        wait_until(lambda: names(events.heard_at(2))[-1] == "on", "it to hear on")


def test_who_was_cut_off_and_died_is_forgotten() -> None:
    with over_socket("stall_timeout = 3, queue_len = 100000", workers=2) as events:
        events.expect_log("takes nothing: closed", 3)
        events.expect_log("exited on signal 9", 3)
        for _ in range(3):
            events.ready()
            stopped = events.at(1, "/stats")["pid"]
            with events.connection(0) as wire:
                os.kill(stopped, signal.SIGSTOP)
                events._ask(wire, "/publish?count=2000&data=text2000")
                wait_until(
                    lambda wire=wire: events._ask(wire, "/stats")[1]["broker_connections"] == 1,
                    "it to be cut off",
                )
                assert events._ask(wire, "/stats")[1]["broker_away"] == 1
                os.kill(stopped, signal.SIGKILL)
                wait_until(lambda pid=stopped: not alive(pid), "it to be gone")
        events.ready()


def test_reload() -> None:
    with over_socket("", workers=2) as events:
        events.ready()
        for turn in range(3):
            events.publish(first=turn * 10 + 1, count=3)
            events.heard(3)
            events.restart_workers()
            wait_until(lambda: not events.retiring(), "the old workers to leave")
            events.ready()
            events.publish(event="after")
            events.heard_through("after")
        assert events.at(0, "/stats")["broker_connections"] == 2


def test_idle_is_idle() -> None:
    """No wakeups: the counters of the kernel and of the transport stand still."""
    with over_socket("") as events:
        events.ready()
        events.publish(count=10)
        events.heard(10)
        pids = [stats["pid"] for stats in events.all("/stats").values()]

        def wakeups(seconds: float) -> int:
            before = sum(map(switches, pids))
            time.sleep(seconds)
            return sum(map(switches, pids)) - before

        wait_until(lambda: wakeups(0.3) == 0, "the connections that asked to be closed")
        wait_until(lambda: wakeups(1) <= 2, "a while in which nobody wakes")


def test_no_server_for_the_broker() -> None:
    events = Events('{ transport = "socket", listening = "unix:@socket@" }')
    events.expect_log("no server listens on unix:", 2)
    with events:
        wait_until(
            lambda: events.error_log().count("no server listens on") == 2, "the lines that say so"
        )


def test_the_module_is_missing() -> None:
    probe = """
        local t, err = require("sluice.events").new({
            transport = "socket", listening = "unix:/nowhere",
        })
        ngx.log(ngx.NOTICE, "new says ", tostring(t), ": ", err)
    """
    events = over_socket()
    text = (events.prefix / "nginx.conf").read_text()
    lines = [line for line in text.splitlines() if "ngx_sluice_module" not in line]
    head = "\n".join(lines).split("lua_shared_dict")[0]
    events.write(
        head + "init_by_lua_block {" + probe + "}\nserver { listen 127.0.0.1:"
        f"{events.proxy_port};" + " } }\n"
    )
    events.expect_log("new says nil: .*load_module", 1)
    with events:
        pass


def test_an_http_client_that_does_not_upgrade() -> None:
    with over_socket() as events:
        events.expect_log("connection refused: no upgrade", 1)
        events.ready()
        with socket.socket(socket.AF_UNIX) as raw:
            raw.connect(str(events.socket))
            raw.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 400 ")
