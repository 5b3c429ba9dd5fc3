"""A file in the place of a store whose entities have the same names and other ids."""

import json

from admin_client import Client

from sluice import Start

FILE = """\
_format_version: "3.0"
services:
  - name: shop
    host: 127.0.0.1
    routes:
      - name: shop
        paths: [/shop]
        plugins: [{name: rate-limiting, config: {minute: 100}}]
"""


def test_a_file_shows_what_it_changes_beside_ids(gateway: Start) -> None:
    running = gateway(None)
    client = Client(running)
    client.must(201, "POST", "/services", {"name": "shop", "host": "127.0.0.1"})
    client.must(201, "POST", "/services/shop/routes", {"name": "shop", "paths": ["/shop"]})
    plugin = {"name": "rate-limiting", "config": {"minute": 100}}
    client.must(201, "POST", "/routes/shop/plugins", plugin)
    before = client.must(200, "GET", "/services/shop")["id"]
    file = running.prefix / "own.yaml"
    file.write_text(FILE)
    assert running.command("import", str(file)).stdout.startswith("no changes, 3 unchanged")
    assert running.command("reload", "--file", str(file)).returncode == 0
    assert client.must(200, "GET", "/services/shop")["id"] == before

    file.write_text(FILE.replace("100", "50"))
    shown = [
        "~ plugin rate-limiting on route shop: config.minute 100 -> 50",
        "1 changed, 2 unchanged, 3 ids changed",
    ]
    done = running.command("reload", "--dry-run", "--json")
    assert json.loads(done.stdout)["ids_changed"] == 3
    done = running.command("reload")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == shown
    assert client.must(200, "GET", "/services/shop")["id"] != before
    # Ids are the file's own now.
    file.write_text(FILE)
    assert running.command("reload").stdout.splitlines()[-1] == "1 changed, 2 unchanged"
    # What has another name is another entity.
    file.write_text(FILE.replace("name: shop", "name: store"))
    assert running.command("reload").stdout.splitlines()[-1] == "3 created, 3 deleted"


TAGGED = """\
_format_version: "3.0"
_info: {select_tags: [team-a]}
services:
  - {name: shop, host: 127.0.0.1}
"""


def test_an_import_leaves_to_deck_what_has_other_tags(gateway: Start) -> None:
    """decK's sync deletes what has the file's tags; an import would delete all."""
    running = gateway(None)
    client = Client(running)
    for name, tags in (("a", ["team-a", "x"]), ("b", ["team-b"]), ("c", None)):
        client.must(201, "POST", "/services", {"name": name, "host": "h", "tags": tags})
    file = running.prefix / "own.yaml"
    file.write_text(TAGGED)
    why = f"{file} has `_info.select_tags` (team-a), but would delete 2 entities without these tags"
    done = running.command("import", str(file), "--yes")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"sluice: {why}"
    assert "`_info.select_tags` the import deletes them; nothing was changed" in done.stderr
    assert len(client.must(200, "GET", "/services")["data"]) == 3
    for command in (["diff", str(file)], ["import", str(file), "--dry-run"]):
        done = running.command(*command)
        assert f"warning: {why}" in done.stderr
        assert done.stdout.splitlines()[-1].endswith("1 created, 3 deleted")
    assert running.command("apply", str(file)).returncode == 0
    names = {one["name"] for one in client.must(200, "GET", "/services")["data"]}
    assert names == {"a", "b", "c", "shop"}
    for name in ("b", "c"):
        client.must(204, "DELETE", f"/services/{name}")
    assert running.command("import", str(file), "--yes").returncode == 0
    (left,) = client.must(200, "GET", "/services")["data"]
    assert (left["name"], left["tags"]) == ("shop", ["team-a"])
