"""A controller of a cluster, as Kong's for Kubernetes drives gateways without a database.

Told again from its source (kubernetes-ingress-controller 3.5, go-kong): the same requests, headers
and decisions, on objects of the test's own. What it does with a cluster's API is left out.

- A gateway is taken once `GET /status` and `GET /` answer: a version of 3.4.1 at least,
  `configuration.database` "off", a `router_flavor` that is a text.
- What it has pushed last it knows by a hash of its own; where that is the same, it asks `/status`,
  and pushes again only if `configuration_hash` is that of no configuration: the gateway lost it.
- It pushes by `POST /config?check_hash=1&flatten_errors=1`; any status below 400 is success.
- A 400 names broken entities by `flattened_errors`. Each is the object that its tags name; these
  objects, and what depends on them, are left out, and the rest is pushed: once. Of one without tags
  nothing follows.
- With nothing in the cluster it pushes an upstream that nobody uses: an empty configuration would
  leave the gateway without one.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx

from wire import DEADLINE

NO_CONFIGURATION = "0" * 32
OLDEST = (3, 4, 1)

SPACE = uuid.UUID("5f2c1a30-0000-4000-8000-000000000000")
HEADERS = {"Accept-Encoding": "gzip", "User-Agent": "ingress-controller-of-a-test"}

GROUPS = {
    "Ingress": ("networking.k8s.io", "v1"),
    "Service": ("", "v1"),
    "Secret": ("", "v1"),
    "KongConsumer": ("configuration.konghq.com", "v1"),
    "KongPlugin": ("configuration.konghq.com", "v1"),
}
"""Kind of an object -> its API group and version."""

Entity = dict[str, Any]


def id_of(*names: str) -> str:
    """The id that a name gives, the same on each push."""
    return str(uuid.uuid5(SPACE, "/".join(names)))


@dataclass(frozen=True)
class Object:
    """Something in the cluster: what entities are made of, and what it depends on."""

    kind: str
    name: str
    needs: tuple[Object, ...] = ()
    made: Entity = field(default_factory=dict, compare=False)
    """Collection -> its entities, or the kind of a nested one -> that; tags are not yet added."""

    @property
    def tags(self) -> list[str]:
        """By which its entities, and their errors, are known."""
        group, version = GROUPS[self.kind]
        found = {
            "name": self.name,
            "namespace": "default",
            "kind": self.kind,
            "uid": id_of(self.kind, self.name),
            "group": group,
            "version": version,
        }
        return [f"k8s-{name}:{value}" for name, value in found.items() if value]

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.kind, self.name

    def goes_with(self, keys: list[tuple[str, str]]) -> bool:
        """Whether it is one of these objects, or depends on one."""
        return self.key in keys or any(each.goes_with(keys) for each in self.needs)


def service(name: str, *targets: str) -> Object:
    """A service with pods at these addresses."""
    host = f"{name}.default.80.svc"
    upstream = {
        "name": host,
        "algorithm": "round-robin",
        "targets": [{"target": target, "weight": 100} for target in targets],
    }
    return Object("Service", name, (), {"upstreams": [upstream]})


def ingress(name: str, behind: Object, *paths: str, **more: Any) -> Object:
    """A rule that leads paths to a service; `more` are fields of its route, `with_` its plugins."""
    plugins: tuple[Object, ...] = more.pop("with_", ())
    route = {
        "id": id_of("route", name),
        "name": f"default.{name}",
        "paths": list(paths),
        "protocols": ["http", "https"],
        "https_redirect_status_code": 426,
        "path_handling": "v0",
        "preserve_host": True,
        "regex_priority": 0,
        "request_buffering": True,
        "response_buffering": True,
        "strip_path": False,
        "plugins": [tagged(plugin.made["plugin"], plugin.tags) for plugin in plugins],
    } | more
    entity = {
        "id": id_of("service", name),
        "name": f"default.{name}.80",
        "host": f"{behind.name}.default.80.svc",
        "path": "/",
        "port": 80,
        "protocol": "http",
        "connect_timeout": 60000,
        "read_timeout": 60000,
        "write_timeout": 60000,
        "retries": 5,
        "routes": [route],
    }
    return Object("Ingress", name, (behind, *plugins), {"services": [entity]})


def plugin(name: str, of: str, **config: Any) -> Object:
    """A plugin that rules may be with."""
    return Object("KongPlugin", name, (), {"plugin": {"name": of, "config": config}})


def consumer(name: str, *secrets: Object) -> Object:
    """A consumer with the credentials of these secrets."""
    entity: Entity = {"id": id_of("consumer", name), "username": name}
    for secret in secrets:
        ((kind, credential),) = secret.made.items()
        entity.setdefault(kind, []).append(tagged(credential, secret.tags))
    return Object("KongConsumer", name, secrets, {"consumers": [entity]})


def certificate(name: str, cert: str, key: str, *hosts: str) -> Object:
    """A secret with a certificate for these names; each says again whose it is."""
    own = {"id": id_of("certificate", name)}
    snis = [{"name": host, "certificate": own} for host in hosts]
    return Object(
        "Secret", name, (), {"certificates": [own | {"cert": cert, "key": key, "snis": snis}]}
    )


def tagged(entity: Entity, tags: list[str]) -> Entity:
    """An entity with the tags of its object; so are the routes in it."""
    out = entity | {"tags": tags}
    if "routes" in out:
        out["routes"] = [tagged(route, tags) for route in out["routes"]]
    return out


def configuration(objects: list[Object]) -> Entity:
    """What is pushed for them."""
    out: Entity = {"_format_version": "3.0"}
    for each in objects:
        for collection, entities in each.made.items():
            if isinstance(entities, list):
                out.setdefault(collection, []).extend(tagged(one, each.tags) for one in entities)
    if len(out) == 1:
        out["upstreams"] = [{"name": "kong"}]
    return out


@dataclass
class Peer:
    """A gateway that a controller knows."""

    client: httpx.Client
    pushed: str = ""
    """The hash of what it took last."""


class Controller:
    """Pushes the objects of a cluster to gateways."""

    def __init__(self, *addresses: str, **tls: Any) -> None:
        self.peers = [
            Peer(
                httpx.Client(
                    base_url=each, headers=HEADERS, trust_env=False, timeout=DEADLINE, **tls
                )
            )
            for each in addresses
        ]
        self.posts: list[httpx.Response] = []
        """What pushes were answered."""
        self.events: dict[tuple[str, str], dict[str, str]] = {}
        """What objects are told: kind and name -> field -> message."""

    def __enter__(self) -> Controller:
        for peer in self.peers:
            self._greet(peer)
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self.peers:
            peer.client.close()

    def _greet(self, peer: Peer) -> None:
        self.status(peer)
        root = peer.client.get("/")
        assert root.status_code == 200
        found = root.json()
        version = re.match(r"(\d+)\.(\d+)\.(\d+)", found["version"])
        assert version is not None
        assert tuple(map(int, version.groups())) >= OLDEST
        assert found["configuration"]["database"] == "off"
        assert isinstance(found["configuration"]["router_flavor"], str)
        assert uuid.UUID(found["node_id"])
        for listener in found["configuration"]["proxy_listeners"]:
            assert {type(listener[name]) for name in ("ip", "listener")} == {str}
            assert {type(listener[name]) for name in ("ssl", "http2")} == {bool}
            assert type(listener["port"]) is int

    def status(self, peer: Peer) -> str:
        """The hash that a gateway says it serves."""
        answer = peer.client.get("/status")
        assert answer.status_code == 200, answer.text
        return answer.json()["configuration_hash"]

    def update(self, objects: list[Object]) -> list[int]:
        """Brings the gateways to what the cluster has: what each push was answered, the pushes
        without broken objects last."""
        self.events = {}
        first = len(self.posts)
        broken = [name for peer in self.peers for name in self._send(peer, objects)]
        if broken:
            rest = [each for each in objects if not each.goes_with(broken)]
            for peer in self.peers:
                self._send(peer, rest)
        return [answer.status_code for answer in self.posts[first:]]

    def _send(self, peer: Peer, objects: list[Object]) -> list[tuple[str, str]]:
        body = json.dumps(configuration(objects), separators=(",", ":")).encode()
        wanted = hashlib.sha256(body).hexdigest()
        if wanted == peer.pushed and self.status(peer) != NO_CONFIGURATION:
            return []
        answer = peer.client.post(
            "/config",
            params={"check_hash": 1, "flatten_errors": 1},
            headers={"Content-Type": "application/json"},
            content=body,
        )
        self.posts.append(answer)
        if answer.status_code < 400:
            peer.pushed = wanted
            return []
        assert answer.status_code == 400, answer.text
        found = answer.json()["flattened_errors"]
        return [self._tell(entry) for entry in found if "entity_tags" in entry]

    def _tell(self, entry: Entity) -> tuple[str, str]:
        tags = dict(re.match(r"k8s-(\w+):(.*)", tag).groups() for tag in entry["entity_tags"])  # type: ignore[union-attr]
        assert {"name", "namespace", "kind", "uid", "version"} <= tags.keys()
        problems = self.events.setdefault((tags["kind"], tags["name"]), {})
        for error in entry["errors"]:
            whole = f"{entry['entity_type']}:{entry.get('entity_name', '')}"
            problems[error["field"] if error["type"] == "field" else whole] = error["message"]
        return tags["kind"], tags["name"]
