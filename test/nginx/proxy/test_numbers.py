"""Numbers that are none, without end, negative or too large, as every argument and option of the
libraries that takes a number: refused at the caller, with its name."""

import pytest

from events_nginx import Events
from wire import wait_until

NOT_A_NUMBER = "0/0"
NEVER = (NOT_A_NUMBER, "math.huge", "-math.huge", "-1", "1e300")
"""Good for no time and no count."""
UNORDERED = (NOT_A_NUMBER, "-math.huge", "-1")
"""The names of other libraries have no upper bounds there."""

TIMER = "local t = require('sluice.timer').new() t:start() local function f() probe.ran = true end "
TIMERNG = (
    "local t = require('resty.timerng').new() t:start() local function f() probe.ran = true end "
)
EVENTS = "require('sluice.events').new"
COMPAT = "local o = { listening = 'unix:/none', %s = VALUE } require('resty.events').new(o)"
WORKER = (
    "assert(require('resty.worker.events').configure("
    "{ shm = 'sluice_events', transport = 'poll', %s = VALUE }))"
)
QUEUE = """
    local settings = { max_batch_size = 1, max_coalescing_delay = 1, max_entries = 9,
        initial_retry_delay = 1, max_retry_delay = 1, max_retry_time = 1, concurrency_limit = 1 }
    local opts = { name = "q", current = function() return settings end }
    %s = VALUE
    require("sluice.queue").new(opts)
"""

CASES = {
    **{TIMER + f"t:{verb}(VALUE, f)": NEVER for verb in ("at", "every")},
    **{TIMER + f"t:named_{verb}('n', VALUE, f)": NEVER for verb in ("at", "every")},
    **{
        TIMER + f"t:every({{ interval = 1, {option} = VALUE }}, f)": NEVER
        for option in ("delay", "interval", "jitter", "tolerance", "warn_after", "level")
    },
    **{
        f"require('sluice.timer').new({{ {option} = VALUE }})": NEVER
        for option in ("max_contexts", "min_contexts", "tolerance")
    },
    **{TIMERNG + f"t:{verb}(VALUE, f)": NEVER for verb in ("at", "every")},
    **{TIMERNG + f"t:named_{verb}('n', VALUE, f)": NEVER for verb in ("at", "every")},
    **{
        f"require('resty.timerng').new({{ {option} = VALUE, max_threads = 9 }})": NEVER
        for option in (
            "resolution",
            "restart_thread_after_runs",
            "auto_scaling_load_threshold",
            "auto_scaling_interval",
            "min_threads",
        )
    },
    **{
        f"{EVENTS}({{ {option} = VALUE }})": NEVER
        for option in ("queue_len", "queue_bytes", "max_payload_len", "unique_timeout")
    },
    "ev:publish({ worker = VALUE }, 's', 'e')": (*NEVER, "0.5", "1023"),
    "ev:publish({ key = 'k', timeout = VALUE }, 's', 'e')": NEVER,
    **{
        f"{EVENTS}({{ transport = 'poll', {option} = VALUE }})": NEVER
        for option in ("interval", "wait_max")
    },
    **{
        f"{EVENTS}({{ transport = 'socket', listening = 'unix:/none', {option} = VALUE }})": NEVER
        for option in ("stall_timeout", "broker_id")
    },
    **{COMPAT % o: UNORDERED for o in ("unique_timeout", "max_queue_len", "max_payload_len")},
    COMPAT % "broker_id": NEVER,
    COMPAT.replace("'unix:/none'", "'unix:/none', transport = 'poll'") % "interval": NEVER,
    **{WORKER % o: UNORDERED for o in ("timeout", "wait_interval", "shm_retries")},
    **{WORKER % o: NEVER for o in ("interval", "wait_max")},
    **{
        QUEUE % name: NEVER
        for name in (
            "opts.drain_time",
            "settings.max_batch_size",
            "settings.max_coalescing_delay",
            "settings.max_entries",
            "settings.initial_retry_delay",
            "settings.max_retry_delay",
        )
    },
    QUEUE % "settings.max_retry_time": (NOT_A_NUMBER, "math.huge", "-math.huge", "'1'", "nil"),
}


def test_what_is_no_number_of_its_kind_is_refused() -> None:
    with Events(workers=1) as ring:
        ring.ready()
        passed = []
        for code, values in CASES.items():
            for value in values:
                # A tail call would leave no line to name.
                lua = code.replace("VALUE", f"({value})")
                ok, error = ring.run(
                    0,
                    f"local ok, err = pcall(function()\n{lua} end)\nreturn {{ ok, tostring(err) }}",
                )
                if ok or "attempt to" in error or "not found" in error:
                    passed.append((lua, error))
        assert passed == []
        assert ring.run(0, "return probe.ran == nil")


@pytest.mark.parametrize("library", [TIMER, TIMERNG], ids=["timer", "timerng"])
def test_what_is_a_time_is_taken(library: str) -> None:
    """Nothing that is a century away runs at once, and nothing that is due waits."""
    with Events(workers=1) as ring:
        ring.ready()
        far = ("1e11", "2^36", "2^32", "86400 * 25", "86399")
        for value in far:
            assert ring.run(0, library + f"return t:at({value}, f) ~= nil")
        assert ring.run(0, "ngx.sleep(0.05) return probe.ran == nil")
        for value in ("-0", "0", "1e-300", "0.0005"):
            assert ring.run(0, library + f"probe.ran = nil return t:at({value}, f) ~= nil")
            wait_until(lambda: ring.run(0, "return probe.ran"), value)
