--- Metrics of plugins' own, counted in a shared dictionary: the interface of nginx-lua-prometheus.
--
-- Any worker counts; each count is one operation of the dictionary. A dictionary without room drops
-- what is new, and says so once in the log. What the gateway counts itself is elsewhere, in C.
-- @module sluice.dictionary_metrics
-- @usage
-- local metrics = require("sluice.dictionary_metrics").new("my_metrics", "shop_")
-- local hits = metrics:counter("hits_total", "Hits by kind.", { "kind" })
-- hits:inc(1, { "warm" })

local concat = table.concat
local floor = math.floor
local format = string.format
local gsub = string.gsub
local huge = math.huge
local ngx = ngx
local sort = table.sort
local tonumber = tonumber
local tostring = tostring
local type = type

local _M = {}

-- Of seconds, as there.
local BUCKETS = {
    0.005,
    0.01,
    0.02,
    0.03,
    0.05,
    0.075,
    0.1,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1,
    1.5,
    2,
    3,
    4,
    5,
    10,
}

-- Before the key of a family, and of a sample.
local FAMILY, SAMPLE = "family:", "sample:"

local ESCAPES = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local function text_of(number)
    if number == huge then
        return "+Inf"
    elseif floor(number) == number and number < 2 ^ 53 and number > -2 ^ 53 then
        return format("%d", number)
    end
    local text = format("%.15g", number)
    return tonumber(text) == number and text or format("%.17g", number)
end

-- `{a="1",b="2"}`, with one more label behind.
local function labels_text(names, values, more)
    local parts = {}
    for i, name in ipairs(names) do
        local value = gsub(tostring(values[i]), '[\\"\n]', ESCAPES)
        parts[i] = name .. '="' .. value .. '"'
    end
    parts[#parts + 1] = more
    return #parts > 0 and "{" .. concat(parts, ",") .. "}" or ""
end

local metric = {}
local metric_mt = { __index = metric }

local function fail(self, message)
    ngx.log(ngx.ERR, "metric '", self.name, "': ", message)
end

local function are_right(self, values)
    local count = values and #values or 0
    if count ~= #self.labels then
        fail(self, format("%d labels expected, got %d", #self.labels, count))
        return false
    end
    return true
end

local function add(self, suffix, values, more, number)
    local key = SAMPLE .. self.name .. suffix .. labels_text(self.labels, values or {}, more)
    local _, err = self.dict:incr(key, number, 0)
    if err and not self.was_said then
        self.was_said = true
        fail(self, "not counted: " .. err)
    end
end

--- Adds to a counter or a gauge.
-- @tparam[opt=1] number value not negative, of a counter
-- @tparam[opt] {string,...} values of the labels
-- @phases any of a worker
function metric:inc(value, values)
    value = value or 1
    if not are_right(self, values) then
        return
    elseif self.kind == "counter" and value < 0 then
        return fail(self, "a counter cannot go down")
    end
    add(self, "", values, nil, value)
end

--- Sets a gauge.
-- @tparam number value
-- @tparam[opt] {string,...} values of the labels
-- @phases any of a worker
function metric:set(value, values)
    if are_right(self, values) then
        self.dict:set(SAMPLE .. self.name .. labels_text(self.labels, values or {}), value)
    end
end

--- Counts a value of a histogram.
-- @tparam number value
-- @tparam[opt] {string,...} values of the labels
-- @phases any of a worker
function metric:observe(value, values)
    if not are_right(self, values) then
        return
    end
    for i = #self.buckets, 1, -1 do
        if value > self.buckets[i] then
            break
        end
        add(self, "_bucket", values, format('le="%s"', text_of(self.buckets[i])), 1)
    end
    add(self, "_bucket", values, 'le="+Inf"', 1)
    add(self, "_count", values, nil, 1)
    add(self, "_sum", values, nil, value)
end

--- Forgets one sample of a counter or a gauge.
-- @tparam[opt] {string,...} values of the labels
-- @phases any of a worker
function metric:del(values)
    if are_right(self, values) then
        self.dict:delete(SAMPLE .. self.name .. labels_text(self.labels, values or {}))
    end
end

--- Forgets all samples. Looks through the dictionary, which holds the others up.
-- @phases any of a worker
function metric:reset()
    local begin = SAMPLE .. self.name
    for _, key in ipairs(self.dict:get_keys(0)) do
        local behind = key:sub(1, #begin) == begin and key:sub(#begin + 1) or "x"
        local is_own = self.kind == "histogram" and behind:find("^_%l+")
        if is_own or behind == "" or behind:sub(1, 1) == "{" then
            self.dict:delete(key)
        end
    end
end

local registry = {}
local registry_mt = { __index = registry }

local function register(self, kind, name, help, labels, buckets)
    if type(name) ~= "string" or not name:find("^[%a_:][%w_:]*$") then
        ngx.log(ngx.ERR, "metric '", tostring(name), "': no name of a metric")
        return nil
    end
    name = self.prefix .. name
    local made = setmetatable({
        name = name,
        kind = kind,
        labels = labels or {},
        buckets = buckets or BUCKETS,
        dict = self.dict,
    }, metric_mt)
    local text = gsub(help or "", "[\\\n]", ESCAPES)
    self.dict:set(FAMILY .. name, kind .. " " .. text)
    return made
end

--- A counter.
-- @tparam string name without the registry's prefix
-- @tparam[opt] string help
-- @tparam[opt] {string,...} labels their names
-- @treturn table|nil `inc`, `del`, `reset`; nil: the name is none, which is logged
-- @phases init, init_worker and later
function registry:counter(name, help, labels)
    return register(self, "counter", name, help, labels)
end

--- A gauge, `set`, `inc`, `del`, `reset`. As `counter`.
-- @phases init, init_worker and later
function registry:gauge(name, help, labels)
    return register(self, "gauge", name, help, labels)
end

--- A histogram, `observe`, `reset`. As `counter`.
-- @tparam string name
-- @tparam[opt] string help
-- @tparam[opt] {string,...} labels
-- @tparam[opt] {number,...} buckets in order; those of seconds without it
-- @phases init, init_worker and later
function registry:histogram(name, help, labels, buckets)
    return register(self, "histogram", name, help, labels, buckets)
end

-- The family of a sample's name.
local function family_of(families, name)
    if families[name] then
        return name
    end
    local base = name:gsub("_bucket$", ""):gsub("_count$", ""):gsub("_sum$", "")
    return families[base] and base or nil
end

-- Buckets by their bounds.
local function order(line)
    local head, bound = line:match('^(.*)le="([^"]*)"')
    return head or line, bound == "+Inf" and huge or tonumber(bound) or 0
end

local function comes_first(a, b)
    local head_a, bound_a = order(a)
    local head_b, bound_b = order(b)
    if head_a ~= head_b then
        return head_a < head_b
    end
    return bound_a < bound_b
end

-- OpenMetrics names the family of a counter without the end that its samples have to have.
local function head_of(name, head, is_open)
    local kind, help = head:match("^(%l+) (.*)$")
    if is_open and kind == "counter" then
        local base = name:match("^(.+)_total$")
        name, kind = base or name, base and kind or "unknown"
    end
    return format("# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
end

--- All metrics of a dictionary as text. Looks through all of it.
-- @tparam table dict of ngx.shared
-- @tparam function give `(text)`
-- @tparam[opt=false] boolean is_open in OpenMetrics, without its end; else as Prometheus has it
-- @phases any of a worker
function _M.write(dict, give, is_open)
    local families, names = {}, {}
    local keys = dict:get_keys(0)
    for _, key in ipairs(keys) do
        local name = key:match("^" .. FAMILY .. "(.*)$")
        if name then
            families[name] = { head = dict:get(key), lines = {} }
            names[#names + 1] = name
        end
    end
    for _, key in ipairs(keys) do
        local sample = key:match("^" .. SAMPLE .. "(.*)$")
        local family = sample and family_of(families, sample:match("^[^{]*"))
        local value = family and dict:get(key)
        if value then
            local lines = families[family].lines
            lines[#lines + 1] = sample .. " " .. text_of(value) .. "\n"
        end
    end
    sort(names)
    for _, name in ipairs(names) do
        local lines = families[name].lines
        if #lines > 0 then
            sort(lines, comes_first)
            give(head_of(name, families[name].head, is_open))
            give(concat(lines))
        end
    end
end

--- Metrics in a dictionary.
-- @tparam string dictionary name of a shared dictionary
-- @tparam[opt=""] string prefix before each name
-- @treturn table|nil `counter`, `gauge`, `histogram`
-- @treturn string|nil "no such lua_shared_dict: ..."
-- @phases init, init_worker and later
function _M.new(dictionary, prefix)
    local dict = ngx and ngx.shared and ngx.shared[dictionary]
    if not dict then
        return nil, "no such lua_shared_dict: " .. dictionary
    end
    return setmetatable({ dict = dict, prefix = prefix or "" }, registry_mt)
end

return _M
