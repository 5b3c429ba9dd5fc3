--- What a certificate says of itself, for tables.

local schema_x509 = require("gateway.schema.x509")
local x509 = require("openssl.x509")

local _M = {}

local DAY_S = 86400

-- The certificate of a text; nil where it is none, as a reference to a vault.
local function read(pem)
    local is_one, certificate = pcall(x509.new, pem)
    return is_one and certificate or nil
end

--- Until when a certificate is valid.
-- @tparam any pem
-- @treturn number|nil seconds since 1970; nil where it is no certificate
function _M.expiry(pem)
    local certificate = read(pem)
    return certificate and select(2, certificate:getLifetime()) or nil
end

-- Pairs of an object of OpenSSL, which LuaJIT's own `pairs` does not ask for them.
local function each(object)
    if not object then
        return next, {}
    end
    return getmetatable(object).__pairs(object)
end

--- The names that a certificate is for: its alternative ones, else the common one.
-- @tparam any pem
-- @treturn {string,...} none where it is no certificate
function _M.names(pem)
    local certificate, names = read(pem), {}
    if not certificate then
        return names
    end
    for kind, value in each(certificate:getSubjectAlt()) do
        names[#names + 1] = (kind == "DNS" or kind == "IP") and value or nil
    end
    for kind, value in each(#names == 0 and certificate:getSubject()) do
        names[#names + 1] = kind == "CN" and value or nil
    end
    return names
end

--- The SNIs that a certificate is not for: clients that verify it refuse it.
-- @tparam any pem
-- @tparam {string,...} snis
-- @treturn {string,...} none where it is no certificate
function _M.uncovered(pem, snis)
    local is_read, names = pcall(schema_x509.names, pem)
    local index, uncovered = is_read and schema_x509.index(names), {}
    for _, sni in ipairs(index and snis or {}) do
        uncovered[#uncovered + 1] = sni ~= "*" and not schema_x509.is_for(index, sni) and sni or nil
    end
    return uncovered
end

--- When something ends, in a cell.
-- @tparam number|nil at seconds since 1970
-- @tparam number now
-- @treturn string "" where nobody knows
function _M.expiry_text(at, now)
    if not at then
        return ""
    end
    local day, days = os.date("!%Y-%m-%d", at), math.floor((at - now) / DAY_S)
    if at <= now then
        return "EXPIRED " .. day
    end
    return ("%s (%d day%s)"):format(day, days, days == 1 and "" or "s")
end

return _M
