"""Names of hosts in the store: there as long as a service or a target has them."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from admin_client import Client
from plugin_files import rounds
from threads import beside

import guard
from sluice import Gateway
from upstream import Upstream
from wire import wait_until

# The control worker's round, again and again; and a name whose addresses do not come for as long as
# there is a file, which is another when somebody waits for them.
ROUNDS = """
local queries = require("gateway.upstream.queries")
local ask = queries.ask

local function is_held()
    local file = io.open("@fuse@")
    if file then
        file:close()
        os.rename("@fuse@.new", "@fuse@.seen")
    end
    return file ~= nil
end

function queries.ask(lane, names, seconds)
    for _, host in ipairs(names) do
        while host == "slow.invalid" and is_held() do
            ngx.sleep(0.005)
        end
    end
    return ask(lane, names, seconds)
end
""" + rounds(0.005)


@pytest.fixture(scope="module")
def fuse() -> Iterator[Path]:
    """The file that holds slow.invalid, not there."""
    folder = guard.folder("sluice-names-")
    folder.chmod(0o777)
    yield folder / "fuse"
    guard.remove(folder)


@pytest.fixture(scope="module")
def running(fuse: Path) -> Iterator[Gateway]:
    """A gateway that looks for unused names all the time."""
    with Gateway(None, plugins={"rounds": ROUNDS.replace("@fuse@", str(fuse))}) as gateway:
        yield gateway


def names(client: Client) -> set[str]:
    """The store's names."""
    path = client.running.settings["prefix"] / "store" / "store.db"
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        return {row[0] for row in store.execute("SELECT u_name FROM e_names")}


def must_become(client: Client, *expected: str) -> None:
    """Waits for it."""
    wait_until(lambda: names(client) == set(expected), f"names to be {expected}")


def test_a_name_goes_with_its_last_use(client: Client) -> None:
    client.must(200, "PUT", "/services/s", {"host": "localhost"})
    client.must(200, "PUT", "/services/t", {"host": "localhost"})
    client.must(200, "PUT", "/upstreams/u", {})
    client.must(200, "PUT", "/upstreams/u/targets/a.invalid:80", {})
    client.must(200, "PUT", "/upstreams/u/targets/a.invalid:81", {})
    must_become(client, "localhost", "a.invalid")
    client.must(204, "DELETE", "/services/s")
    client.must(204, "DELETE", "/upstreams/u/targets/a.invalid:80")
    client.must(200, "PATCH", "/services/t", {"retries": 1})
    time.sleep(0.2)  # some rounds
    assert names(client) == {"localhost", "a.invalid"}
    client.must(200, "PUT", "/services/t", {"host": "127.0.0.1"})
    must_become(client, "a.invalid")
    client.must(204, "DELETE", "/upstreams/u")
    must_become(client)
    # One that comes again soon is there again.
    client.must(200, "PUT", "/services/t", {"host": "localhost"})
    must_become(client, "localhost")


def test_a_service_keeps_its_name_whoever_comes_between(client: Client, upstream: Upstream) -> None:
    """Names that are needed for a moment, again and again; rounds come between."""
    port = upstream.port
    stop = threading.Event()
    thrown: list[BaseException] = []

    def flicker(number: int) -> None:
        try:
            while not stop.is_set():
                client.must(200, "PUT", f"/services/f{number}", {"host": "localhost"})
                client.must(204, "DELETE", f"/services/f{number}")
        except BaseException as err:
            thrown.append(err)

    with beside(*[partial(flicker, number) for number in range(3)], until=stop):
        for _ in range(40):
            client.must(200, "PUT", "/services/s", {"host": "localhost", "port": port})
            client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})
            assert names(client) == {"localhost"}
            assert client.running.ask("/").status == 200
            client.must(204, "DELETE", "/routes/r")
            client.must(204, "DELETE", "/services/s")
    assert not thrown
    must_become(client)


def test_an_upstream_stands_for_its_name(client: Client, fuse: Path) -> None:
    """Of services and upstreams that come and go at once, none is without a name."""
    client.must(200, "PUT", "/upstreams/u.invalid", {})
    client.must(200, "PUT", "/services/s", {"host": "u.invalid"})
    assert names(client) == set()
    client.must(204, "DELETE", "/upstreams/u.invalid")
    must_become(client, "u.invalid")
    client.must(204, "DELETE", "/services/s")
    must_become(client)

    # A write that waits for another name when the upstream goes, and its name with it.
    client.must(200, "PUT", "/upstreams/n.invalid", {})
    batch = [
        {"method": "PUT", "path": f"/services/{host}", "body": {"host": host}}
        for host in ("n.invalid", "slow.invalid")
    ]
    fuse.touch()
    fuse.with_suffix(".new").touch()
    with beside(partial(client.must, 200, "POST", "/batch", batch)):
        try:
            wait_until(fuse.with_suffix(".seen").exists, "the write to wait")
            client.must(204, "DELETE", "/upstreams/n.invalid")
            must_become(client)
        finally:
            fuse.unlink()
    must_become(client, "n.invalid", "slow.invalid")


def test_a_rollback_brings_names_back(client: Client, upstream: Upstream) -> None:
    client.must(200, "PUT", "/services/s", {"host": "localhost", "port": upstream.port})
    client.must(200, "PUT", "/services/s/routes/r", {"paths": ["/"]})

    def revision() -> int:
        return client.must(200, "GET", "/history")["data"][0]["revision"]

    served_by_name = revision()
    client.must(200, "PUT", "/upstreams/localhost", {})
    target = f"/upstreams/localhost/targets/127.0.0.1:{upstream.port}"
    client.must(200, "PUT", target, {})
    served_by_upstream = revision()
    must_become(client, "localhost")
    client.must(204, "DELETE", "/routes/r")
    client.must(204, "DELETE", "/services/s")
    must_become(client)
    client.must(200, "POST", "/rollback", {"revision": served_by_upstream})
    assert client.running.ask("/").status == 200
    # It was an upstream's, and is none's now.
    client.must(200, "POST", "/rollback", {"revision": served_by_name})
    assert names(client) == {"localhost"}
    assert client.running.ask("/").status == 200


def test_a_rollback_needs_the_name_of_an_upstream_that_goes(client: Client) -> None:
    made = client.must(200, "PUT", "/services/s", {"host": "lost.invalid"})
    revision = client.must(200, "GET", "/history")["data"][0]["revision"]
    both = {"services": [made]}
    both |= {"_format_version": "3.0", "upstreams": [{"name": "lost.invalid"}]}
    client.must(201, "POST", "/config", both)
    assert names(client) == set()
    client.must(200, "POST", "/rollback", {"revision": revision})
    assert names(client) == {"lost.invalid"}
