--- Tables of the command line, and entities in them.

local entity_rows = require("cli.commands.entity_rows")
local entities = require("gateway.entities")
local tables = require("cli.terminal.table")

describe("a table", function()
    local rows = { { "name", "n" }, { "a", "1" }, { "né", "100" } }

    it("aligns numbers to the right, texts to the left, by characters", function()
        assert.same({ "name    n", "   a    1", "  né  100" }, tables.lines(rows))
        local lines = tables.lines(rows, { left = { true } })
        assert.same({ "name    n", "a       1", "né    100" }, lines)
    end)

    it("keeps in a cell what would end it, or be a command", function()
        local lines = tables.lines({ { "name", "n" }, { "a\n\tb\r\27[2J\194\155\127", "1" } })
        assert.same({ "          name  n", [[a\n\tb\r?[2J??  1]] }, lines)
    end)

    it("cuts the widest columns where it has to fit", function()
        local wide = { { "name", "id" }, { ("é"):rep(40), "0123456789" } }
        local lines = tables.lines(wide, { left = { true, true }, width = 24 })
        assert.equal(("é"):rep(11) .. "…  0123456789", lines[2])
        -- Never to nothing.
        lines = tables.lines(wide, { left = { true, true }, width = 3 })
        assert.equal(("é"):rep(7) .. "…  0123456…", lines[2])
    end)
end)

describe("rows of entities", function()
    local function titles(kind, reveals)
        local names = {}
        for i, column in ipairs(entity_rows.columns(kind, reveals)) do
            names[i] = column.name
        end
        return table.concat(names, " ")
    end

    it("have columns of every kind, with its name first and its id last", function()
        for _, kind in ipairs(entities.kinds) do
            local first = titles(kind, false):match("^%S+")
            local definition = entities.get(kind)
            if definition.endpoint_key and not definition.has_secret_name then
                assert.equal(definition.endpoint_key, first)
            end
            assert.truthy(titles(kind, false):find("id$"))
        end
        assert.equal("target upstream weight tags id", titles("targets", false))
        assert.falsy(titles("certificates", false):find("key", 1, true))
    end)

    it("name what is referred to, and leave out what nobody has", function()
        local list = {
            { id = "1", name = "a\27[2J", service = { id = "s" }, paths = { "/x", "/y" } },
            { id = "2", service = { id = "gone" }, headers = { h = { "v", "w" } } },
        }
        local columns = entity_rows.columns("routes", false)
        assert.same({ services = { "s", "gone" } }, entity_rows.references(columns, list))
        assert.same({
            { "name", "service", "paths", "headers", "id" },
            { "a\27[2J", "orders", "/x,/y", "", "1" },
            { "", "gone", "", "h=v,w", "2" },
        }, entity_rows.rows(columns, list, { services = { s = "orders" } }))
    end)

    it("show a certificate as nothing, and another text of several lines", function()
        local columns = entity_rows.columns("ca_certificates", false)
        local cert = "\n-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
        local rows = entity_rows.rows(columns, { { id = "1", cert = cert } }, {})
        assert.same({ { "id" }, { "1" } }, rows)
        rows = entity_rows.rows(entity_rows.columns("consumers", false), {
            { id = "1", username = "a\nb" },
        }, {})
        assert.same({ "username", "id" }, rows[1])
        assert.same({ [[a\nb      1]] }, { tables.lines(rows, { left = { true, true } })[2] })
    end)
end)
