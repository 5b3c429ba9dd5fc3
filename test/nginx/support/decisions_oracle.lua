-- What plugins decide of requests, without nginx: for each line of the input, in JSON, one of the
-- output. A request has `plugin`, `config` and `given`, as test/unit/support/judge.lua takes them;
-- the first line has the consumers, as people.lua does.

local cjson = require("cjson")
local people = require("test.unit.support.people")
local support = require("test.unit.support.judge")

-- Which a plugin may ask for that has patterns.
local patterns = support.lib.sluice_core_regexes_create(2 ^ 20)
local all = people.new(cjson.decode(io.read()))
local own = { ["bot-detection"] = patterns, cors = patterns, ["hmac-auth"] = all.date }

for line in io.lines() do
    local asked = cjson.decode(line)
    asked.given.own = own[asked.plugin]
    asked.given.people = all
    local decision, result = support.judge(asked.plugin, asked.config, asked.given)
    result.decision = decision
    io.write(cjson.encode(result), "\n")
end
