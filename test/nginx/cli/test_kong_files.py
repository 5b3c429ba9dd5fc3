"""Files such as users of Kong have: they are checked and started as they are."""

from __future__ import annotations

import json
import re

import httpx
import pytest
from kong_files import DUMP, FILES, S

from instance import Instance
from wire import DEADLINE


def get(instance: Instance, path: str) -> dict:
    url = f"http://127.0.0.1:{instance.admin_port}{path}"
    return httpx.get(url, trust_env=False, timeout=DEADLINE).json()


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_checked_and_started(instance: Instance, name: str) -> None:
    instance.file.write_text(FILES[name])
    done = instance.run("check", str(instance.file), prefix=None)
    assert done.returncode == 0, done.stderr
    first, *_, last = done.stdout.splitlines()
    found = re.search(r" (\d+) routes?,", first)
    count = int(found[1]) if found else 0
    some = "the only route is" if count == 1 else f"all {count} routes are"
    assert last == (f"{some} served" if count else "no routes")
    assert instance.run("start").returncode == 0
    try:
        assert len(get(instance, "/routes")["data"]) == count
    finally:
        instance.run("stop")


def test_an_export_of_kong_is_the_store_whole(instance: Instance) -> None:
    instance.file.write_text(DUMP)
    assert instance.run("start", file=None).returncode == 0
    try:
        assert instance.run("import", str(instance.file)).returncode == 0
        kinds = ("services", "routes", "upstreams", "consumers", "plugins", "acls", "basic-auths")
        counts = [len(get(instance, f"/{kind}")["data"]) for kind in kinds]
        assert counts == [2, 1, 1, 1, 3, 1, 1]
        password = get(instance, f"/basic-auths/{S}08")["password"]
        assert password == "f0b8dfbb1bb3bb8d2d4b5ab5c0c7ed2e1a1f6d3b"
        disabled = get(instance, f"/plugins/{S}14")
        assert (disabled["enabled"], disabled["config"]) == (
            False,
            {"http_endpoint": "http://zipkin:9411"},
        )
        url = f"http://127.0.0.1:{instance.admin_port}/plugins/{S}14"
        answer = httpx.patch(url, json={"enabled": True}, trust_env=False, timeout=DEADLINE)
        assert (answer.status_code, answer.json()["fields"]) == (
            400,
            {"name": "plugin 'zipkin' not installed"},
        )
    finally:
        instance.run("stop")


def test_a_check_that_fails_ends_with_what_would_serve_most(instance: Instance) -> None:
    routes = [
        {"name": f"r{i}", "paths": [f"/{i}"], "plugins": [{"name": "zipkin"}] if i < 6 else []}
        for i in range(8)
    ]
    services = [{"name": "a", "host": "h", "routes": routes}]
    instance.file.write_text(json.dumps({"_format_version": "3.0", "services": services}))
    lines = instance.refuse("check", str(instance.file), prefix=None)
    assert lines[-1] == (
        "  of 8 routes, 2 need no change (25%); with the plugin 'zipkin' 100%; "
        "the file is refused until every error above is fixed"
    )
