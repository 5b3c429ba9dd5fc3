"""Shows that both sides do the same work and give the expected answers.

The load generator only counts. So before and after the load every distinct
request is asked once and looked at in full, and each slice's count is held
against the upstream's own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from load import Slice
from probe import Answer, Client, ProbeError, Recorder, difference
from scenario import Check, Scenario
from sides import Server, Upstream

# What an answer's size may differ by from the probed one: a counter in a header loses digits.
SIZE_SLACK = 16


class InvalidRun(Exception):
    """Something was not as expected; the message says what."""


class TooNoisy(InvalidRun):
    """The machine did not let anything be measured; no fault of what was to be measured."""


@dataclass(frozen=True)
class Probed:
    """What one pass over all requests of a side found."""

    size: float  # mean bytes of an answer
    left: int | None  # sum of the counters that the scenario says are counted down
    hour: int  # when


def same_work(scenario: Scenario, recorder: Recorder, ours: Server, theirs: Server) -> None:
    """The upstream gets every probed request alike from both sides, forwarded headers included."""
    with (
        ours.client() as our_client,
        theirs.client() as their_client,
    ):
        for request in scenario.probed():
            heads = []
            for side, client in ((ours, our_client), (theirs, their_client)):
                _expect(side, request.path, _ask(side, client, request.head()), scenario.body)
                # X-Forwarded-Port is the listener's, which differs and should.
                own_port = side.address.rpartition(":")[2].encode()
                heads.append(recorder.head.replace(own_port, b"PORT"))
            differs = difference(heads[0], heads[1], scenario.added_upstream)
            if differs:
                raise InvalidRun(
                    f"the upstream gets something else for {request.host}{request.path}: {differs}"
                )


def answers(scenario: Scenario, side: Server, added: bool) -> Probed:
    """Every probed request is answered by the upstream; `added`: with the headers Sluice adds."""
    size = 0
    left = 0
    hour = time.gmtime().tm_hour
    with side.client() as client:
        for request in scenario.probed():
            answer = _ask(side, client, request.head())
            _expect(side, request.path, answer, scenario.body)
            missing = [name for name in scenario.added_response if name not in answer.headers]
            if added and missing:
                raise InvalidRun(f"{side.name} answers {request.path} without {missing}")
            size += answer.size
            if added and scenario.counted_down:
                left += int(answer.headers[scenario.counted_down])
    counted = left if added and scenario.counted_down else None
    return Probed(size / len(scenario.probed()), counted, hour)


def checks(scenario: Scenario, side: Server, fresh: bool) -> None:
    """The scenario's own checks; `fresh`: the gateway has just started."""
    with side.client() as client:
        for check in scenario.checks:
            found = [_ask(side, client, check.request.head()) for _ in range(check.times)]
            _judge(check, found, fresh)


def _judge(check: Check, found: list[Answer], fresh: bool) -> None:
    statuses = [answer.status for answer in found]
    if check.status not in statuses:
        raise InvalidRun(f"check '{check.name}': {statuses} instead of {check.status}")
    if fresh and check.first and statuses[0] != check.first:
        raise InvalidRun(f"check '{check.name}': {statuses[0]} first instead of {check.first}")
    answer = next(answer for answer in found if answer.status == check.status)
    missing = [name for name in check.headers if name not in answer.headers]
    if missing:
        raise InvalidRun(f"check '{check.name}': {check.status} without {missing}")


def counted_slice(side: Server, slice_: Slice, reached: int, size: float, connections: int) -> None:
    """All that the generator counted were good answers, and came from the upstream."""
    report = slice_.report
    errors = report.errors()
    if errors:
        raise InvalidRun(f"{side.name}: {errors} in a slice of {report.requests} requests")
    if report.requests == 0:
        raise InvalidRun(f"{side.name}: not one answer in a slice")
    # Those in flight when the generator stops, and stragglers of the slice before.
    if not 0 <= reached - report.requests <= 2 * connections:
        raise InvalidRun(
            f"{side.name}: {report.requests} answers, but the upstream was asked {reached} times"
        )
    got = report.bytes / report.requests
    if abs(got - size) > SIZE_SLACK + connections * size / report.requests:
        raise InvalidRun(f"{side.name}: answers of {got:.0f} bytes instead of {size:.0f}")


def counted_down(
    side: Server, before: Probed, after: Probed, requests: int, in_flight: int
) -> None:
    """The limiter has counted every request of the run."""
    if before.left is None or after.left is None or before.hour != after.hour:
        return
    used = before.left - after.left
    if not 0 <= used - requests <= in_flight:
        raise InvalidRun(f"{side.name} counted {used} requests of {requests}")


def upstream_count(upstream: Upstream) -> int:
    """Requests that the upstream has answered."""
    try:
        return upstream.answered()
    except (ProbeError, OSError) as error:
        raise InvalidRun(f"the upstream does not tell its count: {error}") from None


def _ask(side: Server, client: Client, head: bytes) -> Answer:
    try:
        return client.ask(head)
    except (ProbeError, OSError) as error:
        line = head.partition(b"\r\n")[0].decode()
        raise InvalidRun(f"{side.name}, {line}: {error}") from None


def _expect(side: Server, path: str, answer: Answer, body: str) -> None:
    if answer.status != 200 or answer.body != body.encode():
        start = answer.body[:100].decode(errors="replace")
        raise InvalidRun(f"{side.name} answers {path} with {answer.status} {start!r}")
