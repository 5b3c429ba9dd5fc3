"""Writes where the folder of the images has no room."""

import contextlib
import subprocess
from pathlib import Path

import pytest
from admin_client import Client
from changes import document, post

import guard
from instance import AS_ROOT
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import wait_until

# More than a delta is made for: they need a new base.
COUNT = 6000


@pytest.mark.skipif(not AS_ROOT, reason="needs root to mount a small file system")
def test_no_room_for_images(gateway: Start, upstream: Upstream) -> None:
    """507 with words; what is live stays, and writes work again when there is room."""
    folder = guard.folder("sluice-images-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], check=True)
    try:
        folder.chmod(0o755)
        running = gateway(None, image_dir=folder / "images")
        fill(running, folder, upstream)
        running.stop()
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        guard.remove(folder)


def fill(running: Gateway, folder: Path, upstream: Upstream) -> None:
    """Fills the folder, and frees it."""
    running.expect_log("No space left|too little space|full", range(1000))
    client = Client(running)
    config = proxying(upstream)
    assert post(running, document(config)).status_code == 201
    assert running.ask("/").status == 200
    before = client.must(200, "GET", "/history")
    others = folder / "others"
    with open(others, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    many = document(config | {"consumers": [{"username": f"c{n}"} for n in range(COUNT)]})
    refused = post(running, many)
    assert (refused.status_code, refused.json()["name"]) == (507, "full"), refused.text
    assert "images" in refused.json()["message"]
    assert client.must(200, "GET", "/consumers")["data"] == []
    assert client.must(200, "GET", "/history") == before
    assert running.ask("/").status == 200
    client.must(200, "PUT", "/consumers/one", {})
    others.unlink()
    wait_until(lambda: post(running, many).status_code == 201, "room to be used")
    assert client.ask("GET", f"/consumers/c{COUNT - 1}").status == 200
    assert running.ask("/").status == 200
