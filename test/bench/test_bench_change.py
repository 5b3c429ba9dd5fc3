"""Single changes: that the figures come, and are of the right size."""

from __future__ import annotations

import time

import publish
from scenario import Described
from setting import prepared


def test_changes_are_timed_until_they_are_published() -> None:
    data = {
        "workers": 1,
        "publish_routes": [20, 2000],
        "publish_rounds": 4,
        "publish_changes": 10,
    }
    scenario = Described("change", "change", "change", {}, {}, data)
    with prepared(scenario, time.monotonic()) as setting:
        found = publish.measure(setting)
    assert set(found) == {"publish_growth"} | {
        f"publish_us_p{share}_{routes}{case}"
        for share in (50, 99)
        for routes in (20, 2000)
        for case in ("", "_empty", "_half", "_full", "_merging")
    }
    assert 0.1 < found["publish_growth"].value < 10
    for routes in (20, 2000):
        median, most = (found[f"publish_us_p{share}_{routes}"].value for share in (50, 99))
        assert 1 < median < most < 1e6
