local blocks = require("gateway.threads.blocks")
local files = require("test.house.files")
local lua_state = require("gateway.threads.lua_state")

-- More than a new state has.
local MOST_KB = 64 * 1024

describe("a Lua state of its own", function()
    it("gives all results, and throws what is thrown", function()
        assert.same({ 2, 3 }, { lua_state.call("string", "find", "abcd", "bc") })
        local results = { n = select("#", lua_state.call("string", "find", "abcd", "x")) }
        assert.same({ n = 1 }, results)
        assert.error_matches(function()
            lua_state.call("string", "rep")
        end, "bad argument #1 to")
        assert.error_matches(function()
            lua_state.call("no.such", "x")
        end, "module 'no.such' not found")
    end)

    it("says that there is no memory", function()
        local made, err = lua_state.call("string", "rep", "xx", 2 ^ 31 - 1)
        assert.is_nil(made)
        assert.same({ err = "full", message = "not enough memory" }, err)
    end)

    it("is another one each time, or is used again", function()
        local first, ok, one = lua_state.reuse(0, MOST_KB, "math", "random")
        assert.is_true(ok and first ~= 0)
        local second, _, two = lua_state.reuse(first, MOST_KB, "math", "random")
        assert.equal(first, second)
        assert.not_equal(one, two)
        assert.equal(one, lua_state.call("math", "random"))
        -- Where it has grown it is closed.
        assert.same(
            { 0, true, ("x"):rep(9) },
            { lua_state.reuse(first, 1, "string", "rep", "x", 9) }
        )
    end)

    it("is not used again where something was thrown", function()
        local address, ok, thrown = lua_state.reuse(0, MOST_KB, "string", "rep")
        assert.same({ 0, false }, { address, ok })
        assert.matches("bad argument #1 to", thrown)
    end)
end)

-- Calls in a process that has less memory each time: every call has its result, or says that there
-- was too little.
local LESS_AND_LESS = [[
local ffi = require("ffi")
ffi.cdef("int setrlimit(int what, const unsigned long *limits);")
local lua_state = require("gateway.threads.lua_state")
local ADDRESS_SPACE = 9
local limits = ffi.new("unsigned long[2]", -1)
local function bound(bytes)
    limits[0] = bytes
    ffi.C.setrlimit(ADDRESS_SPACE, limits)
end
local function used()
    return tonumber(io.open("/proc/self/statm"):read("*n")) * 4096
end
local made, refused = 0, 0
local text = ("x"):rep(300000)
lua_state.call("string", "len", text)
for room = 0, 200 do
    bound(used() + room * 16384)
    local ok, found, err = pcall(lua_state.call, "string", "len", text)
    bound(ffi.cast("unsigned long", -1))
    if ok and found == #text then
        made = made + 1
    else
        assert((ok and err.err == "full") or found == "not enough memory", tostring(found))
        refused = refused + 1
    end
end
print(made > 0 and refused > 0 and "fine" or made .. " " .. refused)
]]

describe("a Lua state that there is little memory for", function()
    it("ends no process", function()
        local path = os.tmpname()
        files.write(path, LESS_AND_LESS)
        local command = "LUA_PATH='%s' luajit -joff %s 2>&1"
        local said = files.run(command:format(package.path, path))
        os.remove(path)
        assert.equal("fine\n", said)
    end)
end)

describe("a list outside of Lua states", function()
    it("gives back what it was given, in its order", function()
        local list, given, found, pauses = blocks.new(), {}, {}, 0
        for i = 1, 1234 do
            given[i] = { number = i, text = ("x"):rep(i) }
            list:add(given[i])
        end
        local finished = list:finish()
        assert.equal(1234, finished.count)
        blocks.each(finished, function(item)
            found[#found + 1] = item
        end, function()
            pauses = pauses + 1
        end)
        assert.same(given, found)
        assert.equal(13, pauses)
        blocks.free(finished)
    end)

    it("is freed in parts", function()
        local list, parts = blocks.new(), 0
        local text = ("x"):rep(1024 * 1024)
        for _ = 1, 40 do
            list:add(text)
        end
        local finished = list:finish()
        blocks.free(finished, function()
            parts = parts + 1
        end)
        assert.equal(math.ceil(finished.bytes / (16 * 1024 * 1024)), parts)
        local maps = io.open("/proc/self/maps"):read("*a")
        assert.is_nil(maps:find(("%x-"):format(finished.address), 1, true))
    end)

    it("may be empty", function()
        local finished = blocks.new():finish()
        blocks.each(finished, error)
        blocks.free(finished)
    end)

    it("that is not finished leaves nothing behind", function()
        local list = blocks.new()
        local address = tonumber(require("ffi").cast("uintptr_t", list.memory))
        list:drop()
        local maps = io.open("/proc/self/maps"):read("*a")
        assert.is_nil(maps:find(("%x-"):format(address), 1, true))
    end)
end)
