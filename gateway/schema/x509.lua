--- Certificates and private keys as fields hold them, PEM (RFC 7468), read by OpenSSL.
--
-- No message has anything of a key, nor OpenSSL's own words: what Debian's luaossl makes of those
-- may be any memory that was freed (https://github.com/wahern/luaossl/pull/217).
-- @module gateway.schema.x509

local pem = require("sluice.pem")
local pkey = require("openssl.pkey")
local x509 = require("openssl.x509")

local find = string.find
local format = string.format
local sub = string.sub

local CERTIFICATE = "CERTIFICATE"
local KEY_BEGIN = "\n%-%-%-%-%-BEGIN [%u ]*PRIVATE KEY%-%-%-%-%-"
local KEY_END = "%-%-%-%-%-END [%u ]*PRIVATE KEY%-%-%-%-%-"
-- More than any chain of a public CA has; each takes some 30 us to read.
local MAX_CERTIFICATES = 32

-- Texts whose objects are kept.
local KEPT = 8

local _M = {}

-- Makes `read` keep what it has read last: an entity's checks read the same texts again and again,
-- and OpenSSL 3.0 takes milliseconds for a key.
local function keeping(read)
    local kept, count = {}, 0
    return function(text)
        if kept[text] == nil then
            local object = read(text)
            if count == KEPT then
                kept, count = {}, 0
            end
            kept[text], count = object, count + 1
        end
        return kept[text]
    end
end

local read_certificate, read_key = keeping(x509.new), keeping(pkey.new)

-- The first certificate of a chain.
local function leaf(chain)
    return read_certificate(pem.blocks(chain, CERTIFICATE)() or error("no certificate", 0))
end

-- The first private key of a text, of whatever kind.
local function key_block(text)
    text = "\n" .. text
    local from, to = find(text, KEY_BEGIN)
    local _, last
    if from then
        _, last = find(text, KEY_END, to + 1)
    end
    return last and sub(text, from + 1, last)
end

-- A text that compares: what OpenSSL writes of a public key, and what kind of key that is.
local function public_key_of(certificate)
    local key = certificate:getPublicKey()
    return key:toPEM("public"), key:type()
end

--- Checks a certificate, which those of its issuers may follow.
-- @tparam string chain PEM
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check_chain(chain)
    local count = 0
    for block in pem.blocks(chain, CERTIFICATE) do
        count = count + 1
        if count > MAX_CERTIFICATES then
            return nil, "invalid certificate: more than " .. MAX_CERTIFICATES .. " in one chain"
        end
        local ok, certificate = pcall(read_certificate, block)
        if not ok then
            local why = pem.broken_lines(block) or "it cannot be decoded"
            return nil, format("invalid certificate: certificate %d is damaged: %s", count, why)
        elseif not pcall(public_key_of, certificate) then
            local message = "invalid certificate: the public key of certificate %d cannot be read"
            return nil, format(message, count)
        end
    end
    if count > 0 then
        return true
    end
    local mistake = pem.mistake(chain, "certificate")
    return nil, "invalid certificate: " .. (mistake or "expected PEM, -----BEGIN CERTIFICATE-----")
end

--- Checks a private key.
-- @tparam string key PEM
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check_key(key)
    local block = key_block(key)
    if not block then
        local mistake = pem.mistake(key, "private key")
        return nil, "invalid key: " .. (mistake or "expected a private key in PEM")
    elseif find(block, "ENCRYPTED", 1, true) then
        return nil, "invalid key: it is encrypted; encrypted keys are not supported"
    end
    if pcall(read_key, block) then
        return true
    end
    return nil,
        "invalid key: it is damaged: " .. (pem.broken_lines(block) or "it cannot be decoded")
end

--- Checks a public key, or a private one, which has a public one.
-- @tparam string key PEM
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check_public_key(key)
    local is_pem = find(key, "-----BEGIN ", 1, true) and not find(key, "ENCRYPTED", 1, true)
    if is_pem and pcall(read_key, key) then
        return true
    end
    local lines = pem.broken_lines(key)
    return nil, "invalid key" .. (lines and ": " .. lines or "")
end

-- The public key of a text that has one and no other; nil where it cannot be read.
local function read_public(text)
    local is_public = find(text, "%-%-%-%-%-BEGIN [%u ]*PUBLIC KEY%-%-%-%-%-")
        and not find(text, "PRIVATE KEY", 1, true)
    local ok, key = pcall(read_key, is_public and text or "")
    return ok and key:toPEM("public") or nil
end

--- Checks a public key and a private one, of which either may be missing.
-- @tparam table pair `public_key`, `private_key`: PEM
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check_key_pair(pair)
    local public, private = pair.public_key, pair.private_key
    local own = type(public) == "string" and read_public(public)
    if own == nil then
        return nil, "could not load public key"
    elseif type(private) ~= "string" then
        return true
    elseif not _M.check_key(private) then
        return nil, "could not load private key"
    end
    local is_pair = not own or own == read_key(key_block(private)):toPEM("public")
    return is_pair or nil, "public key does not match private key"
end

--- Whether a key is that of a certificate. Both have been checked.
-- @tparam string chain PEM
-- @tparam string key PEM
-- @treturn boolean
function _M.is_pair(chain, key)
    return public_key_of(leaf(chain)) == read_key(key_block(key)):toPEM("public")
end

--- What kind of key a certificate is for, such as "rsaEncryption".
-- @tparam string chain PEM, checked
-- @treturn string OpenSSL's name of the algorithm
function _M.key_type(chain)
    local _, name = public_key_of(leaf(chain))
    return name
end

--- Checks the certificate of a CA: one, which may sign others. An expired one is good: that a file
-- is wrong from one day to the next would keep a gateway from starting.
-- @tparam string text PEM, checked
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check_ca(text)
    local blocks = pem.blocks(text, CERTIFICATE)
    local certificate = read_certificate(blocks())
    if blocks() then
        return nil, "please submit only one certificate at a time"
    elseif not certificate:getBasicConstraints("CA") then
        return nil,
            'certificate does not appear to be a CA because it is missing the "CA" basic constraint'
    end
    return true
end

local function date(seconds)
    return os.date("!%Y-%m-%d", seconds)
end

--- Whether a certificate, and those of its issuers that stand with it, are good at a time.
-- @tparam string chain PEM, checked
-- @tparam number now seconds
-- @treturn true|nil
-- @treturn nil|string why not: the first of them that is not
function _M.check_dates(chain, now)
    local count = 0
    for block in pem.blocks(chain, CERTIFICATE) do
        count = count + 1
        local from, to = read_certificate(block):getLifetime()
        local which = count > 1 and "certificate number " .. count .. " of the chain" or "it"
        if now > to then
            return nil, which .. " expired on " .. date(to)
        elseif now < from then
            return nil, which .. " is not valid before " .. date(from)
        end
    end
    return true
end

--- The host names that a certificate is for: those of its extension, else its common name.
-- @tparam string chain PEM, checked
-- @treturn {string,...}
function _M.names(chain)
    local certificate, names = leaf(chain), {}
    -- Of a common name in UTF-16 the bytes are no host.
    local function add(name)
        names[#names + 1] = name ~= "" and not name:find("%z") and name or nil
    end
    local others = certificate:getSubjectAlt()
    if others then
        -- LuaJIT's own `pairs` takes tables only.
        for kind, name in getmetatable(others).__pairs(others) do
            if kind == "DNS" then
                add(name)
            end
        end
    end
    for _, entry in ipairs(#names == 0 and certificate:getSubject():all() or {}) do
        if entry.sn == "CN" then
            add(entry.blob)
        end
    end
    return names
end

--- The SHA-256 of a certificate.
-- @tparam string chain PEM, checked
-- @treturn string 64 hexadecimal digits
function _M.digest(chain)
    return leaf(chain):digest("sha256", "x")
end

local function below(name)
    return (name:gsub("^[^.]*", "*"))
end

local function before(name)
    return (name:gsub("%.[^.]*$", ".*"))
end

--- What an SNI is looked up in, since a certificate and a file may have thousands of both.
-- @tparam {string,...} names of a certificate
-- @treturn table for `is_for`
function _M.index(names)
    local index = { exact = {}, below = {}, before = {} }
    for _, name in ipairs(names) do
        name = name:lower()
        index.exact[name] = true
        index.below[below(name)] = true
        index.before[before(name)] = true
    end
    return index
end

--- Whether some host has both an SNI and a name of a certificate: a wildcard, here as in TLS, is
-- one label.
-- @tparam table index of `index`
-- @tparam string sni
-- @treturn boolean|nil
function _M.is_for(index, sni)
    sni = sni:lower()
    if sni:find("^%*") then
        return index.below[sni]
    elseif sni:find("%*$") then
        return index.before[sni] or index.before[below(sni)]
    end
    return index.exact[sni] or index.exact[below(sni)]
end

return _M
