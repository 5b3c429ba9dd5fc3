--- The `sluice` command: reads the command line and runs one of cli.commands; `sluice kong` reads
-- Kong's.

local root = arg[0]:match("^(.*)/cli/main%.lua$") or "."
local plain = dofile(root .. "/cli/terminal/plain.lua")

-- Where modules cannot be loaded yet, cli.terminal.console among them.
local function fail(form, ...)
    plain.write_error(("sluice: %s\n"):format(plain.line(form:format(...))))
    os.exit(1)
end

-- Lua's search path cannot say these, in nginx neither.
if root:find("[;?]") then
    fail("cannot run from %s: the path contains ; or ?", root)
end

-- LuaJIT searches the current folder, too: whoever may write there would run code as this user.
local function without_current_folder(path)
    return ((";" .. path .. ";"):gsub(";%./[^;]*%f[;]", ""):gsub("^;+", ""):gsub(";+$", ""))
end

local package_path = dofile(root .. "/cli/nginx/package_path.lua")
package.path = package_path.text(root, without_current_folder(package.path))
package.cpath = without_current_folder(package.cpath)

-- A check and a plan of a large file have about a thousand traces, LuaJIT's limit: beyond it all
-- are thrown away, and compiled again, again and again.
jit.opt.start("maxtrace=8000", "maxmcode=8192")

local function check_lua_modules()
    for _, module in ipairs(require("cli.options.platform").lua_modules) do
        local found, err = pcall(require, module.name)
        if not found then
            if os.getenv("SLUICE_DEBUG") then
                plain.write_error(tostring(err) .. "\n")
            end
            local form = "the Lua module '%s' is missing; install it: apt-get install %s"
            fail(form, module.name, module.package)
        end
    end
end

-- The gateway's patterns are compiled by the core, here as well.
local function check_core()
    if not pcall(require, "sluice.ffi.core") then
        local built = require("sluice.built")
        fail("module: %s is missing; %s", built.core, built.remedy)
    end
end

-- A file or a socket that is opened later would have the number of one that is closed, and get what
-- is written there. What is opened here takes nothing, so that writing fails.
local function open_standard_files()
    local fcntl = require("posix.fcntl")
    for fd = 0, 2 do
        if not fcntl.fcntl(fd, fcntl.F_GETFD) then
            fcntl.open("/dev/null", fd == 0 and fcntl.O_WRONLY or fcntl.O_RDONLY)
        end
    end
end

-- LuaJIT's own handler waits until Lua runs on, and prints where that was.
local function end_at_interrupt()
    local signal = require("posix.signal")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
end

-- Who reads a pipe or a socket may leave: an error of a write, and not the end of this process.
local function ignore_broken_pipes()
    local signal = require("posix.signal")
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
end

check_lua_modules()
open_standard_files()
end_at_interrupt()
ignore_broken_pipes()
check_core()

local arguments_of = require("cli.options.arguments")
local commands = require("cli.commands")
local console = require("cli.terminal.console")
local hint = require("cli.terminal.hint")
local kong = require("cli.commands.kong")

local function main()
    hint.set_root(root)
    local context = { root = root, parser = arguments_of.parser }
    if arg[1] == "kong" then
        return kong.run({ unpack(arg, 2) }, context)
    elseif arg[1] == "help" and arg[2] == "kong" then
        return kong.run({ "--help" }, context)
    end
    local arguments, refusal = arguments_of.read(arg)
    if not arguments then
        return console.fail(refusal, console.WRONG_USE)
    end
    return commands[arguments.command](arguments, context)
end

-- A command ends before most of what it makes is garbage: a large file of entities would be walked
-- over and over. So Lua's heap is collected for the first time when it is a GiB; 100,000 routes
-- take a third of that.
collectgarbage("setpause", math.floor(100 * 2 ^ 20 / collectgarbage("count")))
collectgarbage()
collectgarbage("setpause", 200)

os.exit(console.finish(main()))
