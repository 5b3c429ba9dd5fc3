--- Bodies that `kong.service.request.set_body` writes, by their types.
--
-- Nothing here yields.
-- @module gateway.kit.service.body

local cjson = require("cjson.safe")
local query = require("gateway.kit.service.query")

local concat = table.concat
local find = string.find
local pairs = pairs
local sort = table.sort
local sub = string.sub
local tostring = tostring
local type = type

local FORM_DATA = "multipart/form-data"
local PLAIN = { string = true, number = true, boolean = true }

local _M = {}

-- What a type names, quoted or not; nil: nothing.
local function boundary_of(mime)
    local _, at = find(mime, "boundary=", 1, true)
    if not at then
        return nil
    elseif sub(mime, at + 1, at + 1) == '"' then
        local ends = find(mime, '"', at + 2, true)
        return sub(mime, at + 2, ends and ends - 1)
    end
    return sub(mime, at + 1)
end

local function check_parts(args)
    for name, value in pairs(args) do
        if type(name) ~= "string" then
            return ("invalid key %q: got %s, expected string"):format(tostring(name), type(name))
        elseif not PLAIN[type(value)] then
            local text = "invalid value %q: got %s, expected string, number or boolean"
            return text:format(name, type(value))
        end
    end
    return nil
end

-- One that no value has.
local function find_boundary(args, boundary)
    local is_free
    repeat
        boundary = boundary or tostring(math.random(1e10))
        is_free = true
        for _, value in pairs(args) do
            is_free = is_free and not find(tostring(value), "\n--" .. boundary, 1, true)
        end
        if not is_free then
            boundary = nil
        end
    until is_free
    return boundary
end

local function multipart(args, mime)
    local err = check_parts(args)
    if err then
        return nil, err
    end
    local boundary = find_boundary(args, boundary_of(mime))
    local names = {}
    for name in pairs(args) do
        names[#names + 1] = name
    end
    sort(names)
    local out = {}
    for i = 1, #names do
        local name = names[i]
        local value = tostring(args[name])
        out[i] = ('--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'):format(
            boundary,
            name:gsub('[\r\n"]', { ["\r"] = "%0D", ["\n"] = "%0A", ['"'] = "%22" }),
            value
        )
    end
    out[#out + 1] = "--" .. boundary .. "--\r\n"
    return concat(out), FORM_DATA .. "; boundary=" .. boundary
end

local WRITERS = {
    ["application/x-www-form-urlencoded"] = function(args, mime)
        local text, err = query.encode(args)
        return text, text and mime or err
    end,
    ["application/json"] = function(args, mime)
        local text, err = cjson.encode(args)
        return text, text and mime or err
    end,
    [FORM_DATA] = multipart,
}

--- A body.
-- @tparam table args
-- @tparam string mime with parameters, such as "application/json; charset=utf-8"
-- @treturn string|nil
-- @treturn string its type, with the boundary; or what is wrong
-- @phases any within nginx
function _M.encode(args, mime)
    local write = WRITERS[sub(mime, 1, (find(mime, ";", 1, true) or 0) - 1)]
    if not write then
        return nil, "unsupported content type " .. mime
    end
    return write(args, mime)
end

return _M
