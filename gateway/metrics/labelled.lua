--- Rows of series that C counts by the values of their labels (sluice.series), as C writes them.
--
-- Such a row has `series` in the place of `samples`: an array of
--
--   kind     of sluice.series
--   number   the first of its numbers, from 0
--   labels   in the order of the values: a name, or `{ name, value }` of one that has one value
--
-- and, if it is a histogram, `bounds` of its buckets in ms.
-- @module gateway.metrics.labelled

local exposition = require("sluice.ffi.exposition")
local format = require("gateway.metrics.format")
local series = require("sluice.ffi.series")

-- What no name of a route can be.
local OTHER = "(other)"

local _M = {}

-- The texts before each value, and the text behind the last.
local function pieces_of(labels)
    local pieces, text = {}, ""
    for i, label in ipairs(labels) do
        text = text .. (i > 1 and "," or "")
        if type(label) == "table" then
            text = text .. format.label(label[1], label[2])
        else
            pieces[#pieces + 1] = text .. label .. '="'
            text = '"'
        end
    end
    return pieces, text
end

local function bound_text(bound, is_open)
    return bound and ('le="%d%s"'):format(bound, is_open and ".0" or "") or 'le="+Inf"'
end

local function histogram(row, number, after, is_open)
    local samples = {}
    for i = 1, #row.bounds + 1 do
        samples[i] = {
            before = row.name .. "_bucket{",
            after = ("%s,%s} "):format(after, bound_text(row.bounds[i], is_open)),
            number = number + i - 1,
            form = exposition.BUCKET,
        }
    end
    local sum = number + #row.bounds + 1
    for _, one in ipairs({ { "_count", exposition.BUCKETS }, { "_sum", exposition.NUMBER } }) do
        samples[#samples + 1] = {
            before = row.name .. one[1] .. "{",
            after = after .. "} ",
            number = sum,
            form = one[2],
        }
    end
    return samples
end

local function counter(row, number, after)
    return {
        {
            before = format.sample_name(row) .. "{",
            after = after .. "} ",
            number = number,
            form = exposition.SEEN,
        },
    }
end

--- Makes what C writes a row by.
-- @tparam table row
-- @tparam boolean is_open whether in OpenMetrics
-- @treturn {table,...} of sluice.series
function _M.rows(row, is_open)
    local out = {}
    for i, one in ipairs(row.series) do
        local pieces, after = pieces_of(one.labels)
        out[i] = series.row({
            kind = one.kind,
            samples = row.bounds and histogram(row, one.number, after, is_open)
                or counter(row, one.number, after),
            pieces = pieces,
            other = OTHER,
        })
    end
    return out
end

return _M
