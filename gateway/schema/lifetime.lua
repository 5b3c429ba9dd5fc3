--- How long an entity lives: clients and files give and see `ttl`, the seconds that are left; kept
-- is `expires_at`, the second since 1970 at which it ends. Kinds whose schema has `expires` have
-- both.
-- @module gateway.schema.lifetime

local type = type

local _M = {}

--- Begins a life, of the seconds that an entity was given; 0 is no end.
-- @tparam table definition schema
-- @tparam table entity checked, is changed
-- @tparam number now seconds since 1970
function _M.begin(definition, entity, now)
    if not definition.expires then
        return
    end
    local ttl = entity.ttl
    entity.ttl, entity.expires_at = nil, nil
    if type(ttl) == "number" and ttl > 0 then
        entity.expires_at = now + ttl
    end
end

--- Puts the seconds that are left into the place of its end.
-- @tparam table entity from the store or a change, is changed
-- @tparam number now seconds since 1970
function _M.show(entity, now)
    local expires_at = entity.expires_at
    if expires_at then
        entity.expires_at, entity.ttl = nil, expires_at > now and expires_at - now or 0
    end
end

return _M
