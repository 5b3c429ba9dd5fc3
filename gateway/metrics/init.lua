--- All metrics of this node as text, made in pieces.
--
-- What is counted stands in shared memory: a traffic worker neither hears of a scrape nor waits for
-- one. The control worker makes the text in turns of a few milliseconds, so that 10,000 routes do
-- not hold up a change either.
-- @module gateway.metrics

local declaration = require("gateway.metrics.declaration")
local dictionary_metrics = require("sluice.dictionary_metrics")
local exposition = require("sluice.ffi.exposition")
local ffi = require("ffi")
local format = require("gateway.metrics.format")
local heaps = require("gateway.kit.node.heaps")
local images = require("sluice.ffi.images")
local labelled = require("gateway.metrics.labelled")
local metrics = require("sluice.ffi.metrics")
local of_plugins = require("gateway.metrics.plugins")
local phases = require("gateway.kit.phases")
local series = require("sluice.ffi.series")
local spool = require("sluice.ffi.spool")
local string_buffer = require("string.buffer")
local targets = require("gateway.metrics.targets")
local version = require("gateway.version")

local C = images.C

-- Rendering stops for other work after so long.
local TURN_SECONDS = 0.005
local PAUSE_SECONDS = 0.001
-- What is sent at a time, and what more C may write into it; both stay in a core's cache.
local PIECE_BYTES = 64 * 1024
-- Names between two looks at the clock: some hundred microseconds.
local STRIDE = 500

local FIRST_HISTOGRAM = 4

-- Where plugins' Lua counts what it likes (kong.plugins.prometheus.exporter).
local DICTIONARY = "prometheus_metrics"

local _M = {}

-- What C writes each row of a line by.
local c_rows = {}
-- The same of plugins' rows, by format.
local plugins_rows = { [true] = {}, [false] = {} }

-- Of each kind the labels, and the revision of the configuration that they are of.
local labels = {}

--- Tells C the rows.
-- @phases init_worker
function _M.init_worker()
    for _, rows in ipairs({ declaration.node, declaration.routes, declaration.services }) do
        for _, row in ipairs(rows) do
            c_rows[row] = format.row(row)
        end
    end
end

-- A text of them; `give(text)` gets it in pieces, with turns of other requests between. `give` says
-- whether there are to be more.
local function new_writer(give)
    local out, finish = string_buffer.new(), os.clock() + TURN_SECONDS
    local writer = { out = out }

    --- Sends what is a piece, and ends a turn where it is time to. False: nobody wants more.
    function writer.step()
        if #out >= PIECE_BYTES and not give(out:get()) then
            return false
        end
        if os.clock() >= finish then
            -- Not 0: on stock nginx such a timer goes off before anything else has its turn.
            ngx.sleep(PAUSE_SECONDS)
            finish = os.clock() + TURN_SECONDS
        end
        return true
    end

    return writer
end

-- The labels of all of a kind that this worker can see; nil: nobody wants more. They are read when
-- the configuration is another than that of the last scrape.
local function find(writer, kind)
    local is_seen = C.sluice_images_refresh() == C.SLUICE_CORE_OK
    local revision = is_seen and C.sluice_images_view().revision or 0
    if labels[kind] and labels[kind].revision == revision then
        return labels[kind].names
    end
    local names = metrics.names(kind)
    while metrics.read_names(names, STRIDE) do
        if not writer.step() then
            return nil
        end
    end
    -- It has waited: by now this worker may not be able to map what is live.
    local view = C.sluice_images_view()
    if is_seen and view ~= nil and view.revision == revision then
        labels[kind] = { names = names, revision = revision }
    end
    return names
end

-- Samples by C's `write(next, to, size)`, and the head where it is not written yet; nil: nobody
-- wants more. Without samples there is no head.
local function write_samples(writer, head, write)
    local next, size, is_more = ffi.new("uint32_t[1]"), PIECE_BYTES, true
    while is_more do
        local length
        local before = next[0]
        local to = writer.out:reserve(#head + size)
        length, is_more = write(next, to + #head, size)
        if length > 0 then
            ffi.copy(to, head, #head)
            writer.out:commit(#head + length)
            head = ""
        end
        -- Of long names one may have more than a piece.
        size = next[0] == before and 2 * size or PIECE_BYTES
        if not writer.step() then
            return nil
        end
    end
    return head
end

-- Families of routes or services; false: nobody wants more.
local function write_entities(writer, kind, rows, last, is_open)
    local names = find(writer, kind)
    if not names then
        return false
    end
    for i = 1, last do
        local row = c_rows[rows[i]]
        local written = write_samples(writer, format.head(rows[i], is_open), function(...)
            return metrics.write(names, row, ...)
        end)
        if not written then
            return false
        end
    end
    return true
end

-- A plugin's family; false: nobody wants more.
local function write_of_plugin(writer, row, figures, is_open)
    local head = format.head(row, is_open)
    if row.samples then
        local samples = string_buffer.new()
        format.samples(samples, row, figures)
        writer.out:put(#samples > 0 and head or "", samples)
        return writer.step()
    end
    local rows = plugins_rows[is_open]
    rows[row] = rows[row] or labelled.rows(row, is_open)
    for _, one in ipairs(rows[row]) do
        head = write_samples(writer, head, function(...)
            return series.write(one, ...)
        end)
        if not head then
            return false
        end
    end
    return true
end

-- Families that plugins bring; false: nobody wants more.
local function write_plugins(writer, live, figures, is_open)
    for _, row in ipairs(of_plugins.rows(live)) do
        if not write_of_plugin(writer, row, figures, is_open) then
            return false
        end
    end
    return true
end

-- What plugins count in a dictionary, where there is one.
local function write_own(out, is_open)
    local dict = ngx.shared[DICTIONARY]
    if dict then
        dictionary_metrics.write(dict, function(text)
            out:put(text)
        end, is_open)
    end
end

local function collect(live, node_id)
    local block, stats = C.sluice_images_control_block(), live.bus:stats()
    local node, counts = metrics.node()
    return node,
        {
            counts = counts,
            connections = metrics.connections(),
            failed = metrics.targets(),
            events = stats.total,
            log = stats.log,
            entries = spool.figures(),
            state = live.state(),
            control = {
                failures = tonumber(block.failures),
                started_at = tonumber(block.started_at) / 1000,
                starts = block.starts,
                deaths = block.deaths,
            },
            plugin_failures = phases.failures(),
            version = version.product,
            kong_version = version.kong,
            node_id = node_id,
            heaps = function()
                return heaps.list(math.floor)
            end,
            targets = function(take)
                targets.each(live, take)
            end,
        }
end

--- Makes the whole text. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam string node_id
-- @tparam boolean is_open whether in OpenMetrics
-- @tparam function give `(text)` takes the next piece and says whether there are to be more
-- @phases content
function _M.write(live, node_id, is_open, give)
    local writer = new_writer(give)
    local out = writer.out
    local node, figures = collect(live, node_id)
    for _, row in ipairs(declaration.node) do
        out:put(format.head(row, is_open))
        exposition.write(out, c_rows[row], "", node)
    end
    for _, row in ipairs(declaration.rest) do
        out:put(format.head(row, is_open))
        format.samples(out, row, figures)
    end
    local last = live.settings.metrics_latencies and #declaration.routes or FIRST_HISTOGRAM - 1
    local is_wanted = metrics.series() == 0
        or write_entities(writer, metrics.SERVICE, declaration.services, last, is_open)
            and write_entities(writer, metrics.ROUTE, declaration.routes, last, is_open)
    if is_wanted and write_plugins(writer, live, figures, is_open) then
        write_own(out, is_open)
        out:put(is_open and "# EOF\n" or "")
        give(out:get())
    end
end

return _M
