--- What the commands say: to standard output what was done, to standard error what was not. All
-- that people read goes out here, so that nothing of it is a command to a terminal.

local errno = require("posix.errno")
local hint = require("cli.terminal.hint")
local plain = require("cli.terminal.plain")

local _M = {}

-- Of standard output, where it has failed: what the system said.
local output_error

-- Whether only JSON is printed.
local is_silent = false

--- Exit codes (cli.commands says what they mean).
_M.DONE, _M.FAILED, _M.WRONG_USE, _M.NOT_RUNNING = 0, 1, 2, 3
--- Of Ctrl-C, as shells have it.
_M.INTERRUPTED = 130

--- As cli.terminal.plain has them.
_M.one_line, _M.write_error = plain.line, plain.write_error

-- A reader that has left wants no more; what the command does, it does to its end.
local function note(ok, err, code)
    if not ok and code ~= errno.EPIPE then
        output_error = output_error or err
    end
    return ok ~= nil and ok ~= false
end

--- Writes to standard output.
-- @tparam string text
-- @treturn boolean false: nobody reads it, or it cannot be written; `finish` says which
function _M.write(text)
    return note(io.stdout:write(text))
end

--- Has what was written go out now.
-- @treturn boolean as `write`
function _M.flush()
    return note(io.stdout:flush())
end

--- Ends what was written.
-- @tparam number code the exit code of the command
-- @treturn number the same; FAILED in the place of DONE where standard output could not be written,
-- which it says
function _M.finish(code)
    _M.flush()
    if not output_error then
        return code
    end
    _M.write_error(("sluice: cannot write to standard output: %s\n"):format(output_error))
    return code == _M.DONE and _M.FAILED or code
end

--- Has no lines printed from now on: JSON says what was done.
function _M.silence()
    is_silent = true
end

--- Prints a line.
-- @tparam string format with its values, as string.format's
function _M.say(format, ...)
    if not is_silent then
        _M.write(plain.text(hint.complete(format:format(...))) .. "\n")
    end
end

--- Prints JSON, with escapes for the control characters that JSON leaves as they are.
-- @tparam string text
function _M.say_json(text)
    text = text:gsub("\127", "\\u007f"):gsub("\194([\128-\159])", function(last)
        return ("\\u%04x"):format(last:byte())
    end)
    _M.write(text .. "\n")
end

--- Prints lines.
-- @tparam {string,...} lines
function _M.print_lines(lines)
    for _, line in ipairs(lines) do
        _M.say("%s", _M.one_line(line))
    end
end

-- No name in a line begins another one: only what begins with a blank continues it.
local function in_one(line)
    return (
        line:gsub("\n()", function(at)
            return line:sub(at, at) ~= " " and "\\n" or nil
        end)
    )
end

--- Prints lines to standard error; those that begin with a blank continue the one before.
-- @tparam {string,...} lines
function _M.complain(lines)
    for _, line in ipairs(lines) do
        line = in_one(hint.complete(line))
        _M.write_error((line:sub(1, 1) == " " and "" or "sluice: ") .. line .. "\n")
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
