--- What the tests of the configuration share.

local config = require("gateway.config")
local registry = require("gateway.plugin.registry")

local _M = {}

_M.registry = assert(registry.load({ "bundled" }))

--- Parses the body of a YAML file of format 3.0; fails the test on errors.
function _M.parse(body, version)
    local source = ('_format_version: "%s"\n%s'):format(version or "3.0", body)
    local snapshot, errors = config.parse(source, "yaml", _M.registry)
    if not snapshot then
        error(config.format_errors(errors), 2)
    end
    return snapshot
end

--- Errors as lines of `path: message`.
function _M.lines(errors)
    local lines = {}
    for i, err in ipairs(errors) do
        lines[i] = err.path == "" and err.message or err.path .. ": " .. err.message
    end
    return table.concat(lines, "\n")
end

--- The errors of a YAML file of format 3.0 as such lines, "" for none.
function _M.errors(body, version)
    local source = ('_format_version: "%s"\n%s'):format(version or "3.0", body)
    local _, errors = config.parse(source, "yaml", _M.registry)
    return _M.lines(errors or {})
end

return _M
