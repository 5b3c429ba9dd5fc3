--- The texts that clients get from the gateway and from its plugins, as their sources say them.
--
-- A text is found by where it stands, so what writes texts keeps to these places: the last argument
-- of the functions that answer, variables and functions called `words`, macros `..._WORDS`; in Lua
-- what `response.error`, `response.exit` and `pdk.error` get, defaults of `error_message`, and
-- tables by status.

local files = require("test.house.files")
local scan = require("test.house.scan")

local _M = {}

local STATUSES = "module/core/text/answer.c"
local FOLDERS_OF_C = { "module/core/chain", "module/core/plugin", "module/gateway" }
local FOLDERS_OF_LUA = { "gateway/proxy", "gateway/kit", "gateway/pdk" }

-- What an answer's text may be, beside a literal: such expressions get theirs from other places.
local EXPRESSIONS = {
    ["NULL"] = true,
    ["message"] = true,
    ["message.data ? &message : NULL"] = true,
    ["&ctx->bound->message"] = true,
    ["words"] = true,
    ["&words"] = true,
    ["&refusal->message"] = true,
    -- Where it is defined.
    ["const char *message"] = true,
}

-- What a decision may assign to its message, beside what a configuration has.
local MESSAGES = {
    ['""'] = true,
    words = true,
    -- A body around words, or of the request's own.
    body = true,
    ["echo.text"] = true,
}

-- What stands for `;` in literals, so that one ends a statement.
local SEMICOLON = "\1"

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
        parts[#parts + 1] = literal and literal:gsub(";", SEMICOLON)
            or comment and ""
            or text:sub(from, from)
        at = from + #(literal or comment or " ")
    end
    text = table.concat(parts)
    local count
    repeat
        text, count = text:gsub('([^\\])"%s*\n%s*"', "%1")
    until count == 0
    return text
end

--- A text with `*` for each value in it, whether a source has it or a page.
-- @tparam string text
-- @treturn string
function _M.normal(text)
    return (text:gsub("%%%.%*s", "*"):gsub("%%[%a]+", "*"):gsub("{%w+}", "*"))
end

local function last_argument(call)
    local inner = call:sub(2, -2):gsub("%s+", " ")
    return inner:match('("[^"]*") ?$') or inner:match(", ([^,]+)$")
end

-- The literal that a call answers with; nil where it gets the text from elsewhere.
local function literal_of(path, name, call)
    local argument = last_argument(call)
    local literal = argument:match('^"(.*)"$')
    if not literal and not EXPRESSIONS[argument] then
        error(
            ("%s: %s() gets its text from %s: teach test/house/answers.lua"):format(
                path,
                name,
                argument
            )
        )
    end
    return literal
end

-- The texts that decisions have (module/core/plugin/decision.h).
local function decided(path, source, keep)
    local text = source:gsub("%s+", " ")
    for call in text:gmatch("sluice_decision_respond(%b())") do
        local literal = literal_of(path, "sluice_decision_respond", call)
        local status = call:match("^%(%w+, ([%w_]+),")
        if literal then
            local constant = "#define " .. (status or "") .. "%s+(%d+)"
            keep(literal, source:match(constant) or status and status:match("^%d+$"))
        end
    end
    for call in text:gmatch("sluice_authenticate_without(%b())") do
        for literal in call:gmatch('"(.-)"') do
            keep(literal, "401")
        end
    end
    for value in text:gmatch("%f[%w_]words = ([^;]+);") do
        for literal in value:gmatch('"(.-)"') do
            keep(literal)
        end
    end
    for literal in text:gmatch('snprintf%(words, size, "(.-)"') do
        keep(literal)
    end
    -- The gateway's own refusals (module/core/chain/refusal.h).
    for call in text:gmatch("refusal_say(%b())") do
        for literal in call:gmatch('"(.-)"') do
            keep(literal)
        end
    end
end

-- The texts that what is of nginx answers with.
local function answered(path, text, keep)
    for call in text:gmatch("ngx_http_sluice_answer(%b())") do
        local is_definition = call:find("ngx_http_request_t *r", 1, true)
            or call:find("_refusal_t *", 1, true)
        local literal = not is_definition and literal_of(path, "ngx_http_sluice_answer", call)
        if literal then
            keep(literal)
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

-- Ends the scan where a plugin's message may have a text that nothing here finds.
local function check_messages(path, source)
    local text = source:gsub("%s+", " ")
    for _, form in ipairs({ "%->message = ([^;]+);", "%->message%.data = ([^;]+);" }) do
        for value in text:gmatch(form) do
            if not MESSAGES[value] and not value:find("^conf%->") then
                error(
                    ("%s: a message is %s: put its text into a variable `words`"):format(
                        path,
                        value
                    )
                )
            end
        end
    end
end

-- A plugin's functions of texts, and macros: a value follows those that end in a blank.
local function composed(source, keep)
    local text = source:gsub("%s+", " ")
    for call in text:gmatch("%f[%w_][%w_]+_words(%b())") do
        for literal in call:gmatch('"(.-)"') do
            keep(literal)
        end
    end
    for body in text:gmatch("%f[%w_][%w_]+_words%b() (%b{})") do
        for value in body:gmatch("return ([^;]+);") do
            for literal in value:gmatch('"(.-)"') do
                keep(literal)
            end
        end
    end
    for literal in source:gmatch('#define [%u%d_]+_WORDS%s+"(.-)"') do
        keep((literal:gsub(" $", " *")))
    end
end

local function said_by_lua(text, keep)
    local function put(status, argument)
        local constant = argument:match("^[%u_]+$")
        keep(
            argument:match('^"(.*)"$')
                or assert(text:match("local " .. constant .. ' = "(.-)"'), constant),
            status:match("^%d+$")
        )
    end
    for _, call in ipairs({ "response%.error%(", "pdk%.error%(" }) do
        for status, argument in text:gmatch(call .. '([^,)]+),%s*("[^"]*")') do
            put(status, argument)
        end
        for status, argument in text:gmatch(call .. "([^,)]+),%s*([%u_]+)[,)]") do
            put(status, argument)
        end
    end
    for status, argument in text:gmatch('response%.exit%(([^,)]+),%s*{%s*message = ("[^"]*")') do
        put(status, argument)
    end
end

-- A plugin's Lua has texts in its configuration as well.
local function configured(text, keep)
    for literal in text:gmatch('error_message = {.-default = "(.-)"') do
        keep(literal)
    end
    for status, literal in text:gmatch('%[([2-5]%d%d)%] = "(.-)"') do
        keep(literal, status)
    end
end

-- A table of texts, and what puts them into it.
local function collection()
    local found = {}
    return found,
        function(text, status)
            text = _M.normal(text):gsub(SEMICOLON, ";")
            found[text] = found[text] or {}
            if status then
                found[text][status] = true
            end
        end
end

--- The words of statuses, for answers without a text.
-- @treturn table text -> status that clients get -> true
function _M.of_statuses()
    local found, keep = collection()
    -- nginx's own, for logs.
    local sent = { ["494"] = "400", ["497"] = "400" }
    local words = code(STATUSES):match("\nsluice_answer_words%b()%s*(%b{})")
    for status, text in words:gmatch('case (%d+):%s*text = "(.-)"') do
        keep(text, sent[status] or status)
    end
    for literal in words:gmatch('"(.-)"') do
        keep(literal)
    end
    return found
end

--- The texts of the gateway itself.
-- @treturn table text, with `*` for a value -> status -> true, as far as the source says the status
function _M.of_gateway()
    local found, keep = collection()
    for text, statuses in pairs(_M.of_statuses()) do
        found[text] = statuses
    end
    for _, folder in ipairs(FOLDERS_OF_C) do
        for _, path in ipairs(scan.files(folder)) do
            if path:match("%.[ch]$") then
                local text = code(path)
                decided(path, text, keep)
                answered(path, text, keep)
            end
        end
    end
    for _, lua in scan.sources(FOLDERS_OF_LUA) do
        said_by_lua(lua, keep)
    end
    return found
end

--- The texts of a plugin.
-- @tparam string folder such as `plugins/cors`
-- @treturn table as `of_gateway`
function _M.of_plugin(folder)
    local found, keep = collection()
    for _, path in ipairs(scan.files(folder)) do
        if path:match("%.[ch]$") then
            local text = code(path)
            decided(path, text, keep)
            answered(path, text, keep)
            check_messages(path, text)
            composed(text, keep)
        elseif path:match("%.lua$") then
            local text = files.read(path)
            said_by_lua(text, keep)
            configured(text, keep)
        end
    end
    return found
end

return _M
