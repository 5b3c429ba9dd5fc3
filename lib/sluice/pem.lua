--- Blocks of PEM (RFC 7468) in a text that may have anything between them.
-- @module sluice.pem
-- @usage
-- for block in pem.blocks(text, "CERTIFICATE") do
--     ...
-- end

local find = string.find
local sub = string.sub

local _M = {}

--- Goes through the blocks of one kind: each from a line that begins with its BEGIN to the next
-- END, both of them in it. Takes time with the length of the text, where a pattern would search
-- all of the rest for each BEGIN that has no END.
-- @tparam string text
-- @tparam string kind such as "CERTIFICATE" or "X509 CRL"
-- @treturn function iterator that gives strings
-- @phases all
function _M.blocks(text, kind)
    local head, tail = "\n-----BEGIN " .. kind .. "-----", "-----END " .. kind .. "-----"
    local at = 1
    text = "\n" .. text
    return function()
        local from, to = find(text, head, at, true)
        local _, last
        if from then
            _, last = find(text, tail, to + 1, true)
        end
        at = (last or #text) + 1
        return last and sub(text, from + 1, last)
    end
end

return _M
