--- Counters of one rate limit rule in a shared dictionary: rate-limiting in Lua, beside which the
-- core's counters are tested.
--
-- Requests are counted first and judged by the number that the atomic count returned. So of
-- parallel requests in all workers exactly as many pass as the limit says: there is no moment
-- between a look at a counter and its increment. A refused request gives back what it took, and
-- so costs no budget in any window.
--
-- Each rule has a share of the memory, and nothing that lives is dropped to make room: whoever
-- invents identifiers fills the share of one rule, and resets no limit of another or of its own.
-- Beyond its share a rule takes what is free, down to the half of the memory that is kept for the
-- shares. Identifiers that find no room share one counter of the rule's window, for which the last
-- eighth is kept: rules that a change of configuration has replaced leave theirs behind.
--
-- A counter's name is a digest of its rule, its window's start and whose requests it counts: the
-- dictionary looks at every byte of a name at every count, and keeps them all. Names are kept from
-- request to request, since making one costs more than counting. They live in plain tables that
-- are thrown away when the window ends or when all of them together hold `MAX_NAMES`: an LRU list
-- would do more work per request than making a name anew does, the few times that this is wasted.
--
-- Nothing here yields, so that the numbers of the request in hand can stand in the windows.

local unroll = require("sluice.unroll")
local window = require("test.unit.support.rate_windows")

local ceil = math.ceil
local clock = os.clock
local floor = math.floor
local max = math.max
local ngx = ngx

-- Names kept in one worker, over all rules; about 100 bytes each.
local MAX_NAMES = 20000

-- The names of longer identifiers (a request header's value) are not kept, so that a client cannot
-- fill the worker's memory with few requests.
local MAX_KEPT_IDENTIFIER_LENGTH = 64

-- A counter outlives its window by this many seconds: workers read the clock at different moments.
local CLOCK_SLACK_S = 1

-- What a counter takes of a dictionary, and how much of one is left for counters.
local COUNTER_BYTES = 128
local USABLE = 0.9

-- What part of the memory stays free of counters beyond a share, and of those of any identifier.
local KEPT_FOR_SHARES = 1 / 2
local KEPT_FOR_SHARED_COUNTERS = 1 / 8

-- A window's number of identifiers, and the counter of those beyond its share.
local OWN_COUNTERS = 2

-- A look at all counters holds up the other workers too: 40 ms for 250,000 of them.
local FLUSH_REST = 100

local _M = {}

-- When this worker looks for counters to expire again.
local next_flush_at = 0

-- Every set of counters of this worker, to find the names that they keep.
local all = setmetatable({}, { __mode = "k" })
local kept_names = 0

-- The windows of all of them. Those that are gone are found by counting anew, each time that there
-- would be twice as many, and some.
local windows, recount_at = 0, 0
local SOME_WINDOWS = 8

local function forget_all_names()
    for counters in pairs(all) do
        for i = 1, counters.size do
            counters[i].names = {}
            counters[i].fallback_names = {}
        end
    end
    kept_names = 0
end

local function add_windows(self)
    all[self] = true
    windows = windows + self.size
    if windows >= recount_at then
        windows = 0
        for counters in pairs(all) do
            windows = windows + counters.size
        end
        recount_at = 2 * windows + SOME_WINDOWS
    end
end

--- How many counters each window of the rules that this worker knows has for itself: together they
-- have half of the memory, and half of that is for the windows that have just ended.
local function share_of(dict)
    local counters = dict:capacity() * USABLE / COUNTER_BYTES
    return floor(counters / 2 / 2 / max(1, windows)) - OWN_COUNTERS
end

local function digest(self, kind, limit, identifier)
    return ngx.md5_bin(self.scope .. kind .. limit.tag .. limit.start .. ":" .. identifier)
end

local function make_name(self, limit, identifier, is_fallback)
    local name = digest(self, is_fallback and ":a:" or ":i:", limit, identifier)
    if #identifier > MAX_KEPT_IDENTIFIER_LENGTH then
        return name
    end
    if kept_names >= MAX_NAMES then
        forget_all_names()
    end
    kept_names = kept_names + 1
    local names = is_fallback and limit.fallback_names or limit.names
    names[identifier] = name
    return name
end

local function enter_window(limit, now)
    limit.start, limit.finish = window.bounds(limit.period, now)
    limit.names = {}
    limit.fallback_names = {}
    limit.share_is_used = false
end

local function name_of(self, limit, identifier, is_fallback)
    local names = is_fallback and limit.fallback_names or limit.names
    return names[identifier] or make_name(self, limit, identifier, is_fallback)
end

--- Makes room of what has ended. Counters end at whole seconds, so once a second is enough, and
-- where a look at all of them takes long, once in `FLUSH_REST` times as long.
-- @treturn boolean whether it is worth another try
local function flush(dict)
    local now = ngx.time()
    if now < next_flush_at then
        return false
    end
    local begun = clock()
    dict:flush_expired()
    next_flush_at = now + max(1, FLUSH_REST * (clock() - begun))
    return true
end

--- Adds a counter that is 1, unless it would have to drop another.
-- @treturn boolean|nil
-- @treturn string|nil "exists" or "no memory"
local function add(dict, name, limit)
    local seconds = limit.finish + CLOCK_SLACK_S - ngx.now()
    local ok, err = dict:safe_add(name, 1, seconds)
    if err == "no memory" and flush(dict) then
        return dict:safe_add(name, 1, seconds)
    end
    return ok, err
end

--- Counts one; the counter may be missing.
-- @treturn number|nil the count
-- @treturn string|nil "no memory"
local function count(dict, name, limit)
    local used = dict:incr(name, 1)
    if used then
        return used
    end
    local ok, err = add(dict, name, limit)
    if ok then
        return 1
    elseif err == "exists" then
        return dict:incr(name, 1)
    end
    return nil, err
end

--- Whether more than a part of the memory is free, or becomes free of what has ended.
local function has_free(dict, part)
    local bytes = dict:capacity() * part
    return dict:free_space() > bytes or flush(dict) and dict:free_space() > bytes
end

--- Whether the window may have one more counter.
local function has_room(self, limit)
    local dict = self.dict
    -- What finds no room takes nothing of the share, which lasts until the window ends.
    if not limit.share_is_used and has_free(dict, KEPT_FOR_SHARED_COUNTERS) then
        local counters = count(dict, digest(self, ":n:", limit, ""), limit)
        if counters and counters <= share_of(dict) then
            return true
        end
        limit.share_is_used = true
    end
    return has_free(dict, KEPT_FOR_SHARES)
end

--- Counts the first request of an identifier in a window, or one of those that have no counter.
-- @treturn number|nil the count
-- @treturn string|nil "no memory"
-- @treturn string name of the counter
-- @treturn boolean whether it is the one that those share who found no room
local function count_new(self, limit, name)
    local dict = self.dict
    if has_room(self, limit) then
        local ok, err = add(dict, name, limit)
        if ok then
            return 1, nil, name, false
        elseif err == "exists" then
            -- Another worker was faster. That the share now counts it twice costs one place.
            return dict:incr(name, 1), nil, name, false
        end
    end
    local shared = digest(self, ":o:", limit, "")
    local used, err = count(dict, shared, limit)
    return used, err, shared, true
end

--- Gives back what a refused request took from the first `number` windows.
local function give_back(self, number)
    for i = 1, number do
        local limit = self[i]
        -- "not found" would mean that the window has ended: nothing to give back to.
        self.dict:incr(limit.name, -1)
        limit.used = limit.used - 1
    end
end

--- Reads the windows behind the one that refused, for the headers that tell what is left there.
local function read_rest(self, first, identifier, is_fallback)
    for i = first, self.size do
        local limit = self[i]
        limit.used = self.dict:get(name_of(self, limit, identifier, is_fallback)) or 0
    end
end

--- Makes the counters of one rule.
-- @tparam string scope what sets the rule's counters apart from those of others
-- @tparam table rates requests per period, by the names in `window.PERIODS`
-- @tparam table dict a shared dictionary
-- @treturn table the limits, the shortest window first, each with `period`, `rate` and, after a
-- call of `take`, `used` and `finish`; `take` is its function of `taker`
-- @treturn boolean whether each window of all rules has a counter for itself
-- @phases any
function _M.new(scope, rates, dict)
    local self = { scope = scope, dict = dict, size = 0 }
    for order, period in ipairs(window.PERIODS) do
        local rate = rates[period]
        if rate then
            self.size = self.size + 1
            self[self.size] = {
                period = period,
                rate = rate,
                -- A rate of 1.5 lets two requests pass: the first leaves a remainder.
                capacity = ceil(rate),
                tag = order .. ":",
                start = 0,
                finish = 0,
                used = 0,
                names = {},
                fallback_names = {},
                -- Of the request in hand: the counter that it was counted in.
                name = nil,
                -- Whether a counter more is one beyond the window's share.
                share_is_used = false,
            }
        end
    end
    add_windows(self)
    self.take = _M.taker(self.size)
    return self, share_of(dict) >= 1
end

local function is_current(limit, now)
    return now < limit.finish and now >= limit.start
end

--- Undoes a count that was refused by window `i`, and reads what the others hold.
local function refuse(self, i, identifier, is_fallback, now)
    give_back(self, i)
    for j = i + 1, self.size do
        if not is_current(self[j], now) then
            enter_window(self[j], now)
        end
    end
    read_rest(self, i + 1, identifier, is_fallback)
end

local TAKE = [[
    local is_current, enter_window, name_of, count_new, refuse, give_back = ...
    return function(self, identifier, is_fallback, now)
        local dict, is_shared = self.dict, false
        local limit, name, used, err, shared
        {{limit = self[$i]
        if not is_current(limit, now) then
            enter_window(limit, now)
        end
        name = name_of(self, limit, identifier, is_fallback)
        used = dict:incr(name, 1)
        if not used then
            used, err, name, shared = count_new(self, limit, name)
            if not used then
                give_back(self, $i - 1)
                return nil, err
            end
            is_shared = is_shared or shared
        end
        limit.name = name
        limit.used = used
        if used > limit.capacity then
            refuse(self, $i, identifier, is_fallback, now)
            return $i, nil, is_shared
        end
        }}
        return 0, nil, is_shared
    end
]]

--- Makes the function that counts one request in every window, or in none if one of them is
-- full. It costs one dictionary operation a window when the request passes, the first request
-- of an identifier two more, one without a counter of its own three.
--
-- The function takes `self` (what `new` made), the identifier whose requests are counted
-- together, whether that is a client's address in place of what is missing (such a one never
-- shares a counter with an equal identifier proper), and Unix time in seconds. It returns 0 if
-- the request may pass, otherwise the index of the window that is full; or nil and the
-- dictionary's error ("no memory"), the request being counted nowhere. Third comes whether it
-- was counted together with all that found no room for a counter of their own.
-- @tparam number size how many windows
-- @treturn function `(self, identifier, is_fallback, now)`, for rewrite, access, content
function _M.taker(size)
    return unroll.compile(TAKE, size)(
        is_current,
        enter_window,
        name_of,
        count_new,
        refuse,
        give_back
    )
end

--- Requests that a limit has left, never negative.
-- @tparam table limit one of the limits, after `take`
-- @treturn number
-- @phases any
function _M.remaining(limit)
    return max(0, limit.rate - limit.used)
end

return _M
