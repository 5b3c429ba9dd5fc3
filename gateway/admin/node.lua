--- `GET /`: what this node is, and what it runs with.
-- @module gateway.admin.node

local address = require("sluice.address")
local entity_text = require("gateway.store.entity_text")
local json = require("gateway.schema.json")
local node_id = require("gateway.pdk.node_id")
local origins = require("gateway.config.origin")
local variables = require("gateway.pdk.variables")
local version = require("gateway.version")

-- Plugins that are read at a time.
local PAGE = 1000

local _M = {}

--- Listeners in Kong's form, of `host:port [parameter ...]`.
local function listeners(addresses)
    local list = json.array({})
    for i, listener in ipairs(addresses) do
        local ip, port = address.split(listener:match("^%S+"))
        list[i] = {
            ip = address.bracket(ip),
            port = tonumber(port),
            ssl = listener:find(" ssl", 1, true) ~= nil,
            http2 = listener:find(" http2", 1, true) ~= nil,
            listener = listener,
        }
    end
    return list
end

local function configuration(live)
    local out = {}
    for name, value in pairs(live.settings) do
        out[name] = type(value) == "table" and json.array({ unpack(value) }) or value
    end
    -- What Kong's clients read: they skip their writes where it is "off".
    out.database = live.is_writable and "postgres" or "off"
    out.router_flavor = "traditional_compatible"
    out.proxy_listeners = listeners(live.settings.proxy_listen)
    out.admin_listeners = listeners(live.settings.admin_listen)
    out.status_listeners = listeners(live.settings.status_listen)
    out.stream_listeners = json.array({})
    out.loaded_plugins = {}
    for _, plugin in ipairs(live.plugins:list()) do
        out.loaded_plugins[plugin.name] = true
    end
    return out
end

local function available_plugins(registry)
    local out = {}
    for _, plugin in ipairs(registry:list()) do
        out[plugin.name] = { version = plugin.version, priority = plugin.priority }
    end
    return out
end

--- Names of the plugins that are configured somewhere, each once. None where the store cannot be
-- read. Yields.
local function configured_plugins(live)
    local names, seen, offset = json.array({}), {}, nil
    repeat
        local rows, next_offset = live.read("list", "plugins", { size = PAGE, offset = offset })
        for _, row in ipairs(rows or {}) do
            local name = entity_text.decode(row.text).name
            if not seen[name] then
                seen[name] = true
                names[#names + 1] = name
            end
        end
        offset = rows and next_offset
    until not offset
    return names
end

--- Describes the node. Yields.
-- @tparam table live what `gateway.admin` is given
-- @treturn table
-- @phases content
function _M.describe(live)
    local now = live.read("revision") or {}
    return {
        version = version.kong,
        sluice = {
            version = version.product,
            storage = live.is_writable and "store" or "file",
            configuration_hash = origins.hash(now.origin),
            configuration_version = now.revision,
        },
        hostname = variables.hostname:get(),
        node_id = node_id.of(live.settings.prefix),
        lua_version = jit.version,
        configuration = configuration(live),
        plugins = {
            available_on_server = available_plugins(live.plugins),
            enabled_in_cluster = configured_plugins(live),
        },
        pids = {
            master = require("ngx.process").get_master_pid(),
            workers = json.array(live.workers()),
        },
        timers = { running = ngx.timer.running_count(), pending = ngx.timer.pending_count() },
    }
end

--- Names of the plugins that this node can run, in the order in which they run.
-- @tparam table live what `gateway.admin` is given
-- @treturn table
-- @phases content
function _M.enabled_plugins(live)
    local names = json.array({})
    for i, plugin in ipairs(live.plugins:list()) do
        names[i] = plugin.name
    end
    return { enabled_plugins = names }
end

return _M
