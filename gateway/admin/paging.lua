--- Pages of lists: what a client may ask, and the answer.
-- @module gateway.admin.paging

local json = require("gateway.schema.json")
local response = require("gateway.admin.response")

local MAX_SIZE = 1000

local _M = {}

--- Reads `size` and `offset`.
-- @tparam table args arguments of the query
-- @treturn table|nil options for the store
-- @treturn nil|string Kong's name of the error
-- @treturn nil|number Kong's number of the error
-- @treturn nil|string what is wrong
-- @phases any
function _M.read(args)
    local options = {}
    if args.size ~= nil then
        options.size = tonumber(args.size)
        if not options.size then
            return nil, "invalid size", 9, "size must be a number"
        end
        local is_whole = args.size:find("^%d+$") ~= nil
        if not is_whole or options.size < 1 or options.size > MAX_SIZE then
            return nil, "invalid size", 9, "size must be an integer between 1 and " .. MAX_SIZE
        end
    end
    if args.offset ~= nil then
        if type(args.offset) ~= "string" then
            return nil, "invalid offset", 7, "offset must be given once"
        end
        options.offset = args.offset
    end
    return options
end

--- Answers that the store cannot be read.
-- @tparam table err of gateway.writer.queue
-- @phases content
function _M.unreadable(err)
    return response.json(503, { message = err.message or err.err, name = err.err })
end

--- Answers that there is no such page.
-- @tparam table err of gateway.writer.queue
-- @tparam table options of `read`
-- @phases content
function _M.refuse(err, options)
    if err.err == "invalid offset" then
        local message = ("'%s' is not a valid offset"):format(options.offset)
        return response.bad_request("invalid offset", 7, message)
    end
    return _M.unreadable(err)
end

local function next_page(path, offset, args)
    if not offset then
        return json.null
    end
    local link = path .. "?offset=" .. ngx.escape_uri(offset)
    if args.tags then
        link = link .. "&tags=" .. ngx.escape_uri(args.tags)
    end
    if args.size then
        link = link .. "&size=" .. args.size
    end
    return link
end

--- Answers with a page.
-- @tparam string path of the list
-- @tparam table args arguments of the query
-- @tparam table data array for gateway.schema.json
-- @tparam string|nil offset of the next page
-- @tparam[opt] table more fields of the answer
-- @phases content
function _M.answer(path, args, data, offset, more)
    local page = { data = data, next = next_page(path, offset, args), offset = offset }
    for name, value in pairs(more or {}) do
        page[name] = value
    end
    return response.json(200, page)
end

return _M
