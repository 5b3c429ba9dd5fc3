--- lua-resty-string's SHA1.
-- @module resty.sha1

return require("resty.sha").of("sha1")
