"""The jwt plugin: whose tokens are taken, by which algorithms, and what a bad one is answered.

Long on purpose: one plugin, and its tests share how tokens are made.
"""

import hmac
import json
import subprocess
import time
from base64 import b64encode, urlsafe_b64encode
from typing import Any

import jwt
import pytest
from admin_client import Client
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from processes import cpu_seconds
from sluice import Gateway, Start, proxying
from upstream import Upstream
from wire import Pairs, Reply, wait_until

SECRET = "a secret of some length, as HS512 asks for one: 0123456789012345"
BASE = "Bearer"
BAD = 'Bearer error="invalid_token"'

KEYS = {
    "RS256": rsa.generate_private_key(65537, 2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
for name in ("RS384", "RS512", "PS256", "PS384", "PS512"):
    KEYS[name] = KEYS["RS256"]


def public(algorithm: str) -> str:
    """The public key of an algorithm, in PEM."""
    return (
        KEYS[algorithm]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def credential(algorithm: str, **more: Any) -> dict[str, Any]:
    """What alice signs with."""
    key = (
        {"secret": SECRET} if algorithm.startswith("HS") else {"rsa_public_key": public(algorithm)}
    )
    return {"key": "alice", "algorithm": algorithm} | key | more


def protected(upstream: Upstream, *credentials: dict[str, Any], **config: Any) -> dict[str, Any]:
    """One route behind jwt, and alice with credentials."""
    consumers = [
        {"username": "alice", "jwt_secrets": list(credentials or [credential("HS256")])},
        {"username": "nobody"},
    ]
    plugin = {"name": "jwt", "config": config}
    return proxying(upstream) | {"consumers": consumers, "plugins": [plugin]}


def token(
    algorithm: str = "HS256",
    key: object = None,
    headers: dict[str, str] | None = None,
    **claims: Any,
) -> str:
    """A token of alice's."""
    key = key or KEYS.get(algorithm, SECRET)
    return jwt.encode({"iss": "alice"} | claims, key, algorithm, headers)


def b64(text: str | bytes) -> str:
    """As tokens have it."""
    return urlsafe_b64encode(text.encode() if isinstance(text, str) else text).rstrip(b"=").decode()


def forged(header: str, claims: str, signature: bytes = b"x") -> str:
    """A token of any bytes."""
    return f"{b64(header)}.{b64(claims)}.{b64(signature)}"


def bearer(text: str) -> Pairs:
    """A header with a token."""
    return {"Authorization": f"Bearer {text}"}


def assert_refused(reply: Reply, body: str | dict[str, str], challenge: str = BAD) -> None:
    """Kong's 401: JSON, whatever the client accepts."""
    assert reply.status == 401
    assert reply.json() == ({"message": body} if isinstance(body, str) else body)
    assert reply.headers.get("Content-Type") == "application/json; charset=utf-8"
    assert reply.headers.all("WWW-Authenticate") == [challenge]


ALGORITHMS = ["HS256", "HS384", "HS512", *KEYS]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithms(gateway: Start, upstream: Upstream, algorithm: str) -> None:
    running = gateway(protected(upstream, credential(algorithm)))
    right = token(algorithm)
    for _ in range(3):
        assert running.ask("/", headers=bearer(right)).status == 200
    headers = upstream.last.headers
    assert headers.get("X-Consumer-Username") == "alice"
    assert headers.get("X-Credential-Identifier") == "alice"
    assert headers.get("Authorization") == f"Bearer {right}"
    head, claims, signature = right.split(".")
    for wrong in (
        f"{head}.{b64(json.dumps({'iss': 'alice', 'admin': True}))}.{signature}",
        f"{head}.{claims}.{signature[:-2]}",
        f"{head}.{claims}.",
        f"{head}.{claims}.{b64(bytes(64))}",
        f"{head}.{claims}.{'A' * len(signature)}",
        f"{head}.{claims}.{signature}.{signature}",
    ):
        reply = running.ask("/", headers=bearer(wrong))
        assert reply.status == 401, wrong
        assert reply.json()["message"] in ("Invalid signature", "Bad token; invalid signature")


def test_an_ed448_key(serving: Start, upstream: Upstream) -> None:
    KEYS["EdDSA448"] = ed448.Ed448PrivateKey.generate()
    mine = {"key": "alice", "algorithm": "EdDSA", "rsa_public_key": public("EdDSA448")}
    running = serving(protected(upstream, mine))
    right = token("EdDSA", KEYS["EdDSA448"])
    assert running.ask("/", headers=bearer(right)).status == 200
    assert_refused(running.ask("/", headers=bearer(token("EdDSA"))), "Invalid signature")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_credential_says_the_algorithm(
    serving: Start, upstream: Upstream, algorithm: str
) -> None:
    """None of another, however its signature was made: not with the public key as a secret."""
    running = serving(protected(upstream, credential(algorithm)))
    for other in ALGORITHMS:
        if other == algorithm:
            continue
        reply = running.ask("/", headers=bearer(token(other)))
        assert_refused(reply, "Invalid algorithm")
    for header in ('{"alg":"none"}', '{"alg":"None"}', '{"alg":""}', "{}", '{"alg":null}'):
        for signature in (b"", b"x"):
            reply = running.ask("/", headers=bearer(forged(header, '{"iss":"alice"}', signature)))
            assert_refused(reply, "Bad token; invalid alg")
    if not algorithm.startswith("HS"):
        head = b64('{"alg":"HS256"}') + "." + b64('{"iss":"alice"}')
        digest = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        signature = b64(digest.sign(head.encode(), public(algorithm).encode()))
        reply = running.ask("/", headers=bearer(f"{head}.{signature}"))
        assert_refused(reply, "Invalid algorithm")


@pytest.mark.parametrize(
    ("algorithm", "other"),
    [
        ("RS256", "ES256"),
        ("PS256", "EdDSA"),
        ("ES256", "ES384"),
        ("ES256", "RS256"),
        ("EdDSA", "RS256"),
    ],
)
def test_a_key_of_another_kind(
    serving: Start, upstream: Upstream, algorithm: str, other: str
) -> None:
    mine = credential(algorithm) | {"rsa_public_key": public(other)}
    running = serving(protected(upstream, mine))
    assert_refused(running.ask("/", headers=bearer(token(algorithm))), "Invalid signature")


def test_places(serving: Start, upstream: Upstream) -> None:
    running = serving(
        protected(
            upstream,
            uri_param_names=["jwt", "t"],
            cookie_names=["c"],
            header_names=["authorization", "X-Token"],
        )
    )
    right, other = token(), token(n=1)

    def ask(query: str = "", **headers: str) -> Reply:
        pairs = {name.replace("_", "-"): value for name, value in headers.items()}
        return running.ask(f"/{query}", headers=pairs)

    for reply in (
        ask(f"?jwt={right}"),
        ask(f"?a=1&t={right}&b"),
        ask(f"?jwt={right.replace('.', '%2e')}"),
        ask(Cookie=f"a=b; c={right}; d=e"),
        ask(Cookie=f"C={right}"),
        ask(X_Token=f"bearer   {right}"),
        ask(Authorization=f"x Bearer {right}"),
        ask(f"?jwt={right}", Cookie=f"c={right}", Authorization=f"Bearer {right}"),
        ask(f"?jwt=&t={right}"),
    ):
        assert reply.status == 200
    for reply in (
        ask(),
        ask("?jwt="),
        ask(f"?JWT={right}"),
        ask(Cookie=f"cc={right}"),
        ask(Cookie="c="),
        ask(Authorization=right),
        ask(Authorization=f"BEARER {right}"),
        ask(Authorization=f"Bearer{right}"),
        ask(Authorization="Bearer "),
        ask(Authorization=f"Basic {right}"),
        ask(X_Tokens=f"Bearer {right}"),
    ):
        assert_refused(reply, "Unauthorized", BASE)
    for reply in (
        ask(f"?jwt={right}&t={other}"),
        ask(f"?jwt={right}&jwt={other}"),
        ask(f"?jwt={right}&jwt={right}"),
        ask(f"?jwt={right}", Authorization=f"Bearer {other}"),
        ask(Cookie=f"c={right}", X_Token=f"Bearer {other}"),
    ):
        assert_refused(reply, "Multiple tokens provided")
    assert_refused(ask("?jwt"), "Unrecognizable token")


BROKEN = [
    ("x", "Bad token; invalid JSON"),
    ("a.b", "Bad token; invalid JSON"),
    ("..", "Bad token; invalid JSON"),
    (forged("[]", "{}"), "Bad token; invalid JSON"),
    (forged('{"alg":"HS256"}', "[]"), "Bad token; invalid JSON"),
    (forged('{"alg":"HS256"', "{}"), "Bad token; invalid JSON"),
    (forged('{"alg":"HS256"}', '{"iss":"alice"') + "=", "Bad token; invalid JSON"),
    (forged('{"alg":"HS256"}', "{" + '"a":[' * 2000 + "]" * 2000 + "}"), "Bad token; invalid JSON"),
    (forged('{"alg":["HS256"]}', "{}"), "Bad token; invalid alg"),
    (forged('{"alg":"HS256","alg":"HS256"}', "{}"), "Bad token; invalid alg"),
    (forged('{"alg":"hs256"}', "{}"), "Bad token; invalid alg"),
    (forged('{"alg":"HS256"}', "{}") + "!", "Bad token; invalid signature"),
    (forged('{"alg":"HS256"}', "{}"), "No mandatory 'iss' in claims"),
    (forged('{"alg":"HS256"}', '{"iss":""}'), "Invalid 'iss' in claims"),
    (forged('{"alg":"HS256"}', '{"iss":7}'), "Invalid 'iss' in claims"),
    (forged('{"alg":"HS256"}', '{"iss":["alice"]}'), "Invalid 'iss' in claims"),
    (forged('{"alg":"HS256"}', '{"iss":"alice","iss":"bob"}'), "Invalid 'iss' in claims"),
    (forged('{"alg":"HS256"}', '{"iss":"ghost"}'), "No credentials found for given 'iss'"),
    (forged('{"alg":"HS256"}', '{"iss":"alice\\u0000"}'), "No credentials found for given 'iss'"),
    (forged('{"alg":"HS256"}', '{"iss":"alice"}'), "Invalid signature"),
    (forged('{"alg":"HS256"}', '{"iss":"alice"}', b""), "Invalid signature"),
]


def test_broken_tokens(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream), large_client_header_buffers="4 32k")
    for text, message in BROKEN:
        reply = running.ask("/", headers=bearer(text))
        assert_refused(reply, message)
    assert upstream.requests == []


def test_large_tokens(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream), large_client_header_buffers="4 256k")
    for size in (1500, 100_000):
        right = token(pad="x" * size)
        assert running.ask("/", headers=bearer(right)).status == 200
        assert_refused(running.ask("/", headers=bearer(right[:-4])), "Invalid signature")
        assert_refused(running.ask("/", headers=bearer("." * size)), "Bad token; invalid JSON")


def test_the_claim_with_the_key(serving: Start, upstream: Upstream) -> None:
    """It may stand in the header; its name is in what is answered."""
    running = serving(protected(upstream, key_claim_name="kid"))
    assert running.ask("/", headers=bearer(token(headers={"kid": "alice"}))).status == 200
    assert running.ask("/", headers=bearer(token(kid="alice"))).status == 200
    both = token(headers={"kid": "alice"}, kid="ghost")
    message = "No credentials found for given 'kid'"
    assert_refused(running.ask("/", headers=bearer(both)), message)
    assert_refused(running.ask("/", headers=bearer(token())), "No mandatory 'kid' in claims")


def test_a_maximum_of_tokens_whose_claims_are_not_checked(
    serving: Start, upstream: Upstream
) -> None:
    """As in Kong, which takes it where `claims_to_verify` is not set."""
    running = serving(protected(upstream, maximum_expiration=300))
    now = int(time.time())
    for exp, is_taken in ((now + 200, True), (now - 9, True), (now + 5000, False), (None, False)):
        reply = running.ask("/", headers=bearer(token(**({"exp": exp} if exp else {}))))
        if is_taken:
            assert reply.status == 200
        else:
            assert_refused(reply, {"exp": "exceeds maximum allowed expiration"})


def test_claims(serving: Start, upstream: Upstream) -> None:
    running = serving(protected(upstream, claims_to_verify=["exp", "nbf"], maximum_expiration=300))
    now = int(time.time())

    def ask(**claims: Any) -> Reply:
        return running.ask("/", headers=bearer(token(**claims)))

    assert ask(exp=now + 200, nbf=now - 1).status == 200
    assert ask(exp=now + 200.5, nbf=0).status == 200
    number = "must be a number"
    assert_refused(ask(), {"exp": number, "nbf": number})
    assert_refused(ask(exp=now + 200), {"nbf": number})
    assert_refused(
        ask(exp=now - 1, nbf=now + 100), {"exp": "token expired", "nbf": "token not valid yet"}
    )
    assert_refused(ask(exp=now + 1000, nbf=0), {"exp": "exceeds maximum allowed expiration"})
    assert_refused(ask(exp=now + 1000, nbf=now + 100), {"nbf": "token not valid yet"})
    for text in (
        f'"{now + 100}"',
        "null",
        "true",
        "[]",
        f"[{now + 100}]",
        "NaN",
        f'{now + 100},"exp":1',
    ):
        head = b64('{"alg":"HS256"}') + "." + b64(f'{{"iss":"alice","nbf":0,"exp":{text}}}')
        digest = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        signed = f"{head}.{b64(digest.sign(head.encode(), SECRET.encode()))}"
        reply = running.ask("/", headers=bearer(signed))
        assert reply.status == 401, text


@pytest.mark.parametrize("algorithm", ["HS256", "RS256"])
def test_a_token_that_was_taken_expires(serving: Start, upstream: Upstream, algorithm: str) -> None:
    """A signature is remembered, the time is looked at each time."""
    running = serving(protected(upstream, credential(algorithm), claims_to_verify=["exp"]))

    def take() -> str:
        short = token(algorithm, exp=int(time.time()) + 3)
        return short if running.ask("/", headers=bearer(short)).status == 200 else ""

    short = wait_until(take, "a token that is used before it expires")
    while (reply := running.ask("/", headers=bearer(short))).status == 200:
        time.sleep(0.05)
    assert_refused(reply, {"exp": "token expired"})


def test_base64_secrets(gateway: Start, upstream: Upstream) -> None:
    mine = credential("HS256", secret=b64(b"\xff\xfe" * 20))
    running = gateway(protected(upstream, mine, secret_is_base64=True))
    assert running.ask("/", headers=bearer(token(key=b"\xff\xfe" * 20))).status == 200
    text = mine["secret"]
    assert_refused(running.ask("/", headers=bearer(token(key=text))), "Invalid signature")
    broken = gateway(protected(upstream, credential("HS256", secret="!"), secret_is_base64=True))
    assert_refused(broken.ask("/", headers=bearer(token())), "Invalid key/secret")


def signed(algorithm: str, secret: str, **claims: Any) -> str:
    """A token by a secret of any length, which the library would not take."""
    head = b64(json.dumps({"alg": algorithm})) + "." + b64(json.dumps(claims))
    digest = "sha" + algorithm.removeprefix("HS")
    return f"{head}.{b64(hmac.digest(secret.encode(), head.encode(), digest))}"


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_secrets_of_any_length(serving: Start, upstream: Upstream, algorithm: str) -> None:
    """Shorter and longer than a block of the digest, and of a digest."""
    sizes = (1, 31, 32, 63, 64, 65, 127, 128, 129, 300)
    secrets = {f"key-{size}": "s" * size for size in sizes}
    mine = [credential(algorithm, key=key, secret=secret) for key, secret in secrets.items()]
    running = serving(protected(upstream, *mine))
    for key, secret in secrets.items():
        assert ask_with(running, signed(algorithm, secret, iss=key)) == 200, key
        assert ask_with(running, signed(algorithm, secret + "s", iss=key)) == 401, key
        assert ask_with(running, signed(algorithm, secret[1:] or "t", iss=key)) == 401, key


def two_routes(upstream: Upstream, mine: dict[str, Any], **config: Any) -> dict[str, Any]:
    """`/a` behind jwt as it is by default, `/b` with a configuration."""
    document = proxying(upstream)
    document["services"][0]["routes"] = [
        {"name": "a", "paths": ["/a"], "plugins": [{"name": "jwt"}]},
        {"name": "b", "paths": ["/b"], "plugins": [{"name": "jwt", "config": config}]},
    ]
    return document | {"consumers": [{"username": "alice", "jwt_secrets": [mine]}]}


def test_what_is_remembered_counts_for_one_kind_of_secret(
    gateway: Start, upstream: Upstream
) -> None:
    mine = credential("HS256", secret=b64(SECRET))
    running = gateway(two_routes(upstream, mine, secret_is_base64=True), workers=1)
    plain, decoded = (signed("HS256", secret, iss="alice") for secret in (mine["secret"], SECRET))
    for _ in range(2):
        assert running.ask("/a", headers=bearer(plain)).status == 200
        assert_refused(running.ask("/b", headers=bearer(plain)), "Invalid signature")
        assert running.ask("/b", headers=bearer(decoded)).status == 200
        assert_refused(running.ask("/a", headers=bearer(decoded)), "Invalid signature")


def test_what_is_remembered_counts_for_one_claim(gateway: Start, upstream: Upstream) -> None:
    running = gateway(two_routes(upstream, credential("HS256"), key_claim_name="kid"), workers=1)
    mine = token(kid="ghost")
    for _ in range(2):
        assert running.ask("/a", headers=bearer(mine)).status == 200
        reply = running.ask("/b", headers=bearer(mine))
        assert_refused(reply, "No credentials found for given 'kid'")


def test_more_tokens_than_are_remembered(client: Client, upstream: Upstream) -> None:
    """A newcomer takes an older one's place, and none is right when the secret is another."""
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "jwt"})
    client.must(201, "POST", "/consumers", {"username": "alice"})
    made = client.must(201, "POST", "/consumers/alice/jwt", credential("HS256"))
    tokens = [token(n=n) for n in range(700)]
    for _ in range(2):
        assert {ask_with(client.running, each) for each in tokens} == {200}
    client.must(200, "PATCH", f"/consumers/alice/jwt/{made['id']}", {"secret": SECRET[::-1]})
    assert {ask_with(client.running, each) for each in tokens} == {401}


def test_preflight_realm_and_anonymous(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream, run_on_preflight=False, realm="my api"))
    assert running.ask("/", "OPTIONS").status == 200
    realm = 'Bearer realm="my api"'
    assert_refused(running.ask("/"), "Unauthorized", realm)
    assert_refused(
        running.ask("/", headers=bearer("x")),
        "Bad token; invalid JSON",
        realm + ' error="invalid_token"',
    )
    open_gateway = gateway(protected(upstream, anonymous="nobody"))
    for headers in ({}, bearer("x"), bearer(token(key="another of the same length or so..."))):
        assert open_gateway.ask("/", headers=headers).status == 200
        assert upstream.last.headers.get("X-Consumer-Username") == "nobody"


def ask_with(running: Gateway, text: str) -> int:
    """The status of a request with a token."""
    return running.ask("/", headers=bearer(text)).status


@pytest.mark.parametrize("algorithm", ["HS256", "RS256"])
def test_revoked_and_changed_credentials(
    client: Client, upstream: Upstream, algorithm: str
) -> None:
    """At once, though the token was taken a moment ago."""
    client.must(201, "POST", "/services", {"name": "s", "url": upstream.url})
    client.must(201, "POST", "/services/s/routes", {"name": "r", "paths": ["/"]})
    client.must(201, "POST", "/plugins", {"name": "jwt"})
    client.must(201, "POST", "/consumers", {"username": "alice"})
    right, mine = token(algorithm), credential(algorithm)
    made = client.must(201, "POST", "/consumers/alice/jwt", mine)
    assert made["secret"] == mine.get("secret")
    path = f"/consumers/alice/jwt/{made['id']}"
    for _ in range(3):
        assert ask_with(client.running, right) == 200
        other = {"rsa_public_key": public("ES256"), "algorithm": "ES256"}
        client.must(200, "PATCH", path, other)
        assert ask_with(client.running, right) == 401
        assert ask_with(client.running, token("ES256")) == 200
        client.must(200, "PATCH", path, mine)
        assert ask_with(client.running, right) == 200
        client.must(200, "PATCH", path, {"key": "bob"})
        assert ask_with(client.running, right) == 401
        client.must(200, "PATCH", path, {"key": "alice"})
    assert client.ask("DELETE", path).status == 204
    assert ask_with(client.running, right) == 401
    drawn = client.must(201, "POST", "/consumers/alice/jwt", {})
    assert len(drawn["key"]) == len(drawn["secret"]) == 32
    assert drawn["algorithm"] == "HS256"
    assert ask_with(client.running, jwt.encode({"iss": drawn["key"]}, drawn["secret"])) == 200


@pytest.mark.parametrize(
    "value",
    [
        {"algorithm": "RS256"},
        {"algorithm": "RS256", "rsa_public_key": "x"},
        {"algorithm": "EdDSA", "rsa_public_key": "-----BEGIN PUBLIC KEY-----\n"},
        {"algorithm": "none"},
        {"algorithm": "ES257"},
    ],
)
def test_bad_credentials_are_refused(client: Client, value: dict[str, str]) -> None:
    client.must(201, "POST", "/consumers", {"username": "alice"})
    reply = client.ask("POST", "/consumers/alice/jwt", value)
    assert reply.status == 400
    assert set(reply.json()["fields"]) & {"algorithm", "rsa_public_key"}


def encrypted_key() -> str:
    """A private key behind a password that takes two million rounds to try."""
    words = "openssl pkcs8 -topk8 -iter 65537 -passout pass:x -outform DER"
    pem = KEYS["ES256"].private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    der = subprocess.run(words.split(), input=pem, capture_output=True, check=True).stdout
    assert der.count(b"\x02\x03\x01\x00\x01") == 1
    text = b64encode(der.replace(b"\x02\x03\x01\x00\x01", b"\x02\x03\x1f\xff\xff")).decode()
    lines = "\n".join(text[i : i + 64] for i in range(0, len(text), 64))
    return f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{lines}\n-----END ENCRYPTED PRIVATE KEY-----\n"


@pytest.mark.parametrize("kind", ["encrypted", "many"])
def test_keys_that_are_none_cost_little(gateway: Start, upstream: Upstream, kind: str) -> None:
    """Whoever knows the name of such a credential can ask for it; of ES keys none is checked."""
    block = "-----BEGIN X-----\nAAAA\n-----END X-----\n"
    key = encrypted_key() if kind == "encrypted" else block * 25_000
    mine = {"key": "alice", "algorithm": "ES256", "rsa_public_key": key}
    running = gateway(protected(upstream, mine), workers=1)
    [worker] = running.workers()
    before = cpu_seconds(worker)
    for _ in range(40):
        assert_refused(running.ask("/", headers=bearer(token("ES256"))), "Invalid signature")
        assert cpu_seconds(worker) - before < 2


def test_files_need_no_secret_beside_a_public_key(gateway: Start, upstream: Upstream) -> None:
    refused = Gateway(protected(upstream, {"key": "alice"}))
    done = refused.command("check")
    refused.close()
    assert done.returncode == 1
    assert "secret: required field missing" in done.stdout + done.stderr
    running = gateway(protected(upstream, credential("ES256")))
    assert ask_with(running, token("ES256")) == 200


@pytest.mark.parametrize("line", [b"GET /%s\r\n", b"GET /%s HTTP/1.0\r\n\r\n"])
def test_requests_without_headers(serving: Start, upstream: Upstream, line: bytes) -> None:
    running = serving(protected(upstream))
    for query, says in ((b"", b"Unauthorized"), (b"?jwt=" + token().encode(), b"")):
        with running.wire() as wire:
            wire.send(line % query)
            assert says in wire.read_to_end()
    assert len(upstream.requests) == 1


def test_no_log_has_a_token(gateway: Start, upstream: Upstream) -> None:
    running = gateway(protected(upstream, uri_param_names=["tok"], header_names=["x-tok"]))
    secret = "planted"
    running.ask(f"/seen?tok={secret}", headers={"X-Tok": f"Bearer {secret}"})
    running.stop("quit")
    assert "/seen" in running.access_log()
    assert secret not in running.access_log() + running.error_log()
