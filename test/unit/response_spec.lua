-- The format of an error by the Accept header.

local response = require("gateway.request.response")

describe("response format", function()
    local function kind(accept)
        return response.format_for(accept).content_type:match("^[^;]+")
    end

    it("is chosen by Accept", function()
        local cases = {
            ["*/*"] = "application/json",
            ["application/json"] = "application/json",
            ["application/*"] = "application/json",
            ["application/xml"] = "application/xml",
            ["text/xml"] = "application/xml",
            ["text/html"] = "text/html",
            ["Text/HTML; charset=utf-8"] = "text/html",
            ["text/plain"] = "text/plain",
            ["text/*"] = "text/plain",
            ["image/png"] = "application/json",
            [""] = "application/json",
            ["garbage;;q=,;"] = "application/json",
            ["application/xml;q=0.3, text/html;q=0.9, text/plain;q=0.5"] = "text/html",
            ["text/plain, text/html"] = "text/plain",
            ["text/html;q=0, application/xml"] = "application/xml",
            ["text/html;q=0"] = "application/json",
            ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"] = "text/html",
        }
        for accept, expected in pairs(cases) do
            assert.equal(expected, kind(accept), accept)
        end
    end)

    it("is the option's where the client names none", function()
        local options =
            { headers = {}, header_prefix = "X", error_default_type = "application/xml" }
        response.configure(options)
        assert.equal("application/xml", kind(nil))
        options.error_default_type = "text/plain"
        response.configure(options)
        assert.equal("text/plain", kind(nil))
    end)

    it("escapes the message in each format", function()
        local message = [[<b> & "q" \ ]] .. "\n"
        assert.truthy(
            response.format_for("text/html").body(message, "i"):find("&lt;b&gt; &amp;", 1, true)
        )
        assert.truthy(
            response.format_for("text/xml").body(message, "i"):find("&lt;b&gt; &amp;", 1, true)
        )
        local json = response.format_for("application/json").body(message, "i")
        local decoded = require("cjson").decode(json)
        assert.same({ message = message, request_id = "i" }, decoded)
    end)
end)
