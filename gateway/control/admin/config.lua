--- `POST /config`: a whole declarative file replaces the configuration of all workers.
-- @module gateway.control.admin.config

local body = require("gateway.control.admin.body")
local response = require("gateway.control.admin.response")
local caller = require("gateway.control.admin.caller")
local config = require("gateway.config")
local document = require("gateway.config.document")
local json = require("gateway.control.admin.json")
local refusals = require("gateway.control.refusals")

local ngx = ngx

-- Media type -> kind of the text; false: to be told by the text itself.
local KINDS = {
    ["application/json"] = "json",
    ["application/yaml"] = "yaml",
    ["application/x-yaml"] = "yaml",
    ["text/yaml"] = "yaml",
    ["text/x-yaml"] = "yaml",
    ["text/plain"] = false,
}

-- Kong's number and name for a file that is not right.
local INVALID, INVALID_NAME = 14, "invalid declarative configuration"

-- Arguments of the query.
local SWITCHES = { "check_hash", "wait" }

local _M = {}

-- `curl --data-binary @file` calls any text a form.
local function from_form(text)
    local value = text:match("^config=([^&]*)") or text:match("&config=([^&]*)")
    return value and ngx.unescape_uri(value) or text
end

--- A JSON object may hold the text in its field `config`, as Kong's clients send it.
local function from_json(text)
    local head = text:sub(1, 64)
    local wrapped = head:find('^%s*{%s*"config"%s*:%s*"') and document.decode(text, "json")
    if wrapped and type(wrapped.config) == "string" then
        return wrapped.config, nil
    end
    return text, "json"
end

--- Reads the declarative file out of the request. Yields.
-- @treturn string|nil its text; nil when the media type is unknown
-- @treturn string|nil "json" or "yaml", nil: to be told by the text
local function read_text()
    local media_type, header = body.media_type()
    media_type = media_type or "text/plain"
    if media_type == "multipart/form-data" then
        local fields = body.form(body.text(), media_type, header)
        return fields and fields.values.config and fields.values.config[1]
    elseif media_type == "application/x-www-form-urlencoded" then
        return from_form(body.text())
    elseif media_type == "application/json" then
        return from_json(body.text())
    elseif KINDS[media_type] == nil then
        return nil
    end
    return body.text(), KINDS[media_type] or nil
end

local function refuse(errors)
    local fields, list = {}, json.array({})
    for i, err in ipairs(errors) do
        fields[err.path == "" and "@document" or err.path] = err.message
        list[i] = {
            path = err.path,
            message = err.message,
            entity = err.entity,
            line = err.line,
        }
    end
    local more = #errors > 1 and (" (and %d more)"):format(#errors - 1) or ""
    return response.json(400, {
        message = "declarative config is invalid: " .. config.format_error(errors[1]) .. more,
        name = INVALID_NAME,
        code = INVALID,
        fields = fields,
        errors = list,
    })
end

--- Answers the request: 201 when every worker serves it; 304 with `?check_hash=1` when it is live
-- already. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.post(live, args)
    for _, name in ipairs(SWITCHES) do
        local value = args[name]
        if value ~= nil and value ~= "0" and value ~= "1" then
            return response.json(400, { message = name .. " must be 0 or 1, given once" })
        end
    end
    local text, kind = read_text()
    if not text then
        return response.json(415, { message = "expected a declarative file as JSON, YAML or form" })
    end
    if args.check_hash == "1" and live.configuration:origin(text) == live.state().origin then
        return response.not_modified()
    end
    local begun = ngx.now()
    local result, word, why = live.configuration:replace(text, kind, caller.describe())
    if word == "invalid" then
        return refuse(why)
    elseif not result then
        return response.json(refusals.status(word), { message = why, name = word })
    end
    ngx.update_time()
    return response.json(201, {
        version = result.revision,
        store = result.uuid,
        hash = result.hash,
        workers = #live.workers(),
        ms = (ngx.now() - begun) * 1000,
    })
end

return _M
