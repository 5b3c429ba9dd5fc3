"""What Connection names goes no further, and costs little however much it names."""

import random
from collections.abc import Iterator
from functools import partial

import pytest

from processes import check_cost
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Pairs

MAX_NAMES = 32
MAX_LINES = 1000

STAYING = ["keep-alive", "close", "host", "content-length", "transfer-encoding"]

# nginx has a place of its own for each of these.
KNOWN = [
    "Accept",
    "Accept-Language",
    "Authorization",
    "Content-Type",
    "Cookie",
    "If-Modified-Since",
    "Range",
    "Referer",
    "User-Agent",
]

# Reads and writes headers after some are gone: those that the client sent, and new ones.
PROBE = """
return {
    VERSION = "1", PRIORITY = 1, schema = { name = "probe", fields = {
        { config = { type = "record", fields = {} } } } },
    access = function()
        local names = {}
        for name in pairs(ngx.req.get_headers(0)) do
            names[#names + 1] = name
        end
        table.sort(names)
        for _, name in ipairs({ "User-Agent", "Cookie", "X-A", "X-New", "X-New-2", "Referer" }) do
            if ngx.var["http_" .. name:lower():gsub("-", "_")] then
                ngx.req.set_header(name, "theirs")
            elseif name ~= "X-A" then
                ngx.req.set_header(name, "ours")
            end
        end
        ngx.req.clear_header("X-B")
        ngx.req.set_header("X-Names", table.concat(names, " "))
    end,
}
"""


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        yield server


@pytest.fixture(scope="module")
def running(upstream: Upstream) -> Iterator[Gateway]:
    with Gateway(proxying(upstream)) as gateway:
        yield gateway


def passed(running: Gateway, upstream: Upstream, headers: Pairs) -> list[tuple[str, str]] | None:
    """The X- headers and those of KNOWN that reach the upstream; None if the request is refused."""
    before = len(upstream.requests)
    reply = running.ask("/", headers=headers)
    if reply.status == 400:
        assert len(upstream.requests) == before
        return None
    assert reply.status == 200
    ours = {"x-real-ip", "x-kong-request-id"}
    return [
        (name, value)
        for name, value in upstream.last.headers
        if name in KNOWN
        or (name.startswith("X-") and name.lower() not in ours and "orwarded" not in name)
    ]


def expected(headers: list[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """The slow, obvious way."""
    named = {
        name.lower()
        for line, value in headers
        if line.lower() == "connection"
        for name in value.replace(",", " ").split()
    } - set(STAYING)
    if len(named) > MAX_NAMES or len(headers) > MAX_LINES:
        return None
    return [(n, v) for n, v in headers if n.lower() not in named | {"connection"}]


def names(count: int) -> list[str]:
    return [f"X-{number}" for number in range(count)]


def test_each_line_counts(running: Gateway, upstream: Upstream) -> None:
    for lines in (["keep-alive", "X-A"], ["close", "x-a"], ["", " ,, ", "keep-alive,X-a"]):
        headers = [("Connection", line) for line in lines]
        headers[1:1] = [("X-A", "1"), ("X-B", "2"), ("x-a", "3")]
        assert passed(running, upstream, headers) == [("X-B", "2")], lines


@pytest.mark.parametrize("separator", [",", ", ", " ", ",\t,", " , "])
@pytest.mark.parametrize("count", [1, MAX_NAMES - 1, MAX_NAMES, MAX_NAMES + 1, 1000])
def test_names_are_limited(
    running: Gateway, upstream: Upstream, separator: str, count: int
) -> None:
    headers = [("Connection", separator.join(names(count))), ("X-0", "a"), ("X-Kept", "b")]
    seen = passed(running, upstream, headers)
    assert seen == (None if count > MAX_NAMES else [("X-Kept", "b")])


def test_the_limit_is_of_all_lines_together(running: Gateway, upstream: Upstream) -> None:
    for count in (MAX_NAMES, MAX_NAMES + 1):
        headers = [("Connection", name) for name in names(count)] + [("X-0", "a"), ("X-K", "b")]
        assert passed(running, upstream, headers) == expected(headers)


def test_the_same_name_counts_once(running: Gateway, upstream: Upstream) -> None:
    """Spelled in all ways, and those that name nothing: thousands of them are one."""
    spellings = ["X-Private", "x-private", "X-PRIVATE", *STAYING, "Close", "KEEP-ALIVE"]
    line = ",".join(spellings * 60)
    headers = [("Connection", line)] * 4 + [("x-Private", "a"), ("X-Kept", "b")]
    assert passed(running, upstream, headers) == [("X-Kept", "b")]


def test_header_lines_are_limited(running: Gateway, upstream: Upstream) -> None:
    for count in (MAX_LINES, MAX_LINES + 1):
        headers = [("Host", "a")] + [("X-A", "")] * (count - 1)
        seen = passed(running, upstream, headers)
        assert (seen is None) == (count > MAX_LINES)


@pytest.mark.parametrize("seed", range(4))
def test_random_headers(running: Gateway, upstream: Upstream, seed: int) -> None:
    """As the slow, obvious way says, whatever stands at the ends of nginx's blocks of 20."""
    dice = random.Random(seed)
    pool = [*KNOWN, *(f"X-{letter}" for letter in "ABCDEFGH")]
    for _ in range(60):
        headers = [(dice.choice(pool), str(n)) for n in range(dice.choice([3, 19, 20, 21, 45, 90]))]
        for _ in range(dice.randint(1, 3)):
            line = ", ".join(dice.sample(pool + STAYING, dice.randint(1, 6)))
            at = dice.randint(0, len(headers))
            headers.insert(at, ("Connection", dice.choice([line, "X-A"])))
        headers = dice.sample(headers, len(headers))
        kept = expected(headers)
        assert kept is not None
        # nginx takes one line of some, refuses or joins others: of those, whether any came.
        seen = passed(running, upstream, once(headers))
        assert seen is not None
        assert seen == [pair for pair in once(headers) if pair in kept]


def once(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without the second line of a header that nginx knows, but for cookies."""
    seen: set[str] = set()
    out = []
    for name, value in headers:
        if name not in seen or name not in KNOWN or name == "Cookie":
            out.append((name, value))
        seen.add(name)
    return out


@pytest.mark.parametrize("seed", range(2))
def test_plugins_set_headers_after_some_are_gone(
    gateway: Start, upstream: Upstream, seed: int
) -> None:
    dice = random.Random(seed)
    config = proxying(upstream) | {"plugins": [{"name": "probe"}]}
    running = gateway(config, plugins={"probe": PROBE})
    pool = ["User-Agent", "Cookie", "Referer", "X-A", "X-B", "X-C"]
    with running.wire() as wire:
        for _ in range(100):
            sent = [(name, "sent") for name in dice.sample(pool, dice.randint(0, 6))]
            sent += [(f"X-Fill-{n}", "x") for n in range(dice.choice([0, 0, 14, 20, 40]))]
            sent = dice.sample(sent, len(sent))
            named = dice.sample([*pool, "X-Fill-1", "X-Fill-13"], dice.randint(1, 4))
            headers = [*sent, ("Connection", ", ".join(named))]
            assert wire.ask("/", headers=headers).status == 200
            seen = upstream.last.headers
            left = {name for name, _ in sent} - set(named)
            told = set((seen.get("x-names") or "").split())
            assert told == {name.lower() for name in left} | {"host", "connection"}
            for name in ("User-Agent", "Cookie", "Referer"):
                assert seen.all(name) == ["theirs" if name in left else "ours"], name
            assert seen.all("X-A") == (["theirs"] if "X-A" in left else [])
            assert seen.all("X-New") == seen.all("X-New-2") == ["ours"]
            assert "x-b" not in seen
            fills = [n for n, _ in seen if n.startswith("X-Fill")]
            assert fills == [n for n, _ in sent if n.startswith("X-Fill") and n not in named]


def test_the_most_that_a_client_may_send_costs_little(running: Gateway, upstream: Upstream) -> None:
    """Names by lines: no product of the two. CPU time of the worker, not of the clock."""
    named = ",".join(names(MAX_NAMES))
    worst = {
        "names and lines": [("Connection", named)] + [("X-0", "")] * 900,
        "no such lines": [("Connection", named)] + [("Y-0", "")] * 900,
        "every other line": [("Connection", named)] + [("X-0", ""), ("Y-0", "")] * 450,
        "the same name": [("Connection", ",".join(["X-0"] * 1900))] * 3 + [("X-0", "")] * 900,
        "many names": [("Connection", ",".join(["y"] * 3900)), *[("X-0", "")] * 950],
        "many more": [("Connection", ",".join(names(1100))), *[("X-0", "")] * 950],
    }
    (worker,) = running.workers()

    def ask(headers: list[tuple[str, str]]) -> None:
        for _ in range(10):
            assert running.ask("/", headers=headers).status in (200, 400)

    for what, headers in worst.items():
        print(what)
        check_cost(worker, 10 * 0.001, partial(ask, headers))
