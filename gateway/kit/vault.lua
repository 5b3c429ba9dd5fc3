--- `kong.vault`: values that are somewhere else, such as `{vault://env/my-secret}`.
--
-- There is one kind of vault here, the environment; the setting `vault_env` lists the variables
-- that may be asked for. A vault of the configuration is known to the entities that refer to it,
-- and not here: `get` takes `{vault://env/...}` alone.
-- @module gateway.kit.vault

local byte = string.byte
local find = string.find
local format = string.format
local gsub = string.gsub
local sub = string.sub
local tonumber = tonumber
local tostring = tostring
local type = type

local _M = {}

local BEGIN, BRACE_END = "{vault://", byte("}")

local look_up

--- Looks values up from then on.
-- @tparam function vault of gateway.config.vault
-- @local
function _M.use(vault)
    look_up = vault
end

--- Whether a value looks like a reference.
-- @tparam any reference
-- @treturn boolean
-- @phases any
function _M.is_reference(reference)
    return type(reference) == "string"
        and sub(reference, 1, #BEGIN) == BEGIN
        and byte(reference, -1) == BRACE_END
end

local function unescape(text)
    return (
        gsub(text, "%%(%x%x)", function(digits)
            return string.char(tonumber(digits, 16))
        end)
    )
end

-- The options behind the question mark.
local function options_of(query)
    local found
    for pair in (query or ""):gmatch("[^&]+") do
        local name, value = pair:match("^([^=]*)=?(.*)$")
        found = found or {}
        found[unescape(name)] = find(pair, "=", 1, true) and unescape(value) or true
    end
    return found
end

-- The name of a secret, and that of a part of it.
local function resource_of(path)
    local parts = {}
    for part in path:gmatch("[^/]+") do
        parts[#parts + 1] = unescape(part)
    end
    if #parts < 2 or path:sub(-1) == "/" then
        return parts[1] and table.concat(parts, "/") or nil
    end
    local key = table.remove(parts)
    return table.concat(parts, "/"), key
end

--- Takes a reference apart.
-- @tparam string reference
-- @treturn table|nil `name`, `resource`, `key`, `config`, `version`
-- @treturn string|nil what is wrong
-- @phases any
function _M.parse_reference(reference)
    if not _M.is_reference(reference) then
        return nil, format("not a reference [%s]", tostring(reference))
    end
    local rest, fragment = sub(reference, #BEGIN + 1, -2):match("^([^#]*)#?(.*)$")
    local address, query = rest:match("^([^?]*)%??(.*)$")
    local name, path = address:match("^([^/]*)(.*)$")
    local version = fragment ~= "" and tonumber(fragment, 10) or nil
    if name == "" then
        return nil, format("reference url is missing host [%s]", reference)
    elseif path == "" then
        return nil, format("reference url is missing path [%s]", reference)
    elseif path == "/" then
        return nil, format("reference url has empty path [%s]", reference)
    elseif fragment ~= "" and not version then
        return nil, format("reference url has invalid version [%s]", reference)
    end
    local resource, key = resource_of(sub(path, 2))
    if not resource then
        return nil, format("reference url has invalid path [%s]", reference)
    end
    return {
        name = name,
        resource = resource,
        key = key,
        config = options_of(query),
        version = version,
    }
end

local function no_vault()
    return nil
end

--- The value that is referred to. Does not yield.
-- @tparam string reference
-- @treturn string|nil
-- @treturn string|nil why there is none
-- @phases init_worker and later
function _M.get(reference)
    local parsed, err = _M.parse_reference(reference)
    if not parsed then
        return nil, err
    elseif not look_up then
        return nil, "no value found"
    end
    local begin = parsed.config and parsed.config.prefix or ""
    if begin ~= "" and type(begin) == "string" then
        local rest = parsed.key and parsed.resource .. "/" .. parsed.key or parsed.resource
        reference = format("{vault://%s/%s%s}", parsed.name, begin, rest)
    end
    return look_up(reference, no_vault)
end

local function values_of(references)
    if type(references) == "string" then
        return (_M.get(references))
    end
    local found = {}
    for key, reference in pairs(references) do
        found[key] = _M.get(reference)
    end
    return found
end

local function update(options)
    for name, references in pairs(options["$refs"] or {}) do
        local value = values_of(references)
        if type(value) == "table" and type(options[name]) == "table" then
            for key, item in pairs(value) do
                options[name][key] = item
            end
        elseif value ~= nil then
            options[name] = value
        end
    end
    for name, inner in pairs(options) do
        if type(inner) == "table" and name ~= "$refs" then
            update(inner)
        end
    end
end

--- Puts the values of now in the place of those of before, as `$refs` says; one that cannot be
-- looked up stays.
-- @tparam table options changed in place, also the tables in it
-- @treturn table the same
-- @raise it is no table
-- @phases init_worker and later
function _M.update(options)
    if type(options) ~= "table" then
        error("options must be a table", 2)
    end
    update(options)
    return options
end

local function has_references(options)
    for name, value in pairs(options) do
        local is_named = name == "$refs" and type(value) == "table" and next(value) ~= nil
        if is_named or (type(value) == "table" and name ~= "$refs" and has_references(value)) then
            return true
        end
    end
    return false
end

--- Calls a function with options; where it fails, and they have references, again with the values
-- of now. The function may yield.
-- @tparam function callback `(options)`
-- @tparam table options
-- @treturn any what the function returns
-- @treturn string|nil its error
-- @phases init_worker and later
function _M.try(callback, options)
    if not has_references(options) then
        return callback(options)
    end
    local found = callback(_M.update(options))
    if found then
        return found
    end
    return callback(_M.update(options))
end

--- Nothing: values are looked up when they are asked for.
-- @phases any
function _M.init_worker() end

--- Nothing: as above.
-- @phases any
function _M.warmup() end

--- Nothing: no value is kept.
-- @phases any
function _M.flush() end

return _M
