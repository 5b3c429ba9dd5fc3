"""What makes a run invalid."""

from pathlib import Path

import pytest
import verify
from load import Report, Slice
from probe import Answer
from scenario import Check, Request
from sides import Server

SIDE = Server("Sluice", Path("/nonexistent"), "127.0.0.1:1", 0)


def make_slice(requests: int = 10_000, size: int = 300, **errors: int) -> Slice:
    none = {"connect": 0, "read": 0, "write": 0, "timeout": 0, "status": 0}
    report = Report(requests, requests * size, 1_000_000, 1, 1, 2, 3, **(none | errors))
    return Slice(report, 1, 1)


def test_a_good_slice_passes() -> None:
    verify.counted_slice(SIDE, make_slice(), 10_000, 300.0, 100)
    verify.counted_slice(SIDE, make_slice(), 10_100, 301.0, 100)


@pytest.mark.parametrize("kind", ["connect", "read", "write", "timeout", "status"])
def test_a_single_error_is_one_too_many(kind: str) -> None:
    with pytest.raises(verify.InvalidRun, match=f"1 {kind} errors"):
        verify.counted_slice(SIDE, make_slice(**{kind: 1}), 10_000, 300.0, 100)


def test_answers_have_to_come_from_the_upstream() -> None:
    # A redirect or an answer from a cache is no error for wrk.
    with pytest.raises(verify.InvalidRun, match="the upstream was asked 9999 times"):
        verify.counted_slice(SIDE, make_slice(), 9_999, 300.0, 100)
    with pytest.raises(verify.InvalidRun, match="the upstream was asked 20000 times"):
        verify.counted_slice(SIDE, make_slice(), 20_000, 300.0, 100)


def test_answers_have_to_have_their_size() -> None:
    with pytest.raises(verify.InvalidRun, match="answers of 260 bytes instead of 300"):
        verify.counted_slice(SIDE, make_slice(size=260), 10_000, 300.0, 100)


def test_silence_is_invalid() -> None:
    with pytest.raises(verify.InvalidRun, match="not one answer"):
        verify.counted_slice(SIDE, make_slice(requests=0), 0, 300.0, 100)


def probed(left: int | None, hour: int = 3) -> verify.Probed:
    return verify.Probed(300.0, left, hour)


def test_the_limiter_has_to_count_every_request() -> None:
    verify.counted_down(SIDE, probed(1000), probed(400), 600, 50)
    verify.counted_down(SIDE, probed(1000), probed(360), 600, 50)  # in flight at the end
    with pytest.raises(verify.InvalidRun, match="counted 599 requests of 600"):
        verify.counted_down(SIDE, probed(1000), probed(401), 600, 50)
    with pytest.raises(verify.InvalidRun, match="counted 700 requests of 600"):
        verify.counted_down(SIDE, probed(1000), probed(300), 600, 50)
    verify.counted_down(SIDE, probed(1000), probed(1000, hour=4), 600, 50)  # a new window
    verify.counted_down(SIDE, probed(None), probed(None), 600, 50)


def answer(status: int, **headers: str) -> Answer:
    dashed = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, dashed, b"", 0)


def test_checks_are_judged() -> None:
    check = Check("limit", Request("/", "a"), 429, 200, 3, ["retry-after"])
    refused = answer(429, retry_after="1")
    verify._judge(check, [answer(200), refused, refused], fresh=True)
    verify._judge(check, [refused], fresh=False)
    with pytest.raises(verify.InvalidRun, match=r"'limit': \[200, 200\] instead of 429"):
        verify._judge(check, [answer(200), answer(200)], fresh=True)
    with pytest.raises(verify.InvalidRun, match="'limit': 429 first instead of 200"):
        verify._judge(check, [refused], fresh=True)
    with pytest.raises(verify.InvalidRun, match=r"429 without \['retry-after'\]"):
        verify._judge(check, [answer(200), answer(429)], fresh=True)
