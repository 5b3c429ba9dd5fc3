-- What plugins decide of requests, without nginx: for each line of the input, in JSON, one of the
-- output. A request has `plugin`, `config`, `given`, as test/unit/support/judge.lua takes it, and
-- `own`: of what decisions.lua in the folder of the plugin's tests makes what only nginx knows.
-- The first line has the consumers, as people.lua does.
--
-- A judge is asked as it would be with a log, and then knows more: the body, if it wants that, and
-- what only nginx knows, where it has said "unknown". The output has all that it has said.

local cjson = require("cjson")
local people = require("test.unit.support.people")
local support = require("test.unit.support.judge")

local list = cjson.decode(io.read())
local all = people.new(list)

-- Ids of credentials, by their slots.
local ids = {}
for _, person in ipairs(list) do
    for _, one in ipairs(person.credentials) do
        ids[#ids + 1] = one.entity.id
    end
end

local function ask(asked, given)
    local decision, result = support.judge(asked.plugin, asked.config, given)
    result.decision = decision
    if result.identity and result.identity.credential then
        result.identity.credential = ids[result.identity.credential + 1]
    end
    return result
end

--- All that is said, until something is decided.
local function answers_of(asked)
    local plugin = require(("test.plugins.%s.decisions"):format(asked.plugin))
    local given, body = asked.given, asked.given.body
    given.people = all
    given.own = plugin.compiled and plugin.compiled(all)
    given.body, given.later = nil, true
    local answers = { ask(asked, given) }
    if answers[#answers].decision == "unknown" and plugin.own then
        given.own = plugin.own(asked.own, given)
        answers[#answers + 1] = ask(asked, given)
    end
    if answers[#answers].decision == "body" then
        given.body, given.later = body, nil
        answers[#answers + 1] = ask(asked, given)
    end
    if answers[#answers].decision == "unknown" and #answers == 2 and plugin.own then
        given.own = plugin.own(asked.own, given)
        answers[#answers + 1] = ask(asked, given)
    end
    return answers
end

for line in io.lines() do
    io.write(cjson.encode(answers_of(cjson.decode(line))), "\n")
end
