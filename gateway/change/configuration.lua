--- A declarative file in the place of what is live: checked beside the event loop
-- (gateway.change.checks), its names resolved, then one change of the store
-- (gateway.writer.queue).
-- @module gateway.change.configuration

local blocks = require("gateway.threads.blocks")
local checks = require("gateway.change.checks")
local client = require("gateway.change.client")
local expiry = require("gateway.change.expiry")
local garbage_collector = require("sluice.garbage_collector")
local hosts = require("gateway.upstream.hosts")
local items = require("gateway.config.items")
local last_file = require("gateway.change.last_file")
local origins = require("gateway.config.origin")
local queue = require("gateway.writer.queue")
local role = require("gateway.writer.role")
local vaults = require("gateway.change.vaults")

-- Entities of a file whose entities become operations, one by one, in this worker.
local MAX_COLLECTED = 100000

local _M = {}
local mt = { __index = _M }

--- Makes what takes files.
-- @tparam table registry of plugins
-- @tparam table settings resolved settings: prefix, vault_env, max_entities, file
-- @tparam string store its path
-- @treturn table
-- @phases init_worker
function _M.new(registry, settings, store)
    return setmetatable({
        settings = settings,
        store = store,
        -- Where a file is the configuration, or what was posted, it has the same ids on each node.
        keeps_ids = origins.is_of_store(settings),
        plugins = registry:names(),
        last = last_file.new(),
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

local function check(self, verb, sent, more)
    local request = {
        verb = verb,
        sent = sent,
        plugins = self.plugins,
        settings = self.settings,
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

-- The items of a list outside of Lua, each with its parent.
local function listed(made)
    local list = {}
    blocks.each(made, function(item)
        list[#list + 1] = item
    end, garbage_collector.turns())
    for _, item in ipairs(list) do
        item.parent = list[item.parent]
    end
    return list
end

--- The entities of a file, each checked for itself. Yields.
-- @tparam table sent of gateway.admin.body's `source`
-- @tparam[opt] string list_of the kind of those in a list
-- @treturn table|nil an array of the items of gateway.config.collect
-- @treturn number|table bytes of the text, for what it may cost; of a refusal what gateway.checker
-- has: its `word`, also "busy", or one of gateway.writer.role's `read`
-- @treturn {string,...}|nil warnings
-- @phases content
function _M:collect(sent, list_of)
    local begins, err = vaults.begins(role.read)
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
    local ok, list = true, nil
    if is_made(found) then
        ok, list = pcall(listed, found.made)
        warn(found.warnings, found.more_warnings)
    end
    checks.free(found)
    if found.word then
        return nil, found
    elseif not ok then
        error(list, 0)
    end
    return list, found.size, found.warnings
end

local function put(found, by)
    local pause, names = garbage_collector.turns(), {}
    blocks.each(found.names, function(name)
        names[#names + 1] = name
    end, pause)
    local found_addresses = hosts.ask(names, client.is_gone)
    if client.is_gone() then
        return nil, { err = "stopped" }
    end
    -- Those that cannot be resolved are in the log already, or will be.
    local of_names = items.of_names(names, found_addresses, pause)
    return queue.replace(of_names, found.origin, by, found.made)
end

--- What the replacement of what is live would change. Yields.
-- @tparam table sent of gateway.admin.body's `source`
-- @tparam boolean flattens of gateway.checker
-- @treturn string|nil plan of gateway.plan as JSON
-- @treturn nil|table as `replace`
-- @phases content
function _M:plan(sent, flattens)
    local found = check(self, "plan", sent, {
        flattens = flattens,
        store = self.store,
        keeps_ids = self.keeps_ids,
    })
    if not is_made(found) then
        return nil, found
    end
    return found.plan
end

-- The end of a replacement: what its caller is answered, and what is remembered of its file.
local function finish(self, found, ok, done, err)
    if ok and done then
        local kept = found.remembered
        found.remembered = nil
        self.last:keep(kept, found.origin)
    end
    checks.free(found)
    if not ok then
        error(done, 0)
    elseif not done then
        return nil, { word = err.err, message = err.message or err.err }
    end
    expiry.note()
    return { uuid = done.uuid, revision = done.revision, hash = found.hash }
end

-- Has a large file compared with that which is live, and where something of that is remembered what
-- differs checked.
local function compare(self, sent, live, before)
    local last = self.last:borrow(before)
    if not (live or last) then
        return {}
    end
    local request = { live = live, store = self.store, remembered = last and last.list }
    local ok, found = pcall(check, self, "compare", sent, request)
    if last then
        self.last:give_back(last)
    end
    return ok and found or error(found, 0)
end

-- Makes what differs live. Nil: all of the file is to be checked, unless there is a `word` now.
local function patch(self, found, before, by)
    if not is_made(found) then
        checks.free(found)
        return nil
    end
    local ok, done, err = pcall(queue.patch, found.made, {
        before = before,
        revision = found.revision,
        origin = found.origin,
    }, by)
    if ok and not done and err.err == "not ready" then
        found.word, found.message = err.err, err.message
    end
    if ok and not done then
        checks.free(found)
        return nil
    end
    warn(found.warnings, found.more_warnings)
    return finish(self, found, ok, done)
end

--- Replaces what is live. Yields; live on every worker when it returns. Where the client leaves
-- before it is handed to the writer, nothing is changed.
-- @tparam table sent of gateway.admin.body's `source`
-- @tparam table opts `by`, who, for the history; `flattens` of gateway.checker; `is_checked`: with
-- the text that is live already nothing is done
-- @treturn table|nil `{ uuid, revision, hash }`
-- @treturn nil|table what gateway.checker has of a refusal: its `word`, also "busy", or one of
-- gateway.writer.queue's `replace`
-- @phases content
function _M:replace(sent, opts)
    local before = queue.state().origin
    local live, is_large = opts.is_checked and before or nil, checks.is_large(sent.bytes)
    local found = is_large and compare(self, sent, live, before) or {}
    local done = found.made and patch(self, found, before, opts.by)
    if done then
        return done
    elseif not found.word then
        found = check(self, "replace", sent, {
            flattens = opts.flattens,
            store = self.store,
            keeps_ids = self.keeps_ids,
            live = live,
            remembers = is_large and not self.keeps_ids,
        })
    end
    if not is_made(found) then
        checks.free(found)
        return nil, found
    end
    warn(found.warnings, found.more_warnings)
    local ok, err
    ok, done, err = pcall(put, found, opts.by)
    return finish(self, found, ok, done, err)
end

return _M
