"""resty.openssl within nginx: the same library as nginx's, and no memory left behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import certificates
from nginx import Nginx
from wire import Wire

CONF = "server { listen 127.0.0.1:@port@; @runs@ }"


@pytest.fixture(scope="module")
def server() -> Iterator[Nginx]:
    with Nginx(CONF, workers=1) as running:
        yield running


@pytest.fixture
def wire(server: Nginx) -> Iterator[Wire]:
    with server.wire() as connection:
        yield connection


def test_keys_and_certificates(server: Nginx, wire: Wire, tmp_path: Path) -> None:
    pair = certificates.make("a", kind="rsa", names=("DNS:a.example",))
    (tmp_path / "cert").write_text(pair.cert)
    (tmp_path / "key").write_text(pair.key)
    code = f"""
        local openssl = require("resty.openssl")
        local function read(name)
            return io.open([[{tmp_path}/]] .. name):read("*a")
        end
        local cert = assert(openssl.x509.new(read("cert")))
        local key = assert(openssl.pkey.new(read("key")))
        local signature = assert(key:sign("text", "sha256"))
        -- What nginx has read of the same file, and what is not ours to free.
        local chain = assert(require("ngx.ssl").parse_pem_cert(read("cert")))
        local copy = assert(require("resty.openssl.x509.chain").dup(chain))
        return {{
            cert:get_pubkey():verify(signature, "text", "sha256"),
            cert:check_private_key(key),
            copy[1]:get_subject_name():tostring(),
            copy[1]:digest("sha256") == cert:digest("sha256"),
            cert:get_subject_alt_name()[1][2],
        }}
    """
    assert server.run_on(wire, code) == [True, True, "CN=a", True, "a.example"]


def test_others_may_declare_the_same_functions(server: Nginx, wire: Wire) -> None:
    """With types of their own, before or after: a library of the user that uses FFI itself."""
    code = """
        local ffi = require("ffi")
        ffi.cdef("typedef struct other_st O; O *EVP_MD_CTX_new(int); void RAND_bytes(O *);")
        local digest = require("resty.openssl.digest").new("sha256"):final("abc")
        return require("resty.string").to_hex(digest):sub(1, 8)
    """
    assert server.run_on(wire, code) == "ba7816bf"


def test_many_objects_leave_no_memory(server: Nginx, wire: Wire) -> None:
    code = """
        local openssl = require("resty.openssl")
        local function resident()
            return tonumber(io.open("/proc/self/statm"):read("*a"):match("^%d+ (%d+)")) * 4
        end
        local pem = openssl.pkey.new({ type = "EC", curve = "prime256v1" }):to_PEM("private")
        local function work()
            for i = 1, 1000 do
                local key = openssl.pkey.new(pem)
                local signature = key:sign("x", "sha256", nil, { ecdsa_use_raw = true })
                key:verify(signature, "x", "sha256", nil, { ecdsa_use_raw = true })
                key:verify("junk", "x", "sha256")
                openssl.pkey.new("junk")
                openssl.pkey.new(key:tostring("private", "JWK"))
                openssl.hmac.new("k", "sha256"):final(pem)
                if i % 200 == 0 then collectgarbage() end
            end
        end
        work()
        local before = resident()
        work()
        return resident() - before
    """
    assert server.run_on(wire, code) < 1000
