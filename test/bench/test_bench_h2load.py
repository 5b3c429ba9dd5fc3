"""h2load's command and its output, as recorded."""

from pathlib import Path

import h2load
import pytest
from outcome import LoadError

RECORDED = """\
starting benchmark...
Main benchmark duration is over for thread #0. Stopping all clients.
Stopped all clients for thread #0

finished in 1.46s, 4.00 req/s, 955.42KB/s
requests: 4 total, 104 started, 4 done, 4 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 4 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 955.42KB (978349) total, 468.13KB (479367) headers (space savings 50.51%), 132B (132) data
                     min         max         mean         sd        +/- sd
time for request:      138us    112.09ms      9.21ms     10.98ms    98.98%
"""

WRITTEN = "1\t200\t1000\n2\t200\t3000\n3\t200\t2000\n4\t200\t5000\n"


def test_recorded_output_is_read() -> None:
    report = h2load.parse(RECORDED, WRITTEN)
    assert (report.requests, report.bytes, report.duration_us) == (4, 132, 1_000_000)
    assert (report.p50_us, report.p999_us) == (2500, 4994)
    assert report.errors() is None


def test_errors_are_named() -> None:
    bad = RECORDED.replace("4 succeeded, 0 failed, 0 errored", "1 succeeded, 3 failed, 1 errored")
    bad = bad.replace("4 2xx, 0 3xx, 0 4xx", "2 2xx, 0 3xx, 2 4xx")
    assert h2load.parse(bad, WRITTEN).errors() == "1 read, 2 status errors"


@pytest.mark.parametrize(
    ("output", "written"),
    [("", ""), (RECORDED + RECORDED, WRITTEN), (RECORDED.replace("4.00", "0.00"), WRITTEN)],
)
def test_anything_else_is_an_error(output: str, written: str) -> None:
    with pytest.raises(LoadError, match="the generator printed no result"):
        h2load.parse(output, written)


def test_requests_that_are_not_written_down_are_an_error() -> None:
    with pytest.raises(LoadError, match="wrote 3 of 4"):
        h2load.parse(RECORDED, WRITTEN.partition("\n")[2])


def test_what_is_read_is_removed(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    for _ in range(2):
        with h2load.times(requests).open("a") as written:
            written.write(WRITTEN)
        assert h2load.take(RECORDED, requests).requests == 4


def test_command_asks_for_what_the_heads_say(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    requests.write_bytes(
        b"".join(b"GET /%d HTTP/1.1\r\nHost: a.test\r\nX-A: b\r\n\r\n" % i for i in range(2))
    )
    line = h2load.command("127.0.0.1:1", requests, connections=100, streams=100, seconds=3)
    assert line[-2:] == ["https://a.test/0", "https://a.test/1"]
    assert {"--clients=1", "--max-concurrent-streams=100", "--duration=3"} <= set(line)
    assert {"--connect-to=127.0.0.1:1", "--header=x-a: b"} <= set(line)
    assert len(h2load.command("127.0.0.1:1", requests, 8, 2, 1)) == len(line)
    assert "--clients=4" in h2load.command("127.0.0.1:1", requests, 8, 2, 1)


def test_headers_that_differ_are_an_error(tmp_path: Path) -> None:
    requests = tmp_path / "requests"
    heads = [b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % host for host in (b"a", b"b")]
    requests.write_bytes(b"".join(heads))
    with pytest.raises(LoadError, match="the same headers"):
        h2load.command("127.0.0.1:1", requests, 100, 100, 1)
