"""wrk's output as recorded, its script, and the CPU clock."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import load
import pytest

RECORDED = """\
Running 1s test @ http://127.0.0.1:18999/
  1 threads and 100 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     4.12ms    1.37ms  12.71ms   81.20%
    Req/Sec    24.41k     2.13k   27.02k    72.73%
  26734 requests in 1.10s, 5.28MB read
Requests/sec:  24302.97
Transfer/sec:      4.80MB
slice {"requests": 26734, "bytes": 5533938, "duration_us": 1100030, "p50_us": 3967, \
"p90_us": 6010, "p99_us": 8120, "p999_us": 11900, "connect": 0, \
"read": 0, "write": 0, "timeout": 0, "status": 0}
"""

WITH_ERRORS = """\
Running 1s test @ http://127.0.0.1:18999/
  Socket errors: connect 0, read 12, write 0, timeout 0
  Non-2xx or 3xx responses: 7
slice {"requests": 90, "bytes": 9000, "duration_us": 1000000, "p50_us": 1, "p90_us": 1, \
"p99_us": 2, "p999_us": 3, "connect": 0, "read": 12, "write": 0, "timeout": 0, "status": 7}
"""


def test_recorded_output_is_read() -> None:
    report = load.parse(RECORDED)
    assert report.requests == 26734
    assert report.errors() is None
    slice_ = load.Slice(report, cpu_ns=588_148_000, wait_ns=400_000_000)
    assert slice_.cpu_us == pytest.approx(22.0)
    assert slice_.rps == pytest.approx(24302.97, abs=0.1)  # what wrk itself prints
    assert [slice_.p50_ms, slice_.p90_ms, slice_.p99_ms, slice_.p999_ms] == [
        3.967,
        6.010,
        8.12,
        11.9,
    ]
    assert slice_.busy == pytest.approx(0.898, abs=0.001)


def test_errors_are_named() -> None:
    assert load.parse(WITH_ERRORS).errors() == "12 read, 7 status errors"


@pytest.mark.parametrize(
    "output",
    [
        "",
        "unable to connect to 127.0.0.1:1 Connection refused\n",
        'slice {"requests": 1}\n',
        "slice nonsense\n",
        RECORDED + RECORDED,
    ],
)
def test_anything_else_is_an_error(output: str) -> None:
    with pytest.raises(load.LoadError, match="wrk printed"):
        load.parse(output)


def test_schedstat_counts_cpu_time_and_not_sleep() -> None:
    before, _ = load.schedstat(os.getpid())
    time.sleep(0.05)
    slept, _ = load.schedstat(os.getpid())
    spun = time.process_time_ns()
    while time.process_time_ns() - spun < 50_000_000:
        pass
    after, _ = load.schedstat(os.getpid())
    assert slept - before < 20_000_000
    assert after - slept >= 45_000_000


def test_script_takes_the_requests_in_turn(tmp_path: Path) -> None:
    heads = [f"GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n" for number in range(3)]
    (tmp_path / "requests").write_bytes("".join(heads).encode())
    code = f"""
        wrk = {{}}
        dofile("{load.SCRIPT}")
        init({{ "{tmp_path}/requests" }})
        for _ = 1, 7 do io.write(request():match("/(%d)"), " ") end
    """
    assert lua(code).split() == ["0", "1", "2", "0", "1", "2", "0"]


def test_script_leaves_a_single_request_to_wrk(tmp_path: Path) -> None:
    (tmp_path / "requests").write_bytes(b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n")
    code = f"""
        wrk = {{}}
        dofile("{load.SCRIPT}")
        init({{ "{tmp_path}/requests" }})
        io.write(tostring(request), " ", wrk.format():match("/one"))
    """
    assert lua(code) == "nil /one"


def lua(code: str) -> str:
    luajit = shutil.which("luajit")
    assert luajit, "LuaJIT is needed: apt-get install luajit2"
    done = subprocess.run([luajit, "-e", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
