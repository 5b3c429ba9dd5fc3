--- lua-resty-string's SHA384.
-- @module resty.sha384

return require("resty.sha").of("sha384")
