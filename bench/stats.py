"""Statistics of alternating measurements on a noisy machine.

Two sides are measured in turns, A B B A, and only ever compared slice against
neighbouring slice: what the machine does to both cancels in the ratio. Ratios
are averaged as logarithms (twice as fast and half as fast are equally far from
equal), with the outermost slices trimmed, since a neighbour's burst that hits
one slice of a pair says nothing about either side. The interval is a block
bootstrap's: neighbouring pairs are drawn together, so that a disturbance that
lasts for a few slices is not counted as several independent observations.

Stateless and without dependencies; the random numbers have a fixed seed, so
the same samples always give the same interval.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

BLOCK = 2  # pairs drawn together: one A B B A
RESAMPLES = 4000
POOLED_RESAMPLES = 400  # each sorts all values anew
CONFIDENCE = 0.95
TRIM = 0.2  # share of the values left out at each end
SEED = 20240611

Value = TypeVar("Value")


@dataclass(frozen=True)
class Estimate:
    """A value with the ends of its confidence interval."""

    value: float
    low: float
    high: float


def abba(pairs: int) -> Iterator[tuple[int, int]]:
    """Yields the order of the two sides, 0 and 1, for each pair: A B, B A, A B, ..."""
    for index in range(pairs):
        yield (0, 1) if index % 2 == 0 else (1, 0)


def trimmed_mean(values: Sequence[float], trim: float = TRIM) -> float:
    """Mean of the values without the `trim` share of them at each end."""
    if not values:
        raise ValueError("trimmed_mean of no values")
    cut = int(len(values) * trim)
    kept = sorted(values)[cut : len(values) - cut]
    return math.fsum(kept) / len(kept)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Quantile of sorted values, interpolated between the two nearest."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def block_bootstrap(
    values: Sequence[Value],
    block: int = BLOCK,
    statistic: Callable[[Sequence[Value]], float] = trimmed_mean,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[float, float]:
    """Interval of `statistic` by the circular block bootstrap.

    Each resample is as long as the sample and made of runs of `block`
    neighbours that start anywhere (the last value's neighbour is the first).
    See Politis and Romano, "A circular block-resampling procedure for
    stationary data", 1992.
    """
    count = len(values)
    if count < 2 * block:
        raise ValueError(f"{count} values are too few for blocks of {block}")
    # Values are copied once so that a block never has to wrap.
    ring = list(values) + list(values[: block - 1])
    draw = random.Random(seed).randrange
    blocks = -(-count // block)
    results = []
    for _ in range(resamples):
        sample: list[Value] = []
        for _ in range(blocks):
            start = draw(count)
            sample += ring[start : start + block]
        results.append(statistic(sample[:count]))
    results.sort()
    tail = (1 - CONFIDENCE) / 2
    return quantile(results, tail), quantile(results, 1 - tail)


def orders(names: Sequence[str], rounds: int) -> Iterator[list[str]]:
    """Yields the order of several sides for each round: forwards, backwards, forwards, ..."""
    for index in range(rounds):
        yield list(names) if index % 2 == 0 else list(reversed(names))


def mean(values: Sequence[float]) -> Estimate:
    """Typical value of numbers that may be zero (their trimmed mean)."""
    return Estimate(trimmed_mean(values), *block_bootstrap(values))


def pooled_quantile(rounds: Sequence[Sequence[float]], share: float) -> Estimate:
    """Quantile of the values of all rounds together; the interval draws whole rounds."""

    def pooled(some: Sequence[Sequence[float]]) -> float:
        return quantile(sorted(value for values in some for value in values), share)

    low, high = block_bootstrap(rounds, statistic=pooled, resamples=POOLED_RESAMPLES)
    return Estimate(pooled(rounds), low, high)


def level(values: Sequence[float], block: int = BLOCK) -> Estimate:
    """Typical size of positive values (their trimmed geometric mean)."""
    return _exponential([math.log(value) for value in values], block)


def ratio(
    numerators: Sequence[float], denominators: Sequence[float], block: int = BLOCK
) -> Estimate:
    """Typical ratio of positive values measured in pairs."""
    if len(numerators) != len(denominators):
        raise ValueError(f"{len(numerators)} values against {len(denominators)}")
    return _exponential(
        [
            math.log(top) - math.log(bottom)
            for top, bottom in zip(numerators, denominators, strict=True)
        ],
        block,
    )


def verdict(estimate: Estimate, more_is_better: bool = False) -> str:
    """What a ratio, new over old, says: "faster", "slower", or "same" when it may be 1.

    One in forty comparisons of equals is "slower": the interval is one of 95%.
    """
    if estimate.low <= 1 <= estimate.high:
        return "same"
    return "faster" if (estimate.low > 1) == more_is_better else "slower"


def is_narrow(estimate: Estimate, share: float) -> bool:
    """Whether an interval reaches, on average, no farther than a share from its value."""
    return (estimate.high - estimate.low) / 2 <= share * estimate.value


def beyond(estimate: Estimate, bound: float) -> bool:
    """Whether the whole interval of a ratio is beyond a bound above 1."""
    return estimate.low > bound


def _exponential(logs: Sequence[float], block: int) -> Estimate:
    low, high = block_bootstrap(logs, block)
    return Estimate(math.exp(trimmed_mean(logs)), math.exp(low), math.exp(high))
