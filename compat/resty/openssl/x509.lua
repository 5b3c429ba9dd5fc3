--- lua-resty-openssl's certificates, to be read; they are not made here.
-- @module resty.openssl.x509
-- @usage
-- local cert = assert(x509.new(pem))
-- local common_name = cert:get_subject_name():find("CN").blob

local bn = require("resty.openssl.bn")
local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")
local names = require("resty.openssl.x509.name")
local pkey = require("resty.openssl.pkey")

local format = string.format
local getmetatable = getmetatable
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

local MAX_DIGEST_BYTES = 64
local SECONDS_A_DAY = 86400
local SUBJECT_ALT_NAME = C.OBJ_txt2nid("subjectAltName")

-- Kinds of alternative names that have a text: GEN_EMAIL and so on.
local ALT_NAMES = { [1] = "email", [2] = "DNS", [6] = "URI", [7] = "IP" }

local _M = {}
local mt = { __index = _M }

local function wrap(ctx)
    return setmetatable({ ctx = ffi.gc(ctx, C.X509_free) }, mt)
end

local function load(text, form)
    local found
    if form == "PEM" or form == "*" then
        found = C.PEM_read_bio_X509(crypto.reader(text), nil, nil, "")
    end
    if (found == nil or not found) and (form == "DER" or form == "*") then
        found = C.d2i_X509_bio(crypto.reader(text), nil)
    end
    if found == nil or not found then
        return nil
    end
    C.ERR_clear_error()
    return found
end

--- Reads a certificate.
-- @tparam string|cdata source PEM or DER, the first of several; or an X509, which is taken over
-- @tparam[opt="*"] string form "PEM", "DER", "*"
-- @treturn table|nil
-- @treturn string|nil "x509.new: ..."
-- @phases any
function _M.new(source, form)
    form = form or "*"
    if type(source) == "cdata" then
        return wrap(ffi.cast("void *", source))
    elseif type(source) ~= "string" then
        return nil, "x509.new: expect nil or a string at #1"
    elseif form ~= "*" and form ~= "PEM" and form ~= "DER" then
        return nil, format('x509.new: unknown format "%s"', tostring(form))
    end
    local found = load(source, form)
    if not found then
        return nil, crypto.failure("x509.new")
    end
    return wrap(found)
end

--- Takes a copy of one of OpenSSL's.
-- @phases any
function _M.dup(ctx)
    if type(ctx) ~= "cdata" then
        return nil, "x509.dup: expect a x509 ctx at #1"
    end
    return wrap(C.X509_dup(ctx))
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

--- Writes it.
-- @tparam[opt="PEM"] string form "PEM" or "DER"
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M:tostring(form)
    form = form or "PEM"
    local write = form == "PEM" and C.PEM_write_bio_X509 or form == "DER" and C.i2d_X509_bio
    if not write then
        return nil, "x509:tostring: can only write PEM or DER format, not " .. tostring(form)
    end
    return crypto.written(function(bio)
        return write(bio, self.ctx)
    end)
end

--- The same in PEM.
-- @phases any
function _M:to_PEM()
    return self:tostring("PEM")
end

function mt:__tostring()
    return self:tostring("PEM")
end

--- Whose certificate it is.
-- @treturn table of resty.openssl.x509.name
-- @phases any
function _M:get_subject_name()
    return names.dup(C.X509_get_subject_name(self.ctx))
end

--- Who has signed it.
-- @treturn table of resty.openssl.x509.name
-- @phases any
function _M:get_issuer_name()
    return names.dup(C.X509_get_issuer_name(self.ctx))
end

--- Its number.
-- @treturn table of resty.openssl.bn
-- @phases any
function _M:get_serial_number()
    local number = C.ASN1_INTEGER_to_BN(C.X509_get_serialNumber(self.ctx), nil)
    local copy = bn.dup(number)
    C.BN_free(number)
    return copy
end

--- 1, 2 or 3.
-- @phases any
function _M:get_version()
    return tonumber(C.X509_get_version(self.ctx)) + 1
end

local function seconds_of(time)
    local epoch = ffi.gc(C.ASN1_TIME_set(nil, 0), C.ASN1_STRING_free)
    local days, seconds = ffi.new("int[1]"), ffi.new("int[1]")
    if C.ASN1_TIME_diff(days, seconds, epoch, time) ~= 1 then
        return nil, crypto.failure("invalid time")
    end
    return days[0] * SECONDS_A_DAY + seconds[0]
end

--- From when it is good.
-- @treturn number seconds since 1970
-- @phases any
function _M:get_not_before()
    return seconds_of(C.X509_get0_notBefore(self.ctx))
end

--- Until when it is good.
-- @treturn number seconds since 1970
-- @phases any
function _M:get_not_after()
    return seconds_of(C.X509_get0_notAfter(self.ctx))
end

--- Both.
-- @treturn number
-- @treturn number
-- @phases any
function _M:get_lifetime()
    return self:get_not_before(), self:get_not_after()
end

--- Its key.
-- @treturn table|nil of resty.openssl.pkey
-- @treturn string|nil
-- @phases any
function _M:get_pubkey()
    local key = C.X509_get_pubkey(self.ctx)
    if key == nil then
        return nil, crypto.failure("x509:get_pubkey")
    end
    return pkey.new(key)
end

--- Whether a key is its.
-- @tparam table key of resty.openssl.pkey
-- @treturn boolean
-- @treturn string|nil
-- @phases any
function _M:check_private_key(key)
    if not pkey.istype(key) then
        return false, "x509:check_private_key: except a pkey instance at #1"
    elseif not key:is_private() then
        return false, "x509:check_private_key: not a private key"
    elseif C.X509_check_private_key(self.ctx, key.ctx) == 1 then
        return true
    end
    return false, crypto.failure("x509:check_private_key")
end

--- Whether a key has signed it.
-- @tparam table key of resty.openssl.pkey
-- @treturn boolean
-- @treturn string|nil
-- @phases any
function _M:verify(key)
    if not pkey.istype(key) then
        return false, "x509:verify: expect a pkey instance at #1"
    elseif C.X509_verify(self.ctx, key.ctx) == 1 then
        return true
    end
    return false, crypto.failure("x509:verify")
end

local function digest_of(self, name, run, what)
    local algo = crypto.digest(name or "sha1")
    if not algo then
        return nil, format('%s: invalid digest type "%s"', what, tostring(name))
    end
    local bytes, length = ffi.new("unsigned char[?]", MAX_DIGEST_BYTES), ffi.new("unsigned[1]")
    if run(self.ctx, algo, bytes, length) ~= 1 then
        return nil, crypto.failure(what)
    end
    return ffi.string(bytes, length[0])
end

--- Its digest.
-- @tparam[opt="sha1"] string name
-- @treturn string|nil bytes
-- @treturn string|nil
-- @phases any
function _M:digest(name)
    return digest_of(self, name, C.X509_digest, "x509:digest")
end

--- The digest of its key.
-- @phases any
function _M:pubkey_digest(name)
    return digest_of(self, name, C.X509_pubkey_digest, "x509:pubkey_digest")
end

--- How it is signed.
-- @treturn number
-- @phases any
function _M:get_signature_nid()
    return C.X509_get_signature_nid(self.ctx)
end

--- How it is signed.
-- @treturn string such as "ecdsa-with-SHA256"
-- @phases any
function _M:get_signature_name()
    return ffi.string(C.OBJ_nid2sn(C.X509_get_signature_nid(self.ctx)))
end

local function alt_name(found)
    local kind = ffi.new("int[1]")
    local value = C.GENERAL_NAME_get0_value(found, kind)
    local name = ALT_NAMES[kind[0]]
    return name and { name, crypto.asn1_text(value) }
end

--- Its alternative names, those of mail, DNS, URI and IP (4 or 16 bytes): as many entries as it
-- has, `{kind, value}`; other kinds are left out.
-- @treturn {table,...}|nil nil: it has none
-- @phases any
function _M:get_subject_alt_name()
    local stack = C.X509_get_ext_d2i(self.ctx, SUBJECT_ALT_NAME, nil, nil)
    if stack == nil then
        C.ERR_clear_error()
        return nil
    end
    local found = {}
    for index = 0, C.OPENSSL_sk_num(stack) - 1 do
        found[#found + 1] = alt_name(C.OPENSSL_sk_value(stack, index))
    end
    C.GENERAL_NAMES_free(stack)
    return found
end

return _M
