--- The word that was probably meant.
-- @module sluice.nearest

local ipairs = ipairs
local math_floor = math.floor
local math_min = math.min

local _M = {}

-- Longer words are no names of anything here, and the distance costs the product of both lengths.
local MAX_LENGTH = 64
-- Characters of a word for each mistake in it.
local LETTERS_A_MISTAKE = 3
-- Letters of a beginning that may stand for a word.
local LEAST_BEGINNING = 4

-- Letters to insert, delete, replace or swap with their neighbour until one word is the other
-- (optimal string alignment).
local function distance(a, b)
    local older, old, row = {}, {}, {}
    for j = 0, #b do
        old[j] = j
    end
    for i = 1, #a do
        row[0] = i
        for j = 1, #b do
            local differs = a:byte(i) == b:byte(j) and 0 or 1
            row[j] = math_min(row[j - 1] + 1, old[j] + 1, old[j - 1] + differs)
            local is_swapped = i > 1
                and j > 1
                and a:byte(i) == b:byte(j - 1)
                and a:byte(i - 1) == b:byte(j)
            if is_swapped then
                row[j] = math_min(row[j], older[j - 2] + 1)
            end
        end
        older, old, row = old, row, older
    end
    return old[#b]
end

--- The nearest of some words: a mistake for each three letters, at least one.
-- @tparam string word as it was typed
-- @tparam {string,...} words those that there are
-- @treturn string|nil the first of the nearest; nil where none is near
function _M.find(word, words)
    local best, least = nil, math_floor(#word / LETTERS_A_MISTAKE)
    least = (least > 1 and least or 1) + 1
    for _, candidate in ipairs(#word <= MAX_LENGTH and words or {}) do
        local found = #candidate <= MAX_LENGTH and distance(word, candidate) or least
        if found < least then
            best, least = candidate, found
        end
    end
    return best
end

local function letters(word)
    return (word:lower():gsub("[-_]", ""))
end

--- The word of some names that was probably meant: the nearest, by its letters too; else the only
-- one that goes on as what was typed, such as `base-path` for `basep`.
-- @tparam string word as it was typed
-- @tparam {string,...} words those that there are
-- @treturn string|nil
function _M.guess(word, words)
    local near = _M.find(word, words)
    if near or #word > MAX_LENGTH then
        return near
    end
    local typed, spelt, begun, beginnings = letters(word), {}, nil, 0
    for i, candidate in ipairs(words) do
        spelt[i] = letters(candidate)
        if #typed >= LEAST_BEGINNING and spelt[i]:sub(1, #typed) == typed then
            begun, beginnings = candidate, beginnings + 1
        end
    end
    near = _M.find(typed, spelt)
    for i, each in ipairs(near and words or {}) do
        if spelt[i] == near then
            return each
        end
    end
    return beginnings == 1 and begun or nil
end

return _M
