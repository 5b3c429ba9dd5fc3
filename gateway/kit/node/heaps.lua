--- The sizes of the workers' Lua heaps. A heap's size is known to its worker alone, so each notes
-- it now and then in the dictionary `kong`, under the key that Kong has for it.
-- @module gateway.kit.node.heaps

local ngx = ngx
local pairs = pairs
local tonumber = tonumber

local PREFIX = "kong:mem:"
local SECONDS = 10

local _M = {}

local function note()
    -- What a worker that is gone has noted goes by itself.
    ngx.shared.kong:set(PREFIX .. ngx.worker.pid(), collectgarbage("count"), 3 * SECONDS)
end

--- Begins to note this worker's, if there are dictionaries (cli/nginx/dictionaries.lua).
-- @tparam table timers a started system of sluice.timer
-- @phases init_worker
function _M.init_worker(timers)
    if ngx.shared.kong then
        note()
        timers:every(SECONDS, note)
    end
end

--- What the workers have noted.
-- @tparam function amount what is made of a number of bytes
-- @treturn {table,...} `pid`, `http_allocated_gc`; by pid
-- @phases any within nginx
function _M.list(amount)
    local out = {}
    local shared = ngx.shared.kong
    for _, key in pairs(shared and shared:get_keys(0) or {}) do
        local pid = key:match("^kong:mem:(%d+)$")
        local kilobytes = pid and shared:get(key)
        if kilobytes then
            out[#out + 1] = { pid = tonumber(pid), http_allocated_gc = amount(kilobytes * 1024) }
        end
    end
    table.sort(out, function(a, b)
        return a.pid < b.pid
    end)
    return out
end

return _M
