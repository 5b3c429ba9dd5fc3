-- Paths in C: the cases of path_spec.lua, and random ones beside the Lua.
--
-- SEED repeats a run, LONG=1 makes it longer.

local core_path = require("test.unit.support.core_path")
local lua_path = require("test.unit.support.lua_path")
local soak = require("test.unit.support.soak")

local ROUNDS = soak(200000, 2000000)

local seed = require("test.unit.support.seed")("core_path")

local random = math.random

describe("in C:", function()
    local cases = assert(loadfile("test/unit/path_spec.lua"))
    package.loaded["test.unit.support.lua_path"] = core_path
    setfenv(cases, getfenv(1))()
    package.loaded["test.unit.support.lua_path"] = lua_path
end)

-- What a request's URI becomes, in Lua --------------------------------------------

local function split(target)
    local at = target:find("?", 1, true) or #target + 1
    return target:sub(1, at - 1), target:sub(at)
end

--- The query as plugins have left it; nil: they did not run.
local function current_query(args, query)
    if not args then
        return query
    elseif args == "" then
        return query == "?" and query or ""
    end
    return "?" .. args
end

local function leaves_base(asked, path, uri_path)
    local base, prefix = asked.base or "/", asked.prefix
    local next_byte = asked.route.strip_path and prefix and path:sub(#prefix + 1, #prefix + 1) or ""
    local is_cut = next_byte ~= "" and next_byte ~= "/" and prefix:sub(-1) ~= "/"
    if not is_cut and (base == "/" or not asked.passes_traversal) then
        return false
    end
    return core_path.leaves(uri_path, #base)
end

--- As `core_path.decide`.
local function decide(asked)
    local raw, asked_query = split(asked.target)
    local path = lua_path.normalize(raw)
    local query = current_query(asked.args, asked_query)
    local strips = asked.route.strip_path and asked.prefix
    -- The empty prefix of a regular expression strips nothing.
    strips = strips and strips ~= "" and strips ~= "/" and strips
    local prefix = strips and (path == raw and strips or lua_path.escape(strips)) or nil
    local has_base = asked.base and asked.base ~= "/"
    if path == raw and query == asked_query and not has_base and not strips then
        return core_path.own, prefix
    end
    local uri_path =
        lua_path.upstream(asked.route, asked.base or "/", path, asked.prefix, path == raw)
    if leaves_base(asked, path, uri_path) then
        return core_path.refuse
    end
    return uri_path .. query, prefix
end

-- Random paths ----------------------------------------------------------------

local function words(text)
    local list = {}
    for word in text:gmatch("%S+") do
        list[#list + 1] = word
    end
    return list
end

local PIECES = words([[
    / / / / // . .. ... /. /.. /./ /../ a b g F Zz09 -_~ %2e %2E %2e%2e %2E. %252e %2f %2F %2f%2f
    %5c %5C \ ; %3b %3B % %% %2 %a %zz %%32e %25 %41 %7e %20 %0a %00 %80 %fF %c0%af %c0%ae # %23
    %5b%5D %40 !*'() :@&=+$, [] "<>^`{|}
]])
for _, piece in ipairs({ " ", "\0", "\n", "\127", "\128", "\255", "\192\175" }) do
    PIECES[#PIECES + 1] = piece
end

local BASES = words("/ / /s /s/ /s/t /s/t/ /s;x /s%2ft/ /~s/.. /s// /.a")
BASES[1] = false

local QUERIES = { "", "", "?", "?a", "?a=1&b=%20", "??", "?/../", "?a?b" }

local ARGS = { "", "a", "a=1&b=%20", "b", "?", "/../" }

local function random_path()
    local out = { random(10) > 1 and "/" or "" }
    for i = 1, random(0, 9) do
        out[i + 1] = PIECES[random(#PIECES)]
    end
    -- All bytes alike, now and then.
    if random(4) == 1 then
        out[#out + 1] = string.char(random(0, 255), random(0, 255))
    end
    return (table.concat(out):gsub("?", "."))
end

--- The beginning of a path up to somewhere: where a regular expression may end.
local function random_prefix(path)
    local kind = random(6)
    if kind == 1 then
        return nil
    elseif kind == 2 then
        return path:sub(1, (path:find("/", 2, true) or #path + 1) - 1)
    end
    return path:sub(1, random(0, #path))
end

local function pick(list)
    return list[random(#list)] or nil
end

local function random_request()
    local raw = random_path()
    return {
        target = raw .. pick(QUERIES),
        prefix = random_prefix(lua_path.normalize(raw)),
        route = { strip_path = random(3) > 1, path_handling = random(2) == 1 and "v0" or "v1" },
        base = pick(BASES),
        args = random(3) == 1 and pick(ARGS) or nil,
        passes_traversal = random(2) == 1,
    }
end

local function show(asked)
    return ("target %q, prefix %q, %s, %s, base %q, args %q, traversal %s, seed %d"):format(
        asked.target,
        tostring(asked.prefix),
        asked.route.strip_path and "strip" or "keep",
        asked.route.path_handling,
        tostring(asked.base),
        tostring(asked.args),
        tostring(asked.passes_traversal),
        seed
    )
end

describe("paths in C beside those in Lua", function()
    it("agree on every triplet", function()
        for code = 0, 255 do
            for _, form in ipairs({ "/a%%%02X", "/a%%%02x", "/%%%02Xb", "%%%02x/%c" }) do
                local raw = form:format(code, code)
                assert.equal(lua_path.normalize(raw), (core_path.normalize(raw)))
                assert.equal(lua_path.escape(raw), (core_path.escape(raw)))
            end
        end
    end)

    it("agree wherever in a path something stands", function()
        local pieces = { "", "/", "//", "/.", "/..", "/...", "/./", "/.b", "%2e", "%2F", "%2f" }
        for length = 0, 40 do
            for at = 0, length do
                for _, piece in ipairs(pieces) do
                    local raw = "/" .. ("a"):rep(at) .. piece .. ("a"):rep(length - at)
                    local want = lua_path.normalize(raw)
                    local got, is_input = core_path.normalize(raw)
                    assert(got == want and is_input == (want == raw), raw)
                end
            end
        end
    end)

    it(("agree on %d random paths, seed %d"):format(ROUNDS, seed), function()
        math.randomseed(seed)
        local same, escaped_same = 0, 0
        for _ = 1, ROUNDS do
            local raw = random_path()
            local want = lua_path.normalize(raw)
            local got, is_input = core_path.normalize(raw)
            if got ~= want or is_input ~= (want == raw) then
                error(("normalize %q: %q in C, %q in Lua, seed %d"):format(raw, got, want, seed))
            end
            same = same + (is_input and 1 or 0)
            want = lua_path.escape(raw)
            got, is_input = core_path.escape(raw)
            if got ~= want or is_input ~= (want == raw) then
                error(("escape %q: %q in C, %q in Lua, seed %d"):format(raw, got, want, seed))
            end
            escaped_same = escaped_same + (is_input and 1 or 0)
        end
        -- Cases of one kind would prove nothing.
        assert.is_true(same > ROUNDS / 50 and same < ROUNDS / 2, same)
        assert.is_true(escaped_same > ROUNDS / 50 and escaped_same < ROUNDS * 0.9, escaped_same)
    end)

    it(("decide the same of %d random requests, seed %d"):format(ROUNDS, seed), function()
        math.randomseed(seed)
        local seen = { [core_path.own] = 0, [core_path.refuse] = 0, made = 0, stripped = 0 }
        for _ = 1, ROUNDS do
            local asked = random_request()
            local want, want_prefix = decide(asked)
            local got, prefix = core_path.decide(asked)
            if got ~= want or prefix ~= want_prefix then
                local form = "%s\nC %q, stripped %q\nLua %q, stripped %q"
                error(
                    form:format(show(asked), got, tostring(prefix), want, tostring(want_prefix)),
                    0
                )
            end
            local kind = seen[want] and want or "made"
            seen[kind] = seen[kind] + 1
            seen.stripped = seen.stripped + (prefix and 1 or 0)
        end
        for kind, times in pairs(seen) do
            assert.is_true(times > ROUNDS / 500, kind .. ": " .. times)
        end
    end)
end)
