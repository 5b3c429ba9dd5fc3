-- A cjson as OpenResty's: arrays that stay arrays, more digits, and settings of an instance's own.

local arrays = require("sluice.cjson_arrays")
local plain = require("cjson")

describe("sluice.cjson_arrays", function()
    local cjson

    before_each(function()
        cjson = arrays.new()
    end)

    it("encodes as C does where nothing is special", function()
        for _, value in ipairs({ {}, { 1, 2, { a = "b/" } }, "x", 1.5, true, plain.null }) do
            assert.equal(plain.encode(value), cjson.encode(value))
        end
        assert.has_error(function()
            cjson.encode(print)
        end)
        assert.has_error(function()
            cjson.encode({ [1] = 1, [100] = 2 })
        end)
    end)

    it("encodes arrays as arrays", function()
        assert.equal("[]", cjson.encode(setmetatable({}, cjson.array_mt)))
        assert.equal("[1,null,3]", cjson.encode(setmetatable({ 1, nil, 3 }, cjson.array_mt)))
        assert.equal("[]", cjson.encode(setmetatable({}, cjson.empty_array_mt)))
        assert.equal('{"a":1}', cjson.encode(setmetatable({ a = 1 }, cjson.empty_array_mt)))
        assert.equal("[]", cjson.encode(cjson.empty_array))
        assert.equal(
            '{"a":[],"b":{}}',
            cjson
                .encode({ a = cjson.empty_array, b = {} })
                :gsub('^{"b":{},"a":%[%]}$', '{"a":[],"b":{}}')
        )
        assert.equal(arrays.array_mt, arrays.new().array_mt)
    end)

    it("encodes empty tables as it is told", function()
        cjson.encode_empty_table_as_object(false)
        assert.equal('[{"a":[]}]', cjson.encode({ { a = {} } }))
        assert.equal("{}", arrays.new().encode({}))
    end)

    it("writes up to 16 digits", function()
        assert.equal(14, cjson.encode_number_precision())
        cjson.encode_number_precision(16)
        assert.equal("[0.3333333333333333]", cjson.encode({ 1 / 3 }))
        assert.equal("0.1", cjson.encode(0.1))
        -- microseconds since 1970
        assert.equal("[1700000000123456]", cjson.encode({ 1700000000123456 }))
        assert.equal("-99999999999999", cjson.encode(-99999999999999))
        assert.equal("[0.33333333333333]", plain.encode({ 1 / 3 }))
        assert.has_error(function()
            cjson.encode_number_precision(17)
        end)
    end)

    it("leaves slashes as they are where it is told", function()
        assert.equal([["a\/\\b"]], cjson.encode("a/\\b"))
        cjson.encode_escape_forward_slash(false)
        assert.equal([["a/\\b"]], cjson.encode("a/\\b"))
    end)

    it("decodes arrays as arrays where it is told", function()
        local text = '{"a":[],"b":{},"c":[ [] ,{"x":"[]"}],"d":"\\"[]","e":[\n]}'
        assert.is_nil(getmetatable(cjson.decode(text).a))
        cjson.decode_array_with_array_mt(true)
        local found = cjson.decode(text)
        assert.same({ a = {}, b = {}, c = { {}, { x = "[]" } }, d = '"[]', e = {} }, found)
        for _, array in ipairs({ found.a, found.c, found.c[1], found.e }) do
            assert.equal(cjson.array_mt, getmetatable(array))
        end
        assert.is_nil(getmetatable(found.b))
        assert.is_nil(getmetatable(found.c[2]))
        assert.same(found, cjson.decode(cjson.encode(found)))
        -- The word that marks them is another one than those that are there.
        assert.same({ "array0", {} }, cjson.decode('["array0",[]]'))
    end)

    it("throws where it is called, or returns errors", function()
        local ok, err = pcall(cjson.decode, "[")
        assert.is_false(ok)
        assert.matches("Expected value but found T_END at character 2", err)
        local safe = arrays.new(true)
        assert.same({ nil, "Expected value but found T_END at character 2" }, { safe.decode("[") })
        local text
        text, err = safe.encode(print)
        assert.is_nil(text)
        assert.matches("Cannot serialise function", err)
        assert.is_nil(safe.new().decode("["))
    end)
end)
