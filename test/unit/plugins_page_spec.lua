-- docs/plugins/index.md and what it is made of: every plugin that there is, here or in Kong.

local files = require("test.house.files")
local index = require("cli.plugins.index")
local pages = require("scripts.docs.plugins")
local registry = require("gateway.plugin.registry")

describe("docs/plugins/index.md", function()
    it("is what `make docs` writes, with what it is made of", function()
        for path, text in pairs(pages.pages()) do
            assert.is_true(text == files.read(path), path .. ": run make docs")
        end
    end)

    it("has each folder of plugins, with its page", function()
        local text = files.read("docs/plugins/index.md")
        for _, name in ipairs(registry.bundled()) do
            local row = ("\n| [%s](%s.md) | "):format(name, name)
            assert.is_truthy(text:find(row, 1, true), name)
            assert.is_truthy(files.read("docs/plugins/" .. name .. ".md"), name)
        end
    end)

    it("has each plugin of Kong once, in order, with a reason where it is not here", function()
        local names, seen, here = { free = {}, paid = {} }, {}, {}
        for _, name in ipairs(registry.bundled()) do
            here[name] = true
        end
        for _, row in ipairs(index.kong()) do
            local edition, name, remark = unpack(row)
            assert.is_nil(seen[name], name)
            seen[name] = true
            table.insert(names[edition], name)
            -- Ours need none, and have none that grows old.
            local is_ours = here[name] ~= nil
            assert.equal(is_ours, remark == "", name)
            assert.is_truthy(is_ours or remark:find("^%u[%l ].+%.$"), name)
        end
        assert.same({ 45, 50 }, { #names.free, #names.paid })
        for _, list in pairs(names) do
            local sorted = { unpack(list) }
            table.sort(sorted)
            assert.same(sorted, list)
        end
        assert.is_true(#index.list() >= 95)
    end)

    it("takes costs from the tables of benchmarks", function()
        local text = "| `plugins`  | `key_auth_cpu_ratio` | 1.024 (1.01 to 1.03) | ratio | |\n"
            .. "| `plugins` | `cors_cpu_ratio`  | 0.99 (0.9 to 1.1) | ratio | at most 1.05: met |\n"
            .. "| `proxy-plain` | `efficiency` | 0.9 (0.8 to 1) | ratio | |\n"
        assert.same({ ["key-auth"] = 1.024, cors = 0.99 }, pages.costs(text))
        assert.is_truthy(pages.cost_line("key-auth", text):find("processes: 1.02\n", 1, true))
        assert.is_truthy(pages.cost_line("jwt", text):find("not measured yet", 1, true))
    end)

    it("takes the costs of log plugins from their own scenarios", function()
        local text = "| `proxy-file-log` | `efficiency` | 0.84 (0.82 to 0.86) | ratio | |\n"
        local line = pages.cost_line("file-log", text)
        assert.is_truthy(line:find("processes: 0.84\n", 1, true))
        assert.is_truthy(line:find("`proxy-file-log`", 1, true))
    end)
end)
