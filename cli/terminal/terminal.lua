--- Leaves the terminal before root's rights are given up. Who has the rights that are left may be
-- somebody else's program by then, and a process may type into the terminal of its session
-- (TIOCSTI): the shell behind it is root's.

local console = require("cli.terminal.console")
local ffi = require("ffi")
local fcntl = require("posix.fcntl")
local signal = require("posix.signal")
local unistd = require("posix.unistd")
local wait = require("posix.sys.wait")

local _M = {}

-- Linux's.
local SIG_BLOCK, SIG_SETMASK = 0, 2

-- What ends a command, or is for the nginx that it becomes in the foreground.
local FORWARDED = { "SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM" }

ffi.cdef([[
typedef struct { unsigned long words[128 / sizeof(unsigned long)]; } sluice_signals_t;
int sigemptyset(sluice_signals_t *set);
int sigaddset(sluice_signals_t *set, int number);
int sigprocmask(int how, const sluice_signals_t *set, sluice_signals_t *before);
int sigwait(const sluice_signals_t *set, int *number);
]])

local function has_terminal()
    local fd = fcntl.open("/dev/tty", bit.bor(fcntl.O_RDWR, fcntl.O_NOCTTY))
    return fd and unistd.close(fd) == 0
end

-- Passes signals on until the child has ended; ends as it did.
local function stand_for(child, signals)
    local number = ffi.new("int[1]")
    while true do
        ffi.C.sigwait(signals, number)
        if number[0] ~= signal.SIGCHLD then
            signal.kill(child, number[0])
        else
            local pid, how, status = wait.wait(child, wait.WNOHANG)
            if pid == child and how ~= "stopped" then
                os.exit(how == "exited" and status or 128 + status)
            end
        end
    end
end

-- A child may have a session of its own, also where the command is a shell's job. Its parent, which
-- stays in the old one, hears of Ctrl-C.
local function go_on_as_child()
    local signals, before = ffi.new("sluice_signals_t"), ffi.new("sluice_signals_t")
    ffi.C.sigemptyset(signals)
    ffi.C.sigaddset(signals, signal.SIGCHLD)
    for _, name in ipairs(FORWARDED) do
        ffi.C.sigaddset(signals, signal[name])
    end
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    -- None may come before there is somebody to pass it on to.
    ffi.C.sigprocmask(SIG_BLOCK, signals, before)
    console.flush()
    local pid = assert(unistd.fork())
    if pid > 0 then
        stand_for(pid, signals)
    end
    ffi.C.sigprocmask(SIG_SETMASK, before, nil)
end

--- Goes on in a session without a terminal; where there was one, as a child of what the shell
-- started, which passes on signals and the exit code. Input and output are as before.
function _M.leave()
    if has_terminal() then
        go_on_as_child()
        assert(unistd.setpid("s"))
    end
end

return _M
