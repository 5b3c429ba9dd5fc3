"""What regular expressions of routes take of a worker, where all that are live stay compiled."""

from typing import Any

from admin_client import Client
from changes import document, post
from slow_routes import told_apart

from sluice import Gateway, Start
from upstream import Upstream

# Compiled, some 30 KB: a worker keeps 64 MB, about 2,200 of them.
LARGE = "~/@n@/(?:" + "word0001|" * 400 + ")$"
ALL = 3000
TOO_MUCH = "the regular expressions of all routes and plugins take 64."


def large(name: str) -> dict[str, Any]:
    """A route that takes as much as each of the file's."""
    return {"name": name, "paths": [LARGE.replace("@n@", name)]}


def revision(running: Gateway) -> str | None:
    """Of what is live."""
    return Client(running).ask("GET", "/services").headers.get("sluice-revision")


def fill(running: Gateway, upstream: Upstream) -> dict[str, Any]:
    """Has as many routes live as fit, `r1` and so on: the file."""
    config = told_apart(upstream, ALL, paths=[LARGE])
    before = revision(running)
    answer = post(running, document(config), "?wait=1&flatten_errors=1")
    assert answer.status_code == 400, answer.text[:500]
    (entity,) = answer.json()["flattened_errors"]
    assert TOO_MUCH in entity["errors"][0]["message"]
    assert revision(running) == before
    # Its name says which one is too much: those before it fit.
    routes = config["services"][0]["routes"]
    del routes[int(entity["entity_name"].removeprefix("r")) - 1 :]
    assert 2000 < len(routes) < 2500
    answer = post(running, document(config))
    assert answer.status_code == 201, answer.text[:500]
    return config


def test_what_is_too_much_is_refused_by_name(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    config = fill(running, upstream)
    client = Client(running)
    before = revision(running)

    refusal = client.must(400, "POST", "/routes", large("more"))
    assert refusal["name"] == "schema violation"
    assert refusal["fields"]["paths"].startswith(TOO_MUCH)
    listed = [("plain", ["/plain"]), ("more", large("more")["paths"])]
    batch = [{"method": "PUT", "path": f"/routes/{n}", "body": {"paths": p}} for n, p in listed]
    refusal = client.must(400, "POST", "/batch", batch)
    assert (refusal["operation"], refusal["path"]) == (1, "/routes/more")
    routes = config["services"][0]["routes"]
    # Of what is as it was only the difference is made.
    changed = config | {"services": [config["services"][0] | {"routes": [*routes, large("last")]}]}
    answer = post(running, document(changed))
    assert answer.status_code == 400, answer.text[:500]
    assert TOO_MUCH in answer.text
    file = running.settings["prefix"] / "changed.json"
    file.write_text(document(changed))
    checked = running.command("check", str(file))
    assert checked.returncode == 1
    assert '"last"' in checked.stderr
    assert TOO_MUCH in checked.stderr
    assert revision(running) == before

    assert running.ask("/1/word0001").status == 200
    assert running.ask(f"/{len(routes)}/word0001").status == 200
    assert running.ask("/more/word0001").status == 404


def test_what_goes_leaves_room(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    fill(running, upstream)
    client = Client(running)
    client.must(200, "PATCH", "/routes/r1", large("other"))
    client.must(400, "POST", "/routes", large("more"))
    client.must(204, "DELETE", "/routes/other")
    client.must(201, "POST", "/routes", large("more"))
    client.must(400, "POST", "/routes", large("yet"))
    client.must(201, "POST", "/routes", {"name": "plain", "paths": ["/plain"]})
    # A successor counts what it finds.
    running.reload()
    client.must(400, "POST", "/routes", large("yet"))
    client.must(204, "DELETE", "/routes/r2")
    client.must(201, "POST", "/routes", large("yet"))
    # They have no service.
    assert running.ask("/more/word0001").status == 503
    assert running.ask("/yet/word0001").status == 503
    assert running.ask("/2/word0001").status == 404
    assert running.ask("/3/word0001").status == 200
