--- What a request was matched with, as C keeps it (module/gateway/request/ngx_http_sluice_ctx.h).
-- @module gateway.pdk.matched

local abi = require("sluice.ffi.abi")
local core = require("sluice.ffi.core")
local ffi = require("ffi")

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/request")
ffi.cdef("int memcmp(const void *a, const void *b, size_t length);")

local C = core.C

local OK = 0

local KINDS = { route = C.SLUICE_CORE_ROUTE, service = C.SLUICE_CORE_SERVICE }

local _M = {}

local text = ffi.new("sluice_core_text_t")
local entity = ffi.new("sluice_core_entity_t")

--- The request's route, or its service, as they were when it was matched.
-- @tparam string kind "route" or "service"
-- @treturn number|nil its slot; nil: it has none
-- @phases access, header_filter, body_filter, log
function _M.entity(kind)
    local rc = C.sluice_ctx_entity(get_request(), KINDS[kind], entity)
    return rc == OK and entity.slot or nil
end

--- Whether this is the text of what `entity` has found last. A comparison costs a tenth of the
-- string that the text would be made into.
-- @tparam string known
-- @treturn boolean
function _M.is_body(known)
    return #known == entity.body_length and C.memcmp(known, entity.body, #known) == 0
end

--- The text of what `entity` has found last.
-- @treturn string of gateway.store.entity_text
function _M.body()
    return ffi.string(entity.body, entity.body_length)
end

--- The path of the request, normalised.
-- @treturn string|nil nil: nginx has refused the request before it had one
-- @phases rewrite, access, header_filter, body_filter, log
function _M.path()
    C.sluice_ctx_path(get_request(), text)
    return text.length > 0 and ffi.string(text.data, text.length) or nil
end

return _M
