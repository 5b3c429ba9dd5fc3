--- lua-resty-string's SHA224.
-- @module resty.sha224

return require("resty.sha").of("sha224")
