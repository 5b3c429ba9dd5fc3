--- Which files entries may go to. C looks once more when it opens one (ngx_sluice_file_log_open.c),
-- where links and devices are seen: this opens nothing.
-- @module plugins.file-log.path

local STREAMS = { ["/dev/stdout"] = true, ["/dev/stderr"] = true }

local MAX_BYTES = 1024

local _M = {}

--- A path without `.`, `..` and doubled slashes.
local function normal(path)
    local out = {}
    for segment in path:gmatch("[^/]+") do
        if segment == ".." then
            out[#out] = nil
        elseif segment ~= "." then
            out[#out + 1] = segment
        end
    end
    return "/" .. table.concat(out, "/")
end

local function is_in(path, folder)
    return path:sub(1, #folder + 1) == folder .. "/"
end

--- The logs of the gateway itself, as `check` takes them.
-- @tparam table settings of the instance; those of them that name a log
-- @tparam string prefix of the instance
-- @treturn table paths as keys
function _M.own_logs(settings, prefix)
    local found = {}
    for name, value in pairs(settings) do
        if type(value) == "string" and name:find("_log$") then
            found[normal(value:sub(1, 1) == "/" and value or prefix .. "/" .. value)] = true
        end
    end
    return found
end

--- Looks whether a path may be logged to.
-- @tparam string path
-- @tparam[opt] string prefix of the instance, where it is known
-- @tparam[opt] table own_logs of `own_logs`
-- @treturn boolean|nil true
-- @treturn string|nil what is wrong, for a human
function _M.check(path, prefix, own_logs)
    if #path > MAX_BYTES then
        return nil, ("must not be longer than %d bytes"):format(MAX_BYTES)
    elseif path:find("%c") then
        return nil, "must not contain control characters"
    elseif STREAMS[path] then
        return true
    elseif path:sub(-1) == "/" then
        return nil, "must name a file, not a folder"
    elseif path:sub(1, 1) ~= "/" and not is_in(normal(path), "/logs") then
        return nil, "must be absolute, or begin with 'logs/', which is the prefix's"
    end
    local is_relative = path:sub(1, 1) ~= "/"
    local found = normal(is_relative and prefix and prefix .. "/" .. path or path)
    if own_logs and own_logs[found] then
        return nil, "is a log of the gateway itself"
    elseif is_relative then
        return true
    end
    for _, folder in ipairs({ "/dev", "/proc", "/sys" }) do
        if is_in(found, folder) then
            return nil, "of devices only /dev/stdout and /dev/stderr are taken, by these names"
        end
    end
    local own = prefix and normal(prefix)
    if own and is_in(found, own) and not is_in(found, own .. "/logs") then
        return nil, "in the prefix only files in logs/ are taken"
    end
    return true
end

return _M
