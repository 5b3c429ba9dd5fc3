"""Flame graphs: stacks joined from recordings by hand, and one whose answer is known."""

import os
import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import events
import flame
import pytest
import scenario as scenarios
import sides
import stacks
import symbols
from probe import Client

PERF = """\
nginx  4242  100.000000500: cpu-clock:
\tffffffff81000010 tcp_sendmsg ([kernel.kallsyms])
\t    7f0000001000 writev (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t    561000023010 [unknown] (/opt/nginx)
\t    561000024000 ngx_process_events_and_timers (/opt/nginx)
\t    561000024100 main (/opt/nginx)

nginx  4242  100.000001000: cpu-clock:
\t    7f0000002000 memcpy (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t    7e0000000010 [unknown] (/tmp/perf-4242.map)
\t    7f0000003000 lua_resume (/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0)
\t    561000024500 ngx_http_lua_run_thread (/opt/modules/lua.so)
\t    561000024000 ngx_process_events_and_timers (/opt/nginx)

nginx  4242  100.000002000: cpu-clock:
\t    7e0000000020 [unknown] (/tmp/perf-4242.map)

nginx  4242  100.000003000: cpu-clock:
\t    7f0000003100 [unknown] (/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0)
\t    561000024500 ngx_http_lua_run_thread (/opt/modules/lua.so)
\t    561000024000 ngx_process_events_and_timers (/opt/nginx)

nginx  4242  100.000009000: cpu-clock:
\t    561000024000 ngx_process_events_and_timers (/opt/nginx)
"""

SAID = f"""\
T 99000000000 {0x7E0000000000} 64 1 old.lua:1
T 99500000000 {0x7E0000000000} 64 1 init.lua:7
S 100000000900 N access@@/tree/gateway/init.lua:5;other@@/tree/gateway/proxy/phases.lua:1;
S 100000001100 N access@@/tree/gateway/init.lua:9;match@@/tree/gateway/router/init.lua:40;
S 100000002100 N access@@/tree/gateway/init.lua:10;
S 100000003100 I access@@/tree/gateway/init.lua:11;
S 100000003200 I a line that was never fini
T 1000
"""


KERNEL_SEND = f"tcp_sendmsg{stacks.KERNEL}"


def joined() -> dict[str, int]:
    said = stacks.parse_said(SAID, "/tree")
    folded = stacks.fold(stacks.join(stacks.parse_perf(PERF), said))
    return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in folded.splitlines()}


def test_stacks_are_joined_by_time() -> None:
    c, lua = "worker;ngx_http_lua_run_thread;access gateway/init.lua", stacks.LUA
    assert joined() == {
        # No Lua in it, whatever the sampler said next.
        f"worker;[nginx];writev;{KERNEL_SEND}": 1,
        # C that a trace calls, of the trace that has these addresses by then.
        f"{c}:9{lua};match gateway/router/init.lua:40{lua};"
        f"trace init.lua:7{stacks.TRACE};memcpy": 1,
        # perf saw no caller: the same as of other stacks of this function.
        f"{c}:10{lua};trace init.lua:7{stacks.TRACE}": 1,
        f"{c}:11{lua};LuaJIT": 1,
        # Behind the last that the sampler said: it says nothing where no Lua runs.
        "worker": 1,
    }


def test_code_without_a_name_is_called_after_what_is_before_it() -> None:
    listed = "0000000000023000 T ngx_first\n0000000000023100 T ngx_next@@V1\n0000000000090000 D x\n"
    table = symbols.parse_nm(listed)
    places = [symbols.near(table, place) for place in (0x22FFF, 0x23000, 0x230FF, 0x99999)]
    assert places == [None, "~ngx_first", "~ngx_first", "~ngx_next"]
    samples = stacks.named(stacks.parse_perf(PERF), lambda path: ([1], [path.rpartition("/")[2]]))
    assert [frame.name for frame in samples[0].frames[2:]] == ["~nginx", "writev", KERNEL_SEND]
    # The VM's own code, and the JIT's, is named otherwise.
    assert [frame.symbol for frame in samples[3].frames[-1:]] == [stacks.UNKNOWN]
    assert [frame.symbol for frame in samples[2].frames] == [stacks.UNKNOWN]


def test_two_recordings_become_one_of_the_size_of_the_new_one() -> None:
    old, new = Counter({("a", "b"): 50}), Counter({("a", "b"): 60, ("a", "c"): 40})
    assert stacks.difference(old, new) == "a;b 100 60\na;c 0 40\n"


def test_shares_count_a_frame_once_a_stack() -> None:
    counts = stacks.unfold("a;b;a 3\na;[nginx] 1\n")
    assert stacks.shares(counts) == {"a": 1.0, "b": 0.75, "[nginx]": 0.25}
    assert stacks.unnamed(counts) == {"[nginx]": 0.25}


def test_each_sample_is_in_one_layer() -> None:
    lua, kernel = stacks.LUA, stacks.KERNEL
    counts = Counter(
        {
            ("worker", "ngx_writev", "__GI___writev", f"do_writev{kernel}", f"tcp{kernel}"): 4,
            (
                "worker",
                f"run plugins/key-auth/handler.lua:9{lua}",
                f"get resty/x.lua:1{lua}",
                "f",
            ): 3,
            ("worker", f"f access_by_lua:1{lua}", "__GI___recv", f"recv{kernel}"): 1,
            ("worker", "~ngx_http_lua_run"): 1,
            ("worker", "ngx_palloc"): 1,
        }
    )
    assert stacks.layers(counts) == {
        "kernel: __writev": 0.4,
        "Lua: plugins/key-auth/handler.lua": 0.3,
        "kernel: __recv": 0.1,
        "C: the Lua module": 0.1,
        "C: nginx and libraries": 0.1,
    }


needs_tools = pytest.mark.skipif(bool(flame.missing()), reason=f"missing: {flame.missing()}")
needs_rights = pytest.mark.skipif(
    os.geteuid() != 0 or not flame.permitted(), reason="perf needs root's rights"
)


@needs_tools
def test_a_picture_needs_nothing_beside_itself() -> None:
    folded = f"worker;match gateway/router/init.lua:40{stacks.LUA};a_<b> 30\nworker;c 10\n"
    svg = flame.render(folded, "title", "subtitle")
    assert "match gateway/router/init.lua:40" in svg
    assert stacks.LUA not in svg
    assert flame.colour(f"match gateway/router/init.lua:40{stacks.LUA}") in svg
    for reference in ("href=", "src=", "@import", "url("):
        assert f'{reference}"http' not in svg
    changed = flame.render("worker;a 10 20\nworker;b 10 0\n", "t", "", differential=True)
    assert "+50" in changed


class Known(sides.Nginx):
    """An nginx whose Lua is known.conf's."""

    def __init__(self, folder: Path, address: str, recording: Path) -> None:
        super().__init__("known", folder, address, 0, modules="", recording=str(recording))

    def write(self) -> None:
        (self.folder / "tmp").mkdir()
        text = (Path(__file__).parent / "known.conf").read_text()
        words = self._words | {"modules": events.load_modules(sides.ROOT)}
        (self.folder / "nginx.conf").write_text(scenarios.fill(text, words))


@pytest.mark.long
@needs_tools
@needs_rights
def test_a_known_answer(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    recording.mkdir()
    flame.write_sampler(recording, "flame-sampler.lua")
    known = (Path(__file__).parent / "known.lua").read_text()
    (recording / "known.lua").write_text(known)
    address = sides.free_address()
    over = threading.Event()

    def ask(_: int) -> None:
        with Client(address) as client:
            while not over.is_set():
                assert client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").status == 200

    with Known(tmp_path / "nginx", address, recording) as side:
        thread = threading.Thread(target=ask, args=(0,))
        thread.start()
        try:
            counts = flame.record(side.worker, recording, lambda _: None, 4, recording)
        finally:
            over.set()
            thread.join()
        assert side.trouble() is None
    hashing = Counter({s: n for s, n in counts.items() if "ngx_hash_key" in s})
    lines = {
        number: sum(
            count
            for stack, count in hashing.items()
            if any(f"known.lua:{number}{stacks.LUA}" in name for name in stack)
        )
        for number in (22, 23)
    }
    total = sum(hashing.values())
    assert total > 100, stacks.fold(counts)
    # Every sample of the C function is under the line that calls it.
    assert lines[22] + lines[23] >= 0.97 * total, stacks.fold(hashing)
    # 3 to 1, within four standard deviations of a count.
    spread = 4 * (0.75 * 0.25 / total) ** 0.5
    assert lines[22] / (lines[22] + lines[23]) == pytest.approx(0.75, abs=spread + 0.01)


@pytest.mark.long
@needs_tools
@needs_rights
def test_the_gateways_own_graph_names_its_parts(tmp_path: Path) -> None:
    scenario = scenarios.load("proxy-plugins")
    assert isinstance(scenario, scenarios.Scenario)
    counts = flame.profile(scenario, sides.ROOT, 4)
    names = " ".join(stacks.shares(counts))
    for part in ("sluice_match_request", "key_auth", "rate_limiting"):
        assert part in names
    # The choice of a peer.
    assert re.search(r"set_peer|sluice_peer", names)
    assert all(share <= 0.05 for share in stacks.unnamed(counts).values()), stacks.unnamed(counts)
    # Lua and kernel hang under the C that called them, in one tree.
    assert all(stack[0] == "worker" for stack in counts)
    folded = tmp_path / "own.folded"
    folded.write_text(stacks.fold(counts))
    command = [sys.executable, flame.__file__, "--folded", folded, "--output", tmp_path]
    assert subprocess.run(command, check=False).returncode == 0
    assert "key_auth" in (tmp_path / "own.svg").read_text()
