"""Many clients at the same time: one unique value, and pages of what others change."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from admin_client import Client, uuid
from soaks import soak

from sluice import Gateway

ROUNDS = soak(15, 150)
ENTITIES = soak(20_000, 200_000)
CLIENTS = 20


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a gateway that begins with nothing."""
    with Gateway(None) as running:
        yield Client(running)


def test_one_of_many_gets_a_unique_value(client: Client) -> None:
    """By every way to get it; the others are told what is taken."""
    client.must(200, "PUT", "/consumers/owner", {})
    for number in range(CLIENTS):
        client.must(200, "PUT", f"/services/{uuid(number)}", {"host": "127.0.0.1"})
    for turn in range(ROUNDS):
        name, custom, key = f"n{turn}", f"c{turn}", f"k{turn}"
        for kind, value, shown, ways in (
            ("services", name, name, (
                ("POST", "/services", {"name": name, "host": "127.0.0.1"}),
                ("PUT", "/services/{id}", {"name": name, "host": "127.0.0.1"}),
                ("PATCH", "/services/{id}", {"name": name}),
            )),
            ("consumers", custom, custom, (
                ("POST", "/consumers", {"custom_id": custom}),
                ("PUT", "/consumers/u{number}", {"custom_id": custom}),
            )),
            ("key-auths", key, "***", (
                ("POST", "/consumers/owner/key-auth", {"key": key}),
                ("POST", "/key-auths", {"key": key, "consumer": {"username": "owner"}}),
            )),
        ):  # fmt: skip
            field = {"services": "name", "consumers": "custom_id", "key-auths": "key"}[kind]

            def ask(number: int, ways: tuple = ways) -> tuple[int, dict]:
                method, path, body = ways[number % len(ways)]
                path = path.format(id=uuid(number), number=number)
                reply = client.ask(method, path, body)
                return reply.status, reply.json()

            with ThreadPoolExecutor(CLIENTS) as pool:
                answers = list(pool.map(ask, range(CLIENTS)))
            won = [status for status, _ in answers if status in (200, 201)]
            assert len(won) == 1, (kind, answers)
            for status, body in answers:
                if status not in (200, 201):
                    assert status == 409, body
                    assert body == {
                        "message": f"UNIQUE violation detected on '{{{field}=\"{shown}\"}}'",
                        "name": "unique constraint violation",
                        "code": 5,
                        "fields": {field: shown},
                    }
            data = client.must(200, "GET", f"/{kind}?size=1000")["data"]
            assert sum(each[field] == value for each in data) == 1


def test_a_put_by_name_is_never_refused(client: Client) -> None:
    """However often its entity is deleted and another made meanwhile."""

    def ask(number: int) -> tuple[str, int]:
        method = ("PUT", "PUT", "DELETE", "POST")[number % 4]
        path, body = "/consumers/one", {"tags": [str(number)]}
        if method == "POST":
            path, body = "/consumers", body | {"username": "one"}
        return method, client.ask(method, path, body).status

    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = set(pool.map(ask, range(ROUNDS * 40)))
    assert answers <= {("PUT", 200), ("DELETE", 204), ("POST", 201), ("POST", 409)}


def pages(client: Client, size: int) -> list[str]:
    """The names of all consumers, page by page."""
    names, target = [], f"/consumers?size={size}"
    while target:
        page = client.must(200, "GET", target)
        names += [each["username"] for each in page["data"]]
        target = page["next"]
        assert (target is None) == ("offset" not in page)
    return names


def test_pages_while_all_changes(client: Client) -> None:
    """None stands there twice; none that stays is missing, whatever comes and goes meanwhile."""
    document = {
        "_format_version": "3.0",
        "consumers": [{"username": f"stays{n}"} for n in range(ENTITIES)],
    }
    client.must(201, "POST", "/config", document)
    ends, changed, problems = threading.Event(), [0], []

    def change() -> None:
        number = 0
        while not ends.is_set():
            number += 1
            for method, path in (
                ("PUT", f"/consumers/new{number}"),
                ("PATCH", f"/consumers/stays{number * 7919 % ENTITIES}"),
                ("DELETE", f"/consumers/new{number - 5}"),
            ):
                reply = client.ask(method, path, {"tags": [str(number)]})
                if reply.status not in (200, 204):
                    problems.append(f"{method} {path}: {reply}")
            changed[0] = number

    changer = threading.Thread(target=change, daemon=True)
    changer.start()
    try:
        for size in (1000, 997):
            names = pages(client, size)
            assert len(names) == len(set(names))
            stay = {name for name in names if name.startswith("stays")}
            assert len(stay) == ENTITIES
    finally:
        ends.set()
        changer.join()
    assert not problems
    assert changed[0] > 3
