"""Hooks and fixtures of every test that drives a real nginx: test/nginx and test/plugins.

Their conftest.py name it as a plugin of pytest, which is registered once, whichever folders run.
"""

import subprocess
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import certifi
import evidence
import interrupts
import pytest
import soaks
from admin_client import Client
from asan import environment as asan_environment
from failures import CRASH, WITH_ITS_FILE, Failures
from log_server import LogServer
from shared import Pool

import guard
from events_nginx import Events
from images_nginx import Images
from instance import Instance, Instances
from sluice import A_CA, ROOT, Config, Gateway, Start
from timer_nginx import Timers
from upstream import Upstream


def pytest_sessionstart() -> None:
    """Builds the module, as make does, where pytest is called without it in a fresh clone."""
    if subprocess.run([ROOT / "scripts" / "build-module"], check=False).returncode != 0:
        pytest.exit("there is nothing to test without the module", 1)


def pytest_configure(config: pytest.Config) -> None:
    interrupts.restore()
    # Each client of httpx loads the authorities of the world, for 20 ms. The tests trust none.
    certifi.where = lambda: A_CA
    config.pluginmanager.register(Failures(config))
    config.pluginmanager.register(soaks)


SHARED = {"serving", "running"}
"""Fixtures whose gateway has the tests before in its memory and its logs."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds what crashed, and keeps the logs of what still runs where a test has failed."""
    report = yield
    report.user_properties += [(CRASH, line) for line in evidence.crashes()]
    if SHARED & set(item.fixturenames):
        report.user_properties.append((WITH_ITS_FILE, True))
    if report.failed:
        for folder in list(guard.made):
            evidence.keep(folder)
    return report


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
def log() -> Iterator[LogServer]:
    """A log server in a good mood."""
    with LogServer() as server:
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
def _pool() -> Iterator[Pool]:
    """The gateways of `serving`; they stop with the last test of a file."""
    pool = Pool()
    yield pool
    pool.close()


@pytest.fixture
def serving(_pool: Pool) -> Iterator[Start]:
    """Has a gateway serve, `serving(config, **settings)`: one for all tests of a file that have the
    same settings. For tests that only ask; after each one the log is checked as at a stop."""
    with _pool.test() as have:
        yield have


@pytest.fixture
def servers() -> Iterator[list[Upstream]]:
    """Three upstream servers, named a, b and c."""
    with ExitStack() as stack:
        yield [stack.enter_context(Upstream(name=name)) for name in "abc"]


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


@pytest.fixture
def ring() -> Iterator[Events]:
    """Two workers that hear events."""
    with Events(workers=2) as running:
        yield running.ready()


@pytest.fixture
def lone_ring() -> Iterator[Events]:
    """One worker that hears events."""
    with Events(workers=1) as running:
        yield running.ready()


@pytest.fixture
def timers() -> Iterator[Timers]:
    """A worker with timers."""
    with Timers() as running:
        yield running


@pytest.fixture
def images() -> Iterator[Images]:
    """A worker 0 with the control worker's role, and one that serves."""
    with Images() as running:
        yield running


@pytest.fixture
def asan(tmp_path: Path) -> dict[str, str]:
    """The environment of an nginx that loads asan.MODULE."""
    return asan_environment(tmp_path)
