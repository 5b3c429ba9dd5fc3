-- What users read of entities: every field is described, docs/entities.md and the tables in
-- pages of plugins are what the schemas say, and their examples can be loaded.

local cjson = require("cjson")
local config = require("gateway.config")
local entities = require("gateway.entities")
local files = require("test.house.files")
local pages = require("scripts.docs.entities")
local pem = require("test.unit.support.pem")
local scan = require("test.house.scan")
local support = require("test.unit.support.config")

describe("the schemas", function()
    -- What has no sentence of its own: the names of fields.
    local function undescribed(definition)
        local found = {}
        pages.each_field(definition, function(name, field)
            if not (field.description or ""):find("^[`%u].+%.$") then
                found[#found + 1] = name
            end
        end)
        return found
    end

    it("describe each kind and each field", function()
        for _, kind in ipairs(entities.kinds) do
            local definition = entities.get(kind)
            assert.truthy((definition.description or ""):find("^%u.+%.$"), kind)
            assert.same({}, undescribed(definition), kind)
        end
        for _, plugin in ipairs(support.registry:list()) do
            assert.truthy((plugin.schema.description or ""):find("^%u.+%.$"), plugin.name)
            assert.same({}, undescribed(plugin.schema), plugin.name)
        end
    end)

    it("are looked at to the last field", function()
        local record = { type = "record", fields = { { a = { type = "string" } } } }
        local definition = {
            fields = {
                { one = record },
                { list = { type = "array", elements = record, description = "Of records." } },
                { map = { type = "map", values = record, description = "no sentence" } },
            },
            shorthand_fields = { { short = { type = "string" } } },
        }
        local names = { "one", "one.a", "list[].a", "map", "map[].a", "short" }
        assert.same(names, undescribed(definition))
    end)
end)

describe("docs/entities.md", function()
    -- In place of variables of the environment, and of what pages show as `...`.
    local cert, key = pem.pair()
    local ca = pem.pair("ec", { is_ca = true })
    local variables = {
        ["{vault://env/SHOP_CERT}"] = cert,
        ["{vault://env/SHOP_KEY}"] = key,
        ["{vault://shop/log-token}"] = "t",
    }

    local function errors_of(yaml)
        yaml = yaml:gsub("'%-%-%-%-%-BEGIN CERTIFICATE%-%-%-%-%- %.%.%.'", function()
            return cjson.encode(ca):gsub("\\/", "/")
        end)
        local snapshot, errors = config.parse(yaml, "yaml", support.registry, {
            vault = function(reference)
                return variables[reference], "no variable"
            end,
        })
        return support.lines(errors or {}), snapshot
    end

    it("is what `make docs` writes, and so are the fields in the pages of plugins", function()
        for path, text in pairs(pages.pages()) do
            assert.is_true(text == files.read(path), path .. ": run make docs")
        end
    end)

    for _, kind in ipairs(pages.kinds()) do
        it("has an example of " .. kind .. " that can be loaded", function()
            local errors, snapshot = errors_of(pages.example(entities.get(kind)))
            assert.equal("", errors)
            assert.is_true(#snapshot[kind] > 0, "has none")
            assert.same({}, snapshot.warnings)
        end)
    end

    it("has pages beside it whose examples can be loaded", function()
        local count = 0
        for _, path in ipairs(scan.files("docs/plugins")) do
            for yaml in files.read(path):gmatch("\n```yaml\n(_format_version.-)```") do
                assert.equal("", (errors_of(yaml)), path)
                count = count + 1
            end
        end
        assert.is_true(count >= 4)
    end)

    it("has pages beside it that begin with what the plugin's schema says", function()
        for _, plugin in ipairs(support.registry:list()) do
            local path = "docs/plugins/" .. plugin.name .. ".md"
            local begin = "# " .. plugin.name .. "\n\n" .. plugin.schema.description .. "\n"
            assert.equal(begin, files.read(path):sub(1, #begin))
        end
    end)
end)
