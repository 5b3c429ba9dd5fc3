--- busted's output: its own, and each failure as scripts/check reads it (test/failures.py).

local plain = require("busted.outputHandlers.plainTerminal")

local KEPT = { "SEED", "LONG" }
local REASON_CHARACTERS = 300

local function one_line(text)
    return (text:gsub("%s+", " "):sub(1, REASON_CHARACTERS))
end

-- The file alone: the name of a test is any text, which no shell and no Lua pattern takes as it is.
local function command(failure)
    local words = {}
    for _, name in ipairs(KEPT) do
        local value = os.getenv(name)
        if value and value ~= "" then
            words[#words + 1] = name .. "=" .. value
        end
    end
    local trace = failure.element.trace
    local source = trace and trace.short_src or ""
    local file = source:match("test/unit/[%w_/]+_spec%.lua")
        or source:match("test/plugins/[%w_/-]+_spec%.lua")
    words[#words + 1] = "make unit" .. (file and " ONLY=" .. file or "")
    return table.concat(words, " ")
end

local function reason(failure)
    local message = failure.message
    return one_line(type(message) == "string" and message or "no message")
end

return function(options)
    local busted = require("busted")
    local handler = plain(options)

    busted.subscribe({ "suite", "end" }, function()
        local path = os.getenv("FAILED_TO")
        local file = path and assert(io.open(path, "a"))
        for _, list in ipairs({ handler.failures, handler.errors }) do
            for _, failure in ipairs(list) do
                local again = command(failure)
                io.write("again: ", again, "\n")
                if file then
                    local line = { "failed", one_line(failure.name), reason(failure), again }
                    file:write(table.concat(line, "\t"), "\n")
                end
            end
        end
        if file then
            file:close()
        end
        return nil, true
    end)

    return handler
end
