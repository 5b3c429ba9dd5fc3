"""Random writes and proxied requests beside a model: no answer is of what was before a write.

SEED: of an earlier run.
"""

import copy
import dataclasses
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from admin_client import Client
from seeds import seed_of
from soaks import soak

from sluice import Gateway
from upstream import Upstream
from wire import Reply, Wire, wait_until

STEPS = soak(300, 3000)
SEED = seed_of("admin_model")

SERVICES, ROUTES, VARIANTS, CONSUMERS, KEYS = 4, 6, 3, 3, 5

# How many steps there are between two of these.
RELOAD_EVERY, KILL_WORKER_EVERY, KILL_CONTROL_EVERY = 149, 61, 97

# Snapshots to go back to.
KEPT = 50


@dataclasses.dataclass
class State:
    """What the store holds, as far as answers depend on it."""

    services: dict[str, tuple[int, bool]] = dataclasses.field(default_factory=dict)
    """Version, and whether its host is the upstream."""
    routes: dict[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    """Variant of its path, and its service."""
    locked: set[str] = dataclasses.field(default_factory=set)
    """Routes that ask for a key."""
    consumers: set[str] = dataclasses.field(default_factory=set)
    keys: dict[str, str] = dataclasses.field(default_factory=dict)
    """Key -> consumer."""
    weights: dict[int, int] = dataclasses.field(default_factory=dict)
    """Port of a target -> weight."""


Operation = dict[str, Any]


def operation(method: str, path: str, body: object = None) -> Operation:
    """One as a batch has it."""
    return {"method": method, "path": path} | ({} if body is None else {"body": body})


class Model:
    """The state that there should be, and writes that lead to others."""

    def __init__(self, rng: random.Random, ports: list[int]) -> None:
        self.rng, self.ports, self.state, self.version = rng, ports, State(), 0

    def service(self) -> str:
        return f"s{self.rng.randrange(SERVICES)}"

    def route(self) -> str:
        return f"r{self.rng.randrange(ROUTES)}"

    def service_value(self) -> tuple[dict[str, Any], tuple[int, bool]]:
        """What a service is sent as, and what it is then."""
        self.version += 1
        pooled = self.rng.random() < 0.4
        host, port = ("pool", 80) if pooled else ("127.0.0.1", self.ports[0])
        value = {"host": host, "port": port, "path": f"/v{self.version}"}
        return value, (self.version, pooled)

    def put_service(self, state: State) -> tuple[Operation, int]:
        name = self.service()
        value, state.services[name] = self.service_value()
        return operation("PUT", f"/services/{name}", value), 200

    def patch_service(self, state: State) -> tuple[Operation, int]:
        name = self.service()
        value, now = self.service_value()
        found = name in state.services
        if found:
            state.services[name] = now
        return operation("PATCH", f"/services/{name}", value), 200 if found else 404

    def post_service(self, state: State) -> tuple[Operation, int]:
        name = self.service()
        value, now = self.service_value()
        status = 409 if name in state.services else 201
        state.services.setdefault(name, now)
        return operation("POST", "/services", value | {"name": name}), status

    def delete_service(self, state: State) -> tuple[Operation, int]:
        name = self.service()
        used = any(service == name for _, service in state.routes.values())
        if not used:
            state.services.pop(name, None)
        return operation("DELETE", f"/services/{name}"), 400 if used else 204

    def put_route(self, state: State) -> tuple[Operation, int]:
        name, service, variant = self.route(), self.service(), self.rng.randrange(VARIANTS)
        value: dict[str, Any] = {"paths": [f"/{name}-{variant}"]}
        nested = self.rng.random() < 0.5 and state.routes.get(name, (0, service))[1] == service
        path = f"/services/{service}/routes/{name}" if nested else f"/routes/{name}"
        if not nested:
            value["service"] = {"name": service}
        if service not in state.services:
            return operation("PUT", path, value), 404 if nested else 400
        state.routes[name] = (variant, service)
        return operation("PUT", path, value), 200

    def patch_route(self, state: State) -> tuple[Operation, int]:
        name, variant = self.route(), self.rng.randrange(VARIANTS)
        found = name in state.routes
        if found:
            state.routes[name] = (variant, state.routes[name][1])
        body = {"paths": [f"/{name}-{variant}"]}
        return operation("PATCH", f"/routes/{name}", body), 200 if found else 404

    def delete_route(self, state: State) -> tuple[Operation, int]:
        name = self.route()
        state.routes.pop(name, None)
        state.locked.discard(name)
        return operation("DELETE", f"/routes/{name}"), 204

    def lock_route(self, state: State) -> tuple[Operation, int]:
        name = self.route()
        if name not in state.routes:
            value = {"name": "key-auth", "route": {"name": name}}
            return operation("POST", "/plugins", value), 400
        status = 409 if name in state.locked else 201
        state.locked.add(name)
        return operation("POST", f"/routes/{name}/plugins", {"name": "key-auth"}), status

    def put_consumer(self, state: State) -> tuple[Operation, int]:
        name = f"c{self.rng.randrange(CONSUMERS)}"
        state.consumers.add(name)
        return operation("PUT", f"/consumers/{name}", {}), 200

    def delete_consumer(self, state: State) -> tuple[Operation, int]:
        name = f"c{self.rng.randrange(CONSUMERS)}"
        state.consumers.discard(name)
        state.keys = {key: owner for key, owner in state.keys.items() if owner != name}
        return operation("DELETE", f"/consumers/{name}"), 204

    def post_key(self, state: State) -> tuple[Operation, int]:
        name, key = f"c{self.rng.randrange(CONSUMERS)}", f"k{self.rng.randrange(KEYS)}"
        path = f"/consumers/{name}/key-auth"
        if name not in state.consumers:
            return operation("POST", path, {"key": key}), 404
        status = 409 if key in state.keys else 201
        state.keys.setdefault(key, name)
        return operation("POST", path, {"key": key}), status

    def delete_key(self, state: State) -> tuple[Operation, int]:
        key = f"k{self.rng.randrange(KEYS)}"
        state.keys.pop(key, None)
        return operation("DELETE", f"/key-auths/{key}"), 204

    def put_target(self, state: State) -> tuple[Operation, int]:
        port, weight = self.rng.choice(self.ports), self.rng.choice((0, 1, 100))
        state.weights[port] = weight
        path = f"/upstreams/pool/targets/127.0.0.1:{port}"
        return operation("PUT", path, {"weight": weight}), 200

    def delete_target(self, state: State) -> tuple[Operation, int]:
        port = self.rng.choice(self.ports)
        status = 204 if state.weights.pop(port, None) is not None else 404
        return operation("DELETE", f"/upstreams/pool/targets/127.0.0.1:{port}"), status

    def one(self, state: State) -> tuple[Operation, int]:
        """A write, the status of its answer, and the state that it makes."""
        return self.rng.choice((
            self.put_service, self.patch_service, self.post_service, self.delete_service,
            self.put_route, self.put_route, self.put_route, self.patch_route, self.delete_route,
            self.lock_route, self.put_consumer, self.delete_consumer, self.post_key, self.post_key,
            self.delete_key, self.put_target, self.put_target, self.delete_target,
        ))(state)  # fmt: skip

    def batch(self) -> tuple[list[Operation], int, State]:
        """Several; the status of the answer, and the state after it.

        What cannot be made is the last, if there is any: a batch is looked at as a whole, so
        one after it could mend it.
        """
        state, operations = copy.deepcopy(self.state), []
        may_fail = self.rng.random() < 0.3
        for _ in range(self.rng.randrange(1, 8)):
            next_state = copy.deepcopy(state)
            made, status = self.one(next_state)
            if status < 400:
                operations.append(made)
                state = next_state
            elif may_fail:
                return [*operations, made], status, copy.deepcopy(self.state)
        return operations, 200, state

    def expected(self, name: str, variant: int, key: str | None) -> tuple[int, str, set[int], str]:
        """Status, path at the upstream, ports that may have it, consumer."""
        state = self.state
        if name not in state.routes or state.routes[name][0] != variant:
            return 404, "", set(), ""
        owner = state.keys.get(key or "", "") if name in state.locked else ""
        if name in state.locked and not owner:
            return 401, "", set(), ""
        version, pooled = state.services[state.routes[name][1]]
        weighed = {port for port, weight in state.weights.items() if weight > 0}
        ports = weighed if pooled else {self.ports[0]}
        return (200 if ports else 503), f"/v{version}", ports, owner


class Requests:
    """Proxied requests on connections that stay open, and on new ones."""

    def __init__(self, running: Gateway, rng: random.Random) -> None:
        self.running, self.rng = running, rng
        self.open: list[Wire] = []

    def ask(self, target: str, headers: dict[str, str]) -> Reply:
        """One request; again on a new connection where its worker was killed or has left."""
        if self.open and self.rng.random() < 0.7:
            wire = self.rng.choice(self.open)
            try:
                reply = wire.ask(target, headers=headers)
                if (reply.headers.get("connection") or "") != "close":
                    return reply
                self.drop(wire)
                return reply
            except OSError:
                self.drop(wire)
        while True:
            wire = self.running.wire()
            try:
                reply = wire.ask(target, headers=headers)
            except OSError:
                wire.close()
                continue
            self.open.append(wire)
            if len(self.open) > 12:
                self.drop(self.open[0])
            return reply

    def drop(self, wire: Wire) -> None:
        """Forgets a connection."""
        self.open.remove(wire)
        wire.close()


class Noise(threading.Thread):
    """Another client, whose writes nobody depends on."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self.client, self.ends, self.statuses = client, threading.Event(), set[int]()

    def run(self) -> None:
        number = 0
        while not self.ends.wait(0.01):
            number += 1
            method = "PUT" if number % 3 else "DELETE"
            path = f"/consumers/noise{number % 7}"
            try:
                self.statuses.add(self.client.ask(method, path, {"tags": [str(number)]}).status)
            except OSError:
                continue  # the control worker was killed


class Run:
    """The model and the gateway, step by step."""

    def __init__(self, running: Gateway, model: Model, rng: random.Random) -> None:
        self.running, self.model, self.rng = running, model, rng
        self.client, self.requests = Client(running), Requests(running, rng)
        self.states: dict[int, State] = {}
        self.log: list[str] = []
        self.was_again = False

    def write(self, method: str, path: str, body: object) -> Reply:
        """A write; again where nobody has answered, so whether it was made is not known."""
        self.was_again = False
        for _ in range(100):
            try:
                reply = self.client.ask(method, path, body)
            except OSError:
                self.was_again = True
                continue
            if reply.status != 503:
                return reply
            self.was_again = True
        raise AssertionError(f"{method} {path}: never answered")

    def told(self, status: int, reply: Reply) -> str:
        """What is wrong, after which writes, and what the gateway has."""
        has = {
            kind: self.client.must(200, "GET", f"/{kind}")["data"]
            for kind in ("services", "routes", "history")
        }
        writes = "\n".join(self.log[-40:])
        return f"{status} expected, got {reply}; {self.model.state}\n{writes}\n{has}"

    def make(self) -> None:
        """One write, or several, or a way back."""
        chance = self.rng.random()
        if chance < 0.06 and self.states:
            revision = self.rng.choice(list(self.states))
            reply = self.write("POST", "/rollback", {"revision": revision})
            self.log.append(f"rollback {revision}: {reply.status}")
            assert reply.status == 200, reply
            self.model.state = copy.deepcopy(self.states[revision])
        elif chance < 0.2:
            operations, status, state = self.model.batch()
            reply = self.write("POST", "/batch", operations)
            self.log.append(f"batch {operations}: {reply.status}")
            # A batch that was made, but not answered, cannot be made again.
            known = self.was_again and reply.status in (404, 409)
            assert reply.status == status or known, self.told(status, reply)
            self.model.state = state
        else:
            made, status = self.model.one(self.model.state)
            reply = self.write(made["method"], made["path"], made.get("body"))
            self.log.append(f"{made}: {reply.status}")
            known = self.was_again and (status, reply.status) in {(201, 409), (204, 404)}
            assert reply.status == status or known, self.told(status, reply)
        if reply.status < 300:
            revision = int(reply.headers.get("sluice-revision") or 0)
            self.states[revision] = copy.deepcopy(self.model.state)
            if len(self.states) > KEPT:
                del self.states[min(self.states)]

    def look(self) -> None:
        """Proxied requests are answered as the model does."""
        for _ in range(3):
            name, variant = self.model.route(), self.rng.randrange(VARIANTS)
            if name in self.model.state.routes and self.rng.random() < 0.8:
                variant = self.model.state.routes[name][0]
            key = self.rng.choice((None, *(f"k{number}" for number in range(KEYS))))
            expected = self.model.expected(name, variant, key)
            reply = self.requests.ask(f"/{name}-{variant}", {"apikey": key} if key else {})
            status, path, ports, consumer = expected
            what = f"/{name}-{variant} {key}: {expected}, got {reply}; {self.log[-5:]}"
            assert reply.status == status, what
            if status == 200:
                seen = reply.json()
                assert seen["target"] == path, what
                assert int(seen["upstream"]) in ports, what
                names = [v for n, v in seen["headers"] if n.lower() == "x-consumer-username"]
                assert names == ([consumer] if consumer else []), what

    def kill(self, pid: int, successor: Callable[[], bool], during: Callable[[], None]) -> None:
        """A worker dies while something is done."""
        timer = threading.Timer(self.rng.random() * 0.01, os.kill, (pid, signal.SIGKILL))
        timer.start()
        during()
        timer.join()
        wait_until(successor, "its successor")

    def trouble(self, step: int) -> bool:
        """Now and then a reload or a death, with a write meanwhile."""
        if step % RELOAD_EVERY == RELOAD_EVERY - 1:
            self.make()
            self.running.reload()
            wait_until(lambda: not self.running.retiring(), "the old workers' end")
        elif step % KILL_WORKER_EVERY == KILL_WORKER_EVERY - 1:
            pid, count = self.rng.choice(self.running.workers()), len(self.running.workers())
            self.kill(
                pid,
                lambda: pid not in self.running.workers() and len(self.running.workers()) == count,
                self.make,
            )
        elif step % KILL_CONTROL_EVERY == KILL_CONTROL_EVERY - 1:
            pid = self.running.control()
            self.kill(pid, lambda: self.running.control() != pid, self.make)
        else:
            return False
        return True


@pytest.fixture
def upstreams() -> Iterator[list[Upstream]]:
    """Two, named by their ports."""
    with ExitStack() as stack:
        made = [stack.enter_context(Upstream()) for _ in range(2)]
        for each in made:
            each.name = str(port_of(each))
        yield made


def port_of(upstream: Upstream) -> int:
    """The port that it listens on."""
    return int(upstream.url.rsplit(":", 1)[1])


def test_no_answer_is_stale(upstreams: list[Upstream], gateway: Callable[..., Gateway]) -> None:
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    running = gateway(None, workers=4)
    running.expect_log("exited on signal 9", range(STEPS))
    # After three deaths in a minute it builds nothing by itself, and says so.
    running.expect_log("control worker", range(STEPS))
    run = Run(running, Model(rng, [port_of(each) for each in upstreams]), rng)
    run.client.must(200, "PUT", "/upstreams/pool", {})
    noise = Noise(Client(running))
    noise.start()
    try:
        for step in range(STEPS):
            if not run.trouble(step):
                run.make()
            run.look()
    finally:
        noise.ends.set()
        noise.join()
        for wire in run.requests.open:
            wire.close()
    assert noise.statuses <= {200, 204, 503}
