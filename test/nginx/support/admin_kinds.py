"""A configuration with certificates and keys."""

import subprocess
from pathlib import Path
from typing import Any

CERTIFICATE_ID = "6f2c1a30-0000-4000-8000-000000000020"


CA_ID = "6f2c1a30-0000-4000-8000-000000000011"


# RFC 7517, A.2: with its private part.
JWK = {
    "kty": "EC",
    "crv": "P-256",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
    "d": "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE",
}


class Pair:
    """A certificate of a CA's and its key, in PEM."""

    def __init__(self, folder: Path, algorithm: str = "ec") -> None:
        kind = "ec -pkeyopt ec_paramgen_curve:P-256" if algorithm == "ec" else "rsa:2048"
        key, cert = folder / f"{algorithm}.key", folder / f"{algorithm}.pem"
        command = (
            f"openssl req -x509 -newkey {kind} -nodes -days 2 -subj /CN=test "
            f"-keyout {key} -out {cert}"
        )
        subprocess.run(command.split(), check=True, capture_output=True)
        self.key, self.cert = key.read_text(), cert.read_text()
        command = f"openssl x509 -in {cert} -pubkey -noout"
        done = subprocess.run(command.split(), check=True, capture_output=True, text=True)
        self.public = done.stdout

    def secrets(self) -> list[str]:
        """The lines of the key."""
        return [line for line in self.key.splitlines() if not line.startswith("-")]


def config(pair: Pair) -> dict[str, Any]:
    """A file with every kind."""
    return {
        "certificates": [
            {
                "id": CERTIFICATE_ID,
                "cert": pair.cert,
                "key": pair.key,
                "tags": ["edge"],
                "snis": [{"name": "b.example"}, {"name": "*.a.example", "tags": ["edge"]}],
            },
        ],
        "ca_certificates": [{"id": CA_ID, "cert": pair.cert}],
        "consumer_groups": [{"name": "gold", "consumers": [{"username": "alice"}]}],
        "consumers": [{"username": "alice"}, {"username": "bob", "groups": [{"name": "gold"}]}],
        "vaults": [{"name": "env", "prefix": "my-env", "config": {"prefix": "APP_"}}],
        "services": [
            {
                "name": "tls",
                "protocol": "https",
                "host": "127.0.0.1",
                "port": 1,
                "client_certificate": {"id": CERTIFICATE_ID},
                "ca_certificates": [CA_ID],
            },
        ],
        "upstreams": [{"name": "mutual", "client_certificate": {"id": CERTIFICATE_ID}}],
    }
