--- What a validation has found so far, and where it is.
-- @module gateway.schema.context

local concat = table.concat
local error = error
local format = string.format
local huge = math.huge
local ipairs = ipairs
local tostring = tostring
local type = type
local unpack = unpack

local _M = {}

--- What `fail` throws when there are as many errors as were asked for.
_M.ENOUGH = {}

-- A context of a validation that found nothing wrong is used again.
local spare

--- @tparam string path where the value stands
-- @tparam[opt] function vault looks references up
-- @tparam[opt] number max_errors no end when absent
-- @treturn table `errors`, `keys` and `depth`: the keys to what is looked at; `references`
function _M.take(path, vault, max_errors)
    local ctx = spare or { errors = {}, path = nil, keys = {}, depth = 0 }
    spare = nil
    ctx.path = path
    ctx.vault = vault
    ctx.references = nil
    ctx.max_errors = max_errors or huge
    return ctx
end

--- Ends a validation.
function _M.give_back(ctx)
    if #ctx.errors == 0 then
        spare = ctx
    end
end

local function key_text(key)
    if type(key) == "number" then
        return "[" .. key .. "]"
    end
    key = tostring(key)
    if key:find("^[%w_@$~*-]+$") then
        return "." .. key
    end
    return '["'
        .. key:gsub('[%c"\\]', function(c)
            return format("\\x%02x", c:byte())
        end)
        .. '"]'
end

-- The path is kept as a stack of keys and written out only for an error.
local function path_of(ctx, keys)
    local parts = { ctx.path }
    for _, key in ipairs(keys) do
        parts[#parts + 1] = key_text(key)
    end
    return (concat(parts):gsub("^%.", ""))
end

--- The path of what stands below another.
-- @tparam string path
-- @tparam string below path of an error, "" for what stands at `path` itself
-- @treturn string
function _M.join(path, below)
    local is_named = path ~= "" and below ~= "" and below:sub(1, 1) ~= "["
    return path .. (is_named and "." or "") .. below
end

--- Adds an error; throws `ENOUGH` beyond `max_errors`.
-- @tparam table ctx
-- @tparam string message
-- @tparam string ... keys below what is looked at
function _M.fail(ctx, message, ...)
    if #ctx.errors >= ctx.max_errors then
        error(_M.ENOUGH, 0)
    end
    local keys = { unpack(ctx.keys, 1, ctx.depth) }
    for _, key in ipairs({ ... }) do
        keys[#keys + 1] = key
    end
    ctx.errors[#ctx.errors + 1] = { path = path_of(ctx, keys), keys = keys, message = message }
    return nil
end

--- Remembers that what is looked at was a reference.
function _M.note_reference(ctx, text)
    ctx.references = ctx.references or {}
    ctx.references[#ctx.references + 1] = { keys = { unpack(ctx.keys, 1, ctx.depth) }, text = text }
end

return _M
