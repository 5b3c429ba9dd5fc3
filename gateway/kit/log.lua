--- `kong.log`: lines of the error log that say where they are from.
--
-- A line is `[kong] <file>:<line> [<plugin>] <message>`. The plugin is the one that runs when the
-- line is written, so a function of this table that a file has taken at its `require` says it, too.
-- Nothing here yields. A line below the log's level costs a comparison.
-- @module gateway.kit.log

local phases = require("gateway.kit.phases")
local serialize = require("gateway.kit.log.serialize")

local concat = table.concat
local getinfo = debug.getinfo
local ngx = ngx
local select = select
local tostring = tostring

-- Without nginx (the command line, unit tests) lines go to standard error.
local errlog = ngx and ngx.get_phase and require("ngx.errlog")

local LEVELS = {
    emerg = 1,
    alert = 2,
    crit = 3,
    err = 4,
    warn = 5,
    notice = 6,
    info = 7,
    debug = 8,
}

-- Characters of a line of `inspect`, in its frame.
local WIDTH = 120

-- Frames from the one who asks for a line to the function that looks where it is from.
local CALLER = 4

local function is_below(level)
    -- In init nginx has no level of its own yet.
    return errlog and ngx.get_phase() ~= "init" and level > errlog.get_sys_filter_level()
end

local function write(level, line)
    if errlog then
        errlog.raw_log(level, line)
    else
        io.stderr:write(line, "\n")
    end
end

local function joined(separator, to_string, ...)
    local count = select("#", ...)
    local texts = { ... }
    for i = 1, count do
        texts[i] = to_string(texts[i])
    end
    return concat(texts, separator, 1, count)
end

local function where(depth, named)
    local info = getinfo(depth, named and "Snl" or "Sl")
    if not info then
        return "?"
    end
    local file = info.short_src:match("[^/]*$")
    if named then
        return ("%s:%s:%d"):format(file, info.name or "?", info.currentline)
    end
    return ("%s:%d"):format(file, info.currentline)
end

-- A format of `set_format` with its words filled in.
local function formatted(format, depth, name, message)
    local info = getinfo(depth, "Snl") or { short_src = "?", currentline = "?" }
    local values = {
        file_src = info.short_src:match("[^/]*$"),
        func_name = info.name or "?",
        line_src = info.currentline,
        message = message,
        namespace = name or "",
    }
    return (format:gsub("%%([%l_]+)", values))
end

local function framed(level, text)
    local header, rest = text:match("^([^\n]*)\n(.*)$")
    write(level, header .. ("-"):rep(WIDTH - #header + 2) .. "+")
    for line in (rest .. "\n"):gmatch("([^\n]*)\n") do
        repeat
            local part = line:sub(1, WIDTH)
            line = line:sub(WIDTH + 1)
            write(level, "|" .. part .. (" "):rep(WIDTH - #part) .. "|")
        until line == ""
    end
    write(level, "+" .. ("-"):rep(WIDTH) .. "+")
end

-- What writes the lines of a facility; `own.name` nil: with the plugin that runs.
local function writer(own)
    return function(level, ...)
        if is_below(level) then
            return
        end
        local message = joined("", tostring, ...)
        local plugin = own.name or phases.plugin()
        if own.format then
            message = formatted(own.format, CALLER, plugin, message)
        else
            local by = plugin and " [" .. plugin .. "] " or " "
            message = where(CALLER) .. by .. message
        end
        write(level, "[kong] " .. message)
    end
end

local function inspector(own)
    local is_on = true
    local inspect = {}
    local function print(...)
        if is_on and not is_below(LEVELS.notice) then
            local by = own.name or phases.plugin() or "core"
            local head = ("[kong] %s [%s]\n"):format(where(CALLER, true), by)
            framed(LEVELS.notice, head .. joined(" ", require("inspect"), ...))
        end
    end
    -- Not a tail call, which would take the caller's frame away: here and below.
    function inspect.print(...)
        print(...)
        return nil
    end
    function inspect.on()
        is_on = true
    end
    function inspect.off()
        is_on = false
    end
    return setmetatable(inspect, {
        __call = function(_, ...)
            print(...)
            return nil
        end,
    })
end

-- The last value may be a table that says since when, and until when.
local function deprecated(...)
    local count = select("#", ...)
    local about = select(count, ...)
    if type(about) ~= "table" then
        return joined("", tostring, ...)
    end
    local text = concat({ ... }, "", 1, count - 1)
    if about.after then
        text = ("%s (deprecated after %s"):format(text, about.after)
        local ends = about.removal and ", scheduled for removal in " .. about.removal or ""
        text = text .. ends .. ")"
    end
    return text
end

local function deprecation(line)
    return setmetatable({
        write = function(...)
            line(LEVELS.warn, ...)
            return nil
        end,
    }, {
        __call = function(_, ...)
            line(LEVELS.warn, deprecated(...))
            return nil
        end,
    })
end

local function check_format(format)
    if format ~= nil and type(format) ~= "string" then
        error("format must be a string if specified", 3)
    elseif format == "" then
        error("format cannot be an empty string if specified", 3)
    end
end

--- Makes a facility; `own`: `name` and `format` of its lines, each of which may be nil.
local new
function new(own)
    local line = writer(own)
    local self = {
        inspect = inspector(own),
        deprecation = deprecation(line),
        serialize = serialize.serialize,
        set_serialize_value = serialize.set_serialize_value,
    }
    for word, level in pairs(LEVELS) do
        self[word] = function(...)
            line(level, ...)
            return nil
        end
    end
    function self.set_format(format)
        if format ~= nil and type(format) ~= "string" then
            error("format must be a string", 2)
        end
        own.format = format
    end
    function self.new(namespace, format)
        if type(namespace) ~= "string" then
            error("namespace must be a string", 2)
        elseif namespace == "" then
            error("namespace cannot be an empty string", 2)
        end
        check_format(format)
        return new({ name = namespace, format = format })
    end
    return setmetatable(self, {
        __call = function(_, ...)
            line(LEVELS.notice, ...)
            return nil
        end,
    })
end

--- The functions `emerg`, `alert`, `crit`, `err`, `warn`, `notice`, `info`, `debug`, each of any
-- values, which are joined; calling the table is `notice`. `inspect(...)` writes values as Lua;
-- `inspect.off()` ends that, `inspect.on()` begins it. `deprecation(...)` warns. `set_format(text)`
-- has `%file_src`, `%line_src`, `%func_name`, `%namespace` and `%message`;
-- `new(namespace, [format])` makes another facility.
-- @table kong.log
-- @phases any
return new({})
