"""Sizes of soaks: the check's, and those of the long run (`make long`, LONG=1 in the environment).

A test marked `long` is of the long run alone.
"""

import os
from typing import TypeVar

import pytest

LONG = os.environ.get("LONG", "") not in ("", "0")

Size = TypeVar("Size", int, float)


def soak(check: Size, long: Size) -> Size:
    """The size of a soak in this run."""
    return long if LONG else check


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark."""
    config.addinivalue_line("markers", "long: a test of the long run alone, not of the check")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what the check has not."""
    if LONG:
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
