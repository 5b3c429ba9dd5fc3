--- What of the settings stands in files of the prefix: settings.json has no text that is a secret,
-- but where it is.

local options = require("cli.options")
local tls = require("cli.nginx.tls")

local _M = {}

--- Settings as settings.json has them: without documents, and with files in place of texts.
-- @tparam table settings resolved settings
-- @treturn table
function _M.settings(settings)
    local kept = {}
    for name, value in pairs(settings) do
        kept[name] = value
    end
    for _, option in ipairs(options.list) do
        if option.type == "document" then
            kept[option.name] = nil
        elseif option.type == "pem_list" then
            kept[option.name] = {}
            for i, each in ipairs(tls.own_files(settings, option.name)) do
                kept[option.name][i] = each.path
            end
        end
    end
    return kept
end

--- Certificates and keys that the settings hold as text, and the files that are to have them.
-- @tparam table settings resolved settings
-- @treturn {table,...} path and text of each
function _M.texts(settings)
    local texts = {}
    for _, option in ipairs(options.list) do
        local files = option.type == "pem_list" and tls.own_files(settings, option.name) or {}
        for _, each in ipairs(files) do
            texts[#texts + 1] = each.text and { each.path, each.text } or nil
        end
    end
    return texts
end

return _M
