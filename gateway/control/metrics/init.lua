--- All metrics of this node as text, made in pieces.
--
-- What is counted stands in shared memory: a traffic worker neither hears of a scrape nor waits for
-- one. The control worker makes the text in turns of a few milliseconds, so that 10,000 routes do
-- not hold up a change either.
-- @module gateway.control.metrics

local core = require("sluice.core")
local declaration = require("gateway.control.metrics.declaration")
local exposition = require("sluice.exposition")
local ffi = require("ffi")
local format = require("gateway.control.metrics.format")
local images = require("sluice.images")
local metrics = require("sluice.metrics")
local string_buffer = require("string.buffer")
local version = require("gateway.version")

local C = images.C
local clock = os.clock

-- Rendering stops for other work after so long.
local TURN_SECONDS = 0.005
local PAUSE_SECONDS = 0.001
-- What is sent at a time, and what more C may write into it; both stay in a core's cache.
local PIECE_BYTES = 64 * 1024
-- Names between two looks at the clock: some hundred microseconds.
local STRIDE = 500

local FIRST_HISTOGRAM = 4

local _M = {}

-- What C writes each row of a line by.
local c_rows = {}

-- Of each kind the labels, and the revision of the configuration that they are of.
local labels = {}

--- Tells C the rows, and lets this worker see the names of entities that have lines.
-- @tparam string folder of images
-- @phases init_worker
function _M.init_worker(folder)
    for _, rows in ipairs({ declaration.node, declaration.routes, declaration.services }) do
        for _, row in ipairs(rows) do
            c_rows[row] = format.row(row)
        end
    end
    if metrics.series() > 0 then
        local rc = C.sluice_images_open(folder, #folder)
        if rc ~= C.SLUICE_CORE_OK then
            ngx.log(ngx.ERR, "metrics of routes have no names: ", core.word(rc))
        end
    end
end

-- A text of them; `give(text)` gets it in pieces, with turns of other requests between. `give` says
-- whether there are to be more.
local function new_writer(give)
    local out, finish = string_buffer.new(), clock() + TURN_SECONDS
    local writer = { out = out }

    --- Sends what is a piece, and ends a turn where it is time to. False: nobody wants more.
    function writer.step()
        if #out >= PIECE_BYTES and not give(out:get()) then
            return false
        end
        if clock() >= finish then
            -- Not 0: on stock nginx such a timer goes off before anything else has its turn.
            ngx.sleep(PAUSE_SECONDS)
            finish = clock() + TURN_SECONDS
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
    if is_seen and C.sluice_images_view().revision == revision then
        labels[kind] = { names = names, revision = revision }
    end
    return names
end

-- A family of routes or services; false: nobody wants more. Without samples it has no head.
local function write_family(writer, names, row, head)
    local next, size, is_more = ffi.new("uint32_t[1]"), PIECE_BYTES, true
    while is_more do
        local length
        local before = next[0]
        local to = writer.out:reserve(#head + size)
        length, is_more = metrics.write(names, row, next, to + #head, size)
        if length > 0 then
            ffi.copy(to, head, #head)
            writer.out:commit(#head + length)
            head = ""
        end
        -- Of long names one may have more than a piece.
        size = next[0] == before and 2 * size or PIECE_BYTES
        if not writer.step() then
            return false
        end
    end
    return true
end

-- Families of routes or services; false: nobody wants more.
local function write_entities(writer, kind, rows, last, is_open)
    local names = find(writer, kind)
    if not names then
        return false
    end
    for i = 1, last do
        if not write_family(writer, names, c_rows[rows[i]], format.head(rows[i], is_open)) then
            return false
        end
    end
    return true
end

local function collect(live)
    local block, stats = C.sluice_control_block(), live.bus:stats()
    local node, counts = metrics.node()
    return node,
        {
            counts = counts,
            connections = metrics.connections(),
            events = stats.total,
            log = stats.log,
            state = live.state(),
            control = {
                failures = tonumber(block.failures),
                started_at = tonumber(block.started_at) / 1000,
                starts = block.starts,
                deaths = block.deaths,
            },
            version = version.product,
        }
end

--- Makes the whole text. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam boolean is_open whether in OpenMetrics
-- @tparam function give `(text)` takes the next piece and says whether there are to be more
-- @phases content
function _M.write(live, is_open, give)
    local writer = new_writer(give)
    local out = writer.out
    local node, figures = collect(live)
    for _, row in ipairs(declaration.node) do
        out:put(format.head(row, is_open))
        exposition.write(out, c_rows[row], "", node)
    end
    for _, row in ipairs(declaration.rest) do
        out:put(format.head(row, is_open))
        format.samples(out, row, "", figures)
    end
    local last = live.settings.metrics_latencies and #declaration.routes or FIRST_HISTOGRAM - 1
    local is_wanted = metrics.series() == 0
        or write_entities(writer, metrics.SERVICE, declaration.services, last, is_open)
            and write_entities(writer, metrics.ROUTE, declaration.routes, last, is_open)
    if is_wanted then
        out:put(is_open and "# EOF\n" or "")
        give(out:get())
    end
end

return _M
