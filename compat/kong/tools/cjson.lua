--- JSON whose arrays keep that they are ones: `kong.tools.cjson`.
-- @module kong.tools.cjson

local cjson = require("sluice.cjson_arrays").new(true)

cjson.decode_array_with_array_mt(true)
cjson.encode_sparse_array(nil, nil, 2 ^ 15)
cjson.encode_number_precision(16)

return {
    --- As `cjson.safe.encode`, with numbers to 16 digits.
    encode = cjson.encode,
    --- As `cjson.safe.decode`; arrays have `array_mt`, empty ones, too.
    decode_with_array_mt = cjson.decode,
    --- The metatable of arrays.
    array_mt = cjson.array_mt,
}
