--- Series of labels that plugins count in, in memory that all workers share
-- (module/core/series/series.h, module/gateway/metrics/ngx_sluice_series.h).
--
-- Any worker may write them: that takes no lock and disturbs nobody. Nothing here yields.
-- @module sluice.ffi.series
-- @usage
-- local row = series.row({
--     kind = series.REQUESTS,
--     samples = { { before = "a_total{", after = '"} ', number = 0, form = exposition.SEEN } },
--     pieces = { 'service="', '",route="', '",code="', '",source="', '",consumer="' },
--     other = "(other)",
-- })

local abi = require("sluice.ffi.abi")
local exposition = require("sluice.ffi.exposition")
local ffi = require("ffi")

local C = ffi.C

local is_nginx = abi.declare("core/image", "core/text", "core/series", "gateway/metrics")

local _M = {
    --- Kinds of lines: requests by service, route, status, source, consumer; bytes by service,
    -- route, consumer; times by service, route.
    REQUESTS = C.SLUICE_SERIES_REQUESTS,
    BYTES = C.SLUICE_SERIES_BYTES,
    TIMES = C.SLUICE_SERIES_TIMES,
}

--- How a scrape shows the series of a kind.
-- @tparam table opts `kind`; `samples` of `sluice.exposition`; `pieces`, the text before each value
-- of a line; `other`, the values of the line that stands for all without one
-- @treturn table for `write`
-- @phases all
function _M.row(opts)
    local row = exposition.row(opts.samples)
    local pieces = ffi.new("sluice_core_text_t[?]", #opts.pieces)
    for i, piece in ipairs(opts.pieces) do
        pieces[i - 1].data, pieces[i - 1].length = piece, #piece
    end
    local shown = ffi.new("sluice_series_row_t", row.row, pieces, #opts.pieces, opts.kind)
    shown.other.data, shown.other.length = opts.other, #opts.other
    -- What C points to lives as long as this.
    return { shown = shown, row = row, pieces = pieces, opts = opts }
end

--- Writes a row's samples of all series that have some, as many as have room.
-- @tparam table row
-- @tparam cdata next uint32_t[1]: the line to begin with, from 0, then the one to go on with
-- @tparam cdata out char*
-- @tparam number size
-- @treturn number bytes
-- @treturn boolean whether there are more lines
-- @phases any but init
function _M.write(row, next, out, size)
    local shared = C.sluice_series_shared()
    if shared == nil then
        return 0, false
    end
    local length = tonumber(C.sluice_series_write(shared, row.shown, next, out, size))
    return length, next[0] ~= 0
end

--- How many requests were counted in the line of those without one. Outside nginx none.
-- @treturn number
-- @phases any but init
function _M.lacking()
    local shared = is_nginx and C.sluice_series_shared() or nil
    return shared ~= nil and tonumber(C.sluice_series_lacking(shared)) or 0
end

return _M
