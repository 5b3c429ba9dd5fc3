"""h2load: load by HTTP/2, as many requests at once on each connection as are asked for.

It prints for people, and writes down each request: when it began, its status, how long it took.
"""

from __future__ import annotations

import re
from pathlib import Path

import stats
from outcome import LoadError, Report
from probe import parse_head

_RATE = re.compile(r"^finished in \S+, ([0-9.]+) req/s", re.M)
_REQUESTS = re.compile(
    r"^requests: .* (\d+) done, .* (\d+) failed, (\d+) errored, (\d+) timeout$", re.M
)
_STATUSES = re.compile(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$", re.M)
_DATA = re.compile(r"^traffic: .* \((\d+)\) data$", re.M)


def command(
    address: str, requests: Path, connections: int, streams: int, seconds: int
) -> list[str]:
    """What puts this load on an address; `connections` requests are in flight in all.

    All requests of the file have the same headers: h2load takes them once.
    """
    paths, headers = _split(requests.read_bytes())
    line = ["h2load", "--threads=1", f"--clients={max(connections // streams, 1)}"]
    line += [f"--max-concurrent-streams={streams}", f"--duration={seconds}"]
    line += [f"--connect-to={address}", f"--log-file={times(requests)}"]
    (host,) = [value for name, value in headers if name == "host"]
    line += [f"--header={name}: {value}" for name, value in headers if name != "host"]
    return [*line, *(f"https://{host}{path}" for path in paths)]


def times(requests: Path) -> Path:
    """Where a slice writes its requests down; behind what is there."""
    return requests.with_suffix(".times")


def take(output: str, requests: Path) -> Report:
    """The same as `parse`, of a slice that has just ended; leaves an empty place for the next."""
    written = times(requests).read_text()
    times(requests).unlink()
    return parse(output, written)


def _split(heads: bytes) -> tuple[list[str], list[tuple[str, str]]]:
    found = [parse_head(head) for head in heads.split(b"\r\n\r\n") if head]
    headers = found[0][1]
    if any(others != headers for _, others in found):
        raise LoadError("h2load asks all requests with the same headers")
    return [first.split(" ")[1] for first, _ in found], headers


def parse(output: str, written: str) -> Report:
    """Reads what h2load printed, and what it wrote down; `bytes` are those of bodies."""
    found = [pattern.findall(output) for pattern in (_RATE, _REQUESTS, _STATUSES, _DATA)]
    if any(len(each) != 1 for each in found) or float(found[0][0]) == 0:
        raise LoadError(f"the generator printed no result: {output.strip()!r}")
    done, failed, errored, timeout = (int(number) for number in found[1][0])
    bad = sum(int(number) for number in found[2][0][2:])
    took = sorted(int(line.split("\t")[2]) for line in written.splitlines())
    if len(took) != done:
        raise LoadError(f"the generator wrote {len(took)} of {done} requests down")
    return Report(
        requests=done,
        bytes=int(found[3][0]),
        duration_us=round(done / float(found[0][0]) * 1e6),
        p50_us=round(stats.quantile(took, 0.5)),
        p90_us=round(stats.quantile(took, 0.9)),
        p99_us=round(stats.quantile(took, 0.99)),
        p999_us=round(stats.quantile(took, 0.999)),
        connect=0,
        read=max(failed - bad, errored),
        write=0,
        timeout=timeout,
        status=bad,
    )
