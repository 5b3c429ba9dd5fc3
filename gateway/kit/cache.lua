--- `kong.cache` and `kong.core_cache`: what plugins keep of what takes time to get, in two levels,
-- the worker's own and one that all workers share.
--
-- As in Kong, but for what is said here. One loader runs for a key over all workers; those who wait
-- meanwhile get what it has loaded. After a write by the Admin API, by `kong.db` or by
-- `invalidate` is answered, in any worker, no cache returns what was kept before
-- (gateway.kit.cache.generations): no event has to arrive first.
--
-- Errors: "failed to get from node cache: ...", "failed to renew key in node cache: ...", "failed
-- to probe from node cache: ...", and behind them those of lua-resty-mlcache.
-- @module gateway.kit.cache

local cache_levels = require("gateway.kit.cache.levels")
local cache_turn = require("gateway.kit.cache.turn")
local generations = require("gateway.kit.cache.generations")

local error = error
local ngx = ngx
local setmetatable = setmetatable
local tostring = tostring
local traceback = debug.traceback
local type = type
local xpcall = xpcall

-- Seconds, as Kong has them where nobody says others: for ever, and for ever.
local TTL, NEGATIVE_TTL, RESURRECT_TTL = 0, 0, 30
local TRIES = 3
local LOCKS = "kong_locks"
-- Loads of `get_bulk` at a time.
local CONCURRENCY = 3

local NO_TURN = "could not acquire callback lock: "
local TIMEOUT = NO_TURN .. "timeout"

local _M = {}
local methods = {}
local mt = { __index = methods }

local NUMBERS = { "ttl", "neg_ttl", "resurrect_ttl" }

local function check_options(opts, level)
    if type(opts) ~= "table" then
        error("opts must be a table", level)
    end
    for _, name in ipairs(NUMBERS) do
        local value = opts[name]
        if value ~= nil and type(value) ~= "number" then
            error(("opts.%s must be a number"):format(name), level)
        elseif value ~= nil and value < 0 then
            error(("opts.%s must be >= 0"):format(name), level)
        end
    end
    local serializer, tries = opts.l1_serializer, opts.shm_set_tries
    if serializer ~= nil and type(serializer) ~= "function" then
        error("opts.l1_serializer must be a function", level)
    elseif tries ~= nil and type(tries) ~= "number" then
        error("opts.shm_set_tries must be a number", level)
    elseif tries ~= nil and tries < 1 then
        error("opts.shm_set_tries must be >= 1", level)
    end
end

local NO_OPTIONS = {}

-- What a call has to know of its key.
local function job_of(key, opts, load)
    return {
        key = key,
        place = generations.place(key),
        opts = opts or NO_OPTIONS,
        load = load,
        serializer = opts and opts.l1_serializer,
    }
end

-- Keeps what was loaded, or what takes its place; what the worker's level has of it.
local function keep(self, job, value, how)
    local opts = job.opts
    local from = {
        place = job.place,
        word = how.word,
        ttl = how.ttl,
        tries = opts.shm_set_tries or TRIES,
        is_stale = how.is_stale,
        serializer = job.serializer,
    }
    local ok, err = self.levels:share(job.key, value, from)
    if not ok then
        return nil, err
    end
    return self.levels:keep(job.key, value, from)
end

-- How long a loaded value is good; negative: not to be kept.
local function ttl_of(opts, value, own)
    if type(own) == "number" then
        return own
    elseif value == nil then
        return opts.neg_ttl or NEGATIVE_TTL
    end
    return opts.ttl or TTL
end

-- The value that has expired stays for a while, since its loader has failed.
local function resurrect(self, job, expired, err)
    local seconds = job.opts.resurrect_ttl or RESURRECT_TTL
    local message = "callback returned an error (%s) but stale value found in shm will be "
        .. "resurrected for %ss (resurrect_ttl)"
    ngx.log(ngx.WARN, message:format(err, seconds))
    local how = { word = job.word, ttl = seconds, is_stale = true }
    local value, why = keep(self, job, expired.value, how)
    if why then
        ngx.log(ngx.WARN, "could not resurrect stale data (", why, ")")
    end
    return value, nil, 4
end

-- Calls the loader, whose turn it is, and keeps what it returns.
local function load_now(self, job, expired, ...)
    job.word = generations.begin(job.place)
    local ok, value, err, ttl = xpcall(job.load, traceback, ...)
    if not ok then
        return nil, "callback threw an error: " .. tostring(value)
    elseif err then
        err = tostring(err)
        if not expired then
            return nil, err
        end
        return resurrect(self, job, expired, err)
    end
    ttl = ttl_of(job.opts, value, ttl)
    if ttl < 0 then
        return value, nil, 3
    end
    value, err = keep(self, job, value, { word = job.word, ttl = ttl })
    if err then
        return nil, err
    end
    return value, nil, 3
end

local function leave_with(self, job, ok, ...)
    if job.has_turn then
        self.turns:leave(job.key)
    end
    if not ok then
        error((...), 0)
    end
    return ...
end

-- Waits for the turn to load, or for who has it.
local function load_once(self, job, expired, ...)
    local found, failure
    local word, err = self.turns:enter(job.key, function()
        local own = self.levels:own(job.key)
        found, failure = own, nil
        if not own then
            found, failure = self.levels:shared(job.key, job.place, job.serializer)
        end
        return failure ~= nil or (found ~= nil and not found.is_expired)
    end)
    if word == "done" then
        if failure then
            return nil, failure
        end
        return found.value, nil, found.is_stale and 4 or 2
    elseif word == "timeout" then
        if not expired then
            return nil, TIMEOUT
        end
        ngx.log(ngx.WARN, TIMEOUT)
        return expired.value, nil, 4
    elseif not word then
        return nil, NO_TURN .. err
    end
    job.has_turn = word == "held"
    return leave_with(self, job, pcall(load_now, self, job, expired, ...))
end

-- What `get` does where this worker has nothing.
local function find(self, key, opts, load, ...)
    if load ~= nil and type(load) ~= "function" then
        error("callback must be nil or a function", 3)
    elseif opts ~= nil then
        check_options(opts, 4)
    end
    local job = job_of(key, opts, load)
    local found, err = self.levels:shared(key, job.place, job.serializer)
    if err then
        return nil, err
    elseif found and not found.is_expired then
        return found.value, nil, found.is_stale and 4 or 2
    elseif not load then
        return nil, nil, -1
    end
    return load_once(self, job, found, ...)
end

local function got(value, err, level)
    if err then
        return nil, "failed to get from node cache: " .. err
    end
    return value, nil, level
end

--- A value, from the worker (level 1), from what all share (2), or from the loader (3); 4: it has
-- expired, and its loader has failed. A hit in the worker costs some 50 ns. Yields where another
-- one loads, and the loader may; in a phase that cannot, the loader is called without waiting.
-- @tparam string key
-- @tparam[opt] table opts `ttl`, `neg_ttl` (of nil), `resurrect_ttl`: seconds, 0 is for ever;
-- `l1_serializer`: a function, makes what the worker keeps of a value; `shm_set_tries`
-- @tparam[opt] function load `(...)`: a value or nil, an error, and its own ttl, negative: it is
-- not to be kept; nil: what nobody has is nil, with level -1
-- @tparam any ... arguments of `load`
-- @treturn any nil, number, boolean, string, table; tables are shared by all who get them here
-- @treturn string|nil error: that of `load`, or "callback threw an error: ...", "could not acquire
-- callback lock: timeout" after five seconds
-- @treturn number|nil level
-- @phases init_worker, certificate, rewrite, access, response, header_filter, body_filter, log,
-- timer, admin_api
function methods:get(key, opts, load, ...)
    if type(key) ~= "string" then
        error("key must be a string", 2)
    end
    local entry = self.levels:own(key)
    if entry then
        return entry.value, nil, 1
    end
    return got(find(self, key, opts, load, ...))
end

-- Calls the loader of `renew`.
local function renew_now(self, job, ...)
    local word = generations.begin(job.place)
    local ok, value, err, ttl = xpcall(job.load, traceback, ...)
    if not ok then
        return nil, "callback threw an error: " .. tostring(value)
    elseif err then
        return nil, tostring(err)
    end
    ttl = ttl_of(job.opts, value, ttl)
    -- Who has changed something meanwhile has the value read again.
    if ttl < 0 or not generations.raise_from(job.place, word) then
        return value, nil, ttl
    end
    value, err = keep(self, job, value, { word = word + 1, ttl = ttl })
    if err then
        return nil, err
    end
    return value, nil, ttl
end

local function renew(self, job, ...)
    local before = generations.read(job.place)
    local found
    local word, err = self.turns:enter(job.key, function()
        -- Another one has renewed it meanwhile.
        found = generations.read(job.place) ~= before
            and self.levels:shared(job.key, job.place, job.serializer)
        return found and not found.is_expired
    end)
    if word == "done" then
        return found.value, nil, found.ttl
    elseif word == "timeout" then
        return nil, TIMEOUT
    elseif not word then
        return nil, NO_TURN .. err
    end
    job.has_turn = word == "held"
    return leave_with(self, job, pcall(renew_now, self, job, ...))
end

--- Loads a value anew, in all workers' stead. Yields as `get`.
-- @tparam string key
-- @tparam[opt] table opts as of `get`
-- @tparam function load as of `get`
-- @tparam any ... its arguments
-- @treturn any
-- @treturn string|nil error
-- @treturn number|nil seconds that the value is good
-- @phases as `get`
function methods:renew(key, opts, load, ...)
    if type(key) ~= "string" then
        error("key must be a string", 2)
    elseif opts ~= nil then
        check_options(opts, 3)
    end
    if type(load) ~= "function" then
        error("callback must be a function", 2)
    end
    local value, err, ttl = renew(self, job_of(key, opts, load), ...)
    if err then
        return nil, "failed to renew key in node cache: " .. err
    end
    return value, nil, ttl
end

--- What is shared of a key, without loading it. Does not yield.
-- @tparam string key
-- @treturn number|nil seconds that it is good, 0: for ever; nil: it is not there
-- @treturn string|nil error
-- @treturn any the value
-- @phases any but init
function methods:probe(key)
    if type(key) ~= "string" then
        error("key must be a string", 2)
    end
    local found, err = self.levels:shared(key, generations.place(key))
    if err then
        return nil, "failed to probe from node cache: " .. err
    elseif not found or found.is_expired then
        return nil
    end
    return found.ttl, nil, found.value
end

--- Shares a value, if there is room without anything else going. Workers that have another one
-- keep it. Does not yield.
-- @tparam string key
-- @tparam any value
-- @treturn boolean|nil
-- @treturn string|nil error
-- @phases any but init
function methods:safe_set(key, value)
    local word = generations.read(generations.place(key))
    return self.levels:share(key, value, { word = word, ttl = TTL, is_safe = true })
end

--- Has all workers forget a key. Does not yield; nothing is left to arrive anywhere.
-- @tparam string key
-- @phases any but init
function methods:invalidate(key)
    if type(key) ~= "string" then
        error("key must be a string", 2)
    end
    generations.raise(generations.place(key))
    self.levels:delete(key)
end

--- The same: there is one node.
-- @function kong.cache:invalidate_local
methods.invalidate_local = methods.invalidate

--- Has all workers forget everything. Does not yield.
-- @phases any but init
function methods:purge()
    ngx.log(ngx.NOTICE, "[DB cache] purging (local) cache")
    generations.raise_all()
    self.levels:flush()
end

local function check_bulk(bulk, opts)
    if type(bulk) ~= "table" then
        error("bulk must be a table", 3)
    elseif opts ~= nil and type(opts) ~= "table" then
        error("opts must be a table", 3)
    elseif not bulk.n then
        error("bulk must have n field", 3)
    end
    for i = 1, bulk.n * 4, 4 do
        if type(bulk[i]) ~= "string" then
            local message = "key at index %d must be a string for operation %d (got %s)"
            error(message:format(i, (i + 3) / 4, type(bulk[i])), 3)
        elseif type(bulk[i + 2]) ~= "function" then
            local message = "callback at index %d must be a function for operation %d (got %s)"
            error(message:format(i + 2, (i + 3) / 4, type(bulk[i + 2])), 3)
        end
    end
end

--- Several `get` at once. Yields where something has to be loaded.
-- @tparam table bulk `n` operations, each of four values: key, options, loader, its argument
-- @tparam[opt] table opts `concurrency`: so many loaders at a time, 3 without it
-- @treturn table of each operation the three values that `get` returns, and `n`, their number
-- @phases certificate, rewrite, access, timer
function methods:get_bulk(bulk, opts)
    check_bulk(bulk, opts)
    local results, at = { n = bulk.n * 3 }, -4
    local function work()
        while at + 4 < bulk.n * 4 do
            at = at + 4
            local i = at
            local value, err, level = self:get(unpack(bulk, i + 1, i + 4))
            local to = i / 4 * 3
            results[to + 1], results[to + 2], results[to + 3] = value, err, level
        end
    end
    local threads = {}
    for i = 2, opts and opts.concurrency or CONCURRENCY do
        threads[i - 1] = at + 4 < bulk.n * 4 and ngx.thread.spawn(work) or nil
    end
    work()
    for _, thread in ipairs(threads) do
        local ok, err = ngx.thread.wait(thread)
        if not ok then
            ngx.log(ngx.ERR, "failed to wait for a load: ", err)
        end
    end
    return results
end

--- A cache.
-- @tparam string name of its shared dictionary; that of nil has "_miss" behind
-- @tparam[opt=name] string prefix of its keys there, which tells it from others in the same one
-- @treturn table
-- @phases init
function _M.new(name, prefix)
    return setmetatable({
        levels = cache_levels.new(name, prefix),
        turns = cache_turn.new(LOCKS, (prefix or name) .. ":"),
    }, mt)
end

return _M
