--- What nginx needs of TLS beside the certificates of the configuration: versions and ciphers, CAs,
-- and the certificate that answers names for which there is none.
--
-- That one is signed by its own key, which no client trusts: a browser warns of it, and a handshake
-- still says what is wrong. It is made once, so that a client that was told to trust it may go on
-- to.

local bignum = require("openssl.bignum")
local name = require("openssl.x509.name")
local pkey = require("openssl.pkey")
local platform = require("cli.options.platform")
local quote = require("cli.nginx.logs").quote
local rand = require("openssl.rand")
local unistd = require("posix.unistd")
local x509 = require("openssl.x509")

local _M = {}

local CURVE = "prime256v1"
-- Certificates between a server's and a CA's that Lua connects with; nginx's default is 1.
local VERIFY_DEPTH = 5
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
-- @treturn table `protocols`, `ciphers`: of `ssl_protocols` and `ssl_ciphers`; `prefers_server`: of
-- `ssl_prefer_server_ciphers`
function _M.suite(settings)
    return SUITES[settings.ssl_cipher_suite]
        or {
            protocols = settings.ssl_protocols,
            ciphers = settings.ssl_ciphers,
            prefers_server = settings.ssl_prefer_server_ciphers,
        }
end

--- The files of a setting with certificates or keys, of which some may be given as text.
-- @tparam table settings resolved settings
-- @tparam string setting its name
-- @treturn {table,...} `path`; `text`, which is to be written there, where it is no file of others
function _M.own_files(settings, setting)
    local files = {}
    for i, item in ipairs(settings[setting]) do
        local is_text = item:find("^%-%-%-%-%-BEGIN ") ~= nil
        files[i] = {
            path = is_text and ("%s/tls/%s-%d.pem"):format(settings.prefix, setting, i) or item,
            text = is_text and item .. "\n" or nil,
        }
    end
    return files
end

local function has_system_bundle()
    return unistd.access(platform.ca_bundle, "r") ~= nil
end

--- CAs whom services trust that list none.
-- @tparam table settings resolved settings
-- @treturn {string,...} files; the system's is no part of them on a machine without it
function _M.trusted(settings)
    local files = {}
    for _, path in ipairs(settings.proxy_ssl_trusted_certificate) do
        if path ~= platform.ca_bundle or has_system_bundle() then
            files[#files + 1] = path
        end
    end
    return files
end

--- Whom plugins of the user trust where they connect by themselves. Each worker reads the file, and
-- dies if it may not: so it is the system's, which everybody may.
-- @tparam table settings resolved settings
-- @treturn string directives of `http`
function _M.trust_of_lua(settings)
    for _, plugin in ipairs(settings.plugins) do
        if plugin ~= "bundled" and has_system_bundle() then
            return ("lua_ssl_trusted_certificate %s;\nlua_ssl_verify_depth %d;"):format(
                quote(platform.ca_bundle),
                VERIFY_DEPTH
            )
        end
    end
    return ""
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
