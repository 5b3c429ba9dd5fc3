--- Phrases that texts for users had once, and the plain words that replace them.
--
-- Looked for in README.md, CONTRIBUTING.md and docs, in the help of the command, in the settings,
-- the metrics and the descriptions of schemas (test/unit/words_spec.lua). Code and its comments are
-- not looked at, and docs/notes say what was.
--
-- A row: a pattern of Lua, which sees runs of white space as one blank; and the plain words.

local _M = {}

_M.retired = {
    { "%f[%w]is right[ .:,;]", "is valid, is correct" },
    { "%f[%w]is not right", "is not valid" },
    { "stands? twice", "duplicate" },
    { "[Tt]he truth", "the source of truth" },
    { "te?o?lls? each other", "send events" },
    { "%f[%w]are? told%f[%W]", "is notified of, is reported" },
    { "%f[%w]is told%f[%W]", "is notified of, is reported" },
    { "%f[%w]hears?%f[%W]", "receives" },
    { "%f[%w][Ss]omebody", "another user, a process" },
    { "%f[%w][Nn]obody", "no one, not" },
    { "%f[%w][Ee]verybody", "all users" },
    { "what is there%f[%W]", "existing" },
    { "%f[%w]by chance", "at random" },
    { "%f[%w]anew%f[%W]", "again, re-" },
    { "%f[%w]go?e?s? on%f[%W]", "continues" },
    { "%f[%w]going on%f[%W]", "continuing" },
    { "requests? in work", "open requests" },
    { "%f[%w]heeds?%f[%W]", "affects, follows" },
    { "%f[%w]Say what%f[%W]", "Show" },
    { "%f[%w]Say w?h?e?t?her?%f[%W]", "Show" },
    { "without a word", "silently" },
    { "[Ww]rong use", "usage error" },
    { "holds? what", "has the contents of" },
    { "%f[%w]Mend%f[%W]", "Fix" },
}

--- Finds retired phrases.
-- @tparam string text of a page, or a description
-- @treturn {string,...} each with what to write in its place
function _M.find(text)
    local found = {}
    text = " " .. text:gsub("%s+", " ") .. " "
    for _, row in ipairs(_M.retired) do
        for phrase in text:gmatch(row[1]) do
            found[#found + 1] = ("'%s': write %s"):format(phrase, row[2])
        end
    end
    return found
end

return _M
