--- All metrics of this node as text, made in pieces.
--
-- What is counted stands in shared memory: a traffic worker neither hears of a scrape nor waits for
-- one. The control worker makes the text in turns of a few milliseconds, so that 10,000 routes do
-- not hold up a change either.
-- @module gateway.control.metrics

local core = require("sluice.core")
local declaration = require("gateway.control.metrics.declaration")
local ffi = require("ffi")
local format = require("gateway.control.metrics.format")
local images = require("sluice.images")
local metrics = require("sluice.metrics")
local string_buffer = require("string.buffer")
local version = require("gateway.version")

local C = images.C
local clock = os.clock

-- Rendering stops for other work after so long. To collect garbage and to send what came of it may
-- take 3 ms more.
local TURN_SECONDS = 0.001
local PAUSE_SECONDS = 0.001
-- Entities between two looks at the clock: some ten microseconds each at most.
local STRIDE = 4

local FIRST_HISTOGRAM = 4

local _M = {}

local head = ffi.new("sluice_core_entity_t")
local found, owner = ffi.new("sluice_core_found_t"), ffi.new("sluice_core_found_t")
local line = ffi.new("sluice_metrics_line_t")

--- Lets this worker see the names of entities that have lines.
-- @tparam string folder of images
-- @phases init_worker
function _M.init_worker(folder)
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
    local out, finish, steps = string_buffer.new(), clock() + TURN_SECONDS, 0
    local writer = { out = out }

    --- Ends a turn where it is time to. False: nobody wants more.
    function writer.step()
        steps = steps + 1
        if steps % STRIDE ~= 0 or clock() < finish then
            return true
        end
        if #out > 0 and not give(out:get()) then
            return false
        end
        -- Not 0: on stock nginx such a timer goes off before anything else has its turn.
        ngx.sleep(PAUSE_SECONDS)
        finish = clock() + TURN_SECONDS
        return true
    end

    return writer
end

local function name_of(record, field)
    local name = core.text(record, field)
    if name and name ~= "" then
        return name
    end
    local hex = ffi.string(head.id, 16):gsub(".", function(char)
        return ("%02x"):format(char:byte())
    end)
    return (hex:gsub("^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)", "%1-%2-%3-%4-"))
end

local function service_label(record)
    C.sluice_core_head(record, head)
    return format.label("service", name_of(record, C.SLUICE_CORE_SERVICE_NAME))
end

local READ_LABELS = {
    [metrics.SERVICE] = service_label,
    [metrics.ROUTE] = function(record)
        local route = format.label("route", name_of(record, C.SLUICE_CORE_ROUTE_NAME))
        local service = C.sluice_core_number(record, C.SLUICE_CORE_ROUTE_SERVICE)
        local has_service = service ~= core.NOBODY
            and C.sluice_images_by_slot(C.SLUICE_CORE_SERVICE, service, owner)
                == C.SLUICE_CORE_OK
        return route .. "," .. (has_service and service_label(owner) or 'service=""')
    end,
}

local CORE_KINDS =
    { [metrics.ROUTE] = C.SLUICE_CORE_ROUTE, [metrics.SERVICE] = C.SLUICE_CORE_SERVICE }

-- The entity in a slot, where it has been counted: slot, generation and labels.
local function look(kind, slot)
    if C.sluice_images_by_slot(CORE_KINDS[kind], slot, found) ~= C.SLUICE_CORE_OK then
        return nil
    end
    C.sluice_core_head(found, head)
    local generation = head.generation
    if not metrics.entity(kind, slot, generation, line) then
        return nil
    end
    return { slot = slot, generation = generation, labels = READ_LABELS[kind](found) }
end

-- Those of a kind that have been counted, and that this worker can see; nil: nobody wants more.
local function find(writer, kind)
    local list = {}
    C.sluice_images_refresh()
    for slot = 0, metrics.series() - 1 do
        list[#list + 1] = look(kind, slot)
        if not writer.step() then
            return nil
        end
    end
    return list
end

-- Families of routes or services; false: nobody wants more.
local function write_entities(writer, kind, rows, last, is_open)
    local list = find(writer, kind)
    if not list then
        return false
    end
    for i = 1, #list > 0 and last or 0 do
        writer.out:put(format.head(rows[i], is_open))
        for _, entity in ipairs(list) do
            -- Not any more: another has the slot by now.
            if metrics.entity(kind, entity.slot, entity.generation, line) then
                format.samples(writer.out, rows[i], entity.labels, line)
            end
            if not writer.step() then
                return false
            end
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
        format.samples(out, row, "", node)
    end
    for _, row in ipairs(declaration.rest) do
        out:put(format.head(row, is_open))
        format.samples(out, row, "", figures)
    end
    local last = live.settings.metrics_latencies and #declaration.routes or FIRST_HISTOGRAM - 1
    local is_wanted = write_entities(writer, metrics.SERVICE, declaration.services, last, is_open)
        and write_entities(writer, metrics.ROUTE, declaration.routes, last, is_open)
    if is_wanted then
        out:put(is_open and "# EOF\n" or "")
        give(out:get())
    end
end

return _M
