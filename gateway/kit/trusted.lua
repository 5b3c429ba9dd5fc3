--- Whose word on addresses is taken (setting `trusted_ips`).
-- @module gateway.kit.trusted

local address = require("sluice.address")
local configuration = require("gateway.kit.configuration").view
local variables = require("gateway.pdk.variables")

local _M = {}

-- Answers for an address. Made at the first question, when the settings are known; false: nobody
-- is trusted.
local matcher

local function make()
    local ranges = {}
    for _, range in ipairs(configuration.trusted_ips or {}) do
        -- nginx's "unix:" is none.
        ranges[#ranges + 1] = address.is_ip_or_cidr(range) and range or nil
    end
    matcher = #ranges > 0 and assert(require("resty.ipmatcher").new(ranges))
end

--- Whether an address is one of `trusted_ips`. Does not yield.
-- @tparam string ip IPv4 or IPv6
-- @treturn boolean false also where it is no address
-- @phases any
function _M.has(ip)
    if matcher == nil then
        make()
    end
    return matcher and type(ip) == "string" and matcher:match(ip) and true or false
end

--- Whether the peer of the request's connection is one of them. Does not yield.
-- @treturn boolean
-- @phases rewrite, access, content, header_filter, body_filter, log
function _M.has_client()
    if matcher == nil then
        make()
    end
    return matcher and _M.has(variables.realip_remote_addr:get())
end

return _M
