--- The packages need what the code says that it needs, and have its version.

local platform = require("cli.platform")
local version = require("gateway.version")

local function read(path)
    local file = assert(io.open(path))
    local text = file:read("*a")
    file:close()
    return text
end

-- The paragraph of a package.
local function paragraph(name)
    local control = "\n\n" .. read("packaging/debian/control")
    return assert(control:match("\n\nPackage: " .. name:gsub("%-", "%%-") .. "\n(.-)\n\n"))
end

describe("the packages", function()
    it("depend on what the command tells to install", function()
        local needs = paragraph("sluice") .. paragraph("libnginx-mod-http-sluice")
        local wanted = {}
        for _, module in ipairs(platform.lua_modules) do
            wanted[#wanted + 1] = module.package
        end
        for path, package in pairs(platform.package_of_file) do
            -- The Lua module's own package needs the development kit.
            if not path:find("ndk_http_module", 1, true) then
                wanted[#wanted + 1] = package
            end
        end
        for _, package in ipairs(wanted) do
            local pattern = "[ \n]" .. package:gsub("%-", "%%-") .. "[,\n]"
            assert.truthy(needs:find(pattern), package)
        end
    end)

    it("have the version of gateway.version, and what CHANGELOG.md says first", function()
        local pipe = assert(io.popen("SOURCE_DATE_EPOCH=86400 packaging/changelog bookworm"))
        local text = pipe:read("*a")
        pipe:close()
        local head = ("sluice (%s~deb12) bookworm; urgency=medium\n\n  * "):format(version.product)
        assert.equal(head, text:sub(1, #head))
        local _, bullets = text:gsub("\n  %* ", "")
        local first = read("CHANGELOG.md"):match("\n## [^\n]*(.*)")
        local _, expected = (first:match("^(.-)\n## ") or first):gsub("\n%- ", "")
        assert.equal(expected, bullets)
        assert.equal("  Fri, 02 Jan 1970 00:00:00 +0000\n", text:sub(-34))
    end)

    it("leave a rotation of logs behind that needs nothing which is removed", function()
        local text = read("packaging/debian/sluice.logrotate")
        local script = assert(text:match("\n\tpostrotate\n(.-)\n\tendscript\n"))
        local path = os.tmpname()
        local file = assert(io.open(path, "w"))
        file:write(script)
        file:close()
        local pipe = assert(io.popen("PATH=/nowhere /bin/sh " .. path .. " 2>&1; echo $?"))
        assert.equal("0\n", pipe:read("*a"))
        pipe:close()
        os.remove(path)
    end)
end)
