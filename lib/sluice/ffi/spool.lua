--- What has happened to the entries of log plugins on their way to the control worker
-- (module/core/spool/spool.h).
-- @module sluice.ffi.spool

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

local C = ffi.C

local OK = 0

abi.declare("core/image", "core/spool", "core/text", "gateway/log")

local FIELDS = { "written", "full", "busy", "large", "damaged", "lost", "used", "size" }

local _M = {}

local stats = ffi.new("sluice_spool_stats_t")

--- The figures of all processes since the memory was made. Does not yield.
-- @treturn table|nil `written` entries; dropped ones: `full` (no room), `busy` (no lock in time),
-- `large`, `lost` (their target could not take them); `damaged`: how often all that stood there was
-- given up; bytes `used` now, of `size`. Nil: there is no such memory
-- @phases any but init
function _M.figures()
    if C.sluice_spool_figures(stats) ~= OK then
        return nil
    end
    local found = {}
    for _, field in ipairs(FIELDS) do
        found[field] = tonumber(stats[field])
    end
    return found
end

--- Counts entries that were taken and then dropped. Does not yield.
-- @tparam number count
-- @phases any but init
function _M.note_lost(count)
    C.sluice_spool_note_lost(count)
end

return _M
