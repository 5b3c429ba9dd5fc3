"""What a load generator counted."""

from __future__ import annotations

from dataclasses import dataclass


class LoadError(Exception):
    """A generator that could not run, or printed something else than expected."""


@dataclass(frozen=True)
class Report:
    """Answers of a slice and what went wrong; `bytes` are those of the answers."""

    requests: int
    bytes: int
    duration_us: int
    p50_us: int
    p90_us: int
    p99_us: int
    p999_us: int
    connect: int
    read: int
    write: int
    timeout: int
    status: int

    def errors(self) -> str | None:
        """The kinds of errors that happened, with their numbers, as text."""
        kinds = ("connect", "read", "write", "timeout", "status")
        found = [f"{getattr(self, kind)} {kind}" for kind in kinds if getattr(self, kind)]
        return ", ".join(found) + " errors" if found else None
