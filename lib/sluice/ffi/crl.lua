--- Lists of revoked certificates (RFC 5280, section 5) in PEM, one behind the other.
-- @module sluice.ffi.crl

local crl = require("openssl.x509.crl")
local pem = require("sluice.pem")

local concat = table.concat
local format = string.format
local ipairs = ipairs
local os = os
local pcall = pcall

local KIND = "X509 CRL"
-- OpenSSL takes such a list for all that is revoked, in place of the one that it adds to.
local DELTA = "2.5.29.27"
-- Bytes of a name in a message.
local SHOWN = 200

local BEGIN = "\n%-%-%-%-%-BEGIN X509 CRL%-%-%-%-%-"

local _M = {}

--- Checks lists. Takes time with the length of the text.
-- @tparam string text PEM
-- @treturn true|nil
-- @treturn nil|string why not
-- @phases all
function _M.check(text)
    local count = 0
    for block in pem.blocks(text, KIND) do
        count = count + 1
        local is_list, list = pcall(crl.new, block)
        if not is_list then
            return nil, "invalid revocation list: list " .. count .. " is damaged"
        elseif list:getExtension(DELTA) then
            return nil, "invalid revocation list: list " .. count .. " is a delta of another one"
        end
    end
    local _, begun = ("\n" .. text):gsub(BEGIN, "%0")
    if begun > count then
        return nil, "invalid revocation list: list " .. count + 1 .. ": missing end line"
    end
    return count > 0 or nil, "expected PEM, -----BEGIN X509 CRL-----"
end

-- Whose list it is, in printable ASCII: it goes into logs.
local function issuer_of(list)
    local parts = {}
    for name, value in list:getIssuer():each() do
        parts[#parts + 1] = name .. "=" .. value
    end
    return (
        concat(parts, ", "):gsub("[^ -~]", function(byte)
            return format("\\x%02X", byte:byte())
        end)
    )
end

local function date(seconds)
    return os.date("!%Y-%m-%d", seconds)
end

-- Why a list counts for nothing now, if it does.
local function flaw(list, now)
    local from, to = list:getLastUpdate(), list:getNextUpdate()
    if to and now > to then
        return "expired on " .. date(to)
    elseif from and now < from then
        return "is not valid before " .. date(from)
    end
    return nil
end

--- Says of which CAs there is no list that is in date: their clients are refused.
-- @tparam string text PEM, checked
-- @tparam number now seconds
-- @treturn {string,...} for people
-- @phases all
function _M.warnings(text, now)
    local found, is_good = {}, {}
    local count = 0
    for block in pem.blocks(text, KIND) do
        count = count + 1
        local list = crl.new(block)
        local issuer, wrong = issuer_of(list), flaw(list, now)
        is_good[issuer] = is_good[issuer] or not wrong
        found[#found + 1] = wrong and { issuer = issuer, number = count, flaw = wrong }
    end
    local out = {}
    for _, each in ipairs(found) do
        if not is_good[each.issuer] then
            local line = "revocation list number %d, of %s, %s: certificates of this issuer are "
                .. "refused"
            out[#out + 1] = line:format(each.number, each.issuer:sub(1, SHOWN), each.flaw)
        end
    end
    return out
end

return _M
