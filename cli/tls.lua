--- What nginx needs of TLS beside the certificates of the configuration: versions and ciphers, CAs,
-- and the certificate that answers names for which there is none.
--
-- That one is signed by its own key, which no client trusts: a browser warns of it, and a handshake
-- still says what is wrong. It is made once, so that a client that was told to trust it may go on
-- to.

local bignum = require("openssl.bignum")
local name = require("openssl.x509.name")
local pkey = require("openssl.pkey")
local platform = require("cli.platform")
local rand = require("openssl.rand")
local unistd = require("posix.unistd")
local x509 = require("openssl.x509")

local _M = {}

local CURVE = "prime256v1"
local LIFETIME_SECONDS = 10 * 365 * 24 * 3600
local SERIAL_BYTES = 16
-- A machine whose clock is behind takes it too.
local BEFORE_SECONDS = 24 * 3600

-- Mozilla, "Server Side TLS", version 5.7, "intermediate", without those of DHE: they cost the
-- server more than the client (CVE-2002-20001), and whoever speaks them has ECDHE too.
local INTERMEDIATE = {
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
}

local SUITES = {
    intermediate = { protocols = "TLSv1.2 TLSv1.3", ciphers = table.concat(INTERMEDIATE, ":") },
    -- its ciphers are OpenSSL's own, all of TLS 1.3
    modern = { protocols = "TLSv1.3", ciphers = table.concat(INTERMEDIATE, ":") },
}

--- What nginx is told of versions and ciphers.
-- @tparam table settings resolved settings
-- @treturn table `protocols`, `ciphers`: of `ssl_protocols` and `ssl_ciphers`
function _M.suite(settings)
    return SUITES[settings.ssl_cipher_suite]
        or { protocols = settings.ssl_protocols, ciphers = settings.ssl_ciphers }
end

--- CAs whom services trust that list none.
-- @tparam table settings resolved settings
-- @treturn {string,...} files; the system's is no part of them on a machine without it
function _M.trusted(settings)
    local files = {}
    for _, path in ipairs(settings.proxy_ssl_trusted_certificate) do
        if path ~= platform.ca_bundle or unistd.access(path, "r") then
            files[#files + 1] = path
        end
    end
    return files
end

--- Makes a certificate for names that have none, and its key.
-- @tparam number now seconds since 1970
-- @treturn string PEM of both: nginx reads a certificate and its key from one file
function _M.self_signed(now)
    local key = pkey.new({ type = "EC", curve = CURVE })
    local certificate, subject = x509.new(), name.new()
    subject:add("CN", "localhost")
    certificate:setVersion(3)
    certificate:setSerial(bignum.fromBinary(rand.bytes(SERIAL_BYTES)))
    certificate:setSubject(subject)
    certificate:setIssuer(subject)
    certificate:setPublicKey(key)
    certificate:setLifetime(now - BEFORE_SECONDS, now + LIFETIME_SECONDS)
    certificate:setBasicConstraints({ CA = false })
    certificate:sign(key, "sha256")
    return certificate:toPEM() .. key:toPEM("private")
end

return _M
