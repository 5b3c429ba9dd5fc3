-- Answers for the router's oracle: reads {routes, requests} as JSON, prints for each request
-- {route (from 1), prefix} or false. Run in the root of the checkout.
package.path = "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;" .. package.path

local cjson = require("cjson")
local oracle = require("test.unit.support.oracle")

local case = cjson.decode(io.read("*a"))
local answers = {}
for i, request in ipairs(case.requests) do
    local best = oracle.match(case.routes, request)
    answers[i] = best and { route = best.route, prefix = best.prefix } or false
end
io.write(cjson.encode(answers))
