--- What a validation has found so far, and where it is.
-- @module gateway.schema.context

local concat = table.concat
local format = string.format
local huge = math.huge

local _M = {}

--- What `fail` throws when there are as many errors as were asked for.
_M.ENOUGH = {}

-- A context of a validation that found nothing wrong is used again.
local spare

--- @tparam string path where the value stands
-- @tparam[opt] function vault looks references up
-- @tparam[opt] number max_errors no end when absent
-- @treturn table `errors`, `keys` and `depth`: the keys to what is looked at; `references`;
-- `as_is` of gateway.schema's `check`
function _M.take(path, vault, max_errors)
    local ctx = spare or { errors = {}, path = nil, keys = {}, depth = 0 }
    spare = nil
    ctx.path = path
    ctx.vault = vault
    ctx.references = nil
    ctx.waived = nil
    ctx.as_is = nil
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

-- Whether keys lead to a place, or to what is in it.
local function lead_to(keys, of)
    for i = 1, #of do
        if keys[i] ~= of[i] then
            return false
        end
    end
    return true
end

--- Adds what a check of several fields says.
-- @tparam table ctx
-- @tparam table err of gateway.schema.entity_checks
-- @tparam {string,...} names of the field within the record
function _M.report(ctx, err, names)
    local here = { unpack(ctx.keys, 1, ctx.depth) }
    local keys, errors = { unpack(here) }, ctx.errors
    for _, name in ipairs(names) do
        keys[#keys + 1] = name
    end
    for i = err.replaces and #errors or 0, 1, -1 do
        local is_there = lead_to(errors[i].keys, keys)
        if is_there and #errors[i].keys > #keys and err.of_record then
            -- What is wrong in the field has been said.
            errors[i].of_record = { keys = here, message = err.of_record }
            return
        elseif is_there and #errors[i].keys == #keys then
            table.remove(errors, i)
        end
    end
    _M.fail(ctx, err.message, unpack(names))
    local added = errors[#errors]
    added.unless, added.plain, added.is_of_record = err.unless, err.plain, #names == 0 or nil
    added.of_record = err.of_record and { keys = here, message = err.of_record }
end

--- Adds the errors that a function of a schema found: one message, or in a table those of what
-- stands in the value, by key, as Kong's have them.
-- @tparam table ctx
-- @tparam string|table message
function _M.fail_all(ctx, message)
    if type(message) ~= "table" then
        return _M.fail(ctx, tostring(message))
    end
    local depth = ctx.depth
    for key, item in pairs(message) do
        local is_list = key == "@entity" and type(item) == "table"
        if not is_list then
            ctx.depth = depth + 1
            ctx.keys[depth + 1] = type(key) == "number" and key - 1 or key
        end
        for _, text in ipairs(is_list and item or { item }) do
            _M.fail_all(ctx, text)
            ctx.errors[#ctx.errors].is_of_record = is_list or nil
        end
        ctx.depth = depth
    end
    return nil
end

--- Adds an error of what this version does not support, or waives it where that was asked for.
-- @tparam table ctx
-- @tparam string message
function _M.fail_unsupported(ctx, message)
    local waived = ctx.waived
    if waived then
        waived[#waived + 1] =
            { path = path_of(ctx, { unpack(ctx.keys, 1, ctx.depth) }), message = message }
        return
    end
    _M.fail(ctx, message)
    ctx.errors[#ctx.errors].is_unsupported = true
end

--- Remembers that what is looked at was a reference.
function _M.note_reference(ctx, text)
    ctx.references = ctx.references or {}
    ctx.references[#ctx.references + 1] = { keys = { unpack(ctx.keys, 1, ctx.depth) }, text = text }
end

return _M
