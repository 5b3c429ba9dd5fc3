--- Answers that let requests pass, for a while: a bounded number of them, in this worker.
--
-- Keys are digests: what clients send to prove who they are is not kept.
-- @module plugins.forward-auth.decisions

local digest = require("openssl.digest")

local ngx = ngx
local setmetatable = setmetatable

-- Of the younger of two generations; so many at least are kept, and twice as many at most.
local CAPACITY = 1024

local _M = {}
local methods = {}
local mt = { __index = methods }

--- None yet.
-- @treturn table
-- @phases any
function _M.new()
    return setmetatable({ young = {}, old = {}, count = 0 }, mt)
end

--- The key of what a server is asked.
-- @tparam string text
-- @treturn string 32 bytes
-- @phases any
function _M.key(text)
    return digest.new("sha256"):final(text)
end

local function put(self, key, entry)
    if self.count >= CAPACITY then
        self.old, self.young, self.count = self.young, {}, 0
    end
    self.young[key] = entry
    self.count = self.count + 1
end

--- Keeps an answer.
-- @tparam string key
-- @tparam table answer
-- @tparam number ttl seconds
-- @phases any
function methods:keep(key, answer, ttl)
    put(self, key, { answer = answer, expires_at = ngx.now() + ttl })
end

--- The answer that counts still.
-- @tparam string key
-- @treturn table|nil
-- @phases any
function methods:find(key)
    local entry = self.young[key]
    if not entry then
        entry = self.old[key]
        if entry then
            put(self, key, entry)
        end
    end
    return entry and entry.expires_at > ngx.now() and entry.answer or nil
end

return _M
