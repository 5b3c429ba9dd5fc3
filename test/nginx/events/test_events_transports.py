"""What each transport promises: the log of the module, a broker's sockets, a dictionary."""

from collections.abc import Callable, Iterator

import pytest

from events_nginx import Events, names, over_poll, over_socket
from wire import wait_until

TRANSPORTS: dict[str, Callable[..., Events]] = {
    "ring": Events,
    "socket": over_socket,
    "poll": lambda **more: over_poll("interval = 0.02, wait_max = 60", **more),
}
"""`wait_max` lets no event be given up on a busy machine."""


@pytest.fixture(scope="module", params=TRANSPORTS)
def running(request: pytest.FixtureRequest) -> Iterator[Events]:
    with TRANSPORTS[request.param](workers=3) as events:
        events.transport = request.param
        yield events.ready()


@pytest.fixture
def events(running: Events) -> Events:
    """Three workers, who have heard nothing that a test did not publish."""
    running.publish(event="begin")
    running.heard_through("begin")
    running.forget()
    return running


def test_every_worker_hears_everything_in_one_order(events: Events) -> None:
    for worker in range(3):
        events.publish_at(worker, first=1 + 100 * worker, count=100)
    heard = events.heard(300)
    assert names(heard[0]) == names(heard[1]) == names(heard[2])
    if events.transport == "socket":  # whose workers reach the broker in any order
        assert sorted(map(int, names(heard[0]))) == list(range(1, 301))
    else:
        assert names(heard[0]) == [str(i) for i in range(1, 301)]
    for worker in range(3):
        own = [event["data"] for event in heard[0] if event["wid"] == worker]
        assert own == list(range(1 + 100 * worker, 101 + 100 * worker))


def test_an_event_for_one_worker(events: Events) -> None:
    events.publish_at(0, worker=2, count=3)
    events.publish_at(0, event="end")
    heard = events.heard_through("end")
    assert names(heard[2]) == ["1", "2", "3", "end"]
    assert [event["wid"] for event in heard[2]] == [0, 0, 0, 0]
    assert names(heard[0]) == names(heard[1]) == ["end"]


def broker_repeats(events: Events) -> int:
    """How many repeats of a key the broker has left out."""
    return events.at(0, "/stats")["broker_repeats"]


def test_a_key_runs_in_one_worker_once(events: Events) -> None:
    before = broker_repeats(events) if events.transport == "socket" else 0
    for worker in range(3):
        counts = events.publish_at(worker, key="once", count=20, timeout=60)
        assert counts == {"true": 20}
    events.publish_at(0, event="end")
    heard = events.heard_through("end")
    assert sum(len(names(heard[worker])) - 1 for worker in range(3)) == 1
    if events.transport == "socket":
        assert broker_repeats(events) - before == 59


def test_a_key_is_forgotten_after_its_time(events: Events) -> None:
    def heard_twice() -> bool:
        events.publish(key="short", timeout=0.05)
        return sum(events.all("/heard-count").values()) >= 2

    wait_until(heard_twice, "the key to be forgotten")


@pytest.mark.parametrize(
    ("data", "word"), [("text16777216", "payload too large"), ("function", "not serialisable")]
)
def test_data_that_cannot_be_sent(events: Events, data: str, word: str) -> None:
    assert events.publish(data=data)[1] == {word: 1}
    events.publish(event="next")
    assert all(names(heard) == ["next"] for heard in events.heard(1).values())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_is_published_in_init_worker_reaches_all(transport: str) -> None:
    publish = 'assert(ev:publish("all", "early", "worker " .. ngx.worker.id(), 1))'
    # A dictionary keeps what comes before a worker has looked for those who began in the master.
    make = {"init": "package.loaded.probe.ev = package.loaded.probe.new()"}
    more = make if transport == "poll" else {}
    with TRANSPORTS[transport](workers=4, init_worker=publish, **more) as events:
        for heard in events.heard(4).values():
            assert sorted(names(heard)) == [f"worker {worker}" for worker in range(4)]
