--- Reads a settings file: Sluice's, or Kong's kong.conf.
--
-- Lines are `name = value`. In ours a `#` at the start or after a blank begins a comment, and a
-- value may stand between double quotes, which keep blanks and `#`. A file with a name that is
-- Kong's alone is a kong.conf. Then `#` begins a comment anywhere, unless it is written `\#`, so
-- does `;` at the start, a `\` at the end continues a line, and unknown names are no error.

local environments = require("cli.options.environment")
local kong_reader = require("cli.options.kong_reader")
local options = require("cli.options")

local _M = {}

local function trim(text)
    return text:match("^%s*(.-)%s*$")
end

-- The value without its comment and quotes.
local function plain_value(text)
    return text:match('^"([^"]*)"%s*$')
        or text:match('^"([^"]*)"%s+#')
        or trim((text:gsub("^#.*$", ""):gsub("%s#.*$", "")))
end

-- The same in kong.conf.
local function kong_value(text)
    text = trim((text:gsub("\\#", "\1"):gsub("#.*$", ""):gsub("\1", "#")))
    return text:match('^"([^"]*)"$') or text
end

local function is_kongs_alone(name)
    return not options.by_name[name] and kong_reader.is_known(name)
end

local function lines_of(text)
    return (text .. "\n"):gmatch("(.-)\r?\n")
end

-- Name and value of a line, with what continues it; nil where it is none.
local function split(line)
    local name, value = line:match("^%s*([%w_-]+)%s*=%s*(.-)%s*$")
    return name, value
end

local function is_kong_conf(text)
    for line in lines_of(text) do
        local name = split(line)
        if name and is_kongs_alone(name:gsub("-", "_")) then
            return true
        end
    end
    return false
end

-- Calls `each(number, line)` for lines that are no comment, continued ones joined.
local function walk(text, is_kong, each)
    local number, first, joined = 0, nil, ""
    for line in lines_of(text) do
        number = number + 1
        local is_comment = joined == "" and line:find(is_kong and "^%s*[#;]" or "^%s*#")
        local head = is_kong and not is_comment and line:match("^(.*)\\%s*$")
        first = first or number
        if head then
            joined = joined .. head .. " "
        else
            each(first, is_comment and "" or trim(joined .. line))
            first, joined = nil, ""
        end
    end
end

--- Reads a settings file.
-- @tparam string path the file, for messages
-- @tparam string text its content
-- @treturn table our setting -> { text, source = "path:line" }
-- @treturn {string,...} errors, a line each
-- @treturn table Kong's setting -> what cli.options.kong_reader takes
function _M.parse(path, text)
    local found, errors, kongs = {}, {}, {}
    local is_kong = is_kong_conf(text)
    walk(text, is_kong, function(number, line)
        local function complain(format, ...)
            errors[#errors + 1] = ("%s:%d: "):format(path, number) .. format:format(...)
        end
        local name, value = split(line)
        name = name and is_kong and name:gsub("-", "_") or name
        local is_ours = options.by_name[name] and name ~= "conf"
        local is_taken = is_ours or (is_kong and name and name ~= "conf")
        if not is_taken then
            if name then
                complain("unknown setting '%s'%s", name, environments.hint(name))
            elseif line ~= "" then
                -- What follows may be a secret.
                complain("expected `name = value`, found `%s`", line:match("^%S+"))
            end
            return
        end
        local entry = {
            text = is_kong and kong_value(value) or plain_value(value),
            source = ("%s:%d"):format(path, number),
            place = path,
            label = name,
        }
        -- What both have means the same, and Kong's spelling of the value is taken as well.
        local list = is_kong and kong_reader.is_known(name) and kongs
            or (is_ours and found)
            or kongs
        if not list[name] then
            list[name] = entry
        elseif not is_kong or list[name].text ~= entry.text then
            complain("'%s' is already set in %s", name, list[name].source)
        end
    end)
    return found, errors, kongs
end

return _M
