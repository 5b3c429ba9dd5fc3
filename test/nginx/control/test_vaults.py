"""References to vaults: `{vault://my/token}` of a vault with the prefix `my`."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from admin_client import Client
from log_server import LogServer, logging_to

from sluice import Start
from upstream import Upstream
from wire import wait_until

MINE, YOURS = "t0ken-of-mine", "t0ken-of-yours"
ENV = {"MY_LOG_TOKEN": MINE, "YOUR_LOG_TOKEN": YOURS, "MY_SECRET": "s3cret"}
NAMES = "MY_LOG_TOKEN, YOUR_LOG_TOKEN, MY_UNSET"
REFERENCE = "{vault://my/log-token}"


def vault(prefix: str = "my", begin: str = "MY_") -> dict[str, Any]:
    """A vault of the environment."""
    return {"name": "env", "prefix": prefix, "config": {"prefix": begin}}


def plugin(log: LogServer, reference: str = REFERENCE) -> dict[str, Any]:
    """A log plugin whose header has a reference."""
    queue = {"max_coalescing_delay": 0.1}
    endpoint = f"http://127.0.0.1:{log.port}/in"
    config = {"http_endpoint": endpoint, "headers": {"X-Token": reference}, "queue": queue}
    return {"name": "http-log", "instance_name": "log", "config": config}


def sent(client: Client, log: LogServer) -> str | None:
    """The token that comes with the log entry of a request."""
    count = len(log.entries)
    client.running.ask("/")
    wait_until(lambda: len(log.entries) > count, "an entry")
    return log.last.headers.get("x-token")


@pytest.fixture
def client(gateway: Start, upstream: Upstream) -> Client:
    """A client of a gateway that proxies everything, with a vault."""
    client = Client(gateway(None, env=ENV, vault_env=NAMES, workers=2))
    client.must(200, "PUT", "/services/s", {"url": upstream.url})
    client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
    client.must(200, "PUT", "/vaults/my", vault())
    return client


def test_a_reference_to_a_vault_is_looked_up(client: Client, log: LogServer) -> None:
    made = client.must(200, "PUT", "/plugins/log", plugin(log))
    assert made["config"]["headers"] == {"X-Token": REFERENCE}
    for _ in range(4):
        assert sent(client, log) == MINE
    shown = client.ask("GET", "/plugins").body.decode()
    assert REFERENCE in shown
    assert MINE not in shown
    assert "_vaults" not in shown
    client.must(200, "PATCH", "/plugins/log", {"tags": ["x"]})
    assert sent(client, log) == MINE
    client.running.command("reload", "--new-workers")
    assert sent(client, log) == MINE
    client.must(200, "POST", "/schemas/plugins/validate", plugin(log))
    assert MINE not in client.running.error_log()


def test_what_cannot_be_looked_up_is_refused(client: Client, log: LogServer) -> None:
    for reference, why in (
        (
            "{vault://my/secret}",
            "the environment variable 'MY_SECRET' of the vault 'my' is not allowed; add it to "
            "the setting vault_env",
        ),
        ("{vault://my/unset}", "the environment variable 'MY_UNSET' is not set"),
        ("{vault://none/log-token}", "there is no vault with the prefix 'none'"),
        ("{vault://my/}", "expected {vault://PREFIX/NAME} or {vault://PREFIX/NAME/KEY}"),
    ):
        for method, target in (("PUT", "/plugins/log"), ("POST", "/schemas/plugins/validate")):
            refused = client.must(400, method, target, plugin(log, reference))
            assert refused["fields"] == {"config": {"headers": {"X-Token": why}}}
        refused = client.must(400, "POST", "/apply?kind=plugins", [plugin(log, reference)])
        assert refused["errors"][0]["message"] == why
    # An id is no prefix, though it may look like one.
    number = "abcdef01-0000-4000-8000-000000000001"
    client.must(200, "PUT", f"/vaults/{number}", vault("other"))
    client.must(400, "PUT", "/plugins/log", plugin(log, f"{{vault://{number}/log-token}}"))
    # But a prefix may be another one's id.
    client.must(201, "POST", "/vaults", vault(number))
    for method, target in (("PUT", "/plugins/log"), ("POST", "/schemas/plugins/validate")):
        value = plugin(log, f"{{vault://{number}/log-token}}")
        assert client.ask(method, target, value).status in (200, 201)
    client.must(204, "DELETE", "/plugins/log")
    # Nobody says by himself what a vault stands for.
    client.must(400, "PUT", "/plugins/log", plugin(log) | {"_vaults": {"my": "YOUR_"}})
    refused = client.must(400, "PUT", "/services/s", {"host": REFERENCE})
    assert refused["fields"] == {"host": "a vault reference is not allowed in this field"}


def test_a_vault_that_is_referred_to_stays_what_it_is(client: Client, log: LogServer) -> None:
    client.must(200, "PUT", "/plugins/log", plugin(log))
    for method, body in (
        ("DELETE", None),
        ("PATCH", {"config": {"prefix": "YOUR_"}}),
        ("PATCH", {"prefix": "other"}),
        ("PUT", {"name": "env"}),
    ):
        refused = client.must(400, method, "/vaults/my", body)
        assert refused["fields"] == {"@referenced_by": "plugins"}
        assert refused["code"] == 4
    client.must(200, "PATCH", "/vaults/my", {"description": "ours", "tags": ["x"]})
    client.must(200, "PUT", "/vaults/other", vault("other", "YOUR_"))
    client.must(204, "DELETE", "/vaults/other")
    assert sent(client, log) == MINE

    # In a batch it is the end that counts.
    change = {"method": "PATCH", "path": "/vaults/my", "body": {"config": {"prefix": "YOUR_"}}}
    again = {"method": "PATCH", "path": "/plugins/log", "body": {}}
    refused = client.must(400, "POST", "/batch", [again, change])
    assert refused["operation"] == 0
    client.must(200, "POST", "/batch", [change, again])
    assert sent(client, log) == YOURS
    gone = {"method": "DELETE", "path": "/vaults/my"}
    refused = client.must(400, "POST", "/batch", [again, gone])
    assert (refused["operation"], refused["name"]) == (0, "schema violation")
    gone_log = {"method": "DELETE", "path": "/plugins/log"}
    client.must(200, "POST", "/batch", [gone, gone_log])
    assert client.must(200, "GET", "/vaults")["data"] == []
    client.must(400, "PUT", "/plugins/log", plugin(log))


def test_files_bring_vaults(client: Client, log: LogServer, upstream: Upstream) -> None:
    client.must(200, "PUT", "/plugins/log", plugin(log))
    refused = client.must(
        400, "POST", "/apply", {"_format_version": "3.0", "vaults": [vault("my", "YOUR_")]}
    )
    assert refused["fields"] == {"@referenced_by": "plugins"}
    whole = {"_format_version": "3.0", "plugins": [plugin(log)], "vaults": [vault("my", "YOUR_")]}
    assert client.must(200, "POST", "/apply", whole)["changed"] == 2
    assert client.must(200, "POST", "/apply", whole)["unchanged"] == 2
    assert sent(client, log) == YOURS
    # The vault of the store.
    assert client.must(200, "POST", "/apply?kind=plugins", [plugin(log)])["unchanged"] == 1

    exported = client.running.prefix / "exported.json"
    assert client.running.command("export", str(exported)).returncode == 0
    text = exported.read_text()
    assert "_vaults" not in text
    assert json.loads(text)["plugins"][0]["config"]["headers"]["X-Token"] == REFERENCE
    revision = client.must(200, "GET", "/history")["data"][0]["revision"]
    moved = logging_to(upstream, log.port, headers={"X-Token": "{vault://my/token}"})
    moved |= {"_format_version": "3.0", "vaults": [vault("my", "MY_LOG_")]}
    client.must(201, "POST", "/config", moved)
    assert sent(client, log) == MINE
    client.must(200, "POST", "/rollback", {"revision": revision})
    assert sent(client, log) == YOURS
    client.must(201, "POST", "/config", json.loads(text))
    assert sent(client, log) == YOURS


def test_who_comes_between(client: Client, log: LogServer) -> None:
    """Of a vault that goes and a plugin that refers to it, one is refused at a time."""
    statuses: list[tuple[int, int]] = []

    def meet(first: Callable[[], int], second: Callable[[], int]) -> tuple[int, int]:
        found = [0, 0]
        start = threading.Barrier(2)

        def run(n: int, action: Callable[[], int]) -> None:
            start.wait()
            found[n] = action()

        threads = [threading.Thread(target=run, args=pair) for pair in enumerate((first, second))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found[0], found[1]

    for _ in range(60):
        statuses.append(
            meet(
                lambda: client.ask("DELETE", "/vaults/my").status,
                lambda: client.ask("PUT", "/plugins/log", plugin(log)).status,
            )
        )
        vaults = len(client.must(200, "GET", "/vaults")["data"])
        plugins = len(client.must(200, "GET", "/plugins")["data"])
        assert (statuses[-1], vaults, plugins) in (((204, 400), 0, 0), ((400, 200), 1, 1))
        client.must(204, "DELETE", "/plugins/log")
        client.must(200, "PUT", "/vaults/my", vault())
