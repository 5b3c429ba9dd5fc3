"""examples/events runs as it stands, and so does what the documentation begins with."""

import re
from pathlib import Path

import pytest
from example import running, said

from processes import ran
from sluice import NGINX, NGINX_MODULES, ROOT
from wire import wait_until

PORT = 8010


def test_the_example_runs() -> None:
    with running("events"):
        wait_until(lambda: said(PORT, "/heard").count("here I am") == 4, "the example to answer")
        assert said(PORT, "/say?text=hello") == "true\n"
        wait_until(lambda: ": hello" in said(PORT, "/heard"), "the text to arrive")
        assert '"transport":"ring"' in said(PORT, "/figures")


@pytest.mark.parametrize("page", ["events.md", "events-transports.md"])
def test_the_synopsis_is_a_whole_configuration(page: str, tmp_path: Path) -> None:
    """But for the paths of the modules, and of the files that a test may write."""
    text = (ROOT / "docs" / page).read_text()
    synopsis = text.partition("```nginx\n")[2].partition("```")[0]
    modules = [*NGINX_MODULES, f"{ROOT}/build/module/ngx_sluice_module.so"]
    kept = re.sub(r"(?m)^load_module .*\n", "", synopsis)
    kept = kept.replace("/path/to", str(ROOT)).replace("unix:/run/x", f"unix:{tmp_path}")
    (tmp_path / "events").mkdir()
    (tmp_path / "nginx.conf").write_text(
        "".join(f"load_module {module};\n" for module in modules)
        + f"pid {tmp_path}/nginx.pid;\n"
        + re.sub(r"server \{\n(?!\s*listen)", "server {\n listen 127.0.0.1:8011;\n", kept)
    )
    (tmp_path / "logs").mkdir()
    done = ran([NGINX, "-t", "-p", f"{tmp_path}/", "-c", "nginx.conf", "-e", "stderr"])
    assert done.returncode == 0, done.stderr
