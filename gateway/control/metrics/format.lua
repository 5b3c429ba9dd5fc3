--- Families of metrics as text: Prometheus' format 0.0.4, and OpenMetrics 1.0.
--
-- https://prometheus.io/docs/instrumenting/exposition_formats/
-- https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
--
-- Both say the same numbers with the same labels, so that a client that changes its mind goes on
-- with the same series.
-- @module gateway.control.metrics.format

local declaration = require("gateway.control.metrics.declaration")

local concat = table.concat
local format = string.format

local _M = {
    PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8",
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8",
}

local BUCKETS = {}
for i, bound in ipairs(declaration.BOUNDS) do
    local text = format("%.14g", bound / 1000)
    BUCKETS[i] = format('le="%s"} ', text:find(".", 1, true) and text or text .. ".0")
end
BUCKETS[#BUCKETS + 1] = 'le="+Inf"} '

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

--- What stands above the samples of a family.
-- @tparam table row of gateway.control.metrics.declaration
-- @tparam boolean is_open whether in OpenMetrics
-- @treturn string
function _M.head(row, is_open)
    local name = row.name
    if row.type == "counter" and not is_open then
        name = name .. "_total"
    end
    local lines = {
        format("# HELP %s %s\n", name, (row.help:gsub(is_open and '[\\"\n]' or "[\\\n]", ESCAPES))),
        format("# TYPE %s %s\n", name, row.type),
        is_open and row.unit and format("# UNIT %s %s\n", name, row.unit) or nil,
    }
    return concat(lines)
end

local function number(value)
    return value % 1 == 0 and format("%.0f", value) or format("%.3f", value)
end

local function histogram(out, name, labels, value)
    local open = name .. "_bucket{" .. labels .. (labels == "" and "" or ",")
    local braced = labels == "" and " " or "{" .. labels .. "} "
    local count = 0
    for i, le in ipairs(BUCKETS) do
        count = count + tonumber(value.buckets[i - 1])
        out:put(open, le, number(count), "\n")
    end
    out:put(name, "_sum", braced, number(tonumber(value.sum) / 1000), "\n")
    out:put(name, "_count", braced, number(count), "\n")
end

--- Appends the samples of a row.
-- @tparam table out string.buffer
-- @tparam table row
-- @tparam string labels those that all samples have, as text, or ""
-- @tparam table|cdata figures what the row reads
function _M.samples(out, row, labels, figures)
    local name, own = row.name, row.labels and row.labels[#row.labels]
    if row.type == "histogram" then
        return row.samples(figures, function(value)
            histogram(out, name, labels, value)
        end)
    elseif row.type == "counter" then
        name = name .. "_total"
    end
    row.samples(figures, function(value, word)
        local all = labels
        if word then
            all = (labels == "" and "" or labels .. ",") .. _M.label(own, word)
        end
        out:put(name, all == "" and " " or "{" .. all .. "} ", number(value), "\n")
    end)
end

return _M
