--- Values that a file only refers to: `{vault://env/NAME}` is the environment variable NAME.
-- As in Kong a name is written in capitals and with underscores, whatever the reference has:
-- `{vault://env/redis-password}` is REDIS_PASSWORD, `{vault://env/redis/password}` the text under
-- "password" in the JSON object that REDIS holds. Where a vault has the prefix `my` and its
-- variables begin with APP_, `{vault://my/redis-password}` is APP_REDIS_PASSWORD.
-- @module gateway.config.vault

local cjson = require("cjson.safe")

local format = string.format

local _M = {
    -- The prefix that needs no vault.
    ENV = "env",
}

local function member(variable, value, key)
    local object = cjson.decode(value)
    local found = type(object) == "table" and object[key]
    if type(found) == "string" or type(found) == "number" then
        return tostring(found)
    end
    return nil,
        format("the environment variable '%s' is not a JSON object with a text '%s'", variable, key)
end

--- Makes the function that looks references up in this process's environment.
-- @tparam {string,...} names of the variables that may be referred to: who may post a configuration
--   must not be able to send any variable to a server of his
-- @treturn function `(reference, begin_of)` -> the value, or nil and why there is none;
--   `begin_of(prefix)` says what the names of a vault's variables begin with, nil: no such vault
function _M.new(names)
    local allowed = {}
    for _, name in ipairs(names) do
        allowed[name] = true
    end
    return function(reference, begin_of)
        local prefix, name, key = reference:match("^{vault://([%w-]+)/([%w_-]+)/?([^/?]*)}$")
        if not name then
            return nil, "expected {vault://PREFIX/NAME} or {vault://PREFIX/NAME/KEY}"
        end
        local begin = prefix == _M.ENV and "" or begin_of(prefix)
        if not begin then
            return nil, format("there is no vault with the prefix '%s'", prefix)
        end
        local variable = (begin .. name):gsub("-", "_"):upper()
        if not allowed[variable] then
            local of = prefix == _M.ENV and "" or format(" of the vault '%s'", prefix)
            local message = "the environment variable '%s'%s is not allowed; add it to the "
                .. "setting vault_env"
            return nil, format(message, variable, of)
        end
        local value = os.getenv(variable)
        if not value then
            return nil, format("the environment variable '%s' is not set", variable)
        elseif key ~= "" then
            return member(variable, value, key)
        end
        return value
    end
end

return _M
