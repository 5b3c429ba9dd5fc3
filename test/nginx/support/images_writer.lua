--- Images in a test's nginx: builds files, publishes them, and asks as a worker would.

local abi = require("sluice.ffi.abi")
local base = require("resty.core.base")
local cjson = require("cjson")
local core = require("sluice.ffi.core")
local ffi = require("ffi")
local images = require("sluice.ffi.images")
local support = require("test.unit.support.entities")

abi.declare("gateway/request", "gateway/response", "gateway/proxy")

local C = core.C

local DELTA_SIZE = 64 * 1024
local HEADER_ONLY = 0

local _M = { C = C, core = core, images = images }

local folder
local store = ("s"):rep(16)
local found = ffi.new("sluice_core_found_t")
local match = ffi.new("sluice_images_match_t")

local function check(rc, what)
    if rc ~= 0 then
        error(what .. ": " .. core.word(rc), 2)
    end
end

--- Says in which folder files are.
function _M.open(name)
    folder = name
    check(C.sluice_images_open(name, #name), "open")
end

local function identity(revision)
    local made = ffi.new("sluice_core_identity_t", { revision = revision })
    ffi.copy(made.store, store, 16)
    return made
end

function _M.path(kind, number)
    return ("%s/%s.%d"):format(folder, kind, number)
end

--- A route of the core; `hosts` and so on as lists, `headers` by name.
function _M.route(slot, fields)
    return {
        kind = C.SLUICE_CORE_ROUTE,
        slot = slot,
        generation = fields.generation,
        revision = fields.revision,
        [0] = fields.service or core.NOBODY,
        [2] = fields.name,
        [3] = fields.hosts,
        [4] = fields.paths,
        [5] = fields.methods,
        [6] = fields.headers,
        [7] = 0,
    }
end

--- Builds and writes base.<number>.
function _M.base(number, list, revision)
    local array, anchors = support.entities(list)
    local bound = tonumber(C.sluice_core_image_bound(array, #list))
    local memory = ffi.new("uint8_t[?]", bound + 64)
    local aligned = memory + (64 - tonumber(ffi.cast("uintptr_t", memory)) % 64) % 64
    local used = ffi.new("uint64_t[1]")
    check(
        C.sluice_core_image_build(identity(revision or 1), array, #list, aligned, bound, used),
        "build"
    )
    anchors.array = array
    check(C.sluice_core_file_write(_M.path("base", number), aligned, used[0], 0), "write")
    return tonumber(used[0])
end

local writer, view

--- Makes delta.<number> on base.<on>.
function _M.delta(number, on, revision)
    writer, view = ffi.new("sluice_core_writer_t"), ffi.new("sluice_core_view_t")
    local made = identity(revision or 1)
    check(C.sluice_core_delta_create(_M.path("delta", number), DELTA_SIZE, made, writer), "delta")
    check(C.sluice_core_file_open(_M.path("base", on), 0, HEADER_ONLY, view.base), "open")
    view.delta, view.revision = writer.space, revision or 1
end

--- Stages and links changes in the delta, as a revision.
function _M.change(list, revision)
    local array, anchors = support.entities(list)
    check(C.sluice_core_delta_stage(writer, view, array, #list, revision), "stage")
    anchors.array = array
    C.sluice_core_delta_link(writer)
    view.revision = revision
end

--- Unmaps the writer's own files.
function _M.release()
    C.sluice_core_file_close(writer.space)
    C.sluice_core_file_close(view.base)
end

function _M.publish(on, delta, revision)
    local published = { base = on, delta = delta, revision = revision or 1 }
    C.sluice_core_publish(images.page(), ffi.new("sluice_core_published_t", published))
    return true
end

--- One route for each path, from slot 1 on.
function _M.routes(...)
    local list = {}
    for i, path in ipairs({ ... }) do
        list[i] = _M.route(i, { paths = { path }, generation = i })
    end
    return list
end

--- So many routes.
function _M.many(count)
    local list = {}
    for i = 1, count do
        list[i] = _M.route(i, { paths = { "/r" .. i } })
    end
    return list
end

--- Builds and publishes a base without a delta.
function _M.live(number, list, revision)
    _M.base(number, list, revision)
    return _M.publish(number, 0, revision)
end

--- What the request of this context matches.
-- @treturn table `rc` and, of a route, what a plan needs
function _M.match(path)
    local rc = C.sluice_images_refresh()
    if rc == 0 then
        rc = C.sluice_match_request(base.get_request(), C.sluice_images_view(), path, #path, match)
    else
        ffi.fill(match, ffi.sizeof(match))
    end
    local said = { rc = core.word(rc), pid = ngx.worker.pid(), reason = match.reason }
    if match.route.record ~= nil then
        said.slot, said.generation = match.slot, match.generation
        said.service, said.prefix = match.service, match.prefix
        said.revision, said.epoch = tonumber(match.revision), tonumber(match.epoch)
        said.name = core.text(match.route, C.SLUICE_CORE_ROUTE_NAME)
    end
    return said
end

--- A look-up by one of the functions; its word, and the slot of what it has found.
function _M.find(name, ...)
    local arguments = { ... }
    arguments[#arguments + 1] = found
    local rc = C["sluice_images_" .. name](unpack(arguments))
    if rc ~= 0 then
        return core.word(rc)
    end
    local head = ffi.new("sluice_core_entity_t")
    C.sluice_core_head(found, head)
    return core.word(rc), head.slot
end

function _M.refresh()
    return core.word(C.sluice_images_refresh())
end

--- The block of the control worker, as a table.
function _M.block()
    local block = C.sluice_images_control_block()
    if block == nil then
        return cjson.null
    end
    local said = { error = ffi.string(block.error), slots = {} }
    for _, name in ipairs({ "started_at", "heartbeat", "revision", "failures" }) do
        -- Without the bit that says that it rests.
        said[name] = tonumber(bit.band(block[name], 0x7fffffffffffffffULL))
    end
    for _, name in ipairs({ "pid", "state", "starts", "deaths" }) do
        said[name] = block[name]
    end
    for i = 0, 7 do
        if block.slots[i] ~= 0 then
            table.insert(said.slots, block.slots[i])
        end
    end
    return said
end

--- Answers as a gateway would.
function _M.serve()
    local said = _M.match(ngx.var.uri)
    local statuses = { ok = 200, none = 404, large = 400, limit = 500, pattern = 500 }
    ngx.status = statuses[said.rc] or 503
    ngx.say(cjson.encode(said))
end

return _M
