"""The statistics against samples whose answer is known."""

import math
import random

import pytest
import stats


def noisy(count: int, centre: float, sd: float, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [centre * math.exp(draw.gauss(0, sd)) for _ in range(count)]


def test_abba_alternates_and_is_balanced() -> None:
    orders = list(stats.abba(4))
    assert orders == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_trimmed_mean_leaves_out_the_ends() -> None:
    assert stats.trimmed_mean([1, 2, 3]) == 2  # too few for 20% to be a value
    assert stats.trimmed_mean([1000, *[5] * 8, -1000]) == 5
    assert stats.trimmed_mean([1, 2, 3, 4], trim=0.25) == 2.5


def test_quantile_interpolates() -> None:
    assert stats.quantile([0, 10, 20], 0.5) == 10
    assert stats.quantile([0, 10, 20], 0.25) == 5
    assert stats.quantile([0, 10, 20], 1) == 20


def test_constant_ratio_has_no_width() -> None:
    estimate = stats.ratio([2.5] * 10, [2.0] * 10)
    assert estimate.value == pytest.approx(1.25)
    assert estimate.low == pytest.approx(1.25)
    assert estimate.high == pytest.approx(1.25)


def test_common_drift_cancels() -> None:
    speed = [1 + index / 10 for index in range(40)]  # the machine gets five times as slow
    estimate = stats.ratio([3 * factor for factor in speed], [2 * factor for factor in speed])
    assert estimate.value == pytest.approx(1.5)
    assert estimate.high - estimate.low < 1e-9


def test_ratio_is_symmetric() -> None:
    one, other = noisy(40, 20, 0.1, 1), noisy(40, 25, 0.1, 2)
    there, back = stats.ratio(one, other), stats.ratio(other, one)
    assert there.value == pytest.approx(1 / back.value)
    assert there.low == pytest.approx(1 / back.high, rel=0.01)


def test_level_is_a_geometric_mean() -> None:
    assert stats.level([1, 100] * 4).value == pytest.approx(10)


def test_same_samples_same_interval() -> None:
    values = noisy(40, 1, 0.1, 3)
    assert stats.block_bootstrap(values) == stats.block_bootstrap(values)


def test_width_is_that_of_the_normal_distribution() -> None:
    count, sd = 200, 0.04
    logs = [math.log(value) for value in noisy(count, 1, sd, 4)]
    low, high = stats.block_bootstrap(logs, statistic=lambda sample: sum(sample) / len(sample))
    mean = sum(logs) / count
    own_sd = math.sqrt(sum((value - mean) ** 2 for value in logs) / (count - 1))
    assert high - low == pytest.approx(2 * 1.96 * own_sd / math.sqrt(count), rel=0.2)


def test_blocks_widen_the_interval_of_neighbours_that_move_together() -> None:
    pairs = noisy(50, 1, 0.1, 5)
    together = [math.log(value) for value in pairs for _ in range(2)]
    alone = stats.block_bootstrap(together, block=1)
    blocks = stats.block_bootstrap(together, block=2)
    assert (blocks[1] - blocks[0]) > 1.15 * (alone[1] - alone[0])


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    covered = 0
    experiments = 200
    for seed in range(experiments):
        logs = [math.log(value) for value in noisy(30, 1, 0.043, seed)]
        low, high = stats.block_bootstrap(logs, resamples=300)
        covered += low <= 0 <= high
    # 95% promised; resampling 15 blocks and 200 experiments give up a little of that.
    assert 0.88 <= covered / experiments <= 0.99


def test_three_percent_are_seen_through_the_noise_of_the_machine() -> None:
    # Noise of CPU time per request as measured: 4.3% a slice, now and then a burst.
    ours, theirs = noisy(60, 1.03, 0.03, 6), noisy(60, 1.00, 0.03, 7)
    ours[10] *= 3
    estimate = stats.ratio(ours, theirs)
    assert estimate.low > 1
    assert estimate.value == pytest.approx(1.03, abs=0.012)


def test_verdicts() -> None:
    assert stats.verdict(stats.Estimate(1.03, 1.01, 1.05)) == "slower"
    assert stats.verdict(stats.Estimate(0.97, 0.95, 0.99)) == "faster"
    assert stats.verdict(stats.Estimate(1.03, 0.99, 1.07)) == "same"
    assert stats.verdict(stats.Estimate(1.03, 1.01, 1.05), more_is_better=True) == "faster"
    assert stats.verdict(stats.Estimate(0.97, 0.95, 0.99), more_is_better=True) == "slower"


def test_the_gate_asks_for_the_whole_interval() -> None:
    assert stats.beyond(stats.Estimate(1.08, 1.06, 1.1), 1.05)
    assert not stats.beyond(stats.Estimate(1.08, 1.04, 1.12), 1.05)


def test_equals_are_seldom_called_slower() -> None:
    slower = beyond = 0
    for seed in range(200):
        new, old = noisy(40, 20, 0.03, seed), noisy(40, 20, 0.03, seed + 1000)
        found = stats.ratio(new, old, block=4)
        slower += stats.verdict(found) == "slower"
        beyond += stats.beyond(found, 1.05)
    # 2.5% promised; ten blocks are few, which costs some of that.
    assert slower / 200 <= 0.08
    assert beyond == 0


def test_unusable_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="3 values are too few for blocks of 2"):
        stats.block_bootstrap([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="4 values against 5"):
        stats.ratio([1.0] * 4, [1.0] * 5)
    with pytest.raises(ValueError, match="no values"):
        stats.trimmed_mean([])
