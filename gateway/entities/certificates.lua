--- Schema of a certificate with its private key.
-- @module gateway.entities.certificates

local typedefs = require("gateway.schema.typedefs")
local x509 = require("gateway.schema.x509")

local EXAMPLE = [[
# started with: --vault-env SHOP_CERT,SHOP_KEY
certificates:
  - cert: "{vault://env/SHOP_CERT}"
    key: "{vault://env/SHOP_KEY}"
    snis:
      - name: shop.example.com
      - name: "*.shop.example.com"
]]

local function check_pair(certificate)
    return x509.is_pair(certificate.cert, certificate.key) or nil, "certificate does not match key"
end

local function check_alternative_pair(certificate)
    local chain, key = certificate.cert_alt, certificate.key_alt
    return not chain or x509.is_pair(chain, key) or nil,
        "alternative certificate does not match key"
end

local function check_types(certificate)
    local chain = certificate.cert_alt
    return not chain or x509.key_type(chain) ~= x509.key_type(certificate.cert) or nil,
        "certificate and alternative certificate need to have different type (e.g. RSA and "
            .. "ECDSA), the provided certificates were both of the same type"
end

local function check_distinct(names)
    local seen = {}
    for _, name in ipairs(names) do
        if seen[name] then
            return nil, name .. " is duplicated"
        end
        seen[name] = true
    end
    return true
end

-- Of what clients would refuse. An expired one is served: it may be all that there is.
local function warnings(certificate, now)
    local out = {}
    for _, field in ipairs({ "cert", "cert_alt" }) do
        local chain = certificate[field]
        local ok, why = true, nil
        if type(chain) == "string" then
            ok, why = x509.check_dates(chain, now)
        end
        if not ok then
            out[#out + 1] = { field = field, message = why }
        end
    end
    return out
end

-- What a list of names makes of a certificate's SNIs: these, no others. Without one they stay.
local function spread(certificate, values, find_all)
    local wanted, operations = {}, {}
    for _, name in ipairs(values.snis or {}) do
        wanted[name] = true
    end
    local there = values.snis and find_all("snis", "certificate", certificate.id) or {}
    for _, sni in ipairs(there) do
        if not wanted[sni.name] then
            operations[#operations + 1] = { method = "DELETE", kind = "snis", key = sni.id }
        end
        wanted[sni.name] = nil
    end
    for _, name in ipairs(values.snis or {}) do
        if wanted[name] then
            local value = { name = name, certificate = { id = certificate.id } }
            operations[#operations + 1] = { method = "POST", kind = "snis", value = value }
        end
    end
    return operations
end

return {
    name = "certificates",
    description = "A TLS certificate of the gateway with its private key. It is served for its "
        .. "server names (SNIs).",
    example = EXAMPLE,
    primary_key = { "id" },
    -- what an id is made of
    identity = { "cert" },
    -- Kong's paths take the name of an SNI for its certificate.
    known_by = { kind = "snis", field = "certificate" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        {
            cert = typedefs.certificate({
                required = true,
                referenceable = true,
                description = "The certificate in PEM format, followed by those of its issuers, at "
                    .. "most 32 in total. An expired certificate is accepted with a warning.",
            }),
        },
        {
            key = typedefs.key({
                required = true,
                referenceable = true,
                encrypted = true,
                description = "Private key of `cert` in PEM format, not encrypted.",
            }),
        },
        {
            cert_alt = typedefs.certificate({
                referenceable = true,
                description = "A second certificate for the same names with another key type, such "
                    .. "as ECDSA in addition to RSA. Clients receive the one that they support.",
            }),
        },
        {
            key_alt = typedefs.key({
                referenceable = true,
                encrypted = true,
                description = "Private key of `cert_alt` in PEM format, not encrypted.",
            }),
        },
        { tags = typedefs.tags },
        -- The names of its SNIs, which are entities of their own.
        {
            snis = {
                type = "array",
                elements = typedefs.wildcard_host,
                custom_validator = check_distinct,
                transient = true,
                description = "Server names of the certificate; each is an entity of kind `snis`. "
                    .. "A list replaces the existing names; without a list they are kept.",
            },
        },
    },
    entity_checks = {
        { mutually_required = { "cert_alt", "key_alt" } },
        {
            custom_entity_check = {
                field_sources = { "cert", "key" },
                fn = check_pair,
                description = "`key` must match `cert`.",
            },
        },
        {
            custom_entity_check = {
                field_sources = { "cert_alt", "key_alt" },
                fn = check_alternative_pair,
                description = "`key_alt` must match `cert_alt`.",
            },
        },
        {
            custom_entity_check = {
                field_sources = { "cert", "cert_alt" },
                fn = check_types,
                description = "`cert` and `cert_alt` must have different key types.",
            },
        },
    },
    -- `(entity, now)` -> `{ field =, message = }` of what is right and of no use.
    warnings = warnings,
    -- What a write makes beside the entity.
    spread = spread,
    -- What an answer shows beside what is stored.
    show = function(certificate, find)
        local names = {}
        for i, sni in ipairs(find("snis", "certificate", certificate.id)) do
            names[i] = sni.name
        end
        table.sort(names)
        certificate.snis = #names > 0 and names or nil
    end,
}
