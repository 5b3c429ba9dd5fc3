"""Gateways that several tests of a file ask in turn, each with its own configuration."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import evidence

from sluice import Config, Gateway, Start
from wire import Wire

AT_ONCE = 3
"""So many gateways of a file run at once."""


class Shared(Gateway):
    """A running Sluice whose configuration is replaced for each test. A test sees of its logs what
    came since then."""

    def __init__(self, config: Config, **options: Any) -> None:
        self._seen = {"error.log": 0, "access.log": 0}
        super().__init__(config, **options)

    def serve(self, config: Config) -> None:
        """Has it serve another configuration, and nothing of the one before."""
        self.write_config(config)
        kind = {"Content-Type": "text/plain"}
        with Wire(self.admin_port) as wire:
            reply = wire.ask("/config", "POST", kind, self.file.read_bytes())
        assert reply.status == 201, reply
        self.check_log()
        self._seen["error.log"] += self._scanned  # what came since is looked at later
        self._seen["access.log"] += self._log("access.log").rfind("\n") + 1
        self._scanned = 0

    def _log(self, name: str) -> str:
        return super()._log(name)[self._seen[name] :]

    def settle(self) -> None:
        """Ends a test's part: all lines that it has declared are in the error log, and no others of
        that kind. The next test declares its own."""
        self._wait_for_declared()
        try:
            self.check_log(final=True)
        finally:
            self.expectations.clear()


class Pool:
    """The gateways of a file, by the settings that they were started with, the last used last."""

    def __init__(self) -> None:
        self._running: dict[str, Shared] = {}
        self._used: list[Shared] = []

    @contextmanager
    def test(self) -> Iterator[Start]:
        """What a test calls as it calls the fixture `gateway`. It only asks: whatever else it
        changes is there for the tests after it. A second call with the same settings gives the
        same gateway, which then serves the second configuration alone."""
        self._used.clear()
        yield self._have
        with ExitStack() as stack:
            for gateway in self._used:
                stack.callback(self._settle, gateway)

    def _settle(self, gateway: Shared) -> None:
        with self._forgotten_if_failing(gateway):
            gateway.settle()

    @contextmanager
    def _forgotten_if_failing(self, gateway: Shared) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._forget(gateway)
            raise

    def _have(self, config: Config, **options: Any) -> Gateway:
        key = repr(sorted(options.items()))
        gateway = self._running.get(key)
        if gateway:
            with self._forgotten_if_failing(gateway):
                if gateway in self._used:
                    gateway.settle()
                gateway.serve(config)
            del self._running[key]
        else:
            self._make_room()
            gateway = Shared(config, **options)
            gateway.__enter__()
        self._running[key] = gateway
        if gateway not in self._used:
            self._used.append(gateway)
        return gateway

    def _make_room(self) -> None:
        """Stops the one that was used the longest time ago, unless this test has it."""
        for key, gateway in list(self._running.items())[: 1 - AT_ONCE]:
            if gateway not in self._used:
                del self._running[key]
                gateway.close()

    def _forget(self, gateway: Shared) -> None:
        """The next test has a new one."""
        self._running = {k: other for k, other in self._running.items() if other is not gateway}
        evidence.keep(gateway.prefix)
        gateway.discard()

    def close(self) -> None:
        """Stops them, their logs checked."""
        with ExitStack() as stack:
            for gateway in self._running.values():
                stack.callback(gateway.close)
