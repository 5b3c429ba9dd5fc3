--- What images cannot have of an entity, for who checks a file before the store gets it.
--
-- The store packs what images need of an entity when it gets one, and refuses it then. A file is
-- checked first, also where there is no store (`sluice check`), and says where in it that stands.
-- @module gateway.image.limits

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local records = require("gateway.image.records")
local string_buffer = require("string.buffer")

local _M = {}

--- Makes the check, for the plugins that are loaded.
-- @treturn function `(kind, entity)`, an entity that its schema has found right -> nil, or the
-- field (nil: the whole entity) and why not
-- @phases any
function _M.checker()
    local by_kind
    return function(kind, entity)
        by_kind = by_kind or layout.by_kind(layout.derive(entities.stored(), entities.of_plugins()))
        local text, buffer = entity_text.encode(entity), string_buffer.new()
        -- What cannot be written is no text, and that is said elsewhere.
        local _, err = records.write(buffer, by_kind[kind], entity, text and #text or 0)
        buffer:free()
        if err then
            return err.field, err.reason
        end
        return nil
    end
end

return _M
