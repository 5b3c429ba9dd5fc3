"""wrk's output as recorded, its script, and the CPU clock."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import load
import outcome
import pytest
import sides
import syscalls
from scenario import fill

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
    with pytest.raises(outcome.LoadError, match="the generator printed"):
        load.parse(output)


def test_who_does_not_sleep_hears_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # One that does not hear it is killed then.
    monkeypatch.setattr(sides, "STOP_TIMEOUT_S", 60)
    upstream = sides.Upstream(
        tmp_path / "upstream", sides.free_address(), None, "known", added=load.awake()
    )
    with upstream:
        upstream.answered()
        time.sleep(0.005)  # it looks for events for 20 ms, and has seen the last one
        began = time.monotonic()
    assert time.monotonic() - began < 60


def test_switches_are_those_of_all_threads() -> None:
    done, stop = threading.Event(), threading.Event()

    def sleep() -> None:
        for _ in range(50):
            time.sleep(0.001)
        done.set()
        stop.wait()

    before = load.switches([os.getpid()])
    thread = threading.Thread(target=sleep)
    thread.start()
    try:
        done.wait()  # this thread switches once or twice
        assert load.switches([os.getpid()]) - before >= 50
    finally:
        stop.set()
        thread.join()


def test_schedstat_counts_cpu_time_and_not_sleep() -> None:
    def counted() -> bool:
        before, _ = load.schedstat(os.getpid())
        time.sleep(0.05)
        slept, _ = load.schedstat(os.getpid())
        spun = time.process_time_ns()
        while time.process_time_ns() - spun < 50_000_000:
            pass
        after, _ = load.schedstat(os.getpid())
        return slept - before < 20_000_000 and after - slept >= 45_000_000

    assert undisturbed(counted)


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
    assert luajit, "LuaJIT is needed: scripts/setup run"
    done = subprocess.run([luajit, "-e", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def undisturbed(measured: Callable[[], bool], tries: int = 8) -> bool:
    """Whether one of some measurements is right: a busy machine spoils one or the other."""
    return any(measured() for _ in range(tries))


ANSWERING = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events { worker_connections 256; }
http {
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path tmp;
    proxy_temp_path tmp;
    fastcgi_temp_path tmp;
    uwsgi_temp_path tmp;
    scgi_temp_path tmp;
    server { listen @listen@; location / { return @status@ "x"; } }
}
"""


class Answering(sides.Nginx):
    """An nginx of one process that answers everything with a status."""

    def __init__(self, folder: Path, status: int = 200) -> None:
        super().__init__("answering", folder, sides.free_address(), None, status=str(status))

    def write(self) -> None:
        (self.folder / "nginx.conf").write_text(fill(ANSWERING, self._words))

    def find_workers(self, master: int) -> list[int]:
        return [master]


@pytest.fixture
def one_request(tmp_path: Path) -> Path:
    path = tmp_path / "requests"
    path.write_bytes(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n")
    return path


def run(side: Answering, requests: Path, connections: int, seconds: int, rate: int) -> load.Slice:
    """A slice by a timetable."""
    way = load.Way(rate=rate)
    return load.run(side.address, requests, side.workers, None, connections, seconds, way=way)


@pytest.mark.long
def test_a_timetable_is_kept(tmp_path: Path, one_request: Path) -> None:
    with Answering(tmp_path / "nginx") as side:

        def in_time() -> bool:
            report = run(side, one_request, 8, 2, 500).report
            assert report.requests == 1000
            assert report.errors() is None
            return report.duration_us == pytest.approx(2_000_000, rel=0.1)

        assert undisturbed(in_time)


@pytest.mark.long
def test_a_stall_of_known_length_is_found(tmp_path: Path, one_request: Path) -> None:
    # 0.5 s of 4 s stand still: one request in eight is due meanwhile, and waits for what is left.
    with Answering(tmp_path / "nginx") as side:

        def stall() -> None:
            time.sleep(1.5)
            os.kill(side.worker, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(side.worker, signal.SIGCONT)

        def found() -> bool:
            thread = threading.Thread(target=stall)
            thread.start()
            slice_ = run(side, one_request, 8, 4, 1000)
            thread.join()
            report = slice_.report
            assert report.requests == 4000
            # The 90th percentile is where a fifth of those have waited less: 0.1 s. The 99th:
            # 0.46 s.
            return (
                report.p50_us < 20_000
                and report.p90_us == pytest.approx(100_000, abs=60_000)
                and report.p99_us == pytest.approx(460_000, abs=60_000)
                and report.p999_us == pytest.approx(496_000, abs=60_000)
            )

        assert undisturbed(found)


def test_refusals_are_counted(tmp_path: Path, one_request: Path) -> None:
    with Answering(tmp_path / "nginx", status=503) as side:
        assert undisturbed(
            lambda: run(side, one_request, 2, 1, 50).report.errors() == "50 status errors"
        )


def test_system_calls_are_read_from_perf() -> None:
    recorded = "Warning: something\n41234,,raw_syscalls:sys_enter,1000123,100.00,,\n"
    assert syscalls.parse(recorded) == 41234
    assert syscalls.parse("<not supported>,,raw_syscalls:sys_enter,0,0.00,,\n") is None
    assert syscalls.parse("Error:\n") is None


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("perf"), reason="needs perf and rights")
def test_system_calls_are_counted(tmp_path: Path, one_request: Path) -> None:
    with Answering(tmp_path / "nginx") as side, syscalls.counted(side.worker) as count:
        time.sleep(0.5)  # perf attaches
        slice_ = run(side, one_request, 8, 2, 500)
    # epoll_wait, recv, writev at least, and once more recv that finds nothing.
    assert count.calls is not None
    assert 2 <= count.calls / slice_.report.requests <= 8
