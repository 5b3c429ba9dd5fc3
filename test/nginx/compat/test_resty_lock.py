"""resty.lock, resty.counter and the named UUIDs of resty.jit-uuid, over workers."""

from collections.abc import Iterator

import pytest

from nginx import Nginx
from wire import Wire, wait_until

CONF = """
    lua_shared_dict locks 1m;
    lua_shared_dict counters 1m;
    server { listen 127.0.0.1:@port@ reuseport; @runs@ }
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Nginx]:
    with Nginx(CONF, workers=2) as running:
        yield running


@pytest.fixture
def wire(server: Nginx) -> Iterator[Wire]:
    with server.wire() as connection:
        yield connection


NEW_COUNTER = 'local c = require("resty.counter").new("counters")\n'
LOCK = 'local lock = assert(require("resty.lock"):new("locks", { timeout = %s, exptime = %s }))\n'


def test_one_at_a_time(server: Nginx) -> None:
    """Over both workers: a counter that is read, and written a turn later, loses nothing."""
    code = (
        LOCK % (20, 20)
        + """
        local dict = ngx.shared.locks
        for _ = 1, 20 do
            assert(lock:lock("one"))
            local count = dict:get("count") or 0
            ngx.sleep(0.001)
            dict:set("count", count + 1)
            assert(lock:unlock())
        end
        return ngx.worker.id()
    """
    )
    wires = [server.wire() for _ in range(6)]
    for wire in wires:
        server.send_code(wire, code)
    workers = {server.answer_on(wire) for wire in wires}
    for wire in wires:
        wire.close()
    assert workers <= {0, 1}
    with server.wire() as wire:
        assert server.run_on(wire, 'return ngx.shared.locks:get("count")') == 120


def test_words(server: Nginx, wire: Wire) -> None:
    code = (
        LOCK % (0.05, 30)
        + """
        local other = require("resty.lock"):new("locks", { timeout = 0.05 })
        local said = {
            { require("resty.lock"):new("nowhere") }, { lock:lock(nil) }, { lock:unlock() },
            { lock:expire() }, { lock:lock("words") }, { lock:lock("words") },
        }
        local begun = ngx.now()
        local taken, err = other:lock("words")
        ngx.update_time()
        said[7] = { err, taken == nil and ngx.now() - begun >= 0.045 }
        said[8] = { lock:unlock() }
        said[9] = { other:lock("words") }
        said[10] = { other:unlock() }
        for i, values in ipairs(said) do
            for n = 1, 2 do
                values[n] = values[n] == nil and "nil" or values[n]
            end
        end
        return said
    """
    )
    assert server.run_on(wire, code) == [
        ["nil", "dictionary not found"],
        ["nil", "nil key"],
        ["nil", "unlocked"],
        ["nil", "unlocked"],
        [0, "nil"],
        ["nil", "locked"],
        ["timeout", True],
        [1, "nil"],
        [0, "nil"],
        [1, "nil"],
    ]


def test_who_has_lost_a_lock_takes_it_from_nobody(server: Nginx, wire: Wire) -> None:
    """The first one's has expired, and the second has it: the first may give it back, and be
    collected, without a third one getting in."""
    code = (
        LOCK % (0.02, 0.05)
        + """
        assert(lock:lock("lost"))
        ngx.sleep(0.06)
        local second = require("resty.lock"):new("locks")
        local third = require("resty.lock"):new("locks", { timeout = 0 })
        assert(second:lock("lost"))
        local said = { tostring(select(2, lock:expire())), tostring(lock:unlock()) }
        said[3] = select(2, third:lock("lost"))
        lock = nil
        collectgarbage() collectgarbage()
        said[4] = select(2, third:lock("lost"))
        -- One that nobody has any more is free.
        second = nil
        collectgarbage() collectgarbage()
        said[5] = third:lock("lost")
        third:unlock()
        return said
    """
    )
    assert server.run_on(wire, code) == ["not found", "1", "timeout", "timeout", 0]


def test_a_lock_lives_longer(server: Nginx, wire: Wire) -> None:
    code = (
        LOCK % (0, 0.05)
        + """
        assert(lock:lock("long"))
        assert(lock:expire(20))
        ngx.sleep(0.1)
        local other = require("resty.lock"):new("locks", { timeout = 0 })
        local said = select(2, other:lock("long"))
        return { said, (lock:unlock()) }
    """
    )
    assert server.run_on(wire, code) == ["timeout", 1]


def test_counters_add_up(server: Nginx) -> None:
    code = """
        local counter = require("resty.counter").new("counters", 0.01)
        for _ = 1, 100 do counter:incr("a") end
        counter:incr("b", -2)
        return ngx.worker.id()
    """
    for _ in range(8):
        with server.wire() as wire:
            server.run_on(wire, code)
    with server.wire() as wire:

        def counted() -> bool:
            said = server.run_on(wire, NEW_COUNTER + 'return { c:get("a"), c:get("b") }')
            return said == [800, -16]

        wait_until(counted, "all increments")
        code = (
            NEW_COUNTER
            + """
            return { c:reset("a", 300), (select(2, c:reset("a"))), #c:get_keys() }
        """
        )
        assert server.run_on(wire, code) == [500, "expect a number at #2", 2]
        thrown = """return {
            select(2, pcall(require("resty.counter").new, "nowhere")),
            select(2, pcall(require("resty.counter").new, "counters", -1)),
        }"""
        said = server.run_on(wire, thrown)
        assert said[0].endswith('shared dict "nowhere" not defined')
        assert said[1].endswith("expect sync_interval to be a positive number")


def test_what_there_is_no_room_for_is_counted_later(server: Nginx, wire: Wire) -> None:
    code = """
        local dict, full = ngx.shared.counters, {}
        function full.incr()
            return nil, "no memory"
        end
        local counter = require("resty.counter").new("counters")
        counter.dict = full
        counter:incr("late", 3)
        local first = counter:sync()
        counter.dict = dict
        return { first, counter:sync(), dict:get("late") }
    """
    assert server.run_on(wire, code) == [False, True, 3]


def test_named_uuids(server: Nginx, wire: Wire) -> None:
    """RFC 9562, appendix A.2 and A.4: names in the namespace of DNS."""
    code = """
        local uuid = require("resty.jit-uuid")
        local dns = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
        return {
            uuid.generate_v3(dns, "www.example.com"), uuid.generate_v5(dns, "www.example.com"),
            select(2, uuid.generate_v5("no", "a")), select(2, uuid.factory_v3(dns)(1)),
            uuid.is_valid(uuid.generate_v4()),
        }
    """
    assert server.run_on(wire, code) == [
        "5df41881-3aed-3515-88a7-2f4a814cf09e",
        "2ed6657d-e927-568b-95e1-2665a8aea6a2",
        "namespace must be a valid UUID",
        "name must be a string",
        True,
    ]


def test_workers_of_one_master_have_other_uuids(server: Nginx) -> None:
    seen = set()
    for _ in range(20):
        with server.wire() as wire:
            seen.add(server.run_on(wire, 'return require("resty.jit-uuid")()'))
    assert len(seen) == 20
