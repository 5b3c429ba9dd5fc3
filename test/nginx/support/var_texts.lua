-- Texts in which names are searched: each variable is read by number and, in the same request,
-- through what ngx.var was before. What differs is told.

local var = require("sluice.var")

local original = getmetatable(ngx.var).__index

local _M = {}

local suffixes = {}
for name in pairs(var.indexed()) do
    suffixes[#suffixes + 1] = name:match("^arg_(.*)")
end
table.sort(suffixes)

local handles = setmetatable({}, {
    __index = function(self, name)
        self[name] = var.handle(name)
        return self[name]
    end,
})

local compared, wrong

local function compare(name, text)
    local expected, value = original(ngx.var, name), handles[name]:get()
    compared = compared + 1
    if expected ~= value and #wrong < 5 then
        wrong[#wrong + 1] = ("$%s of %s: %s, not %s"):format(
            name,
            ngx.escape_uri(text),
            value and ngx.escape_uri(value) or "nil",
            expected and ngx.escape_uri(expected) or "nil"
        )
    end
end

-- How a text gets to where the variables of a prefix are searched.
local PUT = {
    arg_ = function(text)
        ngx.var.args = text
    end,
    cookie_ = function(text)
        ngx.req.set_header("Cookie", text)
    end,
}

local END = { arg_ = "&", cookie_ = "; " }
local LETTERS = { arg_ = "aAb=&", cookie_ = "aAb=;, " }

-- All texts of up to `more` letters behind this one, alone and behind a value that puts them
-- anywhere in a window.
local function each(prefix, text, more)
    for _, filled in ipairs({ text, ("y"):rep(compared % 131) .. END[prefix] .. text }) do
        PUT[prefix](filled)
        compare(prefix .. "a", filled)
        compare(prefix .. "ab", filled)
    end
    for letter in (more > 0 and LETTERS[prefix] or ""):gmatch(".") do
        each(prefix, text .. letter, more - 1)
    end
end

local function one_of(list)
    return list[math.random(#list)]
end

-- A name as it is, or nearly.
local function name_like(suffix)
    local at = math.random(#suffix)
    return one_of({
        suffix,
        suffix:upper(),
        suffix:gsub("_", "-"),
        suffix:gsub("_", "-", 1):upper(),
        suffix:sub(1, at - 1)
            .. one_of({ "-", "_", "\127", "\223", "M", "\0", "1" })
            .. suffix:sub(at + 1),
        suffix .. "x",
        suffix:sub(2),
    })
end

local TOKENS = { "=", "=", "=1", "=x", "&", "&", ";", "; ", ", ", ",", " ", "  ", "%20", "\255" }

local function random_text(suffix)
    local parts = {}
    for i = 1, math.random(12) do
        parts[i] = math.random(3) == 1 and name_like(suffix) or one_of(TOKENS)
    end
    parts[#parts + 1] = ("v"):rep(math.random(0, 3) * math.random(0, 40))
    return table.concat(parts) .. (math.random(2) == 1 and END.arg_ .. suffix .. "=last" or "")
end

local function random_texts(suffix)
    for prefix, put in pairs(PUT) do
        local text = random_text(suffix)
        put(text)
        compare(prefix .. suffix, text)
    end
    -- The first one with the name counts, whichever way it is written.
    local one, other = name_like(suffix), name_like(suffix)
    ngx.req.set_header(one, "one")
    ngx.req.set_header(other, "other")
    ngx.header[other] = "other"
    ngx.header[one] = "one"
    compare("http_" .. suffix, one .. ", " .. other)
    compare("sent_http_" .. suffix, other .. ", " .. one)
    ngx.req.clear_header(one)
    ngx.header[other] = nil
    compare("http_" .. suffix, other)
    compare("sent_http_" .. suffix, one)
    ngx.req.clear_header(other)
    ngx.header[one] = nil
end

--- Answers with how much was compared, and a line for each difference: "/arg_/1" compares all
-- short texts of arguments that begin with the first letter, "/random/7" random ones of the seed 7.
function _M.content()
    compared, wrong = 0, {}
    local match = ngx.re.match(ngx.var.uri, "^/(\\w+)/(\\d+)$")
    local what, number = match[1], tonumber(match[2])
    if PUT[what] then
        each(what, LETTERS[what]:sub(number, number), 5)
    else
        math.randomseed(number)
        for _, suffix in ipairs(suffixes) do
            for _ = 1, 40 do
                random_texts(suffix)
            end
        end
    end
    ngx.print(compared, "\n", table.concat(wrong, "\n"))
end

return _M
