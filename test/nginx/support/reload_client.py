"""A client that tells a request that failed from a connection that was closed while it was idle."""

import dataclasses
import threading
from collections import Counter

from sluice import Gateway
from upstream import Upstream
from wire import ClosedEarly, Wire, request_bytes


@dataclasses.dataclass
class Tally:
    """What became of a client's requests."""

    answered: int = 0
    idle_closed: int = 0
    """Connections found closed before any byte of the answer, the request unseen by the upstream:
    stock nginx closes idle connections at a reload, and a request may be under way just then."""
    failed: list[str] = dataclasses.field(default_factory=list)
    """Requests that had been read (the upstream saw them, or a part of the answer came) and got
    no whole answer."""
    versions: Counter[str] = dataclasses.field(default_factory=Counter)


class Client(threading.Thread):
    """Sends one request after the other over a kept connection and knows what became of each."""

    def __init__(self, gateway: Gateway, upstream: Upstream, name: str, body: bytes) -> None:
        super().__init__(daemon=True)
        self.gateway, self.upstream, self.label, self.body = gateway, upstream, name, body
        self.tally = Tally()
        self.done = threading.Event()

    def run(self) -> None:
        wire: Wire | None = None
        number = 0
        while not self.done.is_set():
            number += 1
            mark = f"/{self.label}-{number}"
            try:
                wire = wire or self.gateway.wire()
            except OSError as problem:
                self.tally.failed.append(f"{mark}: connect: {problem!r}")
                continue
            if not self._one(wire, mark):
                wire.close()
                wire = None
        if wire:
            wire.close()

    def _one(self, wire: Wire, mark: str) -> bool:
        """One request; False if the connection is of no more use."""
        try:
            method = "POST" if self.body else "GET"
            wire.send(request_bytes(mark, method, body=self.body or None))
            reply = wire.read_reply()
        except (ClosedEarly, OSError, ValueError) as problem:
            self._classify(wire, mark, problem)
            return False
        if reply.status != 200:
            self.tally.failed.append(f"{mark}: {reply.status} {reply.body!r}")
            return False
        self.tally.answered += 1
        self.tally.versions[reply.headers.get("x-version") or "?"] += 1
        return (reply.headers.get("connection") or "").lower() != "close"

    def _classify(self, wire: Wire, mark: str, problem: Exception) -> None:
        begun = bool(wire.buffer) or "closed after b'H" in str(problem)
        # The upstream's record is made before it answers, so by now it would be there.
        seen = any(r.target == mark for r in reversed(self.upstream.requests[-5000:]))
        if begun or seen:
            self.tally.failed.append(f"{mark}: {problem!r}, begun {begun}, seen {seen}")
        else:
            self.tally.idle_closed += 1
