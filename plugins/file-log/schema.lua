--- Configuration of the file-log plugin, in Kong's layout.
-- @module plugins.file-log.schema

local path = require("plugins.file-log.path")
local typedefs = require("gateway.schema.typedefs")

-- Of the instance, once the plugin is loaded for one.
local prefix, own_logs

local function check_config(config)
    if type(config.path) ~= "string" then
        return true
    end
    local ok, err = path.check(config.path, prefix, own_logs)
    return ok, err and "path: " .. err
end

return {
    name = "file-log",
    use_prefix = function(folder, settings)
        prefix, own_logs = folder, folder and path.own_logs(settings, folder)
    end,
    description = "Writes a log entry for each request to a file.",
    fields = {
        { protocols = typedefs.protocols },
        {
            config = {
                type = "record",
                required = true,
                description = "File that log entries are written to.",
                fields = {
                    {
                        path = {
                            type = "string",
                            required = true,
                            match = "^[^*&%%\\`]+$",
                            err = "not a valid filename",
                            description = "File that entries are appended to; created with mode "
                                .. "0644 if it does not exist. `/dev/stdout` and `/dev/stderr` are "
                                .. "those of nginx. A relative path begins with `logs/`, which is "
                                .. "the prefix's.",
                        },
                    },
                    {
                        reopen = {
                            type = "boolean",
                            required = true,
                            default = false,
                            description = "Open the file again for each write, so that one that "
                                .. "was renamed or removed is replaced at once.",
                        },
                    },
                    { custom_fields_by_lua = typedefs.lua_code },
                },
                custom_validator = check_config,
            },
        },
    },
}
