--- Responses of the admin listener.
-- @module gateway.admin.response

local garbage_collector = require("sluice.garbage_collector")
local json = require("gateway.schema.json")
local origins = require("gateway.config.origin")
local responses = require("gateway.pdk.response")
local version = require("gateway.version")

local SERVER = "sluice/" .. version.product
local JSON = "application/json; charset=utf-8"
-- When a client that was told that nothing can be changed now may ask again.
local RETRY_SECONDS = 1

local _M = {}

local function send(status, body, headers)
    ngx.header["Server"] = SERVER
    ngx.header["Retry-After"] = status == 503 and RETRY_SECONDS or nil
    return responses.write(status, body, body and JSON, headers)
end

--- Answers with a value as JSON. Yields where that is long.
-- @tparam number status
-- @tparam table value
-- @tparam table|nil headers name -> value
-- @phases content
function _M.json(status, value, headers)
    return send(status, json.encode(value, garbage_collector.turns()), headers)
end

--- Answers with a text that is JSON.
-- @tparam number status
-- @tparam string text
-- @phases content
function _M.json_text(status, text)
    return send(status, text)
end

--- Begins a response that the caller prints piece by piece.
-- @tparam number status
-- @tparam[opt] string content_type JSON's unless given
-- @phases content
function _M.begin(status, content_type)
    ngx.status = status
    ngx.header["Server"] = SERVER
    ngx.header["Content-Type"] = content_type or JSON
end

--- Answers that the client has it already.
-- @phases content
function _M.not_modified()
    return send(304)
end

--- Answers that it is done, and that there is nothing to show.
-- @phases content
function _M.no_content()
    return send(204)
end

--- Says the revision of the store that an answer is of, or a later one.
-- @tparam number|nil revision
-- @phases content
function _M.set_revision(revision)
    ngx.header["Sluice-Revision"] = revision
end

--- Answers that there is nothing at this path.
-- @phases content
function _M.not_found()
    return _M.json(404, { message = "Not found" })
end

--- Answers in place of nginx's own error page.
-- @tparam number status
-- @phases content
function _M.refused(status)
    return _M.json(status, { message = responses.refusal(status) })
end

--- Answers that the path exists, but not for this method.
-- @tparam string allowed methods that it has, as in an Allow header
-- @phases content
function _M.method_not_allowed(allowed)
    return _M.json(405, { message = "Method not allowed" }, { Allow = allowed })
end

-- As Kong says it.
local WRITES = { POST = "create", PUT = "create or update", PATCH = "update", DELETE = "remove" }
local UNSUPPORTED = "cannot %s '%s' entities when not using a database; "

--- Answers that a file is the configuration, or what was posted last, and nothing else writes it.
-- Kong's number, name, status and the beginning of its message.
-- @tparam string allowed methods that the path has all the same, as in an Allow header
-- @tparam table settings resolved settings: `file`
-- @tparam[opt] string method with which one of a kind was to be written
-- @tparam[opt] string kind
-- @phases content
function _M.read_only(allowed, settings, method, kind)
    local beginning = kind and WRITES[method] and UNSUPPORTED:format(WRITES[method], kind)
        or "read-only: "
    return _M.json(405, {
        code = 12,
        name = "operation unsupported",
        message = beginning .. origins.how_to_change(settings),
    }, { Allow = allowed })
end

--- Answers which methods a path has; not to other origins' pages, so without CORS.
-- @tparam string allowed methods, as in an Allow header
-- @phases content
function _M.options(allowed)
    return send(204, nil, { Allow = allowed })
end

--- Answers that an argument cannot be used, in Kong's form.
-- @tparam string name Kong's name of the error, such as "invalid size"
-- @tparam number code Kong's number for it
-- @tparam string message what is wrong, for a human
-- @phases content
function _M.bad_request(name, code, message)
    return _M.json(400, { name = name, code = code, message = message })
end

return _M
