--- Bodies of multipart/form-data (RFC 7578).
-- @module gateway.config.multipart

local find = string.find
local min = math.min
local sub = string.sub

-- Bytes of a boundary (RFC 2046, section 5.1.1).
local MAX_BOUNDARY = 70

-- Bytes of a field's headers in which its name is looked for.
local MAX_HEAD = 8192

local _M = {}

--- Goes through the fields of a body. Linear.
-- @tparam string text
-- @tparam string header the whole Content-Type
-- @tparam function add called with name and text of each field, ends it with false
-- @treturn boolean|nil false where `add` has ended it
-- @treturn nil|string what is wrong with the header
function _M.each(text, header, add)
    local boundary = header:match('boundary="([^"]+)"') or header:match("boundary=([^;%s]+)")
    if not boundary or #boundary > MAX_BOUNDARY then
        return nil, ("expected a boundary of 1 to %d bytes"):format(MAX_BOUNDARY)
    end
    local delimiter, at = "--" .. boundary, 1
    while true do
        local _, head = find(text, delimiter, at, true)
        local head_end, body = find(text, "\r\n\r\n", head or #text, true)
        local finish = body and find(text, "\r\n" .. delimiter, body - 1, true)
        if not finish then
            return true
        end
        local name = sub(text, head, min(head_end, head + MAX_HEAD)):match('[; ]name="([^"]*)"')
        if name and not add(name, sub(text, body + 1, finish - 1)) then
            return false
        end
        at = finish
    end
end

return _M
