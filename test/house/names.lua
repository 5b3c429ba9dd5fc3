--- Words that names in the product do not have any more, since the field has others for what they
-- meant. English is free: comments, strings and documents are not looked at.

local c = require("test.house.c")
local lexer = require("test.house.lexer")

local _M = {}

--- Parts of names, between underscores -> what to call it instead.
_M.retired = {
    birth = "create, init",
    born = "started, created",
    care = "maintenance",
    chain_leave = "chain_detach",
    chance = "random",
    climb = "traversal",
    climbs = "traversal",
    dead = "exited, of a process; stale, of a file",
    destination = "service",
    heard = "reported, received",
    heir = "successor",
    heirs = "successors",
    live_hold = "compiled_pin",
    peer_leave = "peer_detach",
    rotation = "balancer",
    rotations = "balancers",
    route_leave = "route_detach",
    seat = "slot, of a registration; shard, of counts",
    seats = "slots, shards",
    tell = "report, notify",
    told = "reported, notified",
    trial = "dry run; backtracking, of patterns; probe",
}

--- Names that users know.
local KEPT = { reject_encoded_climbs = true }

local function names_of(path, text)
    local names = {}
    if path:find("%.lua$") then
        for _, token in ipairs(lexer.tokens(text)) do
            if token.kind == "name" then
                names[#names + 1] = { token.text, token.line }
            end
        end
        return names
    end
    local line = 0
    for row in (c.code(text) .. "\n"):gmatch("(.-)\n") do
        line = line + 1
        for name in row:gmatch("[%a_][%w_]*") do
            names[#names + 1] = { name, line }
        end
    end
    return names
end

local function instead(name)
    local parts = "_" .. name:lower() .. "_"
    for word, better in pairs(_M.retired) do
        if parts:find("_" .. word .. "_", 1, true) then
            return better
        end
    end
    return nil
end

--- Names of a file that have a word which was retired, the file's own included.
-- @tparam string path of Lua, or of C
-- @tparam string text
-- @treturn {string,...}
function _M.complaints(path, text)
    local found, seen = {}, {}
    local own = path:match("([^/]+)%.%w+$"):gsub("[^%w]", "_")
    for _, entry in ipairs({ { own, 1 }, unpack(names_of(path, text)) }) do
        local name, line = entry[1], entry[2]
        local better = not (seen[name] or KEPT[name]) and instead(name)
        if better then
            seen[name] = true
            found[#found + 1] = ("%s:%d: %s: say %s"):format(path, line, name, better)
        end
    end
    return found
end

return _M
