--- What request-size-limiting decides: by hand (test/unit/decisions_spec.lua).

local SIZE = { allowed_payload_size = 2, size_unit = "kilobytes" }

return {
    cases = {
        { SIZE, { headers = { "Content-Length", "2049" } }, "respond", { status = 413 } },
        { SIZE, { headers = {} }, "pass", { bound = 2048 } },
    },
}
