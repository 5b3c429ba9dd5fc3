--- Can a client make a pattern give up? Found by trying.
--
-- Reading the pattern was the alternative, and says both too much and too little: nested
-- quantifiers are harmless as often as not (`(?:[^/]+/)*x`), and whether alternatives overlap is
-- hard to tell.
-- Here the pattern's own pieces, a character that matches for each class, become texts: what leads
-- to a few pieces, these over and over, and an end that does not match. A pattern that gives up on
-- one of them does so for a client as well. No finding is no proof.
-- @module gateway.schema.backtracking

local core = require("sluice.ffi.core")

local find, gsub, match, rep, sub = string.find, string.gsub, string.match, string.rep, string.sub
local clock = os.clock
local concat = table.concat
local format = string.format

-- Half of what a request line may be by default.
local LENGTH = 4000
-- Pieces that are repeated together.
local MAX_WINDOW = 4
-- One of them is outside of nearly each class. Behind it comes what the pattern wants last: without
-- that PCRE sees at once that there is no match.
local ENDS = { "!", "/", "\n" }
-- One that gives up does so each time: else the machine was slow for a moment.
local TRIES = 3
-- CPU time for all patterns of a configuration, in seconds.
local BUDGET = 0.5

-- Patterns of one beginning are tried together, if they are so many, on a text with the ends of so
-- many: each so often that it has its fast form, or until that has taken so many seconds.
local FEWEST = 10
local MAX_ENDS = 64
local PASSES = 10
local OF_PASSES = 0.06

-- Routes of one host and path that a request has no time to look at, or hardly.
local CROWD = 20000

-- Tried in this order as what a class matches.
local SAMPLES = "a0-_./A ~"

local ESCAPES = { d = "0", s = " ", D = "a", W = "-", w = "a", S = "a", n = "\n", t = "\t" }

local WARNING = "%s: a client can make the pattern '%s' exceed its limits (%s); %s"
local ANSWERED = "such requests are answered 500"
local TOGETHER = "%d patterns of routes begin with '%s': a client can make them exceed the time "
    .. "limit of a request, which is then answered 500"
local CROWDED = "%d routes or more have the path '%s' and host '%s' in common: a request that has "
    .. "to test them all can exceed its time limit, which is then answered 500"
local UNTRIED = "%d patterns were not tested"

-- What has no character of its own, longest first.
local SILENT = {
    "^%(%?P?[<'][%w_]+[>']",
    "^%(%?[%w^-]*[:)]",
    "^%(%?<?[=!>|]",
    "^%(%*[^)]*%)",
    "^{%d*,?%d*}",
    "^\\[bBAzZGKE%d]",
    "^[()|^$*+?]",
}

local _M = {}

local function class_sample(class)
    for i = 1, #SAMPLES do
        local char = sub(SAMPLES, i, i)
        if core.try_pattern(class, true, char) then
            return char
        end
    end
    return "a"
end

--- The text of a piece of the pattern, and where the next one begins.
local function read_piece(pattern, at)
    for _, silent in ipairs(SILENT) do
        local _, last = find(pattern, silent, at)
        if last then
            return "", last + 1
        end
    end
    local escaped = match(pattern, "^\\(.)", at)
    if escaped then
        return ESCAPES[escaped] or escaped, at + 2
    end
    -- A class; a bracket in front, an escaped one, and a named class within do not end it.
    local _, last = find(pattern, "^%[%^?%]?", at)
    while last do
        local _, skipped = find(pattern, "^%[:%^?%a+:%]", last + 1)
        if not skipped then
            _, skipped = find(pattern, "^\\?.", last + 1)
        end
        if not skipped then
            break
        elseif sub(pattern, last + 1, skipped) == "]" then
            return class_sample(sub(pattern, at, skipped)), skipped + 1
        end
        last = skipped
    end
    local char = sub(pattern, at, at)
    return char == "." and "a" or char, at + 1
end

--- The pattern's pieces; literals in a row are one, unless a quantifier divides them.
local function pieces_of(pattern)
    local pieces, at, in_literal = {}, 1, false
    while at <= #pattern do
        local text, next_at = read_piece(pattern, at)
        local is_literal = next_at == at + 1 and text == sub(pattern, at, at)
        local is_repeated = find(pattern, "^[*+?{]", next_at) ~= nil
        if text ~= "" then
            local count = #pieces
            if in_literal and is_literal and not is_repeated then
                pieces[count] = pieces[count] .. text
            else
                pieces[count + 1] = text
            end
        end
        in_literal = is_literal and not is_repeated and text ~= ""
        at = next_at
    end
    return pieces
end

--- Could it take more than a look at each byte? Most patterns could not.
local function is_candidate(pattern, is_anchored)
    local rest = gsub(gsub(pattern, "\\.", "x"), "%[%^?%]?[^%]]*%]", "x")
    local _, count = gsub(rest, "[*+]", "")
    local _, bounded = gsub(rest, "{%d*,%d*}", "")
    count = count + bounded
    return count > 1 or count == 1 and (not is_anchored or find(rest, "%)[*+{]") ~= nil)
end

--- Calls `fn(text)` with each text that a pattern is tried on, until it returns something. They end
-- with what it wants last, or `wanted`.
local function each_text(pattern, fn, wanted)
    local pieces = pieces_of(pattern)
    wanted = wanted or pieces[#pieces] or ""
    for first = 1, #pieces do
        local lead = concat(pieces, "", 1, first - 1)
        for last = first, math.min(first + MAX_WINDOW - 1, #pieces) do
            local unit = concat(pieces, "", first, last)
            local body = lead .. rep(unit, math.ceil(LENGTH / #unit))
            for _, tail in ipairs(ENDS) do
                local found = fn(body .. tail .. wanted)
                if found ~= nil then
                    return found
                end
            end
        end
    end
    return nil
end

--- Tries one pattern. Blocks, for some ms at most.
-- @tparam string pattern that compiles
-- @tparam boolean is_path anchored, as in a path; else without case, as in a header
-- @treturn string|nil why it gives up
-- @phases any
function _M.gives_up(pattern, is_path)
    if not is_candidate(pattern, is_path) then
        return nil
    end
    return each_text(pattern, function(text)
        local matched, reason
        for _ = 1, TRIES do
            matched, reason = core.try_pattern(pattern, is_path, text)
            if matched ~= nil then
                return nil
            end
        end
        return core.reason(reason)
    end)
end

local function patterns_of(route)
    local patterns, owner = {}, format("route '%s'", route.name or route.id)
    for _, path in ipairs(route.paths or {}) do
        if sub(path, 1, 1) == "~" then
            patterns[#patterns + 1] =
                { owner = owner, of = route, text = sub(path, 2), is_path = true }
        end
    end
    for _, values in pairs(route.headers or {}) do
        for _, value in ipairs(values) do
            if sub(value, 1, 2) == "~*" then
                patterns[#patterns + 1] = { owner = owner, of = route, text = sub(value, 3) }
            end
        end
    end
    return patterns
end

-- Patterns that a request can meet together -------------------------------------------------------

--- The text that a pattern begins with, more or less: only those of many others matter.
local function beginning(pattern)
    if find(pattern, "|", 1, true) then
        return "/"
    end
    local head = match(pattern, "^[%w/_%-]*")
    return find(pattern, "^[*+?{]", #head + 1) and sub(head, 1, -2) or head
end

--- The bytes that patterns want last: without one of them PCRE sees at once that there is no match.
local function last_bytes(patterns)
    local bytes = {}
    for i = 1, math.min(#patterns, MAX_ENDS) do
        local pieces = pieces_of(patterns[i])
        local byte = sub(pieces[#pieces] or "", -1)
        if not bytes[byte] then
            bytes[byte], bytes[#bytes + 1] = true, byte
        end
    end
    return concat(bytes)
end

--- Of the texts of the first of them that on which it takes longest.
local function slowest_text(patterns)
    local slowest, most = "", -1
    each_text(patterns[1], function(text)
        local start = clock()
        core.try_pattern(patterns[1], true, text)
        if clock() - start > most then
            slowest, most = text, clock() - start
        end
    end, last_bytes(patterns) .. "!")
    return slowest
end

--- Does a text make patterns use up what a request has? All are run alone first, to be compiled.
local function use_up(patterns, text)
    for _, pattern in ipairs(patterns) do
        core.try_pattern(pattern, true, text)
    end
    for i, pattern in ipairs(patterns) do
        if core.try_pattern(pattern, true, text, i > 1) == nil then
            return true
        end
    end
    return false
end

local function can_burn(patterns)
    local text, start = slowest_text(patterns), clock()
    for _ = 1, PASSES do
        if not use_up(patterns, text) then
            return false
        elseif clock() - start > OF_PASSES then
            return true
        end
    end
    return true
end

local function group_warnings(groups, warnings, deadline)
    for _, group in ipairs(groups) do
        if #group.patterns >= FEWEST and clock() < deadline and can_burn(group.patterns) then
            warnings[#warnings + 1] = format(TOGETHER, #group.patterns, group.beginning)
        end
    end
end

-- Routes that a request can meet together ---------------------------------------------------------

local function crowd_warnings(routes, warnings)
    local counts = {}
    for _, route in ipairs(#routes > CROWD and routes or {}) do
        for _, path in ipairs(route.paths and #route.paths > 0 and route.paths or { "" }) do
            for _, host in ipairs(route.hosts and #route.hosts > 0 and route.hosts or { "" }) do
                local key = host .. path
                counts[key] = (counts[key] or 0) + 1
                if counts[key] == CROWD then
                    warnings[#warnings + 1] = format(CROWDED, CROWD, path, host)
                end
            end
        end
    end
end

--- Adds a pattern to those with the same beginning.
local function add_to_group(groups, pattern)
    local text = beginning(pattern)
    local group = groups[text]
    if not group then
        group = { beginning = text, patterns = {} }
        groups[text], groups[#groups + 1] = group, group
    end
    group.patterns[#group.patterns + 1] = pattern
end

--- Tries the patterns of routes, and counts routes that differ in neither host nor path. Blocks for
-- half a second of CPU time, and some 60 ms more.
-- @tparam table routes checked entities
-- @tparam[opt] table others patterns of plugins, which headers are tried on: `{ owner =, text = }`;
--   `of`, the plugin; `run`, the text as it is run, anchored; `outcome`, where a request is not
--   answered 500
-- @treturn {string,...} a warning for each that gives up, for patterns that take too long together,
-- and for too many routes
-- @treturn table place of a warning -> the pattern that it begins with the `owner` of
-- @phases any
function _M.warnings(routes, others)
    local warnings, owned, groups = {}, {}, {}
    local untried, deadline = 0, clock() + BUDGET
    local function try(patterns)
        for _, pattern in ipairs(patterns) do
            local reason
            if clock() > deadline then
                untried = untried + 1
            else
                local is_anchored = pattern.is_path or pattern.run ~= nil
                reason = _M.gives_up(pattern.run or pattern.text, is_anchored)
            end
            if reason then
                local outcome = pattern.outcome or ANSWERED
                warnings[#warnings + 1] =
                    format(WARNING, pattern.owner, pattern.text, reason, outcome)
                owned[#warnings] = pattern
            elseif pattern.is_path and clock() <= deadline then
                add_to_group(groups, pattern.text)
            end
        end
    end
    for _, route in ipairs(routes) do
        try(patterns_of(route))
    end
    try(others or {})
    group_warnings(groups, warnings, deadline)
    crowd_warnings(routes, warnings)
    if untried > 0 then
        warnings[#warnings + 1] = format(UNTRIED, untried)
    end
    return warnings, owned
end

return _M
