--- What request-termination decides: by hand (test/unit/decisions_spec.lua).

local cjson = require("cjson")
local core = require("test.unit.support.core")

local ffi, lib = core.ffi, core.lib

local told, headers
local entities = {}

local function fill(text, value)
    text.data, text.length = value, #value
end

-- As sluice_request_termination_own_t has it.
local own = ffi.new(
    [[struct {
        int (*line)(void *own, uint32_t index, sluice_core_text_t *name,
            sluice_core_text_t *value);
        int (*entity)(void *own, int kind, sluice_core_text_t *text);
        sluice_core_text_t node_id;
        sluice_core_text_t hostname;
        uint32_t pid;
        uint32_t port;
    }]],
    {
        line = function(_, index, name, value)
            if not headers[2 * index + 1] then
                return lib.SLUICE_FACT_NONE
            end
            fill(name, headers[2 * index + 1])
            fill(value, headers[2 * index + 2])
            return lib.SLUICE_FACT_OK
        end,
        entity = function(_, kind, text)
            fill(text, entities[kind])
            return lib.SLUICE_FACT_OK
        end,
    }
)

local TERMINATION = { status_code = 404, trigger = "stop" }

return {
    cases = {
        {
            { status_code = 503, body = "later", content_type = "text/plain" },
            {},
            "respond",
            { status = 503, message = "later", type = "text/plain" },
        },
        {
            TERMINATION,
            { query = "a=1&stop", headers = {} },
            "respond",
            { status = 404, message = '{"message":"Not found"}' },
        },
        { TERMINATION, { query = "a=1", headers = {} }, "pass" },
        { TERMINATION, { query = false }, "unknown", { unknown = "the headers" } },
    },

    --- What nginx's process says of itself in an echo (`kong`, `port`), the route and the service.
    own = function(given, request)
        told, headers = given, request.headers
        if not told.kong then
            return nil
        end
        fill(own.node_id, told.kong.node_id)
        fill(own.hostname, told.kong.hostname)
        own.pid, own.port = told.kong.worker_pid, told.port
        entities[lib.SLUICE_CORE_ROUTE] = cjson.encode(told.route)
        entities[lib.SLUICE_CORE_SERVICE] = cjson.encode(told.service)
        return own
    end,
}
