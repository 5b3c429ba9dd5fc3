--- The configuration that was posted to a running gateway, as the command line deals with it.
--
-- The gateway keeps it in <prefix>/posted (gateway.control.changes.files). A start drops it; a
-- reload whose file has changed has its settings say that the file supersedes it: the workers to
-- come read the file, and one that the old master configuration forks meanwhile, what it has always
-- read.

local dirent = require("posix.dirent")
local file = require("sluice.file")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local control = require("cli.control")
local process = require("cli.process")

local _M = {}

-- As gateway.control.changes.files has it.
local MAX_DIGITS = 15

local TYPES = { json = "application/json", yaml = "application/yaml", yml = "application/yaml" }

--- Removes every posted configuration.
-- @tparam table instance cli.instance
function _M.drop(instance)
    local info = stat.lstat(instance.posted)
    if not info or stat.S_ISDIR(info.st_mode) == 0 then
        return
    end
    for name in dirent.files(instance.posted) do
        if name ~= "." and name ~= ".." then
            os.remove(instance.posted .. "/" .. name)
        end
    end
end

--- The number of the posted configuration that is decided.
-- @tparam table instance cli.instance
-- @treturn number 0 where none is
function _M.version(instance)
    local digits = (unistd.readlink(instance.posted .. "/current") or ""):match("^(%d+)%.")
    return digits and #digits <= MAX_DIGITS and tonumber(digits) or 0
end

-- Whether a text is the posted configuration that is decided: who was to say so may have died.
local function is_decided(instance, text)
    local name = (unistd.readlink(instance.posted .. "/current") or ""):match("^%d+%.%d+%.%a+$")
    return name ~= nil and file.read(instance.posted .. "/" .. name, { max = #text }) == text
end

--- Gives a declarative file to the running gateway; returns when all workers serve it.
-- @tparam table instance cli.instance
-- @tparam string path the file
-- @treturn table|nil the gateway's answer: `version`, `workers`, `ms`
-- @treturn string|nil why not
-- @treturn boolean|nil whether it is live all the same, soon if not yet
function _M.post(instance, path)
    local text = process.read_file(path)
    if not text then
        return nil, "cannot read " .. path
    end
    local body = { type = TYPES[path:lower():match("%.(%w+)$")] or "text/plain", text = text }
    local status, answer = control.ask(instance.control, "POST", "/config?wait=1", body)
    if status == 201 then
        return answer
    elseif not status then
        if is_decided(instance, text) then
            return nil,
                answer .. "; the new configuration is decided, and live everywhere soon",
                true
        end
        return nil, answer
    end
    return nil, tostring(answer.message), status == 504
end

return _M
