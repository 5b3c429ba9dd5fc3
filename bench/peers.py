"""Optional sides of proxy scenarios: what people would pick instead, Envoy and Caddy.

`scripts/setup peers` installs both into build/peers; those of the PATH will do as well. A scenario
has a peer where `<name>.envoy.yaml` or `<name>.caddy` stands beside its file: the part of the
peer's configuration that is its own (the rest, common to all scenarios, is in `envoy/` and
`caddy/`). A peer that is not installed does not take part.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from probe import split_address
from scenario import Scenario, ScenarioError, fill, unfilled
from sides import ROOT, Server

FOLDER = Path(__file__).resolve().parent
INSTALLED = ROOT / "build" / "peers" / "bin"


class Peer(Server):
    """A peer that is one process, of which one thread serves."""

    key: ClassVar[str]  # of the scenario's part, and the program's name
    label: ClassVar[str]
    common: ClassVar[Path]
    marks: ClassVar[tuple[str, ...]]  # of lines of its log that tell of an error

    def __init__(
        self,
        scenario: Scenario,
        folder: Path,
        address: str,
        upstream: str,
        core: int,
        words: dict[str, str],
    ) -> None:
        super().__init__(f"hand-written {self.label}", folder, address, core)
        self.scheme, self.http2 = scenario.scheme, scenario.http2
        self._scenario = scenario
        listen_host, listen_port = split_address(address)
        upstream_host, upstream_port = split_address(upstream)
        self._words = {
            **words,
            "listen_host": listen_host,
            "listen_port": f"{listen_port}",
            "scheme": self.scheme,
            "upstream": upstream,
            "upstream_host": upstream_host,
            "upstream_port": f"{upstream_port}",
        }

    @classmethod
    def program(cls) -> str | None:
        """Where it is installed, if it is."""
        return shutil.which(cls.key, path=INSTALLED) or shutil.which(cls.key)

    def protocol_words(self) -> dict[str, str]:
        """What its configuration says of TLS and HTTP/2."""
        raise NotImplementedError

    def write(self) -> None:
        words = self._words | self.protocol_words()
        rules = fill(self._scenario.peers[self.key], words)
        text = fill(self.common.read_text(), words | {"rules": rules})
        if left := unfilled(text):
            raise ScenarioError(f"{self._scenario.name}, {self.label}: nothing to put for {left}")
        (self.folder / self.common.name).write_text(text)

    def find_workers(self, master: int) -> list[int]:
        return [master]

    def master(self) -> int | None:
        return self._process.pid if self._process else None

    def trouble(self) -> str | None:
        lines = self._output.read_text(errors="replace").splitlines()
        return next((line for line in lines if any(mark in line for mark in self.marks)), None)


class Envoy(Peer):
    """Envoy with one worker; its main thread, which only looks after it, counts with it."""

    key = "envoy"
    label = "Envoy"
    common = FOLDER / "envoy" / "envoy.yaml"
    marks = ("[error]", "[critical]")

    def command(self) -> list[str]:
        once = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"]
        return [self.program() or self.key, "-c", self.common.name, *once]

    def protocol_words(self) -> dict[str, str]:
        if self.scheme != "https":
            return {"transport": ""}
        text = (self.common.parent / "tls.yaml").read_text()
        alpn = "h2, http/1.1" if self.http2 else "http/1.1"
        return {"transport": fill(text, self._words | {"alpn": alpn})}


class Caddy(Peer):
    """Caddy on one processor: Go runs one thread of it at a time."""

    key = "caddy"
    label = "Caddy"
    common = FOLDER / "caddy" / "Caddyfile"
    marks = ('"level":"error"', '"level":"fatal"', '"level":"panic"')

    def command(self) -> list[str]:
        return [self.program() or self.key, "run", "--config", self.common.name]

    def environment(self) -> dict[str, str]:
        folder = str(self.folder)
        homes = {"HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder}
        return super().environment() | homes | {"GOMAXPROCS": "1"}

    def protocol_words(self) -> dict[str, str]:
        if self.scheme != "https":
            return {"protocols": "h1", "tls": ""}
        tls = f"tls {self._words['certificate']} {self._words['key']}"
        return {"protocols": "h1 h2" if self.http2 else "h1", "tls": tls}


PEERS: tuple[type[Peer], ...] = (Envoy, Caddy)


def of(scenario: Scenario) -> list[type[Peer]]:
    """The peers that a scenario has a configuration for, and that are installed."""
    return [peer for peer in PEERS if peer.key in scenario.peers and peer.program()]


def missing(scenario: Scenario) -> str | None:
    """A note about peers that could take part and are not installed."""
    names = [
        peer.label for peer in PEERS if peer.key in scenario.peers and peer not in of(scenario)
    ]
    if not names:
        return None
    return f"note: not installed, so left out: {', '.join(names)} (scripts/setup peers)"
