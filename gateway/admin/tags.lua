--- `/tags` and `/tags/{tag}`: which entities have which tags.
-- @module gateway.admin.tags

local json = require("gateway.schema.json")
local paging = require("gateway.admin.paging")
local response = require("gateway.admin.response")
local rules = require("gateway.schema.text")

local _M = {}

--- Answers with a page. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.get(live, args, segments)
    local options, name, code, message = paging.read(args)
    if not options then
        return response.bad_request(name, code, message)
    end
    local tag, path = segments[2], "/tags"
    if tag then
        local ok, why = rules.tag(tag)
        if not ok then
            return response.bad_request("invalid unique tag", 10, why)
        end
        options.tag, path = tag, "/tags/" .. ngx.escape_uri(tag)
    end
    local page, offset = live.read("tags", options)
    if not page then
        return paging.refuse(offset, options)
    end
    local data = json.array({})
    for i, row in ipairs(page) do
        data[i] = { tag = row.tag, entity_name = row.kind, entity_id = row.id }
    end
    return paging.answer(path, args, data, offset)
end

return _M
