--- The declarative file that a command is given: a path, or - for standard input.

local preflight = require("cli.instance.preflight")
local process = require("cli.instance.process")

local _M = {}

local STANDARD_INPUT = "-"
local NAME = "standard input"

--- How a file is called in what is said of it.
-- @tparam string path as typed
-- @treturn string
function _M.name(path)
    return path == STANDARD_INPUT and NAME or path
end

--- Reads a file. Waits for the end of standard input.
-- @tparam string path as typed
-- @treturn string|nil
-- @treturn nil|string the reason, with the file's name
function _M.read(path)
    if path ~= STANDARD_INPUT then
        return process.read_file(path)
    end
    local text, err = io.read("*a")
    return text, not text and ("%s: %s"):format(NAME, err) or nil
end

--- Checks a file as cli.instance.preflight does.
-- @tparam string path as typed
-- @tparam table settings resolved settings
-- @tparam table errors array that gets a line for each
-- @treturn table|nil as of preflight's `check_file`
function _M.check(path, settings, errors)
    if path ~= STANDARD_INPUT then
        return preflight.check_file(path, settings, errors)
    end
    local text, reason = _M.read(path)
    if not text then
        errors[#errors + 1] = "file: cannot read " .. reason
        return nil
    end
    -- As where the settings hold the text of the file.
    local holding = {}
    for name, value in pairs(settings) do
        holding[name] = value
    end
    holding.file, holding.declarative_config_string = NAME, text
    return preflight.check_file(NAME, holding, errors)
end

return _M
