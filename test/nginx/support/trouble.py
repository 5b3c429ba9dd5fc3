"""Lines of an error log that a test has declared, and those that fail it."""

from __future__ import annotations

import dataclasses
import re
import warnings

TROUBLE = re.compile(
    r"\[(?:emerg|alert|crit|error)\]"
    r"|exited on signal"
    r"|exited with (?:fatal )?code [1-9]"
    r"|Sanitizer|runtime error:|^WRITE of size"
    r"|writing a global Lua variable"
)
"""What no error log may hold unless the test declared it beforehand."""

SLOW_END = re.compile(r"process \d+ exited on signal 9\b")
"""What nginx's master says of a worker that has not left some two seconds after SIGTERM: where the
machine is starved, a sound one does not always."""

SLOW_ENDS_AT_MOST = 5
"""So many in one process of pytest: a worker that hangs at its end does so in many tests."""


class Trouble(AssertionError):
    """The error log holds what the test did not declare, or lacks what it did."""


@dataclasses.dataclass
class Expectation:
    """A declared kind of log line and how often it may come."""

    pattern: re.Pattern[str]
    count: int | range
    seen: int = 0

    def met(self) -> bool:
        """True when it came as often as declared."""
        return self.seen in self.count if isinstance(self.count, range) else self.seen == self.count

    def has_come(self, log: str) -> bool:
        """True when the log has it as often as it has to come at least."""
        least = self.count.start if isinstance(self.count, range) else self.count
        return sum(1 for line in log.splitlines() if self.pattern.search(line)) >= least


_slow_ends: list[str] = []


def is_slow_end(line: str) -> bool:
    """Whether a line, which came after the harness began to end its nginx, is of a worker that was
    slow to leave; pytest's summary has these as warnings."""
    if not SLOW_END.search(line) or len(_slow_ends) >= SLOW_ENDS_AT_MOST:
        return False
    _slow_ends.append(line)
    warnings.warn(f"slow end: {line}", stacklevel=2)
    return True
