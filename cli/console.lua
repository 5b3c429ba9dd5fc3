--- What the commands say: to standard output what was done, to standard error what was not.

local _M = {}

--- Exit codes (cli.commands says what they mean).
_M.DONE, _M.FAILED, _M.WRONG_USE, _M.NOT_RUNNING = 0, 1, 2, 3

--- Prints a line.
-- @tparam string format with its values, as string.format's
function _M.say(format, ...)
    io.stdout:write(format:format(...), "\n")
end

--- Prints lines.
-- @tparam {string,...} lines
function _M.print_lines(lines)
    for _, line in ipairs(lines) do
        _M.say("%s", line)
    end
end

--- Prints lines to standard error; those that begin with a blank continue the one before.
-- @tparam {string,...} lines
function _M.complain(lines)
    for _, line in ipairs(lines) do
        io.stderr:write(line:sub(1, 1) == " " and "" or "sluice: ", line, "\n")
    end
end

--- Complains.
-- @tparam string|{string,...} lines
-- @tparam[opt] number code FAILED when absent
-- @treturn number the exit code
function _M.fail(lines, code)
    _M.complain(type(lines) == "table" and lines or { lines })
    return code or _M.FAILED
end

return _M
