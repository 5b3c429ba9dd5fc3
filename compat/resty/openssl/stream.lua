--- What digests and codes have in common: texts are added, then there is a result.
-- @module resty.openssl.stream

local crypto = require("sluice.ffi.libcrypto")

local select = select

local _M = {}

--- Makes the two methods of a kind.
-- @tparam string name of the kind, for failures
-- @tparam function update `(ctx, text, length)`: 1, or it has failed
-- @tparam function result `(self)`: the bytes, or nil
-- @treturn function `(self, text...)`: true, or false and the reason
-- @treturn function `(self[, text])`, which adds the text first: the bytes, or nil and the reason
-- @phases any
function _M.methods(name, update, result)
    local function add(self, ...)
        for i = 1, select("#", ...) do
            local text = select(i, ...)
            if update(self.ctx, text, #text) ~= 1 then
                return false, crypto.failure(name .. ":update")
            end
        end
        return true
    end
    local function final(self, text)
        if text then
            local added, err = add(self, text)
            if not added then
                return nil, err
            end
        end
        local bytes = result(self)
        if not bytes then
            return nil, crypto.failure(name .. ":final")
        end
        return bytes
    end
    return add, final
end

return _M
