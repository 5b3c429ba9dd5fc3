-- What users read has none of the phrases that were retired (test/house/words.lua).

local arguments = require("cli.options.arguments")
local declaration = require("gateway.metrics.declaration")
local entities = require("gateway.entities")
local files = require("test.house.files")
local options = require("cli.options")
local pages = require("scripts.docs.entities")
local scan = require("test.house.scan")
local support = require("test.unit.support.config")
local words = require("test.house.words")

-- What is wrong with a text, each with where it stands.
local function complain(complaints, where, text)
    for _, phrase in ipairs(words.find(text)) do
        complaints[#complaints + 1] = where .. ": " .. phrase
    end
end

describe("retired phrases", function()
    it("are in no page", function()
        local complaints = {}
        local paths = { "README.md", "CONTRIBUTING.md" }
        for _, path in ipairs(scan.files("docs")) do
            local is_page = path:match("%.md$") and not path:match("^docs/notes/")
            paths[#paths + 1] = is_page and path or nil
        end
        for _, path in ipairs(paths) do
            complain(complaints, path, files.read(path))
        end
        assert.same({}, complaints)
    end)

    it("are in no help of the command, and no setting", function()
        local complaints = {}
        local parser = arguments.parser()
        complain(complaints, "sluice", parser:get_help())
        for _, command in ipairs(parser._commands) do
            complain(complaints, "sluice " .. command._name, command:get_help())
        end
        for _, option in ipairs(options.list) do
            complain(complaints, option.name, option.doc)
        end
        assert.same({}, complaints)
    end)

    it("are in no metric's help", function()
        local complaints = {}
        for _, list in ipairs({
            declaration.node,
            declaration.routes,
            declaration.services,
            declaration.rest,
        }) do
            for _, row in ipairs(list) do
                complain(complaints, row.name, row.help)
            end
        end
        assert.same({}, complaints)
    end)

    it("are in no description of a schema", function()
        local complaints, count = {}, 0
        local function look(where, definition)
            complain(complaints, where, definition.description or "")
            pages.each_field(definition, function(name, field)
                count = count + 1
                complain(complaints, where .. "." .. name, field.description or "")
            end)
        end
        for _, kind in ipairs(entities.kinds) do
            look(kind, entities.get(kind))
        end
        for _, plugin in ipairs(support.registry:list()) do
            look(plugin.name, plugin.schema)
        end
        assert.is_true(count > 100)
        assert.same({}, complaints)
    end)

    it("are found over the end of a line, and as whole words only", function()
        assert.same({ "'anew': write again, re-" }, words.find("It is made anew."))
        assert.same({ "'without a word': write silently" }, words.find("cut\nwithout  a\nword"))
        assert.same({}, words.find("It renews the source of truth; ongoing, in truth."))
        assert.equal(2, #words.find("The file is the truth; nobody writes it."))
    end)
end)
