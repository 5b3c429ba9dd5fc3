"""Fixtures for every test that drives a real nginx."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from admin_client import Client
from failures import Failures

from instance import Instance, Instances
from sluice import ROOT, Config, Gateway
from upstream import Upstream


def pytest_sessionstart() -> None:
    """Builds the module, as make does, where pytest is called without it in a fresh clone."""
    if subprocess.run([ROOT / "scripts" / "build-module"], check=False).returncode != 0:
        pytest.exit("there is nothing to test without the module", 1)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Failures())


@pytest.fixture(autouse=True)
def _error_logs_are_clean() -> Iterator[None]:
    """Reads the error log of gateways that outlive the test, too."""
    yield
    for gateway in list(Gateway.live):
        gateway.check_log()


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    """An upstream server that echoes in JSON unless told otherwise."""
    with Upstream() as server:
        yield server


@pytest.fixture
def gateway() -> Iterator[Callable[..., Gateway]]:
    """Starts gateways, `gateway(config, **settings)`; they stop with the test, logs checked."""
    stack = ExitStack()

    def start(config: Config | None, **options: object) -> Gateway:
        return stack.enter_context(Gateway(config, **options))

    with stack:
        yield start


@pytest.fixture(scope="module")
def running() -> Iterator[Gateway]:
    """One for all tests of a file; it begins with nothing."""
    with Gateway(None) as gateway:
        yield gateway


@pytest.fixture
def client(running: Gateway) -> Iterator[Client]:
    """A client of it; what the test has made is gone afterwards."""
    client = Client(running)
    yield client
    client.clear()


@pytest.fixture
def instances() -> Iterator[Instances]:
    """A maker of instances for tests of the command."""
    with Instances() as made:
        yield made


@pytest.fixture
def instance(instances: Instances) -> Instance:
    """One instance, not started."""
    return instances.make()
