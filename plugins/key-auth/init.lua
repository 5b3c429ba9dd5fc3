--- Asks for a key that belongs to a consumer.
-- @module plugins.key-auth

local credentials = require("plugins.key-auth.credentials")
local fields = require("plugins.key-auth.fields")
local header = require("sluice.header")
local pdk = require("gateway.plugin.pdk")
local redact = require("sluice.redact")
local schema = require("plugins.key-auth.schema")

local find = string.find
local gsub = string.gsub
local lower = string.lower
local ngx = ngx

local MISSING = "No API key found in request"
local DUPLICATE = "Duplicate API key found"
local WRONG = "Unauthorized"

local _M = {
    name = "key-auth",
    version = "0.1.0",
    priority = 1250,
    schema = schema,
    entities = { credentials },
}

-- Rules compiled from configurations, by configuration. A rule goes when nobody has its
-- configuration any more.
local rules = setmetatable({}, { __mode = "k" })

--- A text between quotes, for a header (RFC 9110, section 5.6.4).
local function quote(text)
    return '"' .. gsub(text, '["\\]', "\\%0") .. '"'
end

local function compile(conf)
    local names = {}
    for _, name in ipairs(conf.key_names) do
        local dashed = name:gsub("_", "-")
        -- No log has the key.
        redact.add(name)
        names[#names + 1] = {
            plain = name,
            header = header.new(name),
            -- Clients that cannot send an underscore in a header send a dash.
            dashed = dashed ~= name and header.new(dashed) or nil,
        }
    end
    return {
        names = names,
        size = #names,
        challenge = {
            ["WWW-Authenticate"] = conf.realm and "Key realm=" .. quote(conf.realm) or "Key",
        },
    }
end

local function read_body()
    local content_type = pdk.header("Content-Type")
    if not content_type then
        return nil
    end
    local kind = lower(content_type)
    local parse = find(kind, "application/x-www-form-urlencoded", 1, true) == 1 and fields.from_form
        or find(kind, "application/json", 1, true) == 1 and fields.from_json
        or find(kind, "multipart/form-data", 1, true) == 1 and fields.from_multipart
    if not parse then
        return nil
    end
    ngx.req.read_body()
    local text = ngx.req.get_body_data()
    if not text and ngx.req.get_body_file() then
        ngx.log(ngx.INFO, "key-auth: no key is read from a body above client_body_buffer_size")
    end
    return text and parse(text, content_type)
end

local function find_in_headers(name)
    local value, count = name.header:get_request()
    if count == 0 and name.dashed then
        return name.dashed:get_request()
    end
    return value, count
end

--- Does the query need a look for this name? Unless it is there as it is, or something is escaped,
-- there is nothing to decode.
local function may_be_in(args, name)
    return args and (find(args, name, 1, true) or find(args, "%", 1, true))
end

--- Takes a key's name out of the request, wherever it stands.
local function hide(conf, name, form, body)
    name.header:clear_request()
    if name.dashed then
        name.dashed:clear_request()
    end

    local args = pdk.query()
    local rest = args and fields.without(form or fields.from_form(args), name.plain)
    if rest then
        ngx.req.set_uri_args(rest)
    end

    if conf.key_in_body then
        if body == nil then
            body = read_body()
        end
        rest = body and fields.without(body, name.plain)
        if rest then
            ngx.req.set_body_data(rest)
        end
    end
end

--- Finds the key of the request. Query and body are cut once, not for each name.
-- @treturn string|nil the key
-- @treturn string|nil why there is none, as the client is told
local function read_key(conf, rule)
    local form, body
    local args = conf.key_in_query and pdk.query()
    for i = 1, rule.size do
        local name = rule.names[i]
        local value, count = nil, 0
        if conf.key_in_header then
            value, count = find_in_headers(name)
        end
        if count == 0 and may_be_in(args, name.plain) then
            form = form or fields.from_form(args)
            value, count = fields.lookup(form, name.plain)
        end
        if count == 0 and conf.key_in_body then
            if body == nil then
                body = read_body() or false
            end
            if body then
                value, count = fields.lookup(body, name.plain)
            end
        end

        if count > 1 then
            return nil, DUPLICATE
        end
        if count == 1 and type(value) == "string" then
            if conf.hide_credentials then
                hide(conf, name, form, body)
            end
            if value == "" then
                return nil, MISSING
            end
            return value
        end
    end
    return nil, MISSING
end

--- Authenticates the request by its key.
-- @treturn boolean|nil true
-- @treturn string|nil why not, as the client is told
local function authenticate(conf, rule)
    local key, err = read_key(conf, rule)
    if not key then
        return nil, err
    end
    local credential, consumer = pdk.store():credential(credentials.name, key)
    if not credential then
        return nil, WRONG
    end
    pdk.authenticate(consumer, credential)
    return true
end

--- Lets the request pass as the anonymous consumer.
local function authenticate_anonymous(conf)
    local consumer = pdk.store():get("consumers", conf.anonymous)
    if consumer then
        return pdk.authenticate(consumer, nil)
    end
    local message = "anonymous consumer " .. conf.anonymous .. " is configured but doesn't exist"
    ngx.log(ngx.ERR, "key-auth: ", message)
    return pdk.error(500, message)
end

--- Compiles the rules of configurations that this worker has met.
function _M.configure(_, confs)
    for _, conf in ipairs(confs) do
        rules[conf] = compile(conf)
    end
end

--- Lets requests with a valid key pass, and refuses others or makes them anonymous.
function _M.access(_, conf)
    if not conf.run_on_preflight and ngx.req.get_method() == "OPTIONS" then
        return
    end
    -- With an anonymous consumer, several such plugins mean: one of them is enough.
    local anonymous = conf.anonymous
    if anonymous and pdk.credential() then
        return
    end

    local rule = rules[conf]
    local is_known, err = authenticate(conf, rule)
    if is_known then
        return
    end
    if anonymous then
        return authenticate_anonymous(conf)
    end
    return pdk.error(401, err, rule.challenge)
end

return _M
