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
