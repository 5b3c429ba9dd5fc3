--- lua-resty-string's MD5.
-- @module resty.md5

return require("resty.sha").of("md5")
