--- docs/answers.md has every text that clients get from the gateway, and no other.

local files = require("test.house.files")
local scan = require("test.house.scan")

local PAGE = "docs/answers.md"
local STATUSES = "module/core/text/answer.c"

-- What an answer's text may be, beside a literal: such expressions get theirs from the patterns of
-- `assigned`.
local EXPRESSIONS = {
    ["NULL"] = true,
    ["message"] = true,
    -- A decision's: see `decided`.
    ["message.data ? &message : NULL"] = true,
    ["&ctx->bound->message"] = true,
    ["words"] = true,
    ["&words"] = true,
    ["&refusal->message"] = true,
}

-- The same of a decision: `words` get theirs from the pattern of `decided`.
local DECIDED = {
    ["NULL"] = true,
    ["words"] = true,
    ["const char *message"] = true,
}

-- C without comments, its adjacent literals joined. A literal may have what looks like a comment.
local function code(path)
    local parts, text, at = {}, files.read(path), 1
    while at <= #text do
        local from = text:find("['\"/]", at) or #text + 1
        parts[#parts + 1] = text:sub(at, from - 1)
        local literal = text:match('^"[^"\\]*"', from)
            or text:match('^".-[^\\]"', from)
            or text:match("^'\\?.'", from)
        local comment = text:match("^/%*.-%*/", from)
        parts[#parts + 1] = literal or comment and "" or text:sub(from, from)
        at = from + #(literal or comment or " ")
    end
    text = table.concat(parts)
    local count
    repeat
        text, count = text:gsub('([^\\])"%s*\n%s*"', "%1")
    until count == 0
    return text
end

local function sources()
    local found = {}
    for _, folder in ipairs({
        "module/core/chain",
        "module/core/plugin",
        "module/gateway",
        "plugins",
    }) do
        for _, path in ipairs(scan.files(folder)) do
            found[#found + 1] = path:match("%.[ch]$") and path or nil
        end
    end
    return found
end

-- What stands for a value.
local function normal(text)
    return (text:gsub("%%%.%*s", "*"):gsub("%%[%a]+", "*"):gsub("{%w+}", "*"))
end

local function last_argument(call)
    local inner = call:sub(2, -2):gsub("%s+", " ")
    return inner:match('("[^"]*") ?$') or inner:match(", ([^,]+)$")
end

-- The texts that a plugin's decisions have (module/core/plugin/decision.h).
local function decided(text, keep, path)
    for call in text:gmatch("sluice_decision_respond(%b())") do
        local argument = last_argument(call)
        local literal = argument:match('^"(.*)"$')
        assert.is_true(
            literal ~= nil or DECIDED[argument] == true,
            ("%s: sluice_decision_respond() gets its text from %s, not from a literal"):format(
                path,
                argument
            )
        )
        if literal then
            keep(literal)
        end
    end
    for literal in text:gmatch('[%s*]words = "(.-)";') do
        keep(literal)
    end
    -- The gateway's own refusals (module/core/chain/refusal.h).
    for call in text:gmatch("refusal_say(%b())") do
        for literal in call:gmatch('"(.-)"') do
            keep(literal)
        end
    end
    for literal in text:gmatch('snprintf%(words, size, "(.-)"') do
        keep(literal)
    end
end

-- The texts that a file's answers have: literals among the arguments, and what is put into those
-- variables.
local function texts_of(path, keep)
    local text = code(path)
    decided(text:gsub("%s+", " "), keep, path)
    for _, name in ipairs({ "ngx_http_sluice_answer" }) do
        for call in text:gmatch(name .. "(%b())") do
            local argument = last_argument(call)
            if
                not call:find("ngx_http_request_t *r", 1, true)
                and not call:find("_refusal_t *", 1, true)
            then
                local literal = argument:match('^"(.*)"$')
                assert.is_true(
                    literal ~= nil or EXPRESSIONS[argument] == true,
                    ("%s: %s gets its text from %s: teach this test"):format(path, name, argument)
                )
                if literal then
                    keep(literal)
                end
            end
        end
    end
    for call in text:gmatch("ngx_str_set(%b())") do
        if call:find("^%(&words,") or call:find("^%(&refusal%->message,") then
            keep(last_argument(call):sub(2, -2))
        end
    end
    for literal in text:gmatch('ngx_sprintf%(words%.data, "(.-)"') do
        keep(literal)
    end
    for literal in text:gmatch('ngx_str_t%s+words = ngx_string%("(.-)"%)') do
        keep(literal)
    end
    for name in text:gmatch("words = (ngx_http_sluice_[%w_]+)[;,]") do
        keep(assert(text:match(name .. '%s*=%s*ngx_string%("(.-)"%)'), name))
    end
end

local function said()
    local found = {}
    local function keep(text)
        found[normal(text)] = true
    end
    for _, path in ipairs(sources()) do
        texts_of(path, keep)
    end
    local words = code(STATUSES):match("\nsluice_answer_words%b()%s*(%b{})")
    for literal in words:gmatch('"(.-)"') do
        keep(literal)
    end
    for _, lua in scan.sources({ "gateway/proxy", "gateway/kit", "gateway/pdk" }) do
        for literal in lua:gmatch('response%.error%([^,)]+,%s*"(.-)"') do
            keep(literal)
        end
    end
    for _, path in ipairs(scan.files("plugins")) do
        local lua = path:match("%.lua$") and files.read(path) or ""
        for literal in lua:gmatch('error_message = {.-default = "(.-)"') do
            keep(literal)
        end
        for literal in lua:gmatch('pdk%.error%([^,)]+,%s*"(.-)"') do
            keep(literal)
        end
    end
    return found
end

-- Rows of the page's tables: text -> statuses.
local function documented()
    local found = {}
    for status, text in files.read(PAGE):gmatch("\n| ([%d%a ]+) | `([^`]+)` |") do
        text = normal(text)
        found[text] = found[text] or {}
        found[text][status] = true
    end
    return found
end

describe(PAGE, function()
    it("has each text, and none that nobody says", function()
        local there, rows = said(), documented()
        local count, missing, stale = 0, {}, {}
        for text in pairs(there) do
            count = count + 1
            missing[#missing + 1] = not rows[text] and text or nil
        end
        for text in pairs(rows) do
            stale[#stale + 1] = not there[text] and text or nil
        end
        assert.same({ missing = {}, stale = {} }, { missing = missing, stale = stale })
        assert.is_true(count >= 30, "the scan finds " .. count)
    end)

    it("has the status of those that go by it", function()
        local rows = documented()
        -- nginx's own, for logs.
        local sent = { ["494"] = "400", ["497"] = "400" }
        local words = code(STATUSES):match("\nsluice_answer_words%b()%s*(%b{})")
        local count = 0
        for status, text in words:gmatch('case (%d+):%s*text = "(.-)"') do
            status = sent[status] or status
            assert.truthy(rows[text] and rows[text][status], status .. " " .. text)
            count = count + 1
        end
        assert.is_true(count >= 15)
    end)
end)
