-- The steps of a request: their order is security, and it is said in one place.

local files = require("test.house.files")
local scan = require("test.house.scan")

local TABLE = "module/gateway/process/ngx_http_sluice_steps.c"

describe("the steps of a request", function()
    it("are taken in this order", function()
        local steps = {}
        local text = files.read(TABLE):match("ngx_http_sluice_steps%[%] = {\n(.-)\n};")
        for phase, part in
            text:gmatch("{ NGX_HTTP_([%u_]+)_PHASE,%s+ngx_http_sluice_([%w_]+)_handler }")
        do
            steps[#steps + 1] = phase:lower() .. " " .. part
        end
        assert.same({
            "post_read spoofed_headers",
            "server_rewrite sanitize",
            "server_rewrite route",
            "access access",
            "log late_log",
            "log metrics",
            "log http2",
        }, steps)
        local _, rows = text:gsub("_PHASE", "")
        assert.equal(#steps, rows)
    end)

    it("are given to nginx in no other place", function()
        local found = {}
        for path, text in scan.sources({ "module", "plugins" }, "%.[ch]$") do
            found[#found + 1] = text:find("phases%[") and path or nil
        end
        assert.same({ TABLE }, found)
    end)
end)
