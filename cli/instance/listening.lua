--- Whether nginx can open its listen addresses, and who has them where it cannot.

local errno = require("posix.errno")
local hint = require("cli.terminal.hint")
local instances = require("cli.instance")
local options = require("cli.options")
local posix = require("posix.sys.socket")
local process = require("cli.instance.process")
local sockets = require("cli.options.sockets")
local unistd = require("posix.unistd")

local _M = {}

local LISTEN = "0A"
-- posix.sys.socket has none; x86's and ARM's.
local SO_REUSEPORT = 15

-- /proc has words of 32 bits in the machine's order, which is x86's and ARM's.
local function digits_of(hex)
    local digits = hex:gsub("(%x%x)(%x%x)(%x%x)(%x%x)", "%4%3%2%1")
    return digits:lower()
end

-- The TCP sockets of this machine that have a port at their end: those that listen, and others.
local function sockets_at(port)
    local listening, others, has_ipv4 = {}, {}, false
    for _, path in ipairs({ "/proc/net/tcp", "/proc/net/tcp6" }) do
        for line in (process.read_file(path) or ""):gmatch("[^\n]+") do
            local hex, at, state, inode =
                line:match("^%s*%d+: (%x+):(%x+) %x+:%x+ (%x+) %S+ %S+ %S+ +%d+ +%d+ (%d+)")
            if hex and tonumber(at, 16) == port then
                local found = sockets.new(digits_of(hex), port)
                found.inode = inode
                local list = state == LISTEN and listening or others
                list[#list + 1] = found
                has_ipv4 = has_ipv4 or (state == LISTEN and not sockets.is_ipv6(found))
            end
        end
    end
    for _, found in ipairs(listening) do
        -- The kernel does not say. One that takes IPv4 as well has no IPv4 socket beside it.
        found.is_dual = found.is_any and sockets.is_ipv6(found) and not has_ipv4
    end
    return listening, others
end

local function overlapping(list, wanted)
    local found = {}
    for _, each in ipairs(list) do
        found[#found + 1] = sockets.overlap(each, wanted) and each or nil
    end
    return found
end

-- The pid of the program that has one of some sockets. Nil where the kernel does not tell this
-- user. Of those that share it the first has opened it, as a rule.
local function program_of(list)
    local names = {}
    for _, each in ipairs(list) do
        -- What is closed and waits for the other end has no inode, and is in nobody's way.
        names[("socket:[%s]"):format(each.inode)] = each.inode ~= "0" or nil
    end
    for _, pid in ipairs(next(names) and process.all() or {}) do
        for name in process.open_files(pid) do
            if names[name] then
                return pid
            end
        end
    end
    return nil
end

-- Who has what a socket needs: one of the running instance's, where it is those alone; else nil,
-- the pid of the other program, and whether it listens.
local function holder(wanted, held)
    local listening, others = sockets_at(wanted.port)
    local own, strangers = nil, {}
    for _, each in ipairs(listening) do
        -- Its settings say whether it takes IPv4 as well.
        local ours = held[each.key]
        if sockets.overlap(ours or each, wanted) then
            own = own or ours
            strangers[#strangers + 1] = not ours and each or nil
        end
    end
    if own and #strangers == 0 then
        return own
    end
    local is_listening = #strangers > 0
    strangers = is_listening and strangers or overlapping(others, wanted)
    return nil, program_of(strangers), is_listening
end

-- Opens a socket as nginx would, for a moment; why it cannot, a number of errno's or a text.
local function try(wanted, is_shared)
    local is_ipv6 = sockets.is_ipv6(wanted)
    local family = is_ipv6 and posix.AF_INET6 or posix.AF_INET
    local fd = posix.socket(family, posix.SOCK_STREAM, 0)
    if not fd then
        return ("this machine has no %s"):format(is_ipv6 and "IPv6" or "IPv4")
    end
    posix.setsockopt(fd, posix.SOL_SOCKET, posix.SO_REUSEADDR, 1)
    if is_shared then
        posix.setsockopt(fd, posix.SOL_SOCKET, SO_REUSEPORT, 1)
    end
    if is_ipv6 then
        posix.setsockopt(fd, posix.IPPROTO_IPV6, posix.IPV6_V6ONLY, wanted.is_dual and 0 or 1)
    end
    local place = { family = family, addr = wanted.ip, port = wanted.port }
    local bound, _, code = posix.bind(fd, place)
    -- No listen(): a client that happens to come now would be accepted, and dropped.
    unistd.close(fd)
    return not bound and code or nil
end

local ADVICE = {
    [errno.EACCES] = "%s: %s requires root; set %s to a port above 1023",
    [errno.EADDRNOTAVAIL] = "%s: %s is not an address of this machine; set %s to one that is",
}

-- Who has an address, and what to do about it.
local function stranger_text(pid, is_listening)
    local prefix, master = instances.gateway_of(pid or 0)
    if prefix then
        local form = "the gateway in %s (pid %d); run `%s`"
        return form:format(prefix, master, hint.command("stop", prefix))
    end
    prefix, master = instances.removed_of(pid or 0)
    if prefix then
        local form = "a gateway whose prefix %s was removed (pid %d); run `kill %d`"
        return form:format(prefix, master, master)
    end
    -- The end of a connection occupies its port, too.
    local who = is_listening and "see `ss -ltnp`" or "see `ss -tanp`"
    if pid then
        local comm = process.read_file(("/proc/%d/comm"):format(pid)) or ""
        -- A program chooses its name: it may be anything.
        who = ("%s, pid %d"):format(comm:gsub("\n$", ""):gsub("%c", "?"), pid)
    end
    return ("another program (%s); stop it"):format(who)
end

-- What is said of a socket that another has the address of; nil where the instance itself has it
-- and leaves it, or nginx opens it all the same.
local function occupied(wanted, held, is_left, flag)
    local own, stranger, is_listening = holder(wanted, held)
    if not own then
        local line = "%s: %s is in use by %s, or set %s to another port"
        local who = stranger_text(stranger, is_listening)
        return line:format(wanted.name, wanted.said, who, flag)
    elseif is_left or (wanted.is_shared and not try(wanted, true)) then
        return nil
    end
    local line = "%s: %s overlaps %s, which this gateway has open: only %s can change to it"
    return line:format(wanted.name, wanted.said, own.text, hint.instead("restart"))
end

-- A line for a socket that cannot be opened.
local function problem_of(wanted, held, is_left)
    local flag = options.flag(options.by_name[wanted.name])
    local problem = try(wanted)
    if problem == errno.EADDRINUSE then
        return occupied(wanted, held, is_left, flag)
    elseif ADVICE[problem] then
        return ADVICE[problem]:format(wanted.name, wanted.said, flag)
    end
    local line = "%s: cannot listen on %s: %s"
    return problem and line:format(wanted.name, wanted.said, errno.errno(problem) or problem) or nil
end

-- Whether the running nginx hands a socket on. It does not change what an IPv6 one takes.
local function is_inherited(wanted, held)
    local ours = held[wanted.key]
    return ours ~= nil and ours.is_dual == wanted.is_dual
end

--- Tries to open each listen address, save those that the running instance hands on.
-- @tparam table settings resolved settings
-- @tparam table|nil old those of the running instance
-- @tparam table errors array that gets one line for each that cannot be opened
-- @tparam[opt] boolean is_left whether the instance leaves its own before they are opened
function _M.check(settings, old, errors, is_left)
    local held = {}
    for _, socket in ipairs(sockets.opened(old or {}, options.listens)) do
        held[socket.key] = socket
    end
    for _, name in ipairs(options.listens) do
        for _, text in ipairs(settings[name] or {}) do
            if #sockets.of(text) == 0 then
                local line = "%s: %s does not resolve to an address on this machine"
                errors[#errors + 1] = line:format(name, text:match("^%S+"))
            end
        end
    end
    for _, wanted in ipairs(sockets.opened(settings, options.listens)) do
        if not is_inherited(wanted, held) then
            errors[#errors + 1] = problem_of(wanted, held, is_left)
        end
    end
end

return _M
