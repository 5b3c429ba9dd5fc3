"""A pod of Kong's chart with our image: the environment that it renders, what its probes ask, the
hook before its end, and a controller of the test's own beside it (support/controller.py)."""

import contextlib
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from os import kill
from pathlib import Path

import httpx
import pytest
from container import Container, can_contain
from controller import NO_CONFIGURATION, Controller, ingress, service
from ports import Ports

import guard
from certificates import Pair, context, make
from upstream import Upstream
from wire import DEADLINE, wait_until

pytestmark = pytest.mark.skipif(
    not can_contain(), reason="needs root, namespaces, and a checkout that any user may enter"
)

PREFIX = "/kong_prefix/"
CLIENT_CA = "/etc/admin-client-ca/tls.crt"
HAS_IPV6 = Path("/proc/net/if_inet6").exists()

CHART = {
    "KONG_ADMIN_ACCESS_LOG": "/dev/stdout",
    "KONG_ADMIN_ERROR_LOG": "/dev/stderr",
    "KONG_ADMIN_GUI_ACCESS_LOG": "/dev/stdout",
    "KONG_ADMIN_GUI_ERROR_LOG": "/dev/stderr",
    "KONG_CLUSTER_LISTEN": "off",
    "KONG_DATABASE": "off",
    "KONG_LUA_PACKAGE_PATH": "/opt/?.lua;/opt/?/init.lua;;",
    "KONG_NGINX_DAEMON": "off",
    "KONG_NGINX_WORKER_PROCESSES": "2",
    "KONG_PORTAL_API_ACCESS_LOG": "/dev/stdout",
    "KONG_PORTAL_API_ERROR_LOG": "/dev/stderr",
    "KONG_PREFIX": PREFIX,
    "KONG_PROXY_ACCESS_LOG": "/dev/stdout",
    "KONG_PROXY_ERROR_LOG": "/dev/stderr",
    "KONG_PROXY_STREAM_ACCESS_LOG": "/dev/stdout basic",
    "KONG_PROXY_STREAM_ERROR_LOG": "/dev/stderr",
    "KONG_ROUTER_FLAVOR": "traditional",
    "KONG_STATUS_ACCESS_LOG": "off",
    "KONG_STATUS_ERROR_LOG": "/dev/stderr",
    "KONG_STREAM_LISTEN": "off",
}
"""What the values of Kong's chart 3.x come to, without the ports."""

WITHOUT_EFFECT = {
    "KONG_ADMIN_GUI_ACCESS_LOG",
    "KONG_ADMIN_GUI_ERROR_LOG",
    "KONG_PORTAL_API_ACCESS_LOG",
    "KONG_PORTAL_API_ERROR_LOG",
    "KONG_PROXY_STREAM_ACCESS_LOG",
    "KONG_PROXY_STREAM_ERROR_LOG",
}
"""Of these a start warns."""


def listen(port: int, words: str = "", *, is_own: bool = False) -> str:
    """A listener as the chart writes it: of each family, on all addresses or the pod's own."""
    families = ["127.0.0.1", "[::1]"] if is_own else ["0.0.0.0", "[::]"]
    return ", ".join(f"{each}:{port}{words}" for each in families[: 1 + HAS_IPV6])


@dataclass
class Pod:
    """Ports and volumes of one; containers come and go in it."""

    environment: dict[str, str]
    volume: Path
    proxy: int
    admin: int
    status: int
    authority: str

    def start(self) -> contextlib.closing[Container]:
        """Its container, as the chart's security context has it."""
        return contextlib.closing(
            Container(
                self.environment,
                options=["read-only", "tmpfs=/tmp"],
                binds={self.volume: PREFIX},
                files={CLIENT_CA: self.authority},
            )
        )

    def probe(self, path: str) -> int:
        """What a probe is answered; 0: nobody does."""
        with contextlib.suppress(httpx.TransportError):
            url = f"http://127.0.0.1:{self.status}{path}"
            return httpx.get(url, trust_env=False, timeout=DEADLINE).status_code
        return 0

    def hash(self) -> str:
        """Of what it serves."""
        found = httpx.get(f"http://127.0.0.1:{self.status}/status", trust_env=False).json()
        return found["configuration_hash"]

    def get(self, path: str) -> int:
        """A request of a client; 0: nobody answers."""
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"http://127.0.0.1:{self.proxy}{path}", trust_env=False).status_code
        return 0

    def controller(self, client: Pair | None = None) -> Controller:
        """One that speaks HTTP/2, as Go does."""
        using = context(client=client, alpn=("h2",))
        return Controller(f"https://127.0.0.1:{self.admin}", verify=using, http2=True)


@pytest.fixture
def ports() -> Iterator[Ports]:
    """For the listeners of a pod."""
    found = Ports()
    yield found
    found.release()


def pod_of(ports: Ports, authority: str, more: dict[str, str], *, is_own: bool) -> Iterator[Pod]:
    """`more`: environment beside the chart's; `is_own`: the controller is in the pod."""
    proxy, tls, admin, status = (ports.take() for _ in range(4))
    folder = guard.folder("sluice-pod-")
    folder.chmod(0o777)
    listens = {
        "KONG_PROXY_LISTEN": f"{listen(proxy)}, {listen(tls, ' http2 ssl')}",
        "KONG_PORT_MAPS": f"80:{proxy}, 443:{tls}",
        "KONG_ADMIN_LISTEN": listen(admin, " http2 ssl", is_own=is_own),
        "KONG_STATUS_LISTEN": listen(status),
    }
    yield Pod(CHART | listens | more, folder, proxy, admin, status, authority)
    guard.remove(folder)


@pytest.fixture
def pod(ports: Ports) -> Iterator[Pod]:
    """The chart's default: the controller beside the gateway."""
    yield from pod_of(ports, "", {"KONG_KIC": "on"}, is_own=True)


@pytest.fixture
def authority() -> Pair:
    """Whose certificates the Admin API takes."""
    return make("ca", is_ca=True)


@pytest.fixture
def gateway_pod(ports: Ports, authority: Pair) -> Iterator[Pod]:
    """Of the chart with gateways and controllers apart, and a client certificate between them."""
    more = {
        "KONG_ROLE": "traditional",
        "KONG_NGINX_ADMIN_SSL_VERIFY_CLIENT": "on",
        "KONG_NGINX_ADMIN_SSL_CLIENT_CERTIFICATE": CLIENT_CA,
    }
    yield from pod_of(ports, authority.cert, more, is_own=False)


def rules(upstream: Upstream) -> list:
    """What the cluster has."""
    behind = service("shop", f"127.0.0.1:{upstream.port}")
    return [behind, ingress("rule", behind, "/rule/")]


def warned(container: Container) -> set[str]:
    """The settings that a start has said to have no effect."""
    lines = [line for line in container.err.decode().splitlines() if "warning: " in line]
    return set(re.findall(r"KONG_[A-Z_]+", "\n".join(lines)))


def test_a_pod_lives_as_its_chart_says(pod: Pod, upstream: Upstream) -> None:
    with pod.start() as container:
        wait_until(lambda: pod.probe("/status") == 200, "it to live")
        assert pod.probe("/status/ready") == 503
        assert pod.hash() == NO_CONFIGURATION
        assert warned(container) == WITHOUT_EFFECT
        with pod.controller() as controller:
            assert controller.update(rules(upstream)) == [201]
            assert pod.probe("/status/ready") == 200
            assert pod.get("/rule/") == 200
            assert controller.update(rules(upstream)) == []
        # What the chart's first container does where this one follows another.
        stale = container.run("sh", "-c", "rm -vrf $KONG_PREFIX/pids")
        assert (stale.returncode, stale.stderr) == (0, "")
        assert container.run("kong", "health").returncode == 0
        # The hook before its end: it serves on for a while, and ends by itself.
        quitting = container.begin("kong", "quit", "--wait=1")
        assert pod.get("/rule/") == 200
        assert container.end() == 0
        quitting.wait(DEADLINE)
        assert pod.get("/rule/") == 0
        container.sees_no_trouble()


def test_a_container_that_dies_finds_the_last_push(pod: Pod, upstream: Upstream) -> None:
    """In the volume of its pod, before a controller asks; a new pod has nothing."""
    with pod.start() as container:
        wait_until(lambda: pod.probe("/status") == 200, "it to live")
        with pod.controller() as controller:
            assert controller.update(rules(upstream)) == [201]
        before = pod.hash()
        kill(container.first(), signal.SIGKILL)
    with pod.start():
        wait_until(lambda: pod.probe("/status/ready") == 200, "it to be ready")
        assert pod.get("/rule/") == 200
        assert pod.hash() == before
        with pod.controller() as controller:
            assert controller.update(rules(upstream)) == [304]


def test_a_gateway_takes_pushes_of_whom_it_knows(
    gateway_pod: Pod, authority: Pair, upstream: Upstream
) -> None:
    pod = gateway_pod
    with pod.start() as container:
        wait_until(lambda: pod.probe("/status") == 200, "it to live")
        assert warned(container) == WITHOUT_EFFECT
        with httpx.Client(verify=context(), trust_env=False) as stranger:
            url = f"https://127.0.0.1:{pod.admin}"
            assert stranger.get(url).status_code == 400
        with pod.controller(make("controller", issuer=authority)) as controller:
            assert controller.update(rules(upstream)) == [201]
        assert pod.probe("/status/ready") == 200
        container.sees_no_trouble()
