--- What a test has in the place of modules and of `ngx`.

local _M = {}

--- Has modules required anew, or others in their place.
-- @tparam {[string]=table|false} modules by name; false: it is loaded anew
-- @tparam table ngx
-- @treturn function puts back what was there
function _M.put(modules, ngx)
    local before, old_ngx = {}, _G.ngx
    for name, module in pairs(modules) do
        before[name], package.loaded[name] = package.loaded[name], module or nil
    end
    _G.ngx = ngx
    return function()
        _G.ngx = old_ngx
        for name in pairs(modules) do
            package.loaded[name] = before[name]
        end
    end
end

return _M
