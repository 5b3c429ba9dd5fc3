--- Blocks of PEM (RFC 7468) in a text that may have anything between them.
-- @module sluice.pem
-- @usage
-- for block in pem.blocks(text, "CERTIFICATE") do
--     ...
-- end

local find = string.find
local sub = string.sub

local KEY_BEGIN = "\n%-%-%-%-%-BEGIN [%u ]*PRIVATE KEY%-%-%-%-%-"
local PLUS_GONE = "blanks inside the PEM text, where '+' was: send it with curl's --data-urlencode"
local LINES_GONE = "blanks inside the PEM text, where line breaks were: in YAML, put it below a |"
-- As a file is called: a name of files ends so, and no text of PEM or Base64 does.
local PATH = "^[^%c]*%.%a%w*$"
local MAX_PATH_BYTES = 256

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

--- What became of the lines of a text's first block on its way here, if that shows.
-- @tparam string text
-- @treturn string|nil for people; nothing of the text is in it
-- @phases all
function _M.broken_lines(text)
    local _, head = find(text, "-----BEGIN ", 1, true)
    local _, from = find(text, "-----", head and head + 1 or #text + 1, true)
    local to = find(text, "-----END ", from and from + 1 or #text + 1, true)
    local body = to and sub(text, from + 1, to - 1) or ""
    if not find(body, "%S +%S") then
        return nil
    end
    return find(body, "\n", 1, true) and PLUS_GONE or LINES_GONE
end

--- What is wrong with a text that is not the PEM that is wanted, if it is a usual mistake. Nothing
-- of the text is in it.
-- @tparam string text
-- @tparam string wanted "certificate" or "private key"
-- @treturn string|nil for people
-- @phases all
function _M.mistake(text, wanted)
    local has_key = find("\n" .. text, KEY_BEGIN)
    local has_certificate = find(text, "-----BEGIN CERTIFICATE-----", 1, true)
    if wanted == "certificate" and has_key and not has_certificate then
        return "this is a private key, not a certificate (are both swapped?)"
    elseif wanted == "private key" and has_certificate and not has_key then
        return "this is a certificate, not a private key (are both swapped?)"
    elseif #text <= MAX_PATH_BYTES and find(text, PATH) then
        return ("the text of the %s is needed, not a path"):format(wanted)
    end
    return _M.broken_lines(text)
end

return _M
