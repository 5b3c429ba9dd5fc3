"""What regular expressions of plugins take of a worker, where all that are live stay compiled."""

from typing import Any

from admin_client import Client
from changes import document, post
from slow_routes import told_apart

from sluice import Gateway, Start
from upstream import Upstream

# Compiled, some 30 KB: a worker keeps 64 MB, about 2,200 of them.
LARGE = r"https://@n@\.(?:" + "word0001|" * 400 + ")"
# Of one plugin.
MANY = 100
ALL = 30
TOO_MUCH = "the regular expressions of all routes and plugins take "

FIELDS = {"cors": "origins", "bot-detection": "deny"}


def large(name: str, number: int, count: int = MANY) -> dict[str, Any]:
    """A plugin with so many patterns of its own."""
    patterns = [LARGE.replace("@n@", f"{number}-{i}") for i in range(count)]
    return {"name": name, "config": {FIELDS[name]: ["https://a.com", *patterns]}}


def name_of(number: int) -> str:
    """Which plugin a route has."""
    return "cors" if number % 2 else "bot-detection"


def filled(upstream: Upstream, count: int) -> dict[str, Any]:
    """Routes `r1` and so on, a plugin each."""
    config = told_apart(upstream, count, paths=["/@n@/"])
    for i, route in enumerate(config["services"][0]["routes"], 1):
        route["plugins"] = [large(name_of(i), i) | {"tags": [str(i)]}]
    return config


def fill(running: Gateway, upstream: Upstream) -> int:
    """Has as many of them live as fit."""
    answer = post(running, document(filled(upstream, ALL)), "?wait=1&flatten_errors=1")
    assert answer.status_code == 400, answer.text[:500]
    (entity,) = answer.json()["flattened_errors"]
    assert entity["entity_type"] == "plugin"
    (error,) = entity["errors"]
    assert TOO_MUCH in error["message"]
    (first,) = map(int, entity["entity_tags"])
    assert 15 < first < ALL
    assert entity["entity_name"] == name_of(first)
    assert error["field"] == f"config.{FIELDS[name_of(first)]}"
    answer = post(running, document(filled(upstream, first - 1)))
    assert answer.status_code == 201, answer.text[:500]
    # A route beside them, and the bit of room that is left.
    Client(running).must(201, "POST", "/routes", {"name": "free", "paths": ["/free"]})
    return first - 1


def plugins_of(client: Client, route: str) -> dict[str, Any]:
    """The one of a route."""
    (plugin,) = client.must(200, "GET", f"/routes/{route}/plugins")["data"]
    return plugin


def test_what_is_too_much_is_refused_by_name(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    last = fill(running, upstream)
    client = Client(running)

    for name, field in FIELDS.items():
        refusal = client.must(400, "POST", "/routes/free/plugins", large(name, 90))
        assert refusal["name"] == "schema violation"
        assert refusal["fields"]["config"][field].startswith(TOO_MUCH)
        # From few to many.
        client.must(201, "POST", "/routes/free/plugins", large(name, 91, 1))
    few = client.must(200, "GET", "/routes/free/plugins")["data"][0]
    more = {"config": large(few["name"], 92)["config"]}
    refusal = client.must(400, "PATCH", f"/plugins/{few['id']}", more)
    assert TOO_MUCH in refusal["message"]
    global_one = large("cors", 93)
    batch = [
        {"method": "PUT", "path": "/routes/plain", "body": {"paths": ["/plain"]}},
        {"method": "POST", "path": "/plugins", "body": global_one},
    ]
    refusal = client.must(400, "POST", "/batch", batch)
    assert (refusal["operation"], refusal["path"]) == (1, "/plugins")
    assert client.ask("GET", "/routes/plain").status == 404
    # One that is not enabled takes nothing, until it is.
    off = client.must(201, "POST", "/plugins", global_one | {"enabled": False})
    client.must(400, "PATCH", f"/plugins/{off['id']}", {"enabled": True})

    # Of what is as it was only the difference is made.
    config = filled(upstream, last)
    changed = document(config | {"plugins": [global_one]})
    answer = post(running, changed)
    assert answer.status_code == 400, answer.text[:500]
    assert TOO_MUCH in answer.text
    for command, text in {"check": changed, "apply": document({"plugins": [global_one]})}.items():
        file = running.settings["prefix"] / f"{command}.json"
        file.write_text(text)
        done = running.command(command, str(file))
        assert done.returncode == 1
        assert TOO_MUCH in done.stderr, done.stderr
        assert "config.origins" in done.stderr, done.stderr

    assert running.ask(f"/{last}/").status == 200


def test_what_goes_leaves_room(gateway: Start, upstream: Upstream) -> None:
    running = gateway(None)
    fill(running, upstream)
    client = Client(running)
    first = plugins_of(client, "r1")
    fewer = {"config": large("cors", 1, MANY - 10)["config"]}
    client.must(200, "PATCH", f"/plugins/{first['id']}", fewer)
    client.must(201, "POST", "/routes/free/plugins", large("cors", 90, 10))
    client.must(400, "POST", "/routes/free/plugins", large("bot-detection", 90))
    client.must(200, "PATCH", f"/plugins/{plugins_of(client, 'r2')['id']}", {"enabled": False})
    client.must(201, "POST", "/routes/free/plugins", large("bot-detection", 90))
    # A successor counts what it finds.
    running.reload()
    client.must(400, "POST", "/plugins", large("cors", 91))
    client.must(204, "DELETE", "/routes/r3")
    client.must(201, "POST", "/plugins", large("cors", 91))
    assert running.ask("/free", headers={"Origin": "https://a.com"}).status == 503
    assert running.ask("/4/", headers={"User-Agent": "https://a.com"}).status == 403
