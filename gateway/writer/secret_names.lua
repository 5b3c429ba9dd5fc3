--- Names whose values are secrets: `names_secrets` of a plugin's schema, in its configurations, and
-- what stands before a secret in paths of the Admin API: `has_secret_name` of a plugin's entities.
--
-- They are published (sluice.redact) before what names them is live, and so before a request can
-- have a secret under such a name.
-- @module gateway.writer.secret_names

local cjson = require("cjson")
local redact = require("sluice.redact")

local _M = {}

--- Publishes paths, and the names that configurations have which were put after a revision. Reads
-- the texts of these: for revision 0, where no worker knows any name yet, of all.
-- @tparam table db connection, in a transaction
-- @tparam {table,...} layouts
-- @tparam number since
function _M.publish(db, layouts, since)
    for _, of in ipairs(layouts) do
        for _, path in ipairs(of.secret_paths or {}) do
            redact.publish(path)
        end
        for _, list in ipairs(of.secret_names or {}) do
            local sql = string.format(
                "SELECT DISTINCT json_extract(text, '$.%s') FROM e_%s WHERE revision > ? "
                    .. "AND instr(text, ?) > 0 AND json_extract(text, '$.name') = ?",
                table.concat(list.keys, "."),
                of.kind
            )
            local key = '"' .. list.keys[#list.keys] .. '":['
            for _, row in ipairs(db:rows(sql, since, key, list.of)) do
                for _, name in ipairs(row[1] and cjson.decode(row[1]) or {}) do
                    redact.publish(name)
                end
            end
        end
    end
end

return _M
