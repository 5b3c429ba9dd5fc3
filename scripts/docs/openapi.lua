--- docs/openapi.json: the document of the bundled plugins, a line for each path and component.
-- `make docs` writes it; test/unit/docs_spec.lua holds it to the code.

local json = require("gateway.schema.json")
local openapi = require("gateway.admin.openapi")
local registry = require("gateway.plugin.registry")

local _M = {}

-- Tables whose members are a line each, by their place.
local SPLIT =
    { [""] = true, [".paths"] = true, [".components"] = true, [".components.schemas"] = true }

local function write(out, value, place)
    if not SPLIT[place] then
        out[#out + 1] = json.encode(value)
        return
    end
    local keys = {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    for i, key in ipairs(keys) do
        out[#out + 1] = (i == 1 and "{\n" or ",\n") .. json.encode(key) .. ": "
        write(out, value[key], place .. "." .. key)
    end
    out[#out + 1] = "\n}"
end

--- The text of the file.
function _M.text()
    local out = {}
    write(out, openapi.document(assert(registry.load({ "bundled" }))), "")
    out[#out + 1] = "\n"
    return table.concat(out)
end

return _M
