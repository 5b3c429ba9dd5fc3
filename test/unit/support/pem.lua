--- Certificates and keys in PEM, made where they are needed.

local altname = require("openssl.x509.altname")
local name = require("openssl.x509.name")
local pkey = require("openssl.pkey")
local x509 = require("openssl.x509")

local _M = {}

local TYPES = {
    ec = { type = "EC", curve = "prime256v1" },
    rsa = { type = "RSA", bits = 2048 },
}

--- A certificate that is signed by its own key.
-- @tparam[opt="ec"] string kind "ec" or "rsa"
-- @tparam[opt] table opts `is_ca`; `expired`; `since`, in seconds; `names`, host names
-- @treturn string certificate
-- @treturn string key
function _M.pair(kind, opts)
    opts = opts or {}
    local key, certificate, subject = pkey.new(TYPES[kind or "ec"]), x509.new(), name.new()
    subject:add("CN", "a.example")
    certificate:setSubject(subject)
    certificate:setIssuer(subject)
    certificate:setPublicKey(key)
    local now = os.time()
    certificate:setLifetime(opts.since or now - 200, opts.expired and now - 100 or now + 3600)
    if opts.names then
        local names = altname.new()
        for _, host in ipairs(opts.names) do
            names:add("DNS", host)
        end
        certificate:setSubjectAlt(names)
    end
    if opts.is_ca then
        certificate:setBasicConstraints({ CA = true })
    end
    certificate:sign(key)
    return certificate:toPEM(), key:toPEM("private"), key:toPEM("public")
end

return _M
