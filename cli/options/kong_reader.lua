--- Reads Kong's settings as ours, by cli.options.kong.

local kong = require("cli.options.kong")
local nearest = require("sluice.nearest")
local values = require("cli.options.kong_values")

local _M = {}

-- As entry points of Kong's image do: a variable may name a file that has the value.
local FILE = "_file"

-- What stands for its value in messages: it may be a secret, or any file of the machine's.
local HIDDEN = "***"
-- A configuration may stand in one.
local FILE_BYTES = 134217728

-- Not read by Kong as a setting: of its image, and of its command.
local IGNORED = { conf = true, version = true }

local PREFIX = "KONG_"

-- The setting whose value is in the file that a variable names, as a container's secrets are.
local function setting_in_file(name)
    local stem = not kong.by_name[name] and name:sub(-#FILE) == FILE and name:sub(1, -#FILE - 1)
    return stem and kong.by_name[stem] and stem or nil
end

-- The text of such a file, without the newlines at its end; nil and why there is none.
local function read_value(path, open)
    local file, reason = open(path, "r")
    local text = file and file:read(FILE_BYTES + 1)
    if file then
        file:close()
    end
    if not text then
        return nil, "cannot read " .. (reason or path)
    elseif #text > FILE_BYTES then
        return nil, ("%s is larger than %d bytes"):format(path, FILE_BYTES)
    end
    return (text:gsub("\n+$", ""))
end

-- Puts the values that are in files in the place of the files' names.
local function read_files(found, open)
    local names = {}
    for name, entry in pairs(found) do
        names[#names + 1] = entry.text ~= "" and setting_in_file(name) and name or nil
    end
    for _, name in ipairs(names) do
        local entry, setting = found[name], setting_in_file(name)
        local other = found[setting]
        local text, wrong = read_value(entry.text, open)
        if other and other.text ~= "" then
            wrong = ("%s is set, too; only one of them can be"):format(other.label)
        end
        entry.text, entry.wrong, entry.is_secret = text or "", wrong, true
        found[name], found[setting] = nil, entry
    end
end

--- The settings of Kong in the environment.
-- @tparam table environment name -> text
-- @tparam function is_other `(name, text)`: whether a variable is for something else
-- @tparam string cwd where relative paths start
-- @tparam function open io.open, or what stands in for it
-- @treturn table name -> { text, source, place, label, base }
function _M.of_environment(environment, is_other, cwd, open)
    local found = {}
    for variable, text in pairs(environment) do
        local name = variable:match("^" .. PREFIX .. "([%u%d_]+)$")
        name = name and name:lower()
        if name and not IGNORED[name] and not is_other(variable, text) then
            found[name] = {
                text = text,
                source = "environment " .. variable,
                place = "environment",
                label = variable,
                base = cwd,
            }
        end
    end
    read_files(found, open)
    return found
end

-- What becomes of a name without a row.
local function row_of(name)
    local row = kong.by_name[name]
    if row then
        return row
    end
    local block, directive = name:match("^nginx_(%l+)_(.+)$")
    local setting = block and kong.injected[block] and kong.injected[block][directive]
    if name == "nginx_http_log_format" then
        -- What it is for says the access log that names it.
        return { as = "nothing" }
    elseif setting then
        return { takes = setting, as = kong.injected_as[setting] }
    elseif block then
        return { warns = kong.INJECTED }
    elseif name:find("^pluginserver_") then
        return { warns = kong.OF_PLUGIN_SERVERS }
    elseif name:find("^vault_") then
        return { warns = kong.OF_VAULTS }
    end
    return { warns = kong.UNKNOWN }
end

--- Whether a name is one of Kong's, or of a family of which Kong takes any.
-- @tparam string name as kong.conf spells it
-- @treturn boolean
function _M.is_known(name)
    return row_of(name).warns ~= kong.UNKNOWN
end

-- What is said of a setting that has no effect, with the one that was probably meant.
local function warning_of(row, name, entry)
    local near = row.warns == kong.UNKNOWN and nearest.find(name, kong.list)
    if not near then
        return row.warns
    end
    near = entry.place == "environment" and PREFIX .. near:upper() or near
    return ("%s; did you mean %s?"):format(row.warns, near)
end

-- Whether a value says what is the case anyway.
local function is_same(row, text)
    for word in (row.same or ""):gmatch("%S+") do
        if text:lower() == word then
            return true
        end
    end
    return false
end

-- Takes one setting: setting -> text; or nil and why not; and what has no effect.
local function take(row, text, other)
    if text:find("^{vault://") then
        return nil, "references to vaults are not followed in settings; give the value itself"
    elseif row.as == "nothing" then
        return {}
    end
    local read = values[row.as]
    if read then
        return read(text, row.takes, other)
    end
    return { [row.takes] = text }
end

-- In the order of the table, then of names: the first that says something of a setting wins.
local function order_of(given)
    local order, names = {}, {}
    for i, name in ipairs(kong.list) do
        order[name] = i
    end
    for name in pairs(given) do
        names[#names + 1] = name
    end
    table.sort(names, function(a, b)
        local first, second = order[a] or math.huge, order[b] or math.huge
        return first < second or (first == second and a < b)
    end)
    return names
end

-- Warnings, one line for all names of a place of which the same is to be said.
local function collect()
    local lines, by_key = {}, {}
    local function add(given, sentence)
        local key = given.place .. "\n" .. sentence
        local line = by_key[key]
        if not line then
            line = { place = given.place, sentence = sentence, labels = {} }
            by_key[key], lines[#lines + 1] = line, line
        end
        line.labels[#line.labels + 1] = given.label
    end
    local function text()
        for i, line in ipairs(lines) do
            lines[i] = ("%s: %s: %s"):format(
                line.place,
                table.concat(line.labels, ", "),
                line.sentence
            )
        end
        return lines
    end
    return add, text
end

--- Reads settings of Kong.
-- @tparam table given name -> { text, source, place, label, base }, of one place
-- @tparam[opt] table more the same of others, for what one setting says of another
-- @treturn table our setting -> { text, source, base }
-- @treturn {string,...} errors, a line each
-- @treturn {string,...} warnings, a line each
function _M.read(given, more)
    local found, errors = {}, {}
    local warn, warnings = collect()
    local function other(name)
        local entry = given[name] or (more and more[name])
        return entry and entry.text
    end
    for _, name in ipairs(order_of(given)) do
        local entry, row = given[name], row_of(name)
        local text = entry.text:match("^%s*(.-)%s*$")
        -- An empty value is none, and so is "NONE" in what is injected.
        local is_none = text == "" or (text == "NONE" and name:find("^nginx_"))
        local is_silent = is_none or is_same(row, text)
        if entry.wrong then
            errors[#errors + 1] = ("%s (%s): %s"):format(name, entry.source, entry.wrong)
        elseif row.warns and not is_silent then
            warn(entry, warning_of(row, name, entry))
        elseif row.refuses and not is_silent then
            errors[#errors + 1] = ("%s (%s): '%s' is not supported: %s"):format(
                name,
                entry.source,
                entry.is_secret and HIDDEN or text,
                row.refuses
            )
        elseif not is_silent then
            -- The blanks at the start of a document mean something.
            local value = row.as == "document" and entry.text or text
            local settings, wrong, dropped = take(row, value, other)
            if wrong and entry.is_secret then
                -- Messages show what is wrong.
                wrong = "what the file has is not valid"
            end
            if wrong then
                errors[#errors + 1] = ("%s (%s): %s"):format(name, entry.source, wrong)
            end
            if dropped then
                warn(entry, dropped)
            end
            for setting, written in pairs(settings or {}) do
                found[setting] = found[setting]
                    or {
                        text = written,
                        source = entry.source,
                        base = entry.base,
                        is_kongs = true,
                        is_secret = entry.is_secret,
                    }
            end
        end
    end
    return found, errors, warnings()
end

return _M
