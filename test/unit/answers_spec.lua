-- docs/answers.md has every text that clients get from the gateway, the page of a plugin those of
-- the plugin, and both no other.

local answers = require("test.house.answers")
local files = require("test.house.files")
local pages = require("scripts.docs.answers")
local registry = require("gateway.plugin.registry")
local scan = require("test.house.scan")

local PAGE = "docs/answers.md"

-- Rows by their text: text -> status -> true.
local function by_text(rows)
    local found = {}
    for _, row in ipairs(rows) do
        local text = answers.normal(row.text)
        found[text] = found[text] or {}
        found[text][row.status] = true
    end
    return found
end

-- What sources say and a page has not, and the other way round.
local function complaints(said, documented)
    local found = {}
    for _, text in ipairs(scan.sorted_keys(said)) do
        for _, status in ipairs(scan.sorted_keys(said[text])) do
            local has = documented[text] == nil or documented[text][status]
            found[#found + 1] = not has and ("%s has not status %s"):format(text, status) or nil
        end
        found[#found + 1] = not documented[text] and text .. " is missing" or nil
    end
    for _, text in ipairs(scan.sorted_keys(documented)) do
        found[#found + 1] = not said[text] and "nothing answers " .. text or nil
    end
    return found
end

local function count_of(set)
    return #scan.sorted_keys(set)
end

describe(PAGE, function()
    it("has each text of the gateway with its status, and none that nobody says", function()
        local said = answers.of_gateway()
        local rows = pages.rows(pages.own(files.read(PAGE)))
        assert.same({}, complaints(said, by_text(rows)))
        assert.is_true(count_of(said) >= 40, "the scan finds " .. count_of(said))
        assert.is_true(count_of(answers.of_statuses()) >= 15)
    end)

    it("has the texts of plugins as `make docs` writes them", function()
        assert.is_true(pages.page() == files.read(PAGE), "run make docs")
    end)

    it("is held to statuses and texts", function()
        local said = { a = { ["401"] = true }, b = {}, c = {} }
        local rows = { { status = "403", text = "a" }, { status = "any", text = "b" } }
        rows[3] = { status = "400", text = "d {name}" }
        assert.same(
            { "a has not status 401", "c is missing", "nothing answers d *" },
            complaints(said, by_text(rows))
        )
    end)
end)

describe("docs/plugins", function()
    it("have the texts of their plugins with the status, and no other", function()
        local count = 0
        for _, name in ipairs(registry.bundled()) do
            local said = answers.of_plugin("plugins/" .. name)
            local path = "docs/plugins/" .. name .. ".md"
            local rows, err = pages.of_plugin(files.read(path))
            assert.is_truthy(rows, ("%s: %s"):format(path, err))
            assert.same({}, complaints(said, by_text(rows)), path)
            count = count + count_of(said)
        end
        assert.is_true(count >= 30, "the scan finds " .. count)
    end)

    local HEAD = "# x\n\n## Error responses\n\n"
        .. "| status | text | cause | what to do |\n|---|---|---|---|\n"

    it("may have none", function()
        assert.same({}, pages.of_plugin("# x\n\n| 401 | `a` | b | c |\n\n## Cost\n"))
    end)

    it("have them in one table", function()
        local rows = pages.of_plugin(
            HEAD .. "| 401 | `a` | b | |\n| any | `{c} d` | e | f |\n\nAlso 500 `g`.\n\n## H\n"
        )
        assert.same({ { status = "401", text = "a" }, { status = "any", text = "{c} d" } }, rows)
        assert.same(1, #pages.of_plugin(HEAD .. "| 401 | `a` | b | |\n"))
    end)

    it("are refused with another table, or with rows that have no text", function()
        local _, err = pages.of_plugin("# x\n\n## Error responses\n\n| status | message |\n")
        assert.is_truthy(err:find("have no table", 1, true))
        for _, row in ipairs({ "| 401 | a | b | c |\n", "| 401 | `a` or `b` | c | |\n" }) do
            _, err = pages.of_plugin(HEAD .. row)
            assert.is_truthy(err and err:find("not one text", 1, true), row)
        end
    end)
end)

describe("the texts of a plugin", function()
    local folder

    before_each(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(require("lfs").mkdir(folder))
    end)

    after_each(function()
        files.run(("rm -r %q"):format(folder))
    end)

    local function texts_of(name, source)
        files.write(folder .. "/" .. name, source)
        return answers.of_plugin(folder)
    end

    it("are found in C", function()
        local said = texts_of(
            "sluice_hello.c",
            [[
#define SLUICE_HELLO_TEAPOT  418
#define SLUICE_HELLO_WORDS  "no cup: "

/* "words" */
words = late ? "too; late"
             : "too early";
return sluice_decision_respond(result, SLUICE_HELLO_TEAPOT,
                               "no "
                               "tea");
sluice_hello_words(check, "no '%.*s'");
]]
        )
        assert.same({
            ["no tea"] = { ["418"] = true },
            ["no cup: *"] = {},
            ["no '*'"] = {},
            ["too; late"] = {},
            ["too early"] = {},
        }, said)
    end)

    it("are found in Lua", function()
        local said = texts_of(
            "handler.lua",
            [[
local FAILED = "failed"
kong.response.error(503, FAILED)
pdk.error(403, "be polite")
kong.response.exit(401, { message = "who?" })
local texts = { [404] = "where?" }
]]
        )
        assert.same({
            failed = { ["503"] = true },
            ["be polite"] = { ["403"] = true },
            ["who?"] = { ["401"] = true },
            ["where?"] = { ["404"] = true },
        }, said)
    end)

    it("are to be found: an expression that the scan does not know is an error", function()
        local source = "return sluice_decision_respond(result, 403, conf->text);\n"
        local ok, err = pcall(texts_of, "sluice_hello.c", source)
        assert.is_false(ok)
        assert.is_truthy(err:find("gets its text from conf->text", 1, true))
    end)
end)
