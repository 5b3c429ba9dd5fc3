"""Sluice as `make install` puts it into a system: it needs nothing of the checkout."""

import os
import subprocess
from pathlib import Path

import pytest

from instance import SECONDS, Instance
from sluice import ROOT, sanitizers

pytestmark = pytest.mark.skipif(
    bool(sanitizers()), reason="what is installed has a module of its own, without sanitizers"
)


@pytest.fixture
def system(instance: Instance) -> Path:
    """A prefix into which all was installed; the instance's command is its."""
    prefix = instance.folder / "usr"
    places = {"PREFIX": str(prefix), "SYSCONFDIR": str(instance.folder / "etc")}
    subprocess.run([ROOT / "scripts" / "install"], env=os.environ | places, check=True)
    instance.command = prefix / "bin" / "sluice"
    return prefix


def test_it_runs_and_reloads(instance: Instance, system: Path) -> None:
    instance.succeed("start")
    conf = (instance.prefix / "nginx.conf").read_text()
    assert str(ROOT) not in conf
    assert f'load_module "{system}/lib/nginx/modules/ngx_sluice_module.so";' in conf
    assert instance.get("/") == 404
    instance.succeed("reload", "--new-workers")
    instance.succeed("quit")


def test_what_is_missing_is_named(instance: Instance, system: Path) -> None:
    module = system / "lib" / "nginx" / "modules" / "ngx_sluice_module.so"
    module.unlink()
    (line,) = instance.refuse("start")
    assert line == f"sluice: module: {module} is missing; install Sluice again"


def test_its_settings_are_right_and_it_has_manual_pages(instance: Instance, system: Path) -> None:
    settings = instance.folder / "etc" / "sluice" / "sluice.conf"
    done = instance.run("status", conf=str(settings), prefix=None)
    assert (done.returncode, done.stderr) == (3, "")
    for page, word in (("man1/sluice.1", "nginx-conf"), ("man5/sluice.conf.5", "proxy_listen")):
        path = system / "share" / "man" / page
        assert word in path.read_text().replace("\\-", "-")
        line = ["man", "--warnings", "--local-file", "--encoding=utf8", path]
        env = {"PATH": os.environ["PATH"], "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}
        if Path("/usr/bin/man").exists():
            done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, env=env)
            assert done.stderr == ""


def test_settings_that_are_there_are_kept(instance: Instance, system: Path) -> None:
    settings = instance.folder / "etc" / "sluice" / "sluice.conf"
    settings.write_text("prefix = /mine\n")
    places = {"PREFIX": str(system), "SYSCONFDIR": str(instance.folder / "etc")}
    subprocess.run([ROOT / "scripts" / "install"], env=os.environ | places, check=True)
    assert settings.read_text() == "prefix = /mine\n"
