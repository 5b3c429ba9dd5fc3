--- The configuration that was posted to a running gateway, as the command line deals with it.
--
-- The gateway keeps it in <prefix>/posted (gateway.rollout.files). A start drops it; a reload whose
-- file has changed puts it aside, so that the new workers read the file.

local dirent = require("posix.dirent")
local stat = require("posix.sys.stat")

local control = require("cli.control")
local process = require("cli.process")

local _M = {}

local TYPES = { json = "application/json", yaml = "application/yaml", yml = "application/yaml" }

--- Removes every posted configuration.
-- @tparam table instance cli.instance
function _M.drop(instance)
    if not stat.stat(instance.posted) then
        return
    end
    for name in dirent.files(instance.posted) do
        if name ~= "." and name ~= ".." then
            os.remove(instance.posted .. "/" .. name)
        end
    end
end

--- Hides the posted configuration from the workers to come.
-- @tparam table instance cli.instance
-- @treturn function `(worked)`: ends it, for good or back to what it was
function _M.put_aside(instance)
    local link, aside = instance.posted .. "/current", instance.posted .. "/aside"
    local moved = os.rename(link, aside)
    return function(worked)
        if moved and worked then
            os.remove(aside)
        elseif moved then
            os.rename(aside, link)
        end
    end
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
        return nil, answer
    end
    return nil, tostring(answer.message), status == 504
end

return _M
