--- Seeds of random tests: a function that gives the number of a name, made of test/seed.h as
-- everywhere. SEED of the environment takes its place. Where a test of the calling file fails, what
-- repeats it is printed.

local function of(name)
    local given = os.getenv("SEED")
    if given and given ~= "" then
        return assert(tonumber(given), "SEED is no number")
    end
    local file = assert(io.open("test/seed.h"))
    local seed = tonumber(file:read("*a"):match("#define TEST_SEED +(%d+)"))
    file:close()
    for i = 1, #name do
        seed = (seed * 31 + name:byte(i)) % 2147483647
    end
    return seed
end

local function file_of(busted, element)
    while element and element.descriptor ~= "file" do
        element = busted.parent(element)
    end
    return element and element.name
end

local function tell(seed, file)
    local found, busted = pcall(require, "busted")
    if not found or not busted.subscribe then
        return
    end
    local function failed(element)
        if file_of(busted, element) == file then
            local filter = element.name:gsub("%W", ".")
            io.stderr:write(("\nagain: SEED=%d make unit ARGS=--filter=%s\n"):format(seed, filter))
        end
        return nil, true
    end
    busted.subscribe({ "failure", "it" }, failed)
    busted.subscribe({ "error", "it" }, failed)
end

return function(name)
    local seed = of(name)
    tell(seed, debug.getinfo(2, "S").short_src)
    return seed
end
