"""The units of packaging/systemd, and a gateway with the rights that they give it."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from instance import AS_ROOT, SECONDS, Instance
from sluice import ROOT
from wire import wait_until

UNITS = ROOT / "packaging" / "systemd"

MOST_EXPOSED = 2.5
"""Of systemd's scale from 0 to 10; a daemon without any of its limits has 9.6."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed"
)

only_root = pytest.mark.skipif(not AS_ROOT, reason="needs root to take rights away")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units, with the command of this checkout, which is installed in no other place."""
    for unit in UNITS.iterdir():
        text = unit.read_text().replace("/usr/bin/sluice", str(ROOT / "bin" / "sluice"))
        # No manual page either.
        lines = [line for line in text.splitlines() if not line.startswith("Documentation=")]
        (tmp_path / unit.name).write_text("\n".join(lines) + "\n")
    shutil.copy(tmp_path / "sluice@.service", tmp_path / "sluice@edge.service")
    return tmp_path


def analyze(*arguments: str) -> str:
    """What systemd-analyze says, of which nothing is wrong."""
    done = subprocess.run(
        ["systemd-analyze", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=os.environ | {"SYSTEMD_LOG_LEVEL": "warning"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_systemd
@pytest.mark.parametrize("name", ["sluice.service", "sluice@edge.service"])
def test_systemd_takes_a_unit(units: Path, name: str) -> None:
    assert analyze("verify", "--man=no", str(units / name)) == ""
    said = analyze("security", "--offline=true", "--no-pager", str(units / name))
    assert float(said.rpartition("exposure level for")[2].split()[1]) <= MOST_EXPOSED, said


def test_an_instance_differs_by_its_name() -> None:
    lines = (UNITS / "sluice@.service").read_text().splitlines()
    body = "\n".join(line for line in lines[lines.index("[Unit]") :])
    for name, plain in (
        ("/etc/sluice/%i.conf", "/etc/sluice/sluice.conf"),
        ("sluice-%i", "sluice"),
        (" (%i)", ""),
    ):
        body = body.replace(name, plain)
    assert body == (UNITS / "sluice.service").read_text().partition("\n")[2].rstrip("\n")


def low_port() -> int:
    """A free port that only root may open, or who has CAP_NET_BIND_SERVICE."""
    for port in range(1023, 600, -1):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port found")


RIGHTS = [
    "setpriv",
    "--reuid=www-data",
    "--regid=www-data",
    "--clear-groups",
    "--inh-caps=-all,+net_bind_service",
    "--ambient-caps=-all,+net_bind_service",
    "--bounding-set=-all,+net_bind_service",
    "--no-new-privs",
]
"""Those of the units."""


@pytest.fixture
def service(instance: Instance) -> Iterator[Instance]:
    """A gateway on a low port, as the units have it run: not by root."""
    folder = instance.folder / "state"
    folder.mkdir()
    shutil.chown(folder, "www-data", "www-data")
    instance.prefix = folder
    instance.proxy_port = low_port()
    instance.flags["--proxy-listen"] = f"127.0.0.1:{instance.proxy_port}"
    process = subprocess.Popen(
        [*RIGHTS, *instance.line("start", "--foreground", error_log="stderr")],
        env=instance.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: process.poll() is not None or instance.get("/") == 404, "it to serve")
    yield instance
    process.terminate()
    assert process.wait(SECONDS) == 0, process.stderr.read()
    process.stderr.close()


@only_root
def test_root_looks_after_what_runs_with_few_rights(service: Instance) -> None:
    """Its commands have the rights of the service, which has one that its user has not."""
    assert service.status()["control"]["state"] == "live"
    assert "reloaded: 2 new workers" in service.succeed("reload", keepalive_requests="5")
    assert service.get("/") == 404
    service.succeed("upgrade")
    assert service.get("/") == 404
    assert service.succeed("stop") == "stopped\n"
