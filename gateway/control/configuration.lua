--- A declarative file in the place of what is live: parsed and checked in turns with requests,
-- its names resolved, then one change of the store (gateway.control.apply).
-- @module gateway.control.configuration

local addresses = require("gateway.control.addresses")
local apply = require("gateway.control.apply")
local config = require("gateway.config")
local garbage_collector = require("gateway.control.garbage_collector")
local items = require("gateway.config.items")
local origins = require("gateway.config.origin")
local vaults = require("gateway.control.vaults")

local ngx = ngx

-- How long a file waits for others to be checked.
local CHECK_SECONDS = 10
-- A file whose garbage is collected when it is checked.
local LARGE_BYTES = 1024 * 1024
-- Lines in the log about one configuration.
local MAX_WARNINGS = 100

local _M = {}
local mt = { __index = _M }

--- Makes what takes files.
-- @tparam table registry of plugins
-- @tparam table settings resolved settings: vault_env
-- @tparam function vault of gateway.config.vault
-- @treturn table
-- @phases init_worker
function _M.new(registry, settings, vault)
    return setmetatable({
        registry = registry,
        vault = vault,
        surroundings = origins.surroundings(registry, settings.vault_env),
    }, mt)
end

local function warn(list)
    for i = 1, math.min(#list, MAX_WARNINGS) do
        ngx.log(ngx.WARN, "posted configuration: ", list[i])
    end
    if #list > MAX_WARNINGS then
        local more = #list - MAX_WARNINGS
        ngx.log(ngx.WARN, "posted configuration: and ", more, " more such warnings")
    end
end

--- What a text would be known by.
-- @tparam string text
-- @treturn string for the store's `origin`
function _M:origin(text)
    return origins.of(config.hash(text), self.surroundings)
end

-- Has gateway.config's `parse` or `collect` check a file, one file at a time.
local function check(self, parse, text, kind, more)
    if not garbage_collector.enter(CHECK_SECONDS) then
        local message = "other files were being checked for %d seconds"
        return nil, "busy", message:format(CHECK_SECONDS)
    end
    local opts = {
        at = ngx.time(),
        vault = self.vault,
        list_of = more.list_of,
        begin_of = more.begin_of,
    }
    local ok, found, errors
    if #text < LARGE_BYTES then
        opts.pause = garbage_collector.turns()
        ok, found, errors = pcall(parse, text, kind, self.registry, opts)
    else
        opts.pause = garbage_collector.pauses()
        ok, found, errors = pcall(garbage_collector.hold, parse, text, kind, self.registry, opts)
    end
    garbage_collector.leave()
    if not ok then
        error(found, 0)
    end
    return found, "invalid", errors
end

--- The entities of a file, each checked for itself. Yields.
-- @tparam string text a declarative file, or a list of entities
-- @tparam string|nil kind "json" or "yaml"; nil: told by the text
-- @tparam[opt] string list_of the kind of those in a list
-- @treturn table|nil as gateway.config.collect returns it
-- @treturn string|nil "invalid", "busy", or a word of gateway.control.apply's `read`
-- @treturn table|string|nil errors of gateway.config with "invalid", else why
-- @phases content
function _M:collect(text, kind, list_of)
    local begin_of, failure = vaults.finder_in_store(apply.read)
    local more = { list_of = list_of, begin_of = begin_of }
    local state, word, why = check(self, config.collect, text, kind, more)
    local err = failure()
    if err then
        return nil, err.err, err.message or err.err
    end
    warn(state and state.warnings or {})
    return state, word, why
end

--- Replaces what is live. Yields; live on every worker when it returns.
-- @tparam string text a declarative file
-- @tparam string|nil kind "json" or "yaml"; nil: told by the text
-- @tparam string by who, for the history
-- @treturn table|nil `{ uuid, revision, hash }`
-- @treturn string|nil "invalid", "busy", or a word of gateway.control.apply's `replace`
-- @treturn table|string|nil errors of gateway.config with "invalid", else why
-- @phases content
function _M:replace(text, kind, by)
    local snapshot, word, why = check(self, config.parse, text, kind, {})
    if not snapshot then
        return nil, word, why
    end
    warn(snapshot.warnings)
    local pause = garbage_collector.turns()
    local found, kept = addresses.ask(items.names(snapshot, pause))
    local list, unresolved = items.of(snapshot, found, pause)
    warn(kept)
    warn(unresolved)
    local done, err = apply.replace(list, origins.of(snapshot.hash, self.surroundings), by)
    if not done then
        return nil, err.err, err.message or err.err
    end
    return { uuid = done.uuid, revision = done.revision, hash = snapshot.hash }
end

return _M
