"""Instructions: a dump by hand, verdicts, and a gateway with a part whose count is known."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import callgrind
import instructions
import plugin_instructions
import pytest
import scenario as scenarios
import sides
import symbols

DUMP = """\
# callgrind format
version: 1
part: 2

positions: line
events: Ir
summary: 1000


ob=(16) /opt/nginx
fl=(1) ???
fn=(3) ngx_palloc
0 100
cob=(7) /usr/lib/libc.so.6
cfi=(1)
cfn=(4) malloc
calls=2 0
0 700
+3 10

fn=(10) ngx_palloc.constprop.0.isra.2
+1 10

fn=(9) 0x0000000000023010
* 30
fi=(2) inlined.c
-1 50

ob=(7)
fl=(1)
fn=(4)
0 700

ob=(18) ???
fn=(11) 0x00000000007e0010
0 60

ob=(20) /usr/lib/libluajit-5.1.so.2
fn=(12) 0x0000000000001234
0 40


totals: 1000
"""


def test_a_dump_is_read_by_function_without_what_that_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = callgrind.parse(DUMP)
    assert counts == {
        ("/opt/nginx", "ngx_palloc"): 110,
        ("/opt/nginx", "ngx_palloc.constprop.0.isra.2"): 10,
        ("/opt/nginx", "0x0000000000023010"): 80,
        ("/usr/lib/libc.so.6", "malloc"): 700,
        ("???", "0x00000000007e0010"): 60,
        ("/usr/lib/libluajit-5.1.so.2", "0x0000000000001234"): 40,
    }
    monkeypatch.setattr(symbols, "exported", lambda _: ([0x23000], ["ngx_first"]))
    assert callgrind.named(counts) == {
        ("nginx", "ngx_palloc"): 120,
        ("nginx", "~ngx_first"): 80,
        ("libc.so.6", "malloc"): 700,
        ("???", callgrind.JIT): 60,
        ("libluajit-5.1.so.2", callgrind.VM): 40,
    }


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (DUMP.replace("totals: 1000", "totals: 1001"), "has 1001 instructions, read were 1000"),
        (DUMP.partition("totals")[0], "has no instructions, read were 1000"),
        (DUMP.replace("fn=(4)\n", "fn=(5)\n"), "names '(5)', which is unknown"),
    ],
)
def test_a_dump_that_is_not_whole_is_refused(broken: str, said: str) -> None:
    with pytest.raises(callgrind.CallgrindError) as caught:
        callgrind.parse(broken)
    assert said in str(caught.value)


def test_malloc_and_its_like_are_counted_apart() -> None:
    names = ["_int_free", "__libc_malloc", "posix_memalign", "unlink_chunk.constprop.0", "calloc"]
    others = ["memset", "freeaddrinfo", "malloc_usable"]
    counts = Counter({("libc.so.6", name): 10 for name in names})
    assert callgrind.heap(counts) == 50
    counts.update({("libc.so.6", name): 10 for name in others} | {("busy.so", "malloc"): 10})
    assert callgrind.heap(counts) == 50


def counted(*lives: tuple[int, int]) -> instructions.Counted:
    """Lives of ten requests, with so many instructions in a function and in malloc."""
    out = instructions.Counted()
    for own, heap in lives:
        out.add(Counter({("nginx", "f"): own * 10, ("libc.so.6", "malloc"): heap * 10}), 10)
    return out


def test_a_heap_that_lies_otherwise_hides_no_change() -> None:
    old = counted((1000, 10), (1002, 40), (1001, 10))
    new = counted((1010, 40), (1011, 10), (1012, 10))
    rows = {row.name: row for row in instructions.compared(new, old)}
    assert rows["instructions"].verdict == "same"
    assert rows["instructions"].old == 1012 - 1
    assert rows[instructions.WITHOUT_HEAP].verdict == "more"
    assert rows[instructions.WITHOUT_HEAP].ratio.low == pytest.approx(1010 / 1002)
    back = {row.name: row for row in instructions.compared(old, new)}
    assert back[instructions.WITHOUT_HEAP].verdict == "fewer"
    scenario = scenarios.load("proxy-plain")
    assert isinstance(scenario, scenarios.Scenario)
    said = instructions.text(scenario, [new, old])
    assert "without_malloc: more, new / old is 1.0100 (1.0080 to 1.0120)" in said
    assert "+10" in said
    assert "`f`" in instructions.text(scenario, [new])


@pytest.mark.parametrize("name", ["proxy-tls", "proxy-h2", "micro", "nothing"])
def test_what_cannot_be_counted_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert instructions.main(["--scenario", name]) == 1
    assert name in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_a_known_answer(tmp_path: Path) -> None:
    library = tmp_path / "busy.so"
    command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library]
    subprocess.run([*command, Path(__file__).parent / "busy.c"], check=True)
    scenario = scenarios.load("proxy-plain")
    assert isinstance(scenario, scenarios.Scenario)
    plan = instructions.Plan(warm_up=200, requests=200)
    counts, requests = instructions.life(
        scenario, sides.ROOT, plan, added={"LD_PRELOAD": str(library)}
    )
    assert requests == 200
    # One write to the upstream and one to the client, and a few instructions around the 5,000.
    assert counts["busy.so", "writev"] / requests == pytest.approx(10_000, rel=0.005)
    # One line of the request, one of the upstream's answer: both are parsed once a request.
    assert counts["nginx", "ngx_http_parse_request_line"] > 0
    assert counts["nginx", "ngx_http_parse_status_line"] > 0
    # Starting is not in it: that alone has millions.
    assert counts.total() / requests < 100_000


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind is not installed")
def test_what_a_plugin_adds(capsys: pytest.CaptureFixture[str]) -> None:
    """A request that the gateway answers by itself costs less than one that it passes on."""
    assert plugin_instructions.main(["redirect"]) == 0
    said = capsys.readouterr().out
    _, name, *counts, _ = next(line for line in said.splitlines() if "| redirect" in line).split(
        "|"
    )
    without, added, more, ratio = (float(count.replace(",", "")) for count in counts)
    assert name.strip() == "redirect"
    assert without > added > 1000
    assert more == pytest.approx(added - without, abs=1)
    assert ratio < 0.9
    # Third of what is listed: no head is written for an upstream.
    assert "`ngx_http_sluice_head_write`" in said
