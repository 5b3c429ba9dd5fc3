--- Counters of one rate limit rule in a shared dictionary.
--
-- Requests are counted first and judged by the number that the atomic count returned. So of
-- parallel requests in all workers exactly as many pass as the limit says: there is no moment
-- between a look at a counter and its increment. A refused request gives back what it took, and
-- so costs no budget in any window.
--
-- A counter's name is a digest of its rule, its window's start and whose requests it counts: the
-- dictionary looks at every byte of a name at every count, and keeps them all. Names are kept from
-- request to request, since making one costs more than counting. They live in plain tables that
-- are thrown away when the window ends or when all of them together hold `MAX_NAMES`: an LRU list
-- would do more work per request than making a name anew does, the few times that this is wasted.
--
-- Nothing here yields, so that the numbers of the request in hand can stand in the windows.
-- @module plugins.rate-limiting.counters

local unroll = require("sluice.unroll")
local window = require("plugins.rate-limiting.window")

local ceil = math.ceil
local max = math.max
local ngx = ngx

-- Names kept in one worker, over all rules; about 100 bytes each.
local MAX_NAMES = 20000

-- The names of longer identifiers (a request header's value) are not kept, so that a client cannot
-- fill the worker's memory with few requests.
local MAX_KEPT_IDENTIFIER_LENGTH = 64

-- A counter outlives its window by this many seconds: workers read the clock at different moments.
local CLOCK_SLACK_S = 1

local _M = {}

-- Every set of counters of this worker, to find the names that they keep.
local all = setmetatable({}, { __mode = "k" })
local kept_names = 0

local function forget_all_names()
    for counters in pairs(all) do
        for i = 1, counters.size do
            counters[i].names = {}
            counters[i].fallback_names = {}
        end
    end
    kept_names = 0
end

local function make_name(self, limit, identifier, is_fallback)
    local name = ngx.md5_bin(
        self.scope
            .. (is_fallback and ":a:" or ":i:")
            .. limit.tag
            .. limit.start
            .. ":"
            .. identifier
    )
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
end

local function name_of(self, limit, identifier, is_fallback)
    local names = is_fallback and limit.fallback_names or limit.names
    return names[identifier] or make_name(self, limit, identifier, is_fallback)
end

--- Gives back what a refused request took from the first `count` windows.
local function give_back(self, count, identifier, is_fallback)
    for i = 1, count do
        local limit = self[i]
        -- "not found" would mean that the window has ended: nothing to give back to.
        self.dict:incr(name_of(self, limit, identifier, is_fallback), -1)
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
            }
        end
    end
    all[self] = true
    self.take = _M.taker(self.size)
    return self
end

local function is_current(limit, now)
    return now < limit.finish and now >= limit.start
end

--- Undoes a count that was refused by window `i`, and reads what the others hold.
local function refuse(self, i, identifier, is_fallback, now)
    give_back(self, i, identifier, is_fallback)
    for j = i + 1, self.size do
        if not is_current(self[j], now) then
            enter_window(self[j], now)
        end
    end
    read_rest(self, i + 1, identifier, is_fallback)
end

local TAKE = [[
    local is_current, enter_window, name_of, refuse, give_back, SLACK = ...
    return function(self, identifier, is_fallback, now)
        local dict, forced = self.dict, false
        local limit, used, err, forcible
        {{limit = self[$i]
        if not is_current(limit, now) then
            enter_window(limit, now)
        end
        used, err, forcible = dict:incr(
            name_of(self, limit, identifier, is_fallback), 1, 0, limit.finish - now + SLACK)
        if not used then
            give_back(self, $i - 1, identifier, is_fallback)
            return nil, err
        end
        limit.used = used
        if used > limit.capacity then
            refuse(self, $i, identifier, is_fallback, now)
            return $i
        end
        forced = forced or forcible
        }}
        return 0, nil, forced
    end
]]

--- Makes the function that counts one request in every window, or in none if one of them is
-- full. It costs one dictionary operation a window when the request passes.
--
-- The function takes `self` (what `new` made), the identifier whose requests are counted
-- together, whether that is a client's address in place of what is missing (such a one never
-- shares a counter with an equal identifier proper), and Unix time in seconds. It returns 0 if
-- the request may pass, otherwise the index of the window that is full; or nil and the
-- dictionary's error ("no memory"), the request being counted nowhere. Third comes whether a
-- live counter was dropped to make room.
-- @tparam number size how many windows
-- @treturn function `(self, identifier, is_fallback, now)`, for rewrite, access, content
function _M.taker(size)
    return unroll.compile(TAKE, size)(
        is_current,
        enter_window,
        name_of,
        refuse,
        give_back,
        CLOCK_SLACK_S
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
