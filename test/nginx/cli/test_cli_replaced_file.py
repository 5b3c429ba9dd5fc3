"""A gateway that a file configures: what a command may change of it, and the way back to the file
after POST /config.
"""

import json
import os

import httpx

from instance import ONE, TWO, Instance
from upstream import Upstream
from wire import DEADLINE, wait_until

SAME = "nothing has changed; no worker was replaced (--new-workers replaces them)\n"
REPLACED = " (replaced by POST /config)"
BACK = [
    "- route two of service two",
    "- service two",
    "+ service one",
    "+ route one of service one",
]


def post(instance: Instance, text: str) -> None:
    """Replaces the configuration by the Admin API."""
    reply = httpx.post(
        f"http://127.0.0.1:{instance.admin_port}/config?wait=1",
        content=text,
        headers={"Content-Type": "application/yaml"},
        trust_env=False,
        timeout=DEADLINE,
    )
    assert reply.status_code == 201, reply.text


def test_import_is_refused_as_other_changes_are(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        two = instance.folder / "two.yaml"
        two.write_text(TWO.format(url=upstream.url))
        said = instance.refuse("import", str(two), "--yes")
        ways = instance.refuse("rollback", "1")[0].removeprefix("sluice: ")
        assert ways.startswith("read-only: this instance is configured from a file; edit the file")
        assert instance.hint("reload --no-file") in ways
        assert said == [f"sluice: {ways}", "sluice: nothing was changed"]
        assert instance.get("/one") == 200
        assert instance.succeed("import", str(two), "--dry-run").endswith(
            "dry run: 2 created, 2 deleted\n"
        )
        # The store takes it, whether it is served or not.
        instance.succeed("restart", "--no-file", "--yes")
        assert ": revision " in instance.succeed("import", str(two), "--yes")
        assert instance.get("/two") == 200
        instance.succeed("stop")
        instance.succeed("import", str(two), "--yes")


def test_reload_brings_the_file_back_that_a_post_has_replaced(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        for more in ([], ["--new-workers"]):
            assert f"file     {instance.file}\n" in instance.succeed("status")
            assert instance.status()["file_replaced"] is False
            post(instance, TWO.format(url=upstream.url))
            assert f"file     {instance.file}{REPLACED}\n" in instance.succeed("status")
            assert instance.status()["file_replaced"] is True
            dry = instance.succeed("reload", "--dry-run", *more).splitlines()
            assert sorted(dry[:-1]) == sorted(BACK)
            assert instance.get("/two") == 200
            said = instance.succeed("reload", "--yes", *more).splitlines()
            assert sorted(said[1:-1]) == sorted(BACK)
            assert (instance.get("/one"), instance.get("/two")) == (200, 404)
            assert instance.succeed("reload") == SAME
        # One of the same text is the file's.
        post(instance, TWO.format(url=upstream.url))
        instance.file.write_text(TWO.format(url=upstream.url))
        assert instance.status()["file_replaced"] is False
        instance.succeed("reload")
        assert json.loads(instance.succeed("reload", "--dry-run", "--json"))["entities"] == []
        assert instance.status()["file_replaced"] is False


def test_status_says_that_the_file_has_changed_until_it_is_loaded(instance: Instance) -> None:
    loaded = ONE.format(url="http://127.0.0.1:9")
    remark = f"(changed since it was loaded; {instance.hint('reload')} loads it)"
    changed = f"file     {instance.file} {remark}\n"
    instance.file.write_text(loaded)
    instance.succeed("start")
    assert instance.status()["file_changed"] is False
    for text in ("services: [", TWO.format(url="http://127.0.0.1:9")):
        instance.file.write_text(text)
        assert changed in instance.succeed("status")
        assert instance.status()["file_changed"] is True
        assert instance.status()["file_replaced"] is False
        instance.run("reload", "--yes")
    assert instance.status()["file_changed"] is False
    assert changed not in instance.succeed("status")
    instance.file.unlink()
    assert instance.status()["file_changed"] is False


def test_an_upgrade_shows_a_changed_file_and_keeps_what_was_posted(instance: Instance) -> None:
    with Upstream() as upstream:
        instance.file.write_text(ONE.format(url=upstream.url))
        instance.succeed("start")
        instance.file.write_text(TWO.format(url=upstream.url))
        _, *said, _ = instance.succeed("upgrade", "--watch", "0.2").splitlines()
        assert {"- route one of service one", "+ route two of service two"} <= set(said)
        post(instance, ONE.format(url=upstream.url))
        wait_until(lambda: "former" not in instance.status(), "the old nginx to leave")
        done = instance.run("upgrade", "--watch", "0.2")
        assert (done.returncode, done.stderr) == (
            0,
            f"sluice: warning: {instance.file} was replaced by POST /config, which stays; "
            f"{instance.hint('reload')} loads the file\n",
        )
        assert (instance.get("/one"), instance.get("/two")) == (200, 404)
        instance.succeed("reload", "--yes")
        assert (instance.get("/one"), instance.get("/two")) == (404, 200)
        # One that the command names is asked for.
        other = instance.folder / "other.yaml"
        other.write_text(ONE.format(url=upstream.url))
        post(instance, TWO.format(url=upstream.url) + "_info: {}\n")
        wait_until(lambda: "former" not in instance.status(), "the old nginx to leave")
        said = instance.succeed("upgrade", "--watch", "0.2", file=str(other)).splitlines()
        assert f"~ setting file: {instance.file} -> {other}" in said
        assert (instance.get("/one"), instance.get("/two")) == (200, 404)


def test_status_waits_for_no_pipe_in_the_place_of_the_file(instance: Instance) -> None:
    instance.file.write_text(ONE.format(url="http://127.0.0.1:9"))
    instance.succeed("start")
    instance.file.write_text(TWO.format(url="http://127.0.0.1:9"))
    assert " (changed since it was loaded; `" in instance.succeed("status")
    instance.file.unlink()
    os.mkfifo(instance.file)
    assert f"file     {instance.file}\n" in instance.succeed("status")
