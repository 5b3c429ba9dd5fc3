-- gateway/pdk/variables.lua is the one place that says which variables of nginx the gateway
-- reads and sets: nobody in it goes past that, and it names none that nobody uses.

local lexer = require("test.house.lexer")
local scan = require("test.house.scan")
local variables = require("gateway.pdk.variables")

local FOLDERS = { "gateway", "plugins" }
local ITSELF = "gateway/pdk/variables.lua"

-- Calls `see(path, line, owner, field)` for each `owner.field` in code, and `see(path, line, nil,
-- text)` for each string.
local function each(see)
    for path, text in scan.sources(FOLDERS, "%.lua$") do
        local tokens = path ~= ITSELF and lexer.tokens(text) or {}
        for i, token in ipairs(tokens) do
            local dot, owner = tokens[i - 1], tokens[i - 2]
            if token.kind == "string" then
                see(path, token.line, nil, token.text)
            elseif owner and token.kind == "name" and dot.text == "." then
                see(path, token.line, owner.text, token.text)
            end
        end
    end
end

describe("the gateway's variables", function()
    local declared = {}
    for _, name in ipairs(variables.names) do
        declared[name] = true
    end

    it("are reached through gateway.pdk.variables alone, and declared there", function()
        local complaints, found = {}, 0
        each(function(path, line, owner, field)
            if owner == "ngx" and field == "var" then
                complaints[#complaints + 1] = ("%s:%d: ngx.var"):format(path, line)
            elseif owner == "variables" and field ~= "get" and field ~= "bulk" then
                found = found + 1
                if not declared[field] then
                    complaints[#complaints + 1] = ("%s:%d: %s"):format(path, line, field)
                end
            end
        end)
        assert.same({}, complaints)
        assert.is_true(found > 5, ("only %d were found"):format(found))
    end)

    it("are all used", function()
        local unused = {}
        for name in pairs(declared) do
            unused[name] = true
        end
        each(function(_, _, owner, field)
            if owner == "variables" or not owner then
                unused[field] = nil
            end
        end)
        assert.same({}, unused)
    end)
end)
