"""A gateway whose control worker runs a plugin of the lab's, and does what it is ordered to."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import sides
from config_change import G, sides_of
from setting import Setting
from verify import InvalidRun

PLUGINS = Path(__file__).resolve().parent / "lua"
ANSWER_TIMEOUT_S = 60
# Where the plugins say what they have done, below the prefix.
DONE = Path("store") / "bench.done"


def with_plugin(name: str) -> dict[str, str]:
    """Settings of a gateway that runs a plugin of the lab's."""
    return {
        "SLUICE_PLUGINS": f"bundled,{name}",
        "SLUICE_LUA_PACKAGE_PATH": f"{PLUGINS}/?.lua;{PLUGINS.parent}/?.lua;;",
    }


@contextlib.contextmanager
def changed(setting: Setting, routes: int, kind: type[G], settings: dict[str, str]) -> Iterator[G]:
    """A gateway with so many routes, and its upstream."""
    gateway, upstream = sides_of(
        setting, routes, kind, admin=sides.free_address(), settings=settings
    )
    with upstream, gateway:
        yield gateway
        if trouble := gateway.trouble():
            raise InvalidRun(f"{gateway.name} logged: {trouble}")


class Ordered(sides.Sluice):
    """A gateway whose control worker makes changes and says what each took."""

    number = 0

    def order(self, case: str, count: int) -> list[float]:
        """What the case says of so many."""
        self.number += 1
        draft = self.folder / "order.new"
        draft.write_text(f"{self.number} {case} {count}\n")
        draft.chmod(0o644)
        draft.rename(self.folder / "order")
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline:
            words = self._said()
            if words and words[0] == str(self.number):
                try:
                    return [float(word) for word in words[1:]]
                except ValueError:
                    raise InvalidRun(f"{case}: {' '.join(words[1:])}") from None
            time.sleep(0.005)
        raise InvalidRun(f"{case}: the control worker does not say what it took")

    def _said(self) -> list[str]:
        try:
            return (self.folder / DONE).read_text().split()
        except FileNotFoundError:
            return []
