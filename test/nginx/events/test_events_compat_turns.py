"""One event at a time, as the other libraries promise: the next waits for a handler that waits."""

import pytest
from events_library import (
    RESTY_EVENTS,
    RESTY_EVENTS_WORKER,
    Library,
    resty_events,
    worker_events,
)

from processes import waited_seconds
from wire import Wire, wait_until

# Names for what the interfaces call differently. `note` writes into notes.log.
NAMES = {
    "resty.events": """
        local function on(event, handler) ev:subscribe("turn", event, handler) end
        local function post(event, data) assert(ev:publish("all", "turn", event, data)) end
        local function post_here(event, data) assert(ev:publish("current", "turn", event, data)) end
    """,
    "resty.worker.events": """
        local function on(event, handler) ev.register(handler, "turn", event) end
        local function post(event, data) assert(ev.post("turn", event, data)) end
        local function post_here(event, data) assert(ev.post_local("turn", event, data)) end
    """,
}
NOTE = """
    notes.log = {}
    local function note(text) table.insert(notes.log, text) end
    local function noting(name) return function(data) note(name .. data) end end
    notes.blocked = require("ngx.semaphore").new(0)
"""
LIBRARIES = pytest.mark.parametrize("name", NAMES)


def start(name: str, transport: str = "ring") -> Library:
    """An nginx with one of the libraries."""
    return resty_events(transport) if name == "resty.events" else worker_events(transport)


def ready(library: Library, name: str) -> Wire:
    """A connection to a worker that hears events."""
    wire = library.wires()[0]
    code = "return ev:is_ready()" if name == "resty.events" else 'return ev.post("a", "b")'
    wait_until(lambda: library.run(wire, code)[1] == [True], "the worker to be ready")
    return wire


def log(library: Library, wire: Wire, count: int) -> list[str]:
    """What was noted, once there are so many lines."""
    wait_until(lambda: library.run(wire, "return #notes.log")[1][0] >= count, f"{count} lines")
    return library.run(wire, "return notes.log")[1][0]


@LIBRARIES
@pytest.mark.parametrize("transport", ["ring", "socket", "poll"])
def test_the_next_event_waits_for_a_handler_that_waits(name: str, transport: str) -> None:
    code = """
        on("slow", function(data)
            note("begin" .. data)
            note(notes.blocked:wait(30) and "end" .. data or "held up")
        end)
        on("slow", noting("second"))
        on("fast", noting("fast"))
        post("slow", 1) post("fast", 2) post("slow", 3) post("fast", 4)
    """
    with start(name, transport) as library:
        wire = ready(library, name)
        library.run(wire, NAMES[name] + NOTE + code)
        assert log(library, wire, 1) == ["begin1"]
        # Later ones do not overtake those that wait, wherever they come from.
        library.run(wire, NAMES[name] + 'post_here("fast", 5) notes.blocked:post(1)')
        begun = ["begin1", "end1", "second1"]
        wait_until(
            lambda: "begin3" in library.run(wire, "return notes.log")[1][0], "the next to wait"
        )
        library.run(wire, "notes.blocked:post(1)")
        lines = log(library, wire, 8)
        assert lines[:3] == begun
        assert [line for line in lines[3:] if line != "fast5"] == [
            "fast2", "begin3", "end3", "second3", "fast4",
        ]  # fmt: skip


@LIBRARIES
def test_many_handlers_that_wait(name: str) -> None:
    code = """
        local inside = 0
        on("many", function(data)
            inside = inside + 1
            ngx.sleep(0.001)
            note(inside .. "/" .. data)
            inside = inside - 1
        end)
        for i = 1, 300 do post("many", i) end
    """
    with start(name) as library:
        wire = ready(library, name)
        library.run(wire, NAMES[name] + NOTE + code)
        assert log(library, wire, 300) == [f"1/{i}" for i in range(1, 301)]


@LIBRARIES
def test_an_error_after_waiting_gives_the_turn_back(name: str) -> None:
    code = """
        on("late", function(data)
            ngx.sleep(0.01)
            if data == 1 then error("late error") end
        end)
        on("late", noting("second"))
        post("late", 1) post("late", 2)
    """
    with start(name) as library:
        library.expect_log("failed at event turn/late: .*late error")
        wire = ready(library, name)
        library.run(wire, NAMES[name] + NOTE + code)
        assert log(library, wire, 2) == ["second1", "second2"]


@LIBRARIES
@pytest.mark.parametrize("transport", ["ring", "socket", "poll"])
@pytest.mark.parametrize("waits", ["", "ngx.sleep(0.01)"], ids=["at once", "after waiting"])
def test_a_handler_that_ends_its_context_gives_the_turn_back(
    name: str, transport: str, waits: str
) -> None:
    """ngx.exit says nothing to Lua; the turn is not held until somebody happens to look."""
    code = f"""
        local ended
        on("exit", function(data)
            if data == 2 then
                {waits}
                ngx.update_time()
                ended = ngx.now()
                ngx.exit(0)
            end
        end)
        on("exit", function(data)
            ngx.update_time()
            if data == 2 then notes.held_seconds = ngx.now() - ended end
            note("second" .. data)
        end)
        post("exit", 1) post("exit", 2) post("exit", 3)
    """
    with start(name, transport) as library:
        wire = ready(library, name)
        library.run(wire, NAMES[name] + NOTE + code)
        assert log(library, wire, 3) == ["second1", "second2", "second3"]
        held = library.run(wire, "return notes.held_seconds")[1][0]
        assert held < 0.5 + waited_seconds(*library.workers())


def test_other_buses_go_on() -> None:
    """Nor do they wait for each other: another `listening`, and events of sluice.events."""
    code = """
        notes.other = assert(require("resty.events").new({ listening = "unix:other" }))
        assert(notes.other:init_worker())
        notes.plain = assert(require("sluice.events").new())
        assert(notes.plain:init_worker())
        on("slow", function() notes.blocked:wait(30) note("slow") end)
        on("after", noting("after"))
        notes.other:subscribe("turn", "*", noting("other"))
        notes.plain:subscribe("turn", "*", noting("plain"))
        post("slow") post("after", 1)
        for i = 1, 2 do
            notes.other:publish("all", "turn", "e", i)
            notes.plain:publish("all", "turn", "e", i)
        end
    """
    with start("resty.events") as library:
        wire = ready(library, "resty.events")
        library.run(wire, NAMES["resty.events"] + NOTE + code)
        assert log(library, wire, 4) == ["other1", "plain1", "other2", "plain2"]
        library.run(wire, "notes.blocked:post(1)")
        assert log(library, wire, 6)[4:] == ["slow", "after1"]


def test_an_unsubscribed_handler_is_not_called_for_events_that_waited() -> None:
    code = """
        on("slow", function() notes.blocked:wait(30) end)
        notes.gone = ev:subscribe("turn", "*", noting("gone"))
        on("after", noting("after"))
        post("slow", 1) post("after", 2)
    """
    with start("resty.events") as library:
        wire = ready(library, "resty.events")
        library.run(wire, NAMES["resty.events"] + NOTE + code)
        library.run(wire, "ev:unsubscribe(notes.gone) notes.blocked:post(1)")
        assert log(library, wire, 1) == ["after2"]


def test_what_waits_has_a_limit() -> None:
    """More is dropped, and the subscribers are told how much."""
    subscribe = """
        on("slow", function() notes.blocked:wait(30) end)
        on("fast", noting("fast"))
        ev:subscribe("sluice", "overrun", function(data)
            note(data.missed .. " missed: " .. data.reason)
        end)
    """
    post = 'post("slow") for i = 1, 13 do post("fast", i) end'
    names = NAMES["resty.events"]
    init = RESTY_EVENTS.replace("@options@", "max_queue_len = 10")
    with Library(init, RESTY_EVENTS_WORKER, ":run()", "ring") as library:
        library.expect_log("a callback waits, and 10 events for it: .*turn/fast", 2)
        wires = library.wires()
        for wire in wires.values():
            wait_until(lambda w=wire: library.run(w, "return ev:is_ready()")[1] == [True], "both")
            library.run(wire, names + NOTE + subscribe)
        library.run(wires[0], names + post)
        wait_until(
            lambda: library.error_log().count("a callback waits") == 2, "both to have dropped some"
        )
        for wire in wires.values():
            library.run(wire, "notes.blocked:post(1)")
            # What is left of the slow event takes one place.
            assert log(library, wire, 10) == [
                *(f"fast{i}" for i in range(1, 10)),
                "4 missed: overflow",
            ]
