--- Which addresses of the Admin API ask their clients for certificates of a CA.

local listen_of = require("cli.options.listen")

local _M = {}

--- Whether an address answers only clients with a certificate.
-- @tparam table settings resolved settings
-- @tparam table listen of cli.options.listen
-- @treturn boolean
function _M.guards(settings, listen)
    return listen.ssl and settings.admin_client_ca ~= "" and settings.admin_verify_client == "on"
end

--- Says where a CA is no use, as there is no TLS.
-- @tparam table settings resolved ones, and nil for those that are wrong
-- @tparam table errors array that gets a line for what is wrong
-- @tparam table warnings array that gets a line for what is not guarded
function _M.check(settings, errors, warnings)
    local plain, has_tls = {}, false
    for _, address in ipairs(settings.admin_listen or {}) do
        local is_tls = listen_of.parse(address).ssl
        has_tls = has_tls or is_tls
        plain[#plain + 1] = not is_tls and address:match("^%S+") or nil
    end
    if (settings.admin_client_ca or "") == "" or #plain == 0 then
        return
    elseif not has_tls then
        errors[#errors + 1] = "admin_client_ca: no address of admin_listen has ssl, so no client "
            .. "is asked for a certificate; add it"
    elseif settings.admin_verify_client == "on" then
        local line = "admin_client_ca: clients of %s, which is without ssl, need no certificate"
        warnings[#warnings + 1] = line:format(table.concat(plain, ", "))
    end
end

return _M
