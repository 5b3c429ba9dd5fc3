--- A certificate's texts, as ngx_sluice_certificate_value.c reads them: PEM, or a
-- reference to the variable of the environment that has it. What the names of a vault's variables
-- begin with is in it then, as C has no vaults.
-- @module gateway.image.pem

local cjson = require("cjson")
local references = require("gateway.config.references")

local NULL = cjson.null

local _M = {}

local function field(name)
    return {
        "made",
        name,
        function(certificate)
            local value = certificate[name]
            return value ~= NULL and references.of_environment(value, certificate._vaults) or nil
        end,
    }
end

--- Of gateway.image.records, in the core's order.
_M.fields = { field("cert"), field("key"), field("cert_alt"), field("key_alt") }

return _M
