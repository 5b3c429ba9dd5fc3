--- Whether two values are the same: tables by what is in them, without their metatables.
-- @module gateway.schema.equal

local function is_equal(a, b)
    if a == b or type(a) ~= "table" or type(b) ~= "table" then
        return a == b
    end
    for key, value in pairs(a) do
        if not is_equal(value, b[key]) then
            return false
        end
    end
    for key in pairs(b) do
        if a[key] == nil then
            return false
        end
    end
    return true
end

return is_equal
