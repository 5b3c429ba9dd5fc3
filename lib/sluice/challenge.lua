--- What a `WWW-Authenticate` header says (RFC 9110, section 11.6.1).
-- @module sluice.challenge

local _M = {}

local function hex(char)
    return ("%%%02X"):format(char:byte())
end

--- A text of a configuration for the value of a header: control characters, which would end it, are
-- escaped by `%`.
-- @tparam string text
-- @treturn string
function _M.value(text)
    return (text:gsub("[%z\1-\8\10-\31\127]", hex))
end

--- A challenge with a realm between quotes (RFC 9110, section 5.6.4), without control characters.
-- @tparam string scheme such as "Basic"
-- @tparam string|nil realm anything but a string: none
-- @treturn string
function _M.text(scheme, realm)
    if type(realm) ~= "string" then
        return scheme
    end
    realm = _M.value(realm):gsub('["\\]', "\\%0")
    return ('%s realm="%s"'):format(scheme, realm)
end

return _M
