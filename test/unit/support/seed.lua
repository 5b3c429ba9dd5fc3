--- Seeds of random tests: a function that gives the number of a name, made of test/seed.h as
-- everywhere. SEED of the environment takes its place.

return function(name)
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
