--- `POST /config`: a whole declarative file replaces the configuration of all workers.
-- @module gateway.control.admin.config

local response = require("gateway.control.admin.response")
local config = require("gateway.config")
local document = require("gateway.config.document")
local json = require("gateway.control.admin.json")
local variables = require("gateway.request.variables")

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

-- Bytes of a multipart boundary (RFC 2046, section 5.1.1).
local MAX_BOUNDARY = 70

-- Kong's number and name for a file that is not right.
local INVALID, INVALID_NAME = 14, "invalid declarative configuration"

-- Status of what cannot be done, by the words of gateway.control.configuration; 500 else.
local STATUS = {
    busy = 503,
    full = 507,
    locked = 503,
    ["no memory"] = 507,
    ["not ready"] = 503,
    ["read only"] = 503,
    ["reference missing"] = 400,
    ["unique violation"] = 409,
    unbuildable = 400,
}

-- Arguments of the query.
local SWITCHES = { "check_hash", "wait" }

local _M = {}

local function read_body()
    ngx.req.read_body()
    local text = ngx.req.get_body_data()
    local path = not text and ngx.req.get_body_file()
    if path then
        local file = assert(io.open(path, "rb"))
        text = file:read("*a")
        file:close()
    end
    return text or ""
end

--- The field `config` of a multipart form.
local function from_multipart(text, content_type)
    local boundary = content_type:match('boundary="([^"]+)"')
        or content_type:match("boundary=([^;%s]+)")
    local at = 1
    local delimiter = boundary and #boundary <= MAX_BOUNDARY and "--" .. boundary
    while delimiter do
        local _, head = text:find(delimiter, at, true)
        local head_end, body = text:find("\r\n\r\n", head or #text, true)
        local finish = body and text:find("\r\n" .. delimiter, body - 1, true)
        if not finish then
            return nil
        end
        if text:sub(head, head_end):find('name="config"', 1, true) then
            return text:sub(body + 1, finish - 1)
        end
        at = finish
    end
    return nil
end

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
    local content_type = variables.http_content_type:get() or "text/plain"
    local media_type = content_type:match("^[^;%s]*"):lower()
    if media_type == "multipart/form-data" then
        return from_multipart(read_body(), content_type)
    elseif media_type == "application/x-www-form-urlencoded" then
        return from_form(read_body())
    elseif media_type == "application/json" then
        return from_json(read_body())
    elseif KINDS[media_type] == nil then
        return nil
    end
    return read_body(), KINDS[media_type] or nil
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
    local result, word, why = live.configuration:replace(text, kind)
    if word == "invalid" then
        return refuse(why)
    elseif not result then
        return response.json(STATUS[word] or 500, { message = why, name = word })
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
