--- Lists of words that are written as a text.

--- The words of a text, in order, and `more`: what a text cannot hold as a word.
local function words(text, more)
    local found = {}
    for word in text:gmatch("%S+") do
        found[#found + 1] = word
    end
    for _, word in ipairs(more or {}) do
        found[#found + 1] = word
    end
    return found
end

return words
