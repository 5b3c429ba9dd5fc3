--- The packages need what the code says that it needs, and have its version.

local files = require("test.house.files")
local platform = require("cli.options.platform")
local version = require("gateway.version")

-- The paragraph of a package.
local function paragraph(name)
    local control = "\n\n" .. files.read("packaging/debian/control")
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
        local text = files.run("SOURCE_DATE_EPOCH=86400 packaging/changelog bookworm")
        local head = ("sluice (%s~deb12) bookworm; urgency=medium\n\n  * "):format(version.product)
        assert.equal(head, text:sub(1, #head))
        local _, bullets = text:gsub("\n  %* ", "")
        local first = files.read("CHANGELOG.md"):match("\n## [^\n]*(.*)")
        local _, expected = (first:match("^(.-)\n## ") or first):gsub("\n%- ", "")
        assert.equal(expected, bullets)
        assert.equal("  Fri, 02 Jan 1970 00:00:00 +0000\n", text:sub(-34))
    end)

    it("upgrade what runs with the variables of its unit", function()
        local place = os.tmpname()
        os.remove(place)
        -- The script, with another /etc and a command that says what it was told.
        local text = files.read("packaging/debian/sluice.postinst"):gsub("/etc/", place .. "/")
        local said = "#!/bin/sh\necho $1 $3 $KEY | sed s,%s/,, >>%s/said\n"
        for path, content in pairs({
            ["postinst"] = text,
            ["bin/sluice"] = said:format(place, place),
            ["sluice/sluice.conf"] = "",
            ["sluice/other.conf"] = "",
            ["sluice/third.conf"] = "",
            ["default/sluice"] = "KEY='a b'\n",
            ["default/sluice-other"] = 'KEY="c"\n',
        }) do
            local to = place .. "/" .. path
            os.execute("mkdir -p $(dirname " .. to .. ")")
            files.write(to, content)
        end
        local line = "chmod +x %s/bin/sluice; PATH=%s/bin:$PATH sh %s/postinst triggered; echo $?"
        assert.equal("0\n", (files.run(line:format(place, place, place))))
        local expected = { "other.conf c", "sluice.conf a b", "third.conf" }
        for i, each in ipairs(expected) do
            expected[i] = ("status sluice/%s\nupgrade sluice/%s\n"):format(each, each)
        end
        assert.equal(table.concat(expected), files.read(place .. "/said"))
        os.execute("rm -r " .. place)
    end)

    it("leave a rotation of logs behind that needs nothing which is removed", function()
        local text = files.read("packaging/debian/sluice.logrotate")
        local script = assert(text:match("\n\tpostrotate\n(.-)\n\tendscript\n"))
        local path = os.tmpname()
        files.write(path, script)
        assert.equal("0\n", (files.run("PATH=/nowhere /bin/sh " .. path .. " 2>&1; echo $?")))
        os.remove(path)
    end)
end)
