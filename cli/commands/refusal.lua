--- What is said of what the gateway has refused.

local preflight = require("cli.instance.preflight")
local prefixes = require("cli.instance.prefix")

local _M = {}

-- Where in a file an error stands, and of which entity.
local function place_of(err)
    if not err.path or err.path == "" then
        return ""
    end
    return err.entity and ("%s (%s): "):format(err.path, err.entity) or err.path .. ": "
end

--- Lines that say why the gateway has refused.
-- @tparam number|nil status of its answer; nil: there was none
-- @tparam table|string answer its JSON; why there is none
-- @treturn {string,...}
function _M.lines(status, answer)
    if not status then
        return { answer }
    end
    local lines = {}
    for _, err in ipairs(answer.errors or {}) do
        local column = err.column and (", column %d"):format(err.column) or ""
        local line = err.line and ("line %d%s: "):format(err.line, column) or ""
        local hint = err.hint and "; " .. err.hint or ""
        lines[#lines + 1] = ("  %s%s%s%s"):format(line, place_of(err), err.message, hint)
        for text in (err.excerpt or ""):gmatch("[^\n]+") do
            lines[#lines + 1] = "  " .. text
        end
    end
    if #lines > 0 then
        local count = #answer.errors
        -- The last entry says that no more were looked for.
        local is_all = not answer.errors[count].message:find("^stopped after %d+ errors$")
        count = is_all and count or count - 1
        local more = is_all and "" or "more than "
        table.insert(lines, 1, ("%s%d error%s:"):format(more, count, count == 1 and "" or "s"))
        return lines
    end
    return { place_of(answer) .. tostring(answer.message) }
end

--- Why a file was not applied: in the words of `check` where that finds the same.
-- @tparam table instance cli.instance
-- @tparam string root Sluice's own directory
-- @tparam table about `path`; `text`; `is_list`, of one kind and no file
-- @tparam number|nil status as of `lines`
-- @tparam table|string answer as of `lines`
-- @treturn {string,...} lines
function _M.of_file(instance, root, about, status, answer)
    local is_files = not about.is_list and (status == 400 or status == 409)
    local at = is_files and (answer.errors or { answer })[1].path
    local settings = at and prefixes.new(instance):check(root) and instance:read_settings()
    local lines = settings and preflight.explain(about.path, about.text, settings, at)
    if not lines then
        lines = _M.lines(status, answer)
        lines[1] = ("%s: %s"):format(about.path, lines[1])
    end
    -- Who does not answer may have done it.
    lines[#lines + 1] = status and "nothing was changed"
        or "`sluice history` shows what was changed"
    return lines
end

return _M
