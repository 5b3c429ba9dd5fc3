"""What a schema calls a secret is shown nowhere: in no plan, table, history, error or log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from admin_client import JSON, Client
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

import certificates
from sluice import Gateway, Start

TOKEN, READ_TOKEN = "correct-horse-battery", "stable-horse-reading"
ID = "6f2c1a30-0000-4000-8000-000000000020"
REDIS = "rate-limiting.config.redis"
CLOUD = f"{REDIS}.cloud_authentication"
TEXTS = (
    "basicauth_credentials.password",
    "hmacauth_credentials.secret",
    "http-log.config.headers.*",
    "http-log.config.http_endpoint",
    "jwt_secrets.secret",
    "keyauth_credentials.key",
    f"{REDIS}.password",
    f"{REDIS}.sentinel_password",
    f"{CLOUD}.aws_secret_access_key",
    f"{CLOUD}.azure_client_secret",
    f"{CLOUD}.gcp_service_account_json",
)


class Planted:
    """A secret for each field that is one, by its path; others each time."""

    def __init__(self, turn: str) -> None:
        self.pairs = {
            "": certificates.make("a.example"),
            "_alt": certificates.make("a.example", kind="rsa"),
        }
        self.by_path = {path: f"planted-{turn}-{at:02}" for at, path in enumerate(TEXTS)}
        self.by_path |= {f"certificates.key{end}": pair.key for end, pair in self.pairs.items()}
        self.by_path["keys.pem.private_key"] = certificates.make("a.example").key
        key = json.loads(OKPAlgorithm.to_jwk(Ed25519PrivateKey.generate()))
        self.by_path["keys.jwk"] = json.dumps(key | {"kid": "jwk"})

    def of(self, start: str) -> dict[str, str]:
        """Those whose paths are this and a name, by the name."""
        split = {path: path.rpartition(".") for path in self.by_path}
        return {
            split[path][2]: text for path, text in self.by_path.items() if split[path][0] == start
        }

    def marks(self) -> set[str]:
        """What shows that one came out: it, the second line of a key, the private part of a JWK."""
        texts = dict(self.by_path)
        jwk = json.loads(texts.pop("keys.jwk"))
        found = {text.splitlines()[1] if "\n" in text else text for text in texts.values()}
        return found | {jwk["d"]}

    def plugins(self) -> dict[str, dict[str, Any]]:
        """Configurations that have them, by the plugin's name."""
        log = self.of("http-log.config")
        return {
            "http-log": {
                "http_endpoint": f"http://{log['http_endpoint']}:x@127.0.0.1:9/",
                "headers": {"X-Any": self.of("http-log.config.headers")["*"]},
            },
            "rate-limiting": {
                "minute": 1000,
                "policy": "local",
                "redis": self.of(REDIS) | {"cloud_authentication": self.of(CLOUD)},
            },
        }

    def file(self) -> dict[str, Any]:
        """A declarative file with all of them."""
        route = {"name": "a", "paths": ["/"]}
        certs = {f"cert{end}": pair.cert for end, pair in self.pairs.items()}
        consumer = {
            "username": "ann",
            "keyauth_credentials": [self.of("keyauth_credentials")],
            "basicauth_credentials": [{"username": "ann"} | self.of("basicauth_credentials")],
            "hmacauth_credentials": [{"username": "ann"} | self.of("hmacauth_credentials")],
            "jwt_secrets": [{"key": "issuer"} | self.of("jwt_secrets")],
        }
        return {
            "_format_version": "3.0",
            "services": [{"name": "a", "host": "127.0.0.1", "routes": [route]}],
            "consumers": [consumer],
            "keys": [
                {"kid": "jwk", "name": "jwk"} | self.of("keys"),
                {"kid": "pem", "name": "pem", "pem": self.of("keys.pem")},
            ],
            "certificates": [{"id": ID} | certs | self.of("certificates")],
            "plugins": [
                {"name": name, "route": "a", "config": config}
                for name, config in self.plugins().items()
            ],
        }


def secret_fields(path: str, definition: dict[str, Any]) -> Iterator[str]:
    """The paths of the fields that a schema calls secrets."""
    for entry in definition.get("fields", []):
        for name, field in entry.items():
            parts = {"": field, ".*": field.get("elements") or field.get("values") or {}}
            for end, part in parts.items():
                if part.get("encrypted") or part.get("secret"):
                    yield f"{path}.{name}{end}"
                yield from secret_fields(f"{path}.{name}{end}", part)


class Shown:
    """All that was shown to anybody, and by what."""

    def __init__(self, running: Gateway) -> None:
        self.running = running
        self.client = Client(running)
        self.texts: dict[str, str] = {}

    def command(self, code: int, *arguments: str) -> str:
        """What a command prints."""
        done = self.running.command(*arguments)
        said = done.stdout + done.stderr
        assert done.returncode == code, said
        self.texts[" ".join(arguments)] = said
        return said

    def admin(self, status: int, method: str, target: str, value: object = None) -> str:
        """An answer of the Admin API; to one who only reads, where nothing is written."""
        token = READ_TOKEN if method == "GET" else TOKEN
        headers = {"Kong-Admin-Token": token} | (JSON if value is not None else {})
        reply = self.client.ask(method, target, value, headers)
        assert reply.status == status, f"{method} {target}: {reply}"
        body: str = reply.body.decode()
        self.texts[f"{method} {target} {len(self.texts)}"] = body
        return body

    def check(self, marks: set[str]) -> None:
        """No secret was shown, nor logged."""
        logs = Path(self.running.settings["prefix"]) / "logs"
        self.texts |= {path.name: path.read_text() for path in logs.iterdir() if path.is_file()}
        assert [
            name for name, text in self.texts.items() if any(mark in text for mark in marks)
        ] == []


def start(gateway: Start) -> Gateway:
    """A gateway with a store."""
    return gateway(
        None,
        admin_token=TOKEN,
        admin_read_token=READ_TOKEN,
        audit_log="logs/audit.log",
        log_level="info",
    )


def kinds(document: dict[str, Any]) -> list[str]:
    """Those of entities."""
    names = document["components"]["schemas"]
    return [name for name in names if f"{name}-patch" in names]


def test_there_is_one_planted_for_each(gateway: Start) -> None:
    shown = Shown(start(gateway))
    found: set[str] = set()
    for kind in kinds(json.loads(shown.admin(200, "GET", "/openapi.json"))):
        found |= set(secret_fields(kind, json.loads(shown.admin(200, "GET", f"/schemas/{kind}"))))
    for plugin in json.loads(shown.admin(200, "GET", "/"))["plugins"]["available_on_server"]:
        schema = json.loads(shown.admin(200, "GET", f"/schemas/plugins/{plugin}"))
        found |= set(secret_fields(plugin, schema))
    assert found == set(Planted("x").by_path)


def test_what_is_configured_is_shown_without_them(gateway: Start) -> None:
    running = start(gateway)
    running.expect_log("cannot be resolved|connect.. failed|http-log", range(100))
    shown = Shown(running)
    before, after = Planted("before"), Planted("after")
    files = {}
    for name, planted in {"before": before, "after": after}.items():
        path = running.prefix / f"{name}.json"
        path.write_text(json.dumps(planted.file()))
        files[name] = str(path)
    shown.command(0, "import", files["before"], "--yes")
    said = shown.command(1, "diff", files["after"])
    for plugin in ("http-log", "rate-limiting"):
        assert f"~ plugin {plugin} on route a" in said
    for field in ("headers.X-Any", "http_endpoint", "redis.password"):
        assert f"config.{field} changed" in said
    shown.command(1, "diff", files["after"], "--json")
    shown.command(0, "apply", files["after"], "--dry-run")
    shown.command(0, "import", files["after"], "--yes")
    shown.command(0, "history")
    shown.command(0, "history", "2")
    shown.command(0, "history", "2", "--json")
    shown.command(0, "rollback", "1", "--dry-run")
    shown.command(0, "status")
    for kind in kinds(json.loads(shown.admin(200, "GET", "/openapi.json"))):
        if kind == "targets":  # they have no list of their own
            continue
        shown.command(0, "get", kind)
        shown.command(0, "get", kind, "--json")
    for target in ("plugins", "certificates", "keys", "history", "metrics", "status"):
        shown.admin(200, "GET", f"/{target}")
    for target in ("key-auths", "basic-auths", "hmac-auths", "jwts"):
        shown.admin(200, "GET", f"/{target}")
    running.ask("/")
    shown.command(0, "rollback", "1", "--yes")
    # They are where they belong.
    exported = running.prefix / "exported.json"
    assert running.command("export", str(exported)).returncode == 0
    assert before.by_path["jwt_secrets.secret"] in exported.read_text()
    shown.check(before.marks() | after.marks())


def spoilt(value: object, marks: set[str]) -> Iterator[Any]:
    """The same with one secret after the other of a wrong type, or of a character that is none."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (value | {key: each} for each in spoilt(item, marks))
    elif isinstance(value, str) and any(mark in value for mark in marks):
        yield from ([value], {"a": value}, f"{value}\x01\x00", f"{{vault://env/x}}{value}")


def test_errors_do_not_quote_them(gateway: Start) -> None:
    running = start(gateway)
    shown, planted = Shown(running), Planted("sent")
    marks, whole = planted.marks(), planted.file()
    file = running.prefix / "file.json"
    file.write_text(json.dumps(whole))
    shown.command(0, "import", str(file), "--yes")
    sent = [("/plugins", {"name": name, "config": of}) for name, of in planted.plugins().items()]
    sent += [
        (f"/consumers/ann/{page}", {name: "eve"} | planted.of(kind))
        for page, kind, name in (
            ("key-auth", "keyauth_credentials", "id"),
            ("basic-auth", "basicauth_credentials", "username"),
            ("hmac-auth", "hmacauth_credentials", "username"),
            ("jwt", "jwt_secrets", "key"),
        )
    ]
    sent += [("/keys", each | {"name": "eve"}) for each in whole["keys"]]
    refused = 0
    for target, entity in sent:
        for number, each in enumerate(spoilt(entity, marks)):
            reply = shown.client.ask("POST", target, each, JSON | {"Kong-Admin-Token": TOKEN})
            # What was made is shown whole to the one who made it.
            if reply.status != 201:
                shown.texts[f"POST {target} {number}"] = reply.body.decode()
                refused += 1
            if target == "/plugins":
                file.write_text(json.dumps(whole | {"plugins": [each]}))
                done = running.command("check", str(file))
                shown.texts[f"check {target} {number}"] = done.stdout + done.stderr
    assert refused > 30
    key = planted.of("keyauth_credentials")
    said = json.loads(shown.admin(409, "POST", "/consumers/ann/key-auth", key))
    assert said["message"] == "UNIQUE violation detected on '{key=\"***\"}'"
    consumer = {"username": "ann", "keyauth_credentials": [key, key]}
    file.write_text(json.dumps({"_format_version": "3.0", "consumers": [consumer]}))
    assert "set to '***' already declared" in shown.command(1, "check", str(file))
    shown.check(marks)
