--- lua-resty-string's SHA256.
-- @module resty.sha256

return require("resty.sha").of("sha256")
