--- lua-resty-string's SHA512.
-- @module resty.sha512

return require("resty.sha").of("sha512")
