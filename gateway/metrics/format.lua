--- Families of metrics as text: Prometheus' format 0.0.4, and OpenMetrics 1.0.
--
-- https://prometheus.io/docs/instrumenting/exposition_formats/
-- https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
--
-- Both say the same numbers with the same labels, so that a client that changes its mind goes on
-- with the same series.
-- @module gateway.metrics.format

local declaration = require("gateway.metrics.declaration")
local exposition = require("sluice.ffi.exposition")
local metrics = require("sluice.ffi.metrics")

local format = string.format

local _M = {
    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8",
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8",
}

local BUCKETS = {}
for i, bound in ipairs(declaration.BOUNDS) do
    local text = format("%.14g", bound / 1000)
    BUCKETS[i] = format('le="%s"', text:find(".", 1, true) and text or text .. ".0")
end
BUCKETS[#BUCKETS + 1] = 'le="+Inf"'

local ESCAPES = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

--- A label with its value, which may be any text.
-- @treturn string `name="value"`
function _M.label(name, value)
    return format('%s="%s"', name, (value:gsub('[\\"\n]', ESCAPES)))
end

--- Which of the formats a client wants (RFC 9110, 12.5.1): OpenMetrics where it names that and
-- does not want plain text more.
-- @tparam string|nil accept
-- @treturn string PROMETHEUS or OPENMETRICS
function _M.choose(accept)
    local weights = {}
    for range in (accept or ""):lower():gmatch("[^,]+") do
        local media_type = range:match("^%s*([^;%s]+)")
        local version = range:match(';%s*version%s*=%s*"?([%d.]+)')
        local q = tonumber(range:match(";%s*q%s*=%s*([%d.]+)")) or 1
        local is_ours = media_type ~= "application/openmetrics-text"
            or not version
            or version == "1.0.0"
        if media_type and is_ours then
            weights[media_type] = math.max(weights[media_type] or 0, q)
        end
    end
    local open = weights["application/openmetrics-text"] or 0
    local plain = weights["text/plain"] or weights["text/*"] or weights["*/*"] or 0
    return open > 0 and open >= plain and _M.OPENMETRICS or _M.PROMETHEUS
end

--- The name of the samples of a row that is no histogram.
-- @tparam table row
-- @treturn string
function _M.sample_name(row)
    return row.type == "counter" and not row.is_bare and row.name .. "_total" or row.name
end

--- What stands above the samples of a family.
-- @tparam table row of gateway.metrics.declaration
-- @tparam boolean is_open whether in OpenMetrics
-- @treturn string
function _M.head(row, is_open)
    local name = is_open and row.name or _M.sample_name(row)
    local lines = {
        format("# HELP %s %s\n", name, (row.help:gsub(is_open and '[\\"\n]' or "[\\\n]", ESCAPES))),
        -- In OpenMetrics no counter has a bare name.
        format("# TYPE %s %s\n", name, is_open and row.is_bare and "unknown" or row.type),
        is_open and row.unit and format("# UNIT %s %s\n", name, row.unit) or nil,
    }
    return table.concat(lines)
end

-- A sample of a line for C; `own` is the label that is not the entity's.
local function sample(name, own, has_labels, number, form)
    if has_labels then
        local after = (own and "," .. own or "") .. "} "
        return { before = name .. "{", after = after, number = number, form = form }
    end
    local before = name .. (own and "{" .. own .. "} " or " ")
    return { before = before, after = "", number = number, form = form }
end

local function histogram(name, has_labels, number)
    local samples = {}
    for i, le in ipairs(BUCKETS) do
        local at = number + i - 1
        samples[i] = sample(name .. "_bucket", le, has_labels, at, exposition.BUCKET)
    end
    local sum = number + #BUCKETS
    samples[#samples + 1] = sample(name .. "_sum", nil, has_labels, sum, exposition.SECONDS)
    samples[#samples + 1] = sample(name .. "_count", nil, has_labels, sum, exposition.BUCKETS)
    return samples
end

local function counters(row)
    local samples = {}
    for i, one in ipairs(row.numbers) do
        local own = one.word and _M.label(row.labels[#row.labels], one.word)
        local has_labels = #row.labels > (own and 1 or 0)
        local number = metrics.number(one.field) + (one.index or 0)
        local form = own and exposition.SEEN or exposition.NUMBER
        samples[i] = sample(row.name .. "_total", own, has_labels, number, form)
    end
    return samples
end

--- Makes what C writes a row of a line by.
-- @tparam table row of `declaration.node`, `.routes` or `.services`
-- @treturn table for `sluice.exposition`
function _M.row(row)
    if row.type ~= "histogram" then
        return exposition.row(counters(row))
    end
    local number = metrics.number(row.numbers[1].field)
    return exposition.row(histogram(row.name, #row.labels > 0, number))
end

local function digits(value)
    return value % 1 == 0 and format("%.0f", value) or format("%.3f", value)
end

--- Appends the samples of a row that is read in Lua.
-- @tparam table out string.buffer
-- @tparam table row
-- @tparam table figures what the row reads
function _M.samples(out, row, figures)
    local name = _M.sample_name(row)
    row.samples(figures, function(value, ...)
        local labels = {}
        for i = 1, select("#", ...) do
            labels[i] = _M.label(row.labels[i], (select(i, ...)))
        end
        local all = table.concat(labels, ",")
        out:put(name, all == "" and " " or "{" .. all .. "} ", digits(value), "\n")
    end)
end

return _M
