--- Numbers as the text of metrics, in C (module/core/text/exposition.h).
--
-- A row is told once which text stands around each number; then its samples are written from the
-- numbers alone. Nothing here yields.
-- @module sluice.ffi.exposition
-- @usage
-- local row = exposition.row({
--     { before = "a_total{", after = ',code="2xx"} ', number = 1, form = exposition.SEEN },
-- })

local abi = require("sluice.ffi.abi")
local core = require("sluice.ffi.core")
local ffi = require("ffi")

local C = core.C

abi.declare("core/image", "core/text")

local _M = {
    --- What is written of a number: the number.
    NUMBER = C.SLUICE_EXPOSITION_NUMBER,
    --- The number; where it is 0, no sample.
    SEEN = C.SLUICE_EXPOSITION_SEEN,
    --- The number and all buckets before it.
    BUCKET = C.SLUICE_EXPOSITION_BUCKET,
    --- All buckets before, not the number.
    BUCKETS = C.SLUICE_EXPOSITION_BUCKETS,
    --- The number, which is milliseconds.
    SECONDS = C.SLUICE_EXPOSITION_SECONDS,
}

--- The samples of a metric that one entity has.
-- @tparam table samples array of at least one `{ before, after, number, form }`: texts around the
-- labels, which of the numbers (from 0), and what is written of it
-- @treturn table for `write`
-- @phases all
function _M.row(samples)
    local list = ffi.new("sluice_exposition_sample_t[?]", #samples)
    for i, sample in ipairs(samples) do
        local to = list[i - 1]
        to.before.data, to.before.length = sample.before, #sample.before
        to.after.data, to.after.length = sample.after, #sample.after
        to.number, to.form = sample.number, sample.form
    end
    -- What C points to lives as long as this.
    return {
        row = ffi.new("sluice_exposition_row_t", list, #samples),
        list = list,
        samples = samples,
    }
end

--- Appends the samples of one entity.
-- @tparam table out string.buffer
-- @tparam table row
-- @tparam string labels as text, or ""
-- @tparam cdata numbers uint64_t*, or a struct of such numbers
-- @phases all
function _M.write(out, row, labels, numbers)
    local text = ffi.new("sluice_core_text_t", labels, #labels)
    local start = out:reserve(tonumber(C.sluice_exposition_bound(row.row, #labels)))
    local stop =
        C.sluice_exposition_write(start, row.row, text, ffi.cast("const uint64_t *", numbers))
    out:commit(stop - start)
end

return _M
