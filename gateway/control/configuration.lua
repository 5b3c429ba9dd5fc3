--- A declarative file in the place of what is live: checked beside the event loop
-- (gateway.control.checks), its names resolved, then one change of the store
-- (gateway.control.apply).
-- @module gateway.control.configuration

local addresses = require("gateway.control.addresses")
local apply = require("gateway.control.apply")
local blocks = require("gateway.store.blocks")
local checks = require("gateway.control.checks")
local client = require("gateway.control.client")
local garbage_collector = require("gateway.control.garbage_collector")
local items = require("gateway.config.items")
local origins = require("gateway.config.origin")
local vaults = require("gateway.control.vaults")

local error = error
local ipairs = ipairs
local min = math.min
local ngx = ngx
local pairs = pairs
local pcall = pcall

-- Entities of a file whose entities become operations, one by one, in this worker.
local MAX_COLLECTED = 100000

local _M = {}
local mt = { __index = _M }

--- Makes what takes files.
-- @tparam table registry of plugins
-- @tparam table settings resolved settings: plugins, vault_env, max_entities
-- @treturn table
-- @phases init_worker
function _M.new(registry, settings)
    return setmetatable({
        settings = settings,
        surroundings = origins.surroundings(registry, settings.vault_env),
    }, mt)
end

local function warn(list, more)
    for _, warning in ipairs(list) do
        ngx.log(ngx.WARN, "posted configuration: ", warning)
    end
    if more > 0 then
        ngx.log(ngx.WARN, "posted configuration: and ", more, " more such warnings")
    end
end

-- Logs a long list as a check does (gateway.checker).
local function warn_of(list)
    local shown = {}
    for i = 1, min(#list, 100) do
        shown[i] = list[i]
    end
    warn(shown, #list - #shown)
end

local function check(self, verb, sent, more)
    local request = {
        verb = verb,
        sent = sent,
        plugins = self.settings.plugins,
        vault_env = self.settings.vault_env,
        max_entities = self.settings.max_entities,
        surroundings = self.surroundings,
        at = ngx.time(),
    }
    for name, value in pairs(more) do
        request[name] = value
    end
    return checks.run(request, sent.bytes)
end

-- Whether it is a list of what was made, and no refusal, and somebody still waits for it.
local function is_made(found)
    if not found.word and client.is_gone() then
        found.word = "stopped"
    end
    return not found.word
end

--- The entities of a file, each checked for itself. Yields.
-- @tparam table sent of gateway.control.admin.body's `source`
-- @tparam[opt] string list_of the kind of those in a list
-- @treturn table|nil an array of the items of gateway.config.collect
-- @treturn number|table bytes of the text, for what it may cost; of a refusal what gateway.checker
-- has: its `word`, also "busy", or one of gateway.control.apply's `read`
-- @phases content
function _M:collect(sent, list_of)
    local begins, err = vaults.begins(apply.read)
    if not begins then
        return nil, { word = err.err, message = err.message or err.err }
    end
    local is_less = MAX_COLLECTED < self.settings.max_entities
    local found = check(self, "collect", sent, {
        list_of = list_of,
        vaults = begins,
        max_entities = is_less and MAX_COLLECTED or nil,
        max_of = is_less and "can be applied at once" or nil,
    })
    local list = {}
    if is_made(found) then
        blocks.each(found.made, function(item)
            list[#list + 1] = item
        end, garbage_collector.turns())
        for _, item in ipairs(list) do
            item.parent = list[item.parent]
        end
        warn(found.warnings, found.more_warnings)
    end
    checks.free(found)
    if found.word then
        return nil, found
    end
    return list, found.size
end

local function put(found, by)
    local pause, names = garbage_collector.turns(), {}
    blocks.each(found.names, function(name)
        names[#names + 1] = name
    end, pause)
    local found_addresses, kept = addresses.ask(names, client.is_gone)
    if client.is_gone() then
        return nil, { err = "stopped" }
    end
    warn_of(kept)
    local of_names, unresolved = items.of_names(names, found_addresses, pause)
    warn_of(unresolved)
    return apply.replace(of_names, found.origin, by, found.made)
end

--- Replaces what is live. Yields; live on every worker when it returns. Where the client leaves
-- before it is handed to the writer, nothing is changed.
-- @tparam table sent of gateway.control.admin.body's `source`
-- @tparam table opts `by`, who, for the history; `flattens` of gateway.checker; `is_checked`: with
-- the text that is live already nothing is done
-- @treturn table|nil `{ uuid, revision, hash }`
-- @treturn nil|table what gateway.checker has of a refusal: its `word`, also "busy", or one of
-- gateway.control.apply's `replace`
-- @phases content
function _M:replace(sent, opts)
    local found = check(self, "replace", sent, {
        flattens = opts.flattens,
        live = opts.is_checked and apply.state().origin or nil,
    })
    if not is_made(found) then
        checks.free(found)
        return nil, found
    end
    warn(found.warnings, found.more_warnings)
    local ok, done, err = pcall(put, found, opts.by)
    checks.free(found)
    if not ok then
        error(done, 0)
    elseif not done then
        return nil, { word = err.err, message = err.message or err.err }
    end
    return { uuid = done.uuid, revision = done.revision, hash = found.hash }
end

return _M
