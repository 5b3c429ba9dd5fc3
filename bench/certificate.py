"""A key and a self-signed certificate for a run, ECDSA P-256 as most have it."""

from __future__ import annotations

import subprocess
from pathlib import Path


def words(folder: Path) -> dict[str, str]:
    """Makes both in the folder; where they are, and their texts, as scenarios name them.

    `chain_and_key` is a file with both, for HAProxy.
    """
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
        f"-subj /CN=api.example.com -keyout {key} -out {certificate}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    return {
        "certificate": str(certificate),
        "key": str(key),
        "chain_and_key": str(both),
        "certificate_text": certificate.read_text(),
        "key_text": key.read_text(),
    }
