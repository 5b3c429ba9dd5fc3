--- Who asks the admin listener, as far as its answers depend on it.
--
-- Its name stands in the variable `sluice_admin_by`, which the audit log has as well
-- (cli/nginx/logs.lua).
-- @module gateway.admin.caller

local variables = require("gateway.pdk.variables")

local _M = {}

--- Notes who asks.
-- @tparam table caller of gateway.admin.auth
-- @tparam boolean hides_secrets whether answers leave secrets out unless told otherwise
-- @phases content
function _M.note(caller, hides_secrets)
    variables.sluice_admin_by:set(caller.name)
    ngx.ctx.caller = caller
    ngx.ctx.hides_secrets = hides_secrets or not caller.can_write
end

--- Takes the argument `reveal` of the query: 1 shows the secrets, 0 hides them.
-- @tparam table args arguments of the query
-- @treturn number|nil status to refuse it with
-- @treturn string|nil why
-- @phases content
function _M.read_reveal(args)
    local reveal = args.reveal
    if reveal == nil then
        return nil
    elseif reveal == "0" then
        ngx.ctx.hides_secrets = true
        return nil
    elseif reveal ~= "1" then
        return 400, "reveal must be 0 or 1, given once"
    elseif not ngx.ctx.caller.can_write then
        return 403, "this token is read-only and cannot reveal secrets"
    end
    ngx.ctx.hides_secrets, ngx.ctx.reveals = false, true
end

--- Whether secrets are left out of the answer.
-- @treturn boolean
-- @phases content
function _M.hides_secrets()
    return ngx.ctx.hides_secrets
end

--- Whether secrets were asked for by `reveal`.
-- @treturn boolean
-- @phases content
function _M.reveals()
    return ngx.ctx.reveals == true
end

--- Who asks and from where, for people: "admin_token from 10.0.0.1", "control socket".
-- @treturn string
-- @phases content
function _M.describe()
    local name, from = ngx.ctx.caller.name, variables.remote_addr:get()
    -- nginx's address of a client on a UNIX socket.
    return from == "unix:" and name or name .. " from " .. from
end

return _M
