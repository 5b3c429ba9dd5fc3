--- lua-resty-openssl's names of certificates' subjects and issuers, to be read.
-- @module resty.openssl.x509.name

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local concat = table.concat
local getmetatable = getmetatable
local setmetatable = setmetatable
local sort = table.sort
local type = type

local C = crypto.C

local _M = {}
local mt = { __index = _M }

--- Takes a copy.
-- @tparam cdata ctx
-- @treturn table
-- @phases any
function _M.dup(ctx)
    if type(ctx) ~= "cdata" then
        return nil, "x509.name.dup: expect a x509.name ctx at #1, got " .. type(ctx)
    end
    return setmetatable({ ctx = ffi.gc(C.X509_NAME_dup(ctx), C.X509_NAME_free) }, mt)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

local function entry_at(self, index)
    local entry = C.X509_NAME_get_entry(self.ctx, index)
    local found = crypto.object(C.X509_NAME_ENTRY_get_object(entry))
    found.blob = crypto.asn1_text(C.X509_NAME_ENTRY_get_data(entry))
    return found
end

--- Walks over all entries: name, {nid, id, sn, ln, blob}.
-- @phases any
function _M:each()
    local index, count = -1, C.X509_NAME_entry_count(self.ctx)
    return function()
        index = index + 1
        if index < count then
            local found = entry_at(self, index)
            return found.sn or found.ln or found.id, found
        end
    end
end

--- The entries by name; of one name the last.
-- @phases any
function _M:all()
    local found = {}
    for name, entry in self:each() do
        found[name] = entry
    end
    return found
end

--- The next entry of a name.
-- @tparam string name short, long, or in digits
-- @tparam[opt=0] number after the place to look behind
-- @treturn table|nil entry
-- @treturn number|nil its place
-- @phases any
function _M:find(name, after)
    for index = after or 0, C.X509_NAME_entry_count(self.ctx) - 1 do
        local found = entry_at(self, index)
        if found.sn == name or found.ln == name or found.id == name then
            return found, index + 1
        end
    end
    return nil
end

--- All entries as "name=value", sorted, with slashes between.
-- @phases any
function _M:tostring()
    local parts = {}
    for name, entry in self:each() do
        parts[#parts + 1] = name .. "=" .. entry.blob
    end
    sort(parts)
    return concat(parts, "/")
end
mt.__tostring = _M.tostring

return _M
