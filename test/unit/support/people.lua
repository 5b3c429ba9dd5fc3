--- Consumers and their credentials for judges (judge.lua): an image that has them, and who answers
-- of it what nginx answers.

local core = require("test.unit.support.core")
local digest = require("openssl.digest")
local hmac = require("openssl.hmac")

local ffi, lib = core.ffi, core.lib

local MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"

local function string_of(text)
    return text.data ~= nil and ffi.string(text.data, text.length) or ""
end

local function bytes_of(uuid)
    return (
        uuid:gsub("%-", ""):gsub("%x%x", function(byte)
            return string.char(tonumber(byte, 16))
        end)
    )
end

-- What the C reads of a credential, as it stands in an image.
local function packed_of(plugin, entity)
    for _, schema in ipairs(require("plugins." .. plugin .. ".daos")) do
        if schema.pack then
            return schema.pack(entity)
        end
    end
    return nil
end

local function digest_of(_, name, key, texts, count, out)
    name = ffi.string(name)
    local made = key ~= nil and hmac.new(string_of(key), name) or digest.new(name)
    for i = 0, count - 1 do
        made:update(string_of(texts[i]))
    end
    local bytes = made:final()
    ffi.copy(out, bytes, #bytes)
    return #bytes
end

--- Seconds since 1970 of a date as headers have it; -1: it is none.
local function date_of(text)
    local day, month, year, hour, minute, second =
        string_of(text):match("^%a+, (%d+) (%a%a%a) (%d%d%d%d) (%d+):(%d+):(%d+) GMT$")
    local at = day and MONTHS:find(month, 1, true)
    if not at then
        return -1
    end
    local own = os.time({ year = 1970, month = 1, day = 1, hour = 12, isdst = false })
    return os.time({
        year = tonumber(year),
        month = (at + 2) / 3,
        day = tonumber(day),
        hour = tonumber(hour) + 12,
        min = tonumber(minute),
        sec = tonumber(second),
        isdst = false,
    }) - own
end

local _M = {}

--- @tparam table list of `{ id =, username =, credentials = { { plugin =, kind =, key =,
--   entity = } } }`
function _M.new(list)
    local entities, slots, consumers = {}, {}, {}
    for i, person in ipairs(list) do
        local slot = i - 1
        consumers[person.id], consumers[person.username] = slot, slot
        entities[#entities + 1] = {
            kind = lib.SLUICE_CORE_CONSUMER,
            slot = slot,
            id = bytes_of(person.id),
            [0] = person.username,
        }
    end
    for i, person in ipairs(list) do
        for _, one in ipairs(person.credentials) do
            local name = one.kind .. " " .. one.key
            local slot = #entities - #list
            slots[name] = slot
            entities[#entities + 1] = {
                kind = lib.SLUICE_CORE_CREDENTIAL,
                slot = slot,
                [0] = i - 1,
                [1] = digest.new("sha256"):final(name),
                [2] = 0,
                [3] = packed_of(one.plugin, one.entity),
            }
        end
    end
    local image = assert(core.build(entities))
    local view = core.view(image)

    local function credential(_, kind, key, who)
        local slot = slots[string_of(kind) .. " " .. string_of(key)]
        if not slot then
            return lib.SLUICE_FACT_NONE
        end
        local found = lib.sluice_core_by_slot(view, lib.SLUICE_CORE_CREDENTIAL, slot)
        local owner = lib.sluice_core_number(found, lib.SLUICE_CORE_CREDENTIAL_CONSUMER)
        who.credential = found
        who.consumer = lib.sluice_core_by_slot(view, lib.SLUICE_CORE_CONSUMER, owner)
        return lib.SLUICE_FACT_OK
    end

    local function consumer(_, name, found)
        local slot = consumers[string_of(name)]
        if not slot then
            return lib.SLUICE_FACT_NONE
        end
        found[0] = lib.sluice_core_by_slot(view, lib.SLUICE_CORE_CONSUMER, slot)
        return lib.SLUICE_FACT_OK
    end

    return {
        image = image,
        credential = ffi.cast("sluice_judge_credential_pt", credential),
        consumer = ffi.cast("sluice_judge_consumer_pt", consumer),
        digest = ffi.cast("sluice_judge_digest_pt", digest_of),
        -- as sluice_hmac_auth_own_t has it
        date = ffi.new("struct { int64_t (*date)(const sluice_core_text_t *text); }", date_of),
    }
end

return _M
