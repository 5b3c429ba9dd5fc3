"""What the other libraries refuse, in their words, and the lines that they log at debug."""

import re

import pytest
from events_library import (
    COMPAT_WORKER,
    RESTY_EVENTS,
    RESTY_EVENTS_WORKER,
    Library,
    resty_events,
    worker_events,
)

from wire import Wire, wait_until

# What `new` of resty.events throws for which options, beside a valid `listening`.
WRONG_OPTIONS = [
    ('broker_id = "1"', '"broker_id" option must be a number'),
    ("broker_id = -1", '"broker_id" option is invalid'),
    ("broker_id = 2", '"broker_id" option is invalid'),
    ("broker_id = 0.5", '"broker_id" option is invalid'),
    ("listening = false", '"listening" option must be a string'),
    ("listening = 123", '"listening" option must be a string'),
    ('listening = "/tmp/x.sock"', '"listening" option must start with unix:'),
    ('unique_timeout = "1"', 'optional "unique_timeout" option must be a number'),
    ("unique_timeout = 0", '"unique_timeout" must be greater than 0'),
    ("unique_timeout = -1", '"unique_timeout" must be greater than 0'),
    ('max_queue_len = "1"', '"max_queue_len" option must be a number'),
    ("max_queue_len = 0", '"max_queue_len" option is invalid'),
    ('max_payload_len = "1"', '"max_payload_len" option must be a number'),
    ("max_payload_len = 0", '"max_payload_len" option is invalid'),
    ("max_payload_len = 2^24 + 1", '"max_payload_len" option is invalid'),
    ("enable_privileged_agent = 1", '"enable_privileged_agent" option must be a boolean'),
    ('testing = "yes"', '"testing" option must be a boolean'),
    ('transport = "pigeon"', "option 'transport': must be ring, socket or poll"),
]
# At both ends of what is allowed, whatever sluice.events itself takes.
RIGHT_OPTIONS = [
    "unique_timeout = 1e-9",
    "unique_timeout = 1e9",
    "max_queue_len = 0.5",
    "max_queue_len = 2^53",
    "max_payload_len = 0.5",
    "max_payload_len = 2^24",
    "enable_privileged_agent = true",
]


def thrown_at_line_3(library: Library, wire: Wire, call: str) -> str:
    """What a call throws; with the place of who called, and no other, before it."""
    code = f"return pcall(function()\n local _\n _ = {call}\n end)"
    ok, message = library.run(wire, code)[1]
    assert ok is False, call
    place, _, text = message.partition(":3: ")
    assert place.startswith('[string "local ev, notes'), (call, message)
    return text


class TestRestyEvents:
    """Of resty.events, and of its older interface where it is the same."""

    def test_options(self) -> None:
        with resty_events("ring") as library:
            wire = library.wires()[0]
            for option, text in WRONG_OPTIONS:
                listening = "" if "listening" in option else 'listening = "unix:x", '
                call = f'require("resty.events").new({{ {listening}{option} }})'
                assert thrown_at_line_3(library, wire, call) == text
            for opts, text in (
                ("", "Expected a table, got nil"),
                ("1", "Expected a table, got number"),
                ("{}", '"listening" option required to start'),
                ("{ testing = true }", '"listening" option required to start'),
            ):
                call = f'require("resty.events").new({opts})'
                assert thrown_at_line_3(library, wire, call) == text
            for option in RIGHT_OPTIONS:
                code = f"""
                    return require("resty.events").new({{ listening = "unix:x", {option} }}) ~= nil
                """
                assert library.run(wire, code)[1] == [True], option

    def test_options_where_the_caller_has_no_line(self) -> None:
        """pcall is C; a place is there all the same."""
        with resty_events("ring") as library:
            code = 'return pcall(require("resty.events").new, {})'
            ok, message = library.run(library.wires()[0], code)[1]
            assert ok is False
            pattern = r'.*resty/events/init\.lua:\d+: "listening" option required to start'
            assert re.fullmatch(pattern, message)

    def test_publish(self) -> None:
        with resty_events("ring") as library:
            wire = library.wires()[0]
            for wrong in ("nil", '""', "1", "{}", "false"):
                for arguments, name in (
                    (f'{wrong}, "s", "e"', "target"),
                    (f'"all", {wrong}, "e"', "source"),
                    (f'"current", "s", {wrong}', "event"),
                ):
                    call = f"ev:publish({arguments})"
                    assert thrown_at_line_3(library, wire, call) == f"{name} is required"
            for source in ('"*"', '"sluice"', '("x"):rep(4000)', '"\\31"'):
                text = thrown_at_line_3(library, wire, f'ev:publish("all", {source}, "e")')
                assert text.startswith("bad argument #2 to 'publish' (")

    def test_subscribe_and_unsubscribe(self) -> None:
        with resty_events("ring") as library:
            wire = library.wires()[0]
            for wrong in ("nil", '""', "1", "{}"):
                call = f'ev:subscribe({wrong}, "e", print)'
                assert thrown_at_line_3(library, wire, call) == "source is required"
                call = f'ev:subscribe("s", {wrong}, print)'
                assert thrown_at_line_3(library, wire, call) == "event is required"
                assert thrown_at_line_3(library, wire, f"ev:unsubscribe({wrong})") == (
                    "id is required"
                )
            for wrong, kind in (("nil", "nil"), ("1", "number"), ('"f"', "string")):
                call = f'ev:subscribe("s", "e", {wrong})'
                text = f"expected function, got: {kind}"
                assert thrown_at_line_3(library, wire, call) == text
            code = 'local id = ev:subscribe("s", "e", print) ev:unsubscribe(id) return type(id)'
            assert library.run(wire, code)[1] == ["string"]

    def test_what_cannot_be_published(self) -> None:
        init = RESTY_EVENTS.replace("@options@", "max_queue_len = 5, max_payload_len = 200")
        with Library(init, RESTY_EVENTS_WORKER, ":run()", "ring") as library:
            wire = library.wires()[0]
            code = 'return ev:publish("all", "s", "e", ("x"):rep(200))'
            text = "failed to publish event: payload exceeds the limitation (200)"
            assert library.run(wire, code)[1] == [None, text]
            ok, text = library.run(wire, 'return ev:publish("key", "s", "e", print)')[1]
            assert ok is None
            assert text.startswith("failed to publish event: not serialisable: ")
            code = """
                local results = {}
                for i = 1, 6 do results[i] = { ev:publish("current", "s", "e", i) } end
                return results[5], results[6]
            """
            assert library.run(wire, code)[1] == [
                [True],
                [None, "failed to publish event: queue overflow"],
            ]

    def test_the_older_interface(self) -> None:
        with Library("", COMPAT_WORKER, ".run()", "ring") as library:
            wire = library.wires()[0]
            for call, text in (
                ("ev.post()", "source is required"),
                ('ev.post("s")', "event is required"),
                ('ev.post_local("s", "")', "event is required"),
                ('ev.post("s", "e", 1, 7)', "target is required"),
                ("ev.register()", "expected function, got: nil"),
                ("ev.register_weak(1)", "expected function, got: number"),
                ("ev.unregister({})", "expected function, got: table"),
                ("ev.configure()", "Expected a table, got nil"),
                ("ev.configure({ broker_id = 2 })", '"broker_id" option is invalid'),
            ):
                assert thrown_at_line_3(library, wire, call) == text


# What `configure` of resty.worker.events answers to which options.
REFUSED = [
    *[
        (f'{name} = "1"', f'optional "{name}" option must be a number')
        for name in ("timeout", "interval", "wait_interval", "wait_max", "shm_retries")
    ],
    ("timeout = 0", '"timeout" must be greater than 0'),
    ("timeout = -1", '"timeout" must be greater than 0'),
    ("interval = -1", '"interval" must be greater than or equal to 0'),
    ("wait_interval = -1", '"wait_interval" must be greater than or equal to 0'),
    ("wait_max = -1", '"wait_max" must be greater than or equal to 0'),
    ("shm_retries = -1", '"shm_retries" must be 0 or greater'),
]


class TestRestyWorkerEvents:
    """Of resty.worker.events: wrong arguments give nil and a text, wrong kinds of them throw."""

    def test_configure(self) -> None:
        init_worker = 'notes.ev = require("resty.worker.events")'
        with Library("", init_worker, ".run()", "ring") as library:
            wire = library.wires()[0]
            for opts in ("", "1", '"shm"'):
                text = thrown_at_line_3(library, wire, f"ev.configure({opts})")
                assert text.startswith("Expected a table, got ")
            for opts, text in (
                ("{}", '"shm" option required to start'),
                ('{ shm = "nowhere" }', 'shm "nowhere" not found'),
                *((f'{{ shm = "process_events", {opt} }}', text) for opt, text in REFUSED),
            ):
                assert library.run(wire, f"return ev.configure({opts})")[1] == [None, text]
                assert library.run(wire, "return ev.configured()")[1] == [False]
            opts = 'shm = "process_events", timeout = 1e9, interval = 0, wait_max = 0'
            assert library.run(wire, f"return ev.configure({{ {opts} }})")[1] == [True]
            assert library.run(wire, "return ev.configured()")[1] == [True]
            for opts, text in (
                ('{ shm = "other" }', "Already started, cannot change shm"),
                *((f"{{ {opt} }}", text) for opt, text in REFUSED),
            ):
                assert library.run(wire, f"return ev.configure({opts})")[1] == [None, text]
            for opts in ('{ shm = "process_events", timeout = 1e-9 }', "{ timeout = 60 }"):
                assert library.run(wire, f"return ev.configure({opts})")[1] == [True]
            # A transport of ours that cannot be made is refused the same way.
            for more in ('transport = "pigeon"', 'transport = "socket"'):
                code = f'return ev.configure({{ shm = "process_events", {more} }})'
                ok, text = library.run(library.wires()[1], code)[1]
                assert ok is None
                assert text

    def test_post(self) -> None:
        with worker_events("ring") as library:
            library.expect_log('failed posting event "e" by "s"; not serialisable: ', 1)
            library.expect_log(r'failed posting event "\*" by "s"; bad argument', 1)
            wire = library.wires()[0]
            for post in ("post", "post_local"):
                for wrong in ("nil", '""', "1", "{}"):
                    code = f'return ev.{post}({wrong}, "e", 1)'
                    assert library.run(wire, code)[1] == [None, "source is required"]
                    code = f'return ev.{post}("s", {wrong}, 1)'
                    assert library.run(wire, code)[1] == [None, "event is required"]
            ok, text = library.run(wire, 'return ev.post("s", "e", print)')[1]
            assert ok is None
            assert text.startswith('failed posting event "e" by "s"; not serialisable: ')
            ok, text = library.run(wire, 'return ev.post("s", "*")')[1]
            assert ok is None
            assert text.startswith('failed posting event "*" by "s"; bad argument #3')

    def test_any_kind_of_key(self) -> None:
        """What one post of a key has, its repeats have not."""
        with worker_events("ring") as library:
            wire = library.wires()[0]
            for key in ("true", "7", '"true"', '"a key"'):
                library.run(wire, f'for i = 1, 3 do assert(ev.post("s", "e", i, {key})) end')
            library.run(wire, 'for i = 4, 5 do assert(ev.post("s", "e", i, false)) end')
            wires = library.wires()

            def heard() -> list[int]:
                notes = [library.run(w, "return notes.heard")[1][0] or [] for w in wires.values()]
                return sorted(n[3] for several in notes for n in several if n[1] == "s")

            wait_until(lambda: heard()[-2:] == [5, 5], "the last event")
            # true and "true" are one key; false is none.
            assert heard() == [1, 1, 1, 4, 4, 5, 5]

    def test_register(self) -> None:
        with worker_events("ring") as library:
            wire = library.wires()[0]
            for name in ("register", "register_weak", "unregister"):
                for wrong, kind in (("", "nil"), ("1", "number"), ("{}", "table")):
                    text = thrown_at_line_3(library, wire, f"ev.{name}({wrong})")
                    assert text == f"expected function, got: {kind}"


def debug_lines(library: Library) -> list[str]:
    """What the library logged at debug so far, without time and place."""
    found = re.findall(
        "(?:worker-events: |event published to |unique event is ).*", library.error_log()
    )
    return [re.sub(", (context|client): .*", "", line) for line in found]


def lines_through(library: Library, last: str, count: int) -> list[str]:
    """The same, once the last one is there so often."""
    wait_until(lambda: debug_lines(library).count(last) == count, last)
    return debug_lines(library)


class TestDebugLines:
    """Users search logs for them, and so do the originals' suites."""

    @pytest.mark.parametrize("transport", ["ring", "poll"])
    def test_resty_events(self, transport: str) -> None:
        publish = """
            ev:publish("all", "s", "one", 1)
            ev:publish("current", "s", "two", 1)
            ev:publish("key", "s", "three", 1)
            ev:publish("key", "s", "three", 1)
            ev:publish("all", "nobody", "end", 1)
        """
        handling = "worker-events: handling event; source="
        with resty_events(transport, level="debug") as library:
            wires = library.wires()
            wait_until(
                lambda: all(library.run(w, "return ev:is_ready()")[1][0] for w in wires.values()),
                "both to be ready",
            )
            for wire in wires.values():
                # Before the handlers.
                code = (
                    'ev:subscribe("s", "*", function(_, e) ngx.log(8, "worker-events: my ", e) end)'
                )
                library.run(wire, code)
            library.run(wires[1], publish)
            lines = lines_through(library, f"{handling}nobody, event=end, wid=1", 2)
        expected = {
            "event published to 2 workers": 2,
            "event published to 1 workers": 1,
            "unique event is duplicate on worker #1: key": 1,
            f"{handling}s, event=one, wid=1": 2,
            f"{handling}s, event=two, wid=nil": 1,
            f"{handling}s, event=three, wid=1": 1,
            f"{handling}nobody, event=end, wid=1": 2,
        }
        assert {line: lines.count(line) for line in expected} == expected
        mine = [line for line in lines if "event=two" in line or "my two" in line]
        assert mine == [f"{handling}s, event=two, wid=nil", "worker-events: my two"]

    def test_resty_worker_events(self) -> None:
        handling = "worker-events: handling event; source="
        with worker_events("ring", level="debug") as library:
            wire = library.wires()[0]
            pid = library.run(wire, "return ngx.worker.pid()")[1][0]
            library.run(wire, 'ev.post("s", "one") ev.post_local("s", "two") ev.post("s", "end")')
            lines = lines_through(library, f"{handling}s, event=end, pid={pid}", 2)
        assert lines.count(f"{handling}s, event=one, pid={pid}") == 2
        assert lines.count(f"{handling}s, event=two, pid=nil") == 1
        assert f"{handling}resty-worker-events, event=started, pid={pid}" in lines

    def test_none_where_nothing_is_logged_at_debug(self) -> None:
        with resty_events("ring", level="info") as library:
            wire = library.wires()[0]
            wait_until(lambda: library.run(wire, "return ev:is_ready()")[1][0], "it to be ready")
            code = """
                local subscribed = {}
                for i, one in ipairs(ev.bus:stats()) do subscribed[i] = one.source end
                return subscribed
            """
            assert library.run(wire, code)[1] == [["*", "source", "source"]]
