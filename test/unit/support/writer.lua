--- Writers of the tests: a store, a folder of images and a page of their own; what is live there.

local core = require("sluice.ffi.core")
local ffi = require("ffi")
local memory = require("gateway.image.memory")
local rows = require("gateway.image.rows")
local store = require("test.unit.support.store")
local writer = require("gateway.writer")

local C = core.C

local _M = { clean = store.clean, folder = store.folder }

-- What the fields of each kind hold, as kinds.c has them.
local TYPES = {
    [tonumber(C.SLUICE_CORE_SERVICE)] = "NTTTNNNNT",
    [tonumber(C.SLUICE_CORE_UPSTREAM)] = "TTNNN",
    [tonumber(C.SLUICE_CORE_CONSUMER)] = "TT",
    [tonumber(C.SLUICE_CORE_ROUTE)] = "NNTLLLHNL",
    [tonumber(C.SLUICE_CORE_TARGET)] = "NTN",
    [tonumber(C.SLUICE_CORE_CREDENTIAL)] = "NTNTLN",
    [tonumber(C.SLUICE_CORE_PLUGIN)] = "NNNNTNTNL",
    [tonumber(C.SLUICE_CORE_NAME)] = "TL",
    [tonumber(C.SLUICE_CORE_GROUP)] = "T",
    [tonumber(C.SLUICE_CORE_MEMBERSHIP)] = "NN",
    [tonumber(C.SLUICE_CORE_CERTIFICATE)] = "TTTT",
    [tonumber(C.SLUICE_CORE_CA_CERTIFICATE)] = "T",
    [tonumber(C.SLUICE_CORE_SNI)] = "NT",
    [tonumber(C.SLUICE_CORE_LABEL)] = "NTT",
    [tonumber(C.SLUICE_CORE_ENTITY)] = "NTNTLN",
}

--- A place and options for writers, one after the other.
function _M.place(opts)
    local folder = store.folder()
    local size = tonumber(C.sluice_core_page_size())
    local raw = ffi.new("uint8_t[?]", size + 64)
    local address = tonumber(ffi.cast("uintptr_t", raw))
    local place = {
        store = folder .. "/store/store.db",
        copy = folder .. "/store/base",
        layouts = store.layouts(),
        images = folder .. "/images",
        delta_bytes = 64 * 1024,
        page = address + -address % 64,
        raw = raw,
    }
    --- As after a start of the machine.
    function place.forget()
        ffi.fill(raw, size + 64)
        os.execute("rm -rf " .. place.images)
    end
    for key, value in pairs(opts or {}) do
        place[key] = value
    end
    return place
end

--- Opens a writer and has it publish; where from.
function _M.open(place)
    local opened = assert(writer.open(place))
    local begun, err = opened:begin()
    assert(begun, err and err.message)
    return opened, begun.from
end

--- An upsert for `batch`.
function _M.put(opened, kind, entity)
    return assert(writer.complete(opened.store.by_kind, { kind = kind, put = entity }))
end

local function text_of(data, length)
    local text = data ~= nil and ffi.string(data, length) or "-"
    return text:find("[^\32-\126]")
            and ffi.string(data, length):gsub(".", function(char)
                return ("%02x"):format(char:byte())
            end)
        or text
end

local function field_text(kind, field, value)
    local what = TYPES[kind]:sub(field + 1, field + 1)
    if what == "N" then
        return tostring(value.number)
    elseif what == "T" then
        return text_of(value.data, value.count)
    elseif what == "L" then
        local list, out = ffi.cast("const sluice_core_text_t *", value.data), {}
        for i = 1, value.count do
            out[i] = text_of(list[i - 1].data, list[i - 1].length)
        end
        return table.concat(out, ",")
    end
    return tostring(value.count)
end

local function entity_text(entity)
    local out = { ("kind %d"):format(entity.kind) }
    if entity.kind ~= C.SLUICE_CORE_PLUGIN or entity.slot >= 256 then
        out[2] = ("slot %d.%d"):format(entity.slot, entity.generation)
        out[3] = ("revision %d"):format(tonumber(entity.revision))
    end
    for field = 0, #TYPES[entity.kind] - 1 do
        out[#out + 1] = field_text(entity.kind, field, entity.fields[field])
    end
    out[#out + 1] = text_of(entity.body, entity.body_length)
    return table.concat(out, " ")
end

-- All entities of a view, a line each, sorted.
local function lines_of(view)
    local live = ffi.new("sluice_core_live_t")
    assert(C.sluice_core_live(view, nil, 0, live) == 0)
    local out = {}
    for i = 0, tonumber(live.count) - 1 do
        out[#out + 1] = entity_text(live.entities[i])
    end
    C.sluice_core_live_free(live)
    table.sort(out)
    return table.concat(out, "\n")
end

--- Calls `fn(view)` with what a worker maps of what is published; its results, and the revision.
function _M.with_view(place, fn)
    local published, view = ffi.new("sluice_core_published_t"), ffi.new("sluice_core_view_t")
    local page = ffi.cast("sluice_core_page_t *", ffi.cast("uintptr_t", place.page))
    assert(C.sluice_core_published(page, published) == 0)
    local uid = require("posix.unistd").geteuid()
    local base = ("%s/base.%d"):format(place.images, tonumber(published.base))
    local delta = ("%s/delta.%d"):format(place.images, tonumber(published.delta))
    assert(C.sluice_core_file_open(base, uid, 1, view.base) == 0, base)
    assert(C.sluice_core_delta_open(delta, uid, 1, view.delta) == 0, delta)
    view.revision = published.revision
    local found = fn(view)
    C.sluice_core_file_close(view.base)
    C.sluice_core_file_close(view.delta)
    return found, tonumber(published.revision)
end

--- What a worker maps of what is published, as text.
function _M.published(place)
    return _M.with_view(place, lines_of)
end

--- What a build of every row has, as text.
function _M.built(opened)
    return opened.store:read(function(db, now)
        local all = rows.all(db, opened.store.layouts, now)
        local bound = tonumber(C.sluice_core_image_bound(all.records, all.count))
        local raw = memory.new()
        local buffer = raw:take(bound + 64)
        buffer = buffer + (-tonumber(ffi.cast("uintptr_t", buffer))) % 64
        local identity = ffi.new("sluice_core_identity_t", { revision = now.revision })
        local used = ffi.new("uint64_t[1]")
        local rc = C.sluice_core_image_build(identity, all.records, all.count, buffer, bound, used)
        assert(rc == 0, core.word(rc))
        local view = ffi.new("sluice_core_view_t", { revision = now.revision })
        view.base.base, view.base.size = ffi.cast("const uint8_t *", buffer), used[0]
        local text = lines_of(view)
        raw:free()
        all:free()
        return text
    end)
end

return _M
