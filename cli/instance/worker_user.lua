--- Runs a function as the workers' user would: what is theirs is read and written by a child that
-- has their rights and no others, so that root believes nothing that a worker left there.

local cjson = require("cjson")
local ffi = require("ffi")
local poll = require("posix.poll")
local pwd = require("posix.pwd")
local signal = require("posix.signal")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")
local wait = require("posix.sys.wait")

local console = require("cli.terminal.console")
local process = require("cli.instance.process")
local terminal = require("cli.terminal.terminal")

local _M = {}

local PIECE_BYTES = 65536
local OTHERS_NOTHING = tonumber("077", 8)

ffi.cdef([[
int initgroups(const char *user, unsigned group);
int setgid(unsigned group);
int setuid(unsigned user);
]])

--- The account that root's workers run as.
-- @tparam string user setting `user`
-- @treturn table|nil posix.pwd's; nil where they run as the user of the command
function _M.account(user)
    return unistd.geteuid() == 0 and pwd.getpwnam(user) or nil
end

--- The user id of the workers.
-- @tparam string user setting `user`
-- @treturn number
function _M.uid(user)
    local account = _M.account(user)
    return account and account.pw_uid or unistd.geteuid()
end

--- Gives up root's rights for those of an account, for good, and root's terminal. Throws where that
-- fails.
-- @tparam table account posix.pwd's
function _M.become(account)
    terminal.leave()
    local C = ffi.C
    if
        C.initgroups(account.pw_name, account.pw_gid) ~= 0
        or C.setgid(account.pw_gid) ~= 0
        or C.setuid(account.pw_uid) ~= 0
    then
        error("cannot switch to user " .. account.pw_name, 0)
    end
end

local function write_all(fd, text)
    local at = 1
    while at <= #text do
        local written = unistd.write(fd, text:sub(at, at + PIECE_BYTES - 1))
        if not written then
            return
        end
        at = at + written
    end
end

local function run_child(fd, account, fn)
    stat.umask(OTHERS_NOTHING)
    local ok, value, err = pcall(function()
        if account then
            _M.become(account)
        end
        return fn()
    end)
    -- JSON's null where there is no value.
    local result = ok and { value = value, err = err } or { thrown = tostring(value) }
    write_all(fd, cjson.encode(result))
    io.stdout:flush()
    unistd._exit(0)
end

-- To the end; nil where that has not come in time. timeout_s: nil is for ever.
local function read_all(fd, timeout_s)
    local parts, deadline = {}, timeout_s and process.now_s() + timeout_s
    repeat
        local left_ms = deadline and math.max(0, math.ceil((deadline - process.now_s()) * 1000))
        if deadline and poll.rpoll(fd, left_ms) == 0 then
            return nil
        end
        local part = unistd.read(fd, PIECE_BYTES)
        parts[#parts + 1] = part
    until not part or part == ""
    return table.concat(parts)
end

--- Calls a function in a child with the workers' rights; waits for it.
-- @tparam string user setting `user`
-- @tparam function fn returns a value that JSON can hold, or nil and an error table with `message`
-- @return what it returned
function _M.run(user, fn)
    return _M.run_as(_M.account(user), fn)
end

--- The same for an account.
-- @tparam table|nil account `pw_name`, `pw_uid` and `pw_gid` as posix.pwd has them; nil: the user
-- of the command
-- @tparam function fn as of `run`
-- @tparam[opt] number timeout_s how long at most: the account's owner can stop its processes
-- @return what it returned
function _M.run_as(account, fn, timeout_s)
    console.flush()
    local output, input = unistd.pipe()
    local pid = output and unistd.fork()
    if not pid then
        return nil, { err = "failed", message = "cannot start a process" }
    elseif pid == 0 then
        unistd.close(output)
        run_child(input, account, fn)
    end
    unistd.close(input)
    local text = read_all(output, timeout_s)
    unistd.close(output)
    if not text then
        signal.kill(pid, signal.SIGKILL)
    end
    local _, how, status = wait.wait(pid)
    local ok, result = pcall(cjson.decode, text or "")
    if not ok then
        local message = ("the store's process %s (%d)"):format(how, status)
        return nil, { err = "failed", message = message }
    elseif result.thrown then
        error(result.thrown, 0)
    end
    return result.value, result.err
end

return _M
