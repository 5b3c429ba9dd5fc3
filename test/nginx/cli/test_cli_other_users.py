"""Commands on the gateway of another user: what they show, and what they leave."""

import json
import os
import pwd
import subprocess
from pathlib import Path

import pytest

from instance import AS_ROOT, SECONDS, Instance, copy_checkout

pytestmark = pytest.mark.skipif(not AS_ROOT, reason="needs root to become another user")

NOBODY = pwd.getpwnam("nobody")


def as_nobody(instance: Instance, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        instance.line(*words),
        user=NOBODY.pw_uid,
        group=NOBODY.pw_gid,
        extra_groups=[],
        env=instance.environment,
        cwd=instance.folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture
def shared(instance: Instance) -> Instance:
    """Whose command and files every user can read."""
    instance.command = copy_checkout(instance.folder / "sluice")
    instance.folder.chmod(0o755)
    return instance


def test_status_claims_nothing_that_it_cannot_read(shared: Instance) -> None:
    shared.succeed("start")
    done = as_nobody(shared, "status")
    assert (done.returncode, done.stderr) == (0, "")
    first, workers, note = done.stdout.splitlines()
    assert first.startswith(f"running in {shared.prefix} (pid ")
    assert workers.startswith("workers  2 (pid ")
    assert note == f"note     {shared.prefix} belongs to root: its settings cannot be read"
    found = json.loads(as_nobody(shared, "status", "--json").stdout)
    assert (found["running"], found["owner"]) == (True, "root")
    assert len(found["workers"]["ready"]) == 2
    assert not {"proxy_listen", "admin_listen", "admin_token_required", "file"} & set(found)
    assert "owner" not in shared.status()


def test_root_ends_it_and_leaves_no_images(shared: Instance) -> None:
    shared.prefix.mkdir()
    os.chown(shared.prefix, NOBODY.pw_uid, NOBODY.pw_gid)
    done = as_nobody(shared, "start")
    assert done.returncode == 0, done.stderr
    images = Path(json.loads((shared.prefix / "settings.json").read_text())["image_dir"])
    assert images.is_dir()
    said = shared.succeed("status").splitlines()
    note = "the version of nginx, logs and certificates are not read"
    assert f"note     {shared.prefix} belongs to nobody: {note}" in said
    assert f"proxy    127.0.0.1:{shared.proxy_port}" in said
    assert shared.succeed("stop") == "stopped\n"
    assert not images.exists()
    first = shared.refuse("start")[0]
    assert first.startswith(f"sluice: prefix: {shared.prefix} belongs to nobody, not to root; ")
