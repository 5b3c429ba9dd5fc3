--- docs/pdk.md: the functions of the global `kong`, from what it has and from the comments in
-- gateway/kit. `make docs` writes it; test/unit/kit_page_spec.lua holds it.

local bit = require("bit")
local files = require("test.house.files")
local kit = require("gateway.kit")
local names = require("scripts.docs.pdk_names")
local phases = require("gateway.kit.phases")

local PAGE = "docs/pdk.md"

local INTRODUCTION = [[
# Functions of `kong`

<!-- Generated from gateway/kit by `make docs`; changes here are lost. -->

The functions that Kong 3.9.3 documents for plugins (its plugin development kit), with its
arguments, results and errors. Where Sluice differs, the row says so. What there is besides, such as
`kong.cache` and `kong.db`, is in [kit.md](kit.md).

- *phases*: where the function may be called; elsewhere it throws `function cannot be called in ...
  phase (only in: ...)`. *request*: REQUEST. *any*: also in `init_worker`, `configure` and timers.
  `balancer` and `client_hello` are phases of Kong that no plugin has.
- Functions can be taken as upvalues when a file is loaded.
- Nothing yields unless the row says so.
]]

local _M = {}

-- The comment above a line of a file, as a list of lines.
local lines_of = {}

local function lines(path)
    if not lines_of[path] then
        local list = {}
        for line in (files.read(path) .. "\n"):gmatch("([^\n]*)\n") do
            list[#list + 1] = line
        end
        lines_of[path] = list
    end
    return lines_of[path]
end

--- What the comment of a function says.
-- @tparam function fn of gateway/kit
-- @treturn table|nil `text`, and `phases` if it says so; nil: it has none
function _M.comment(fn)
    local info = debug.getinfo(fn, "S")
    local path = info.source:match("^@%.?/?(gateway/kit/.*)$")
    if not path then
        return nil
    end
    local list, at, found = lines(path), info.linedefined - 1, {}
    while at > 0 and list[at]:find("^%s*%-%-") do
        table.insert(found, 1, (list[at]:gsub("^%s*%-%-+ ?", "")))
        at = at - 1
    end
    if #found == 0 then
        return nil
    end
    local all = table.concat(found, "\n")
    local text = (all .. "\n@"):match("^(.-)\n@")
    local more = all:match("@phases ([^@]*)")
    return {
        text = text:gsub("%s+", " "),
        phases = more and more:gsub("%s+", " "):gsub(" $", ""),
    }
end

-- What is under a dotted name.
local function find(kong, name)
    local at = kong
    for part in name:gmatch("[^.]+") do
        if type(at) ~= "table" then
            return nil
        end
        at = at[part]
    end
    return at
end

local function is_callable(value)
    local mt = type(value) == "table" and getmetatable(value)
    return type(value) == "function" or mt and mt.__call ~= nil
end

local function phases_of(name, comment)
    local mask = phases.allowed()[name]
    if mask then
        local has_all = bit.band(mask, phases.REQUEST) == phases.REQUEST
        local others = bit.band(mask, bit.bnot(phases.REQUEST))
        local list = phases.names(has_all and others or mask)
        list[#list + 1] = has_all and "request" or nil
        return table.concat(list, ", ")
    end
    return comment and comment.phases or "any"
end

local function cell(text)
    return (text:gsub("|", "\\|"))
end

local function row(kong, name)
    local value = find(kong, name)
    local why = names.refused[name]
    if not is_callable(value) then
        return ("| `kong.%s` | | %s |"):format(name, why and "Refused: " .. why or "Not here yet.")
    end
    local comment = type(value) == "function" and _M.comment(value)
    local text = comment and comment.text or ""
    return ("| `kong.%s` | %s | %s |"):format(name, phases_of(name, comment), cell(text))
end

--- The names of all functions of the page that there are, without `kong.`.
-- @treturn table name -> value
function _M.there()
    local kong, found = kit.install(), {}
    for _, group in ipairs(names.tables) do
        for _, name in ipairs(group[2]) do
            local whole = group[1] .. "." .. name
            local value = find(kong, whole)
            found[whole] = is_callable(value) and value or nil
        end
    end
    return found
end

--- The page as it has to be.
-- @treturn string
function _M.text()
    local all = table.concat(phases.names(phases.REQUEST), ", ")
    local kong, out = kit.install(), { (INTRODUCTION:gsub("REQUEST", all)) }
    for _, group in ipairs(names.tables) do
        out[#out + 1] = ("## kong.%s\n"):format(group[1])
        out[#out + 1] = "| function | phases | |"
        out[#out + 1] = "|---|---|---|"
        for _, name in ipairs(group[2]) do
            out[#out + 1] = (row(kong, group[1] .. "." .. name):gsub("|  |", "| |"))
        end
        out[#out + 1] = ""
    end
    return (table.concat(out, "\n"):gsub("\n+$", "\n"))
end

--- Writes it.
function _M.write()
    files.write(PAGE, _M.text())
end

return _M
