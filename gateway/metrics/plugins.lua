--- Families of metrics that plugins bring (`plugins/<name>/metrics.lua`): shown while the plugin is
-- configured and enabled somewhere.
-- @module gateway.metrics.plugins

local entity_text = require("gateway.store.entity_text")

-- Plugins that are read at a time.
local PAGE = 1000

local _M = {}

-- The configurations of plugins with metrics, by name, and the store's revision then.
local found = { configs = {} }

local function add(configs, row)
    for name in pairs(configs) do
        -- Most are others: that takes less than to decode them.
        if row.text:find(('"name":"%s"'):format(name), 1, true) then
            local entity = entity_text.decode(row.text)
            if entity.name == name and entity.enabled ~= false then
                table.insert(configs[name], entity.config or {})
            end
        end
    end
end

-- Reads all of them; those of the last scrape where the store cannot be read.
local function read(live, revision)
    local configs, offset = {}, nil
    for _, plugin in ipairs(live.plugins:list()) do
        configs[plugin.name] = plugin.metrics and {} or nil
    end
    repeat
        local rows, next_offset = live.read("list", "plugins", { size = PAGE, offset = offset })
        if not rows then
            return
        end
        for _, row in ipairs(rows) do
            add(configs, row)
        end
        offset = next_offset
    until not offset
    found = { configs = configs, revision = revision }
end

--- The rows to show, in the order in which the plugins run. Yields.
-- @tparam table live what `gateway.admin` is given
-- @treturn {table,...}
-- @phases content
function _M.rows(live)
    local revision = live.state().revision
    if not revision or revision ~= found.revision then
        read(live, revision)
    end
    local rows = {}
    for _, plugin in ipairs(live.plugins:list()) do
        local configs = plugin.metrics and found.configs[plugin.name]
        if configs and #configs > 0 then
            for _, row in ipairs(plugin.metrics) do
                if not row.is_wanted or row.is_wanted(configs) then
                    rows[#rows + 1] = row
                end
            end
        end
    end
    return rows
end

return _M
