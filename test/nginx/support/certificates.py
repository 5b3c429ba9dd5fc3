"""Certificates that tests make, and what a handshake with a gateway comes to.

OpenSSL's command makes them: nothing of it is kept, and no package is needed.
"""

import contextlib
import socket
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from processes import ran

KEYS = {
    "ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    "rsa": ["rsa:2048"],
    "short": ["rsa:1024"],
}


@dataclass(frozen=True)
class Pair:
    """A certificate, with those of its issuers behind it, and its key, in PEM."""

    cert: str
    key: str

    @property
    def der(self) -> bytes:
        """The first certificate, as a handshake shows it."""
        return ssl.PEM_cert_to_DER_cert(self.cert[: self.cert.index("-----END") + 25])


def run(*arguments: str, text: str = "") -> str:
    """Runs OpenSSL's command and gives what it prints."""
    return ran(["openssl", *arguments], input=text, check=True).stdout


def make(
    name: str,
    *,
    kind: str = "ec",
    issuer: Pair | None = None,
    is_ca: bool = False,
    days: int = 30,
    names: tuple[str, ...] = (),
    extensions: tuple[str, ...] = (),
    digest: str = "sha256",
) -> Pair:
    """Makes a certificate: signed by its own key, or by an issuer, who then stands behind it.

    `name` is the common name, or a whole subject as OpenSSL takes it ("/CN=a/O=b"). `names` are
    subject alternative names as it writes them ("DNS:a.example", "IP:::1"), and so are `extensions`
    ("extendedKeyUsage=clientAuth").
    """
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        arguments = ["req", "-x509", "-newkey", *KEYS[kind], "-nodes", "-days", str(days)]
        subject = name if name.startswith("/") else f"/CN={name}"
        arguments += ["-subj", subject, "-keyout", str(at / "key"), "-out", str(at / "cert")]
        arguments += [f"-{digest}"]
        arguments += ["-addext", f"basicConstraints=critical,CA:{str(is_ca).upper()}"]
        if is_ca:
            arguments += ["-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"]
        if names:
            arguments += ["-addext", f"subjectAltName={','.join(names)}"]
        for extension in extensions:
            arguments += ["-addext", extension]
        if issuer:
            (at / "ca").write_text(issuer.cert)
            (at / "ca-key").write_text(issuer.key)
            arguments += ["-CA", str(at / "ca"), "-CAkey", str(at / "ca-key")]
        run(*arguments)
        cert = (at / "cert").read_text() + (issuer.cert if issuer else "")
        return Pair(cert, (at / "key").read_text())


def expired(issuer: Pair) -> Pair:
    """A certificate of January 2024."""
    made = make("test")
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "ca").write_text(issuer.cert + issuer.key)
        (at / "key").write_text(made.key)
        names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
        (at / "request").write_text(run("req", "-new", "-key", f"{at}/key", *names))
        (at / "index").touch()
        (at / "number").write_text("07\n")
        (at / "conf").write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={at}/index\nserial={at}/number\n"
            f"new_certs_dir={at}\ndefault_md=sha256\npolicy=any\ncopy_extensions=copy\n"
            "[any]\ncommonName=supplied\n"
        )
        dates = ["-startdate", "20240101000000Z", "-enddate", "20240131000000Z"]
        signing = ["-batch", "-notext", "-config", f"{at}/conf", "-in", f"{at}/request"]
        run("ca", *signing, *dates, "-cert", f"{at}/ca", "-keyfile", f"{at}/ca", "-out", f"{at}/it")
        return Pair((at / "it").read_text() + issuer.cert, made.key)


def serial(pair: Pair) -> str:
    """The number of a certificate, in hexadecimal digits."""
    return run("x509", "-noout", "-serial", text=pair.cert).strip().partition("=")[2]


def revoked(authority: Pair, *pairs: Pair, is_over: bool = False, is_delta: bool = False) -> str:
    """A revocation list of a CA with these certificates; `is_over`: it was good in 2024;
    `is_delta`: it says to add to another one.
    """
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        (at / "ca").write_text(authority.cert)
        (at / "key").write_text(authority.key)
        (at / "number").write_text("01\n")
        (at / "conf").write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={at}/index\ncrlnumber={at}/number\n"
            "default_md=sha256\ndefault_crl_days=30\n"
            "[delta]\ndeltaCRL=critical,ASN1:INTEGER:1\n"
        )
        lines = [f"R\t301231235959Z\t240101000000Z\t{serial(p)}\tunknown\t/CN=x\n" for p in pairs]
        (at / "index").write_text("".join(lines))
        arguments = ["-config", f"{at}/conf", "-cert", f"{at}/ca", "-keyfile", f"{at}/key"]
        if is_over:
            arguments += ["-crl_lastupdate", "20240101000000Z"]
            arguments += ["-crl_nextupdate", "20240201000000Z"]
        if is_delta:
            arguments += ["-crlexts", "delta"]
        return run("ca", "-gencrl", *arguments)


def server(pair: Pair, *clients: Pair, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """A server that shows this certificate. It wants one of the clients' CAs, if any are given;
    `version`: the one that it speaks.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(pair.key + pair.cert)
        file.flush()
        made.load_cert_chain(file.name)
    if version:
        made.minimum_version = made.maximum_version = version
    for authority in clients:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=authority.cert)
    return made


def context(
    *,
    version: ssl.TLSVersion | None = None,
    ciphers: str | None = None,
    client: Pair | None = None,
    alpn: tuple[str, ...] = (),
) -> ssl.SSLContext:
    """A client that takes any certificate; `version`: the one that it speaks."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if version:
        made.minimum_version = made.maximum_version = version
    if ciphers:
        made.set_ciphers(ciphers)
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if client:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(client.key + client.cert)
            file.flush()
            made.load_cert_chain(file.name)
    return made


@contextlib.contextmanager
def connect(
    port: int,
    name: str | None,
    using: ssl.SSLContext | None = None,
    session: ssl.SSLSession | None = None,
) -> Iterator[ssl.SSLSocket]:
    """A connection with TLS, for a server name (None: the client says none)."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        (using or context()).wrap_socket(plain, server_hostname=name, session=session) as wrapped,
    ):
        yield wrapped


def shown(port: int, name: str | None, using: ssl.SSLContext | None = None) -> bytes:
    """The certificate that a handshake shows, as DER."""
    with connect(port, name, using) as wrapped:
        return wrapped.getpeercert(binary_form=True) or b""


def get(
    wrapped: ssl.SSLSocket,
    target: str = "/",
    host: str = "localhost",
    headers: tuple[str, ...] = (),
) -> bytes:
    """One request of HTTP/1.1 that closes, and all that comes back."""
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, "", ""]
    wrapped.sendall("\r\n".join(lines).encode())
    parts = []
    with contextlib.suppress(ssl.SSLEOFError):
        while part := wrapped.recv(65536):
            parts.append(part)
    return b"".join(parts)
