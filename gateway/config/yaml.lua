--- YAML text to Lua tables, with errors that say the line.
-- Reads libyaml's events (through Debian's lua-yaml) itself instead of calling
-- `lyaml.load`, for three things that it does not do: a duplicate key with
-- another value is an error, null stays apart from an absent key (it becomes
-- `cjson.null`), and a small file cannot unfold into a huge one through aliases.
-- Scalars are typed as lyaml types them (YAML 1.1); keys stay text.
-- @module gateway.config.yaml

local cjson = require("cjson")
local equal = require("gateway.schema.equal")
local implicit = require("lyaml.implicit")
local libyaml = require("yaml")
local text = require("gateway.schema.text")
local yaml_errors = require("gateway.config.yaml_errors")

local byte = string.byte
local char = string.char
local find = string.find
local format = string.format
local gsub = string.gsub

local NULL = cjson.null
local TAG = "tag:yaml.org,2002:"
-- Nodes that the aliases of any document may stand for; in a longer one half as many as it has
-- bytes, some times what it has without them.
local LEAST_NODES = 10000
local BYTES_A_NODE = 2
-- Nodes from one look at the clock to the next.
local PAUSE_NODES = 32
-- Longer texts are no numbers.
local MAX_NUMBER = 100
-- What libyaml refuses: U+0000 to U+001F and U+007F to U+009F but ends of lines and the tab, U+FFFE
-- and U+FFFF.
local REFUSED = {
    "[%z\1-\8\11\12\14-\31\127]",
    "\194[\128-\132\134-\159]",
    "\239\191[\190\191]",
}

local NO_UTF8 = "byte 0x%02X is not UTF-8 (the file may be Latin-1); save it as UTF-8: "
    .. "`iconv -f latin1 -t utf-8`"

-- Escapes of U+0000 (YAML 1.1, 5.6).
local NUL_ESCAPES = { "\\0", "\\x00", "\\u0000", "\\U00000000" }
-- How many digits they have.
local DIGITS = { ["0"] = 0, x = 2, u = 4, U = 8 }
-- Noncharacters, which nobody writes: U+FDD0 to U+FDEF, without their last byte.
local NONCHARACTERS, FIRST_BYTE, LAST_BYTE = "\239\183", 0x90, 0xAF

local CONSTANTS = { [""] = NULL, ["~"] = NULL, null = NULL, Null = NULL, NULL = NULL }
for word, value in pairs({
    ["true"] = true,
    yes = true,
    on = true,
    ["false"] = false,
    no = false,
    off = false,
}) do
    CONSTANTS[word] = value
    CONSTANTS[word:upper()] = value
    CONSTANTS[word:sub(1, 1):upper() .. word:sub(2)] = value
end

local NUMBERS = {
    implicit.octal,
    implicit.decimal,
    implicit.float,
    implicit.inf,
    implicit.nan,
    implicit.hexadecimal,
    implicit.binary,
    implicit.sexagesimal,
    implicit.sexfloat,
}

-- Levels of lists and maps, one in the other.
local _M = { MAX_DEPTH = 100 }
local reader = {}
local reader_mt = { __index = reader }

-- Errors are thrown as tables inside this module and caught in `decode`.
local function raise(message, mark)
    local line, column
    if mark then
        line, column = mark.line + 1, mark.column + 1
    end
    error({ message = message, line = line, column = column }, 0)
end

local function plain_scalar(value, mark)
    local constant = CONSTANTS[value]
    if constant ~= nil then
        return constant
    end
    if find(value, "^[-+.%d]") and #value <= MAX_NUMBER then
        for _, parse in ipairs(NUMBERS) do
            local number = parse(value)
            if number ~= number then
                -- As a key it corrupts memory in LuaJIT before September 2023; JSON has none:
                -- https://github.com/LuaJIT/LuaJIT/issues/1069
                raise(format("'%s' is not a number", value), mark)
            elseif number ~= nil then
                return number
            end
        end
    end
    return value
end

local WANTED_TYPE = { int = "number", float = "number", bool = "boolean" }

local function scalar(event)
    local tag = event.tag
    if not tag then
        if event.plain_implicit then
            return plain_scalar(event.value, event.start_mark)
        end
        return event.value
    elseif tag == TAG .. "str" or tag == "!" then
        return event.value
    elseif tag == TAG .. "null" then
        return NULL
    end
    local wanted = WANTED_TYPE[tag:match("^" .. TAG .. "(.*)$")]
    local value = plain_scalar(event.value, event.start_mark)
    if not wanted then
        raise(format("unknown tag '%s'", tag), event.start_mark)
    elseif type(value) ~= wanted then
        raise(format("'%s' is not of type %s", event.value, tag), event.start_mark)
    end
    return value
end

--- Where a text is not UTF-8.
-- @tparam string source
-- @treturn number|nil place of the first byte; nil where it is UTF-8
-- @treturn nil|string what is wrong, for people
function _M.no_utf8(source)
    local ok, err = text.utf8(source)
    local first = not ok and tonumber(err:match("%d+$")) or nil
    return first, first and format(NO_UTF8, byte(source, first))
end

-- libyaml does not say where a byte is that YAML does not allow, nor when an
-- error is at the very beginning.
-- Gives the place, and what is wrong where that is no UTF-8.
local function bad_byte(source)
    local first, message = _M.no_utf8(source)
    for _, pattern in ipairs(REFUSED) do
        local at = find(source, pattern)
        if at and not (first and first < at) then
            first, message = at, nil
        end
    end
    return first, message
end

local function has_nul(source)
    for _, escape in ipairs(NUL_ESCAPES) do
        if find(source, escape, 1, true) then
            return true
        end
    end
    return false
end

-- A double-quoted string with another text in the place of each U+0000.
local function replace_nul(quoted, by)
    return (
        gsub(quoted, "\\(.)(%x*)", function(sign, hex)
            local count = DIGITS[sign]
            if count and #hex >= count and not find(hex:sub(1, count), "[^0]") then
                return by .. hex:sub(count + 1)
            end
            return nil
        end)
    )
end

local function decode_scalar(quoted)
    for event in libyaml.parser(quoted) do
        if event.type == "SCALAR" then
            return event.value
        end
    end
    return nil
end

-- A double-quoted string, at whose first U+0000 lyaml ends: a character that it does not have
-- stands in for that.
local function decode_quoted(quoted)
    local without = decode_scalar(replace_nul(quoted, "x"))
    for last = FIRST_BYTE, LAST_BYTE do
        local stand_in = NONCHARACTERS .. char(last)
        if not find(without, stand_in, 1, true) then
            return (gsub(decode_scalar(replace_nul(quoted, stand_in)), stand_in, "\0"))
        end
    end
    return nil
end

-- Where a character is, whose number only grows: libyaml counts characters, without a byte order
-- mark at the beginning.
function reader:byte_of(index)
    local source, at, number = self.source, self.byte, self.index
    while number < index do
        repeat
            at = at + 1
            local next_byte = byte(source, at)
        until not next_byte or next_byte < 0x80 or next_byte > 0xBF
        number = number + 1
    end
    self.byte, self.index = at, number
    return at
end

function reader:read_quoted(event)
    local from, to = self:byte_of(event.start_mark.index), self:byte_of(event.end_mark.index)
    local quoted = self.source:sub(from, to - 1)
    if replace_nul(quoted, "") == quoted then
        return event.value
    end
    local value = decode_quoted(quoted)
    if not value then
        raise("a text with U+0000 and all of U+FDD0 to U+FDEF cannot be read", event.start_mark)
    end
    return value
end

function reader:next_event()
    local ok, event = pcall(self.parser)
    if ok then
        if self.has_nul and event.style == "DOUBLE_QUOTED" then
            event.value = self:read_quoted(event)
        end
        return event
    end
    local message, line, column = event:match("^(.-) at document: %d+, line: (%d+), column: (%d+)")
    message = message or event:match("^(.-) at document") or event
    if not line then
        local offset, reason = bad_byte(self.source)
        if offset then
            error({ message = reason or message, offset = offset }, 0)
        end
    end
    local context, context_line, context_column =
        event:match("\n(while .-) at line: (%d+), column: (%d+)%s*$")
    local err = yaml_errors.explain(self.source, {
        message = message,
        line = tonumber(line) or 1,
        column = tonumber(column) or 1,
        context = context,
        context_line = tonumber(context_line),
        context_column = tonumber(context_column),
    })
    error(err, 0)
end

function reader:count_alias(n, event)
    self.nodes = self.nodes + n
    self.aliased = self.aliased + n
    if self.aliased > self.max_aliased then
        raise("the file is too large after expanding its aliases", event.start_mark)
    end
end

function reader:count()
    self.nodes = self.nodes + 1
    if self.pause and self.nodes % PAUSE_NODES == 0 then
        self.pause()
    end
end

-- Notes the line of an element, where lines are asked for.
function reader:note_line(container, key, mark)
    if self.lines then
        local lines = self.lines[container]
        if not lines then
            lines = {}
            self.lines[container] = lines
        end
        lines[key] = mark.line + 1
    end
end

function reader:alias(event)
    local anchor = self.anchors[event.anchor]
    if not anchor then
        raise(format("unknown anchor '%s'", event.anchor), event.start_mark)
    elseif not anchor.size then
        raise(format("the anchor '%s' contains itself", event.anchor), event.start_mark)
    end
    self:count_alias(anchor.size, event)
    return anchor.value
end

local function merge_into(map, given, source, mark)
    if type(source) ~= "table" then
        raise("'<<' needs a mapping or a sequence of mappings", mark)
    end
    for key, value in pairs(source) do
        if type(key) == "number" then
            merge_into(map, given, value, mark)
        elseif not given[key] and map[key] == nil then
            map[key] = value
        end
    end
end

function reader:mapping(depth)
    local map, given, merges = {}, {}, nil
    while true do
        local event = self:next_event()
        if event.type == "MAPPING_END" then
            break
        elseif event.type ~= "SCALAR" then
            raise("a key must be text", event.start_mark)
        end
        local key, mark = event.value, event.start_mark
        local value = self:node(self:next_event(), depth)
        if key == "<<" and event.plain_implicit then
            merges = merges or {}
            merges[#merges + 1] = { source = value, mark = mark }
        elseif given[key] and not equal(map[key], value) then
            raise(format("duplicate key '%s', first in line %d", key, given[key]), mark)
        elseif not given[key] then
            given[key] = mark.line + 1
            map[key] = value
            self:note_line(map, key, mark)
        end
    end
    for _, merge in ipairs(merges or {}) do
        merge_into(map, given, merge.source, merge.mark)
    end
    return map
end

function reader:sequence(depth)
    local list, n = {}, 0
    while true do
        local event = self:next_event()
        if event.type == "SEQUENCE_END" then
            return list
        end
        n = n + 1
        list[n] = self:node(event, depth)
        self:note_line(list, n, event.start_mark)
    end
end

function reader:node(event, depth)
    if event.type == "ALIAS" then
        return self:alias(event)
    end
    self:count()
    local anchor
    if event.anchor then
        anchor = {}
        self.anchors[event.anchor] = anchor
    end
    local before = self.nodes
    local value
    if event.type == "SCALAR" then
        value = scalar(event)
    elseif depth > _M.MAX_DEPTH then
        raise("nested too deeply", event.start_mark)
    elseif event.type == "MAPPING_START" then
        value = self:mapping(depth + 1)
    else
        value = self:sequence(depth + 1)
    end
    if anchor then
        anchor.value, anchor.size = value, self.nodes - before + 1
    end
    return value
end

function reader:document()
    self:next_event() -- STREAM_START
    if self:next_event().type == "STREAM_END" then
        return NULL
    end
    local value = self:node(self:next_event(), 1)
    self:next_event() -- DOCUMENT_END
    local event = self:next_event()
    if event.type ~= "STREAM_END" then
        raise("only one document is allowed in a file", event.start_mark)
    end
    return value
end

--- Decodes one YAML document.
-- @tparam string source
-- @tparam[opt] table opts
-- @tparam[opt] function opts.pause called now and then, may yield; a table with `is_stop` that it
-- throws comes through
-- @tparam[opt] table opts.lines filled: list or map -> its key (or index, from 1) -> line
-- @return the value, `cjson.null` for null and for an empty text; nil when it fails
-- @treturn nil|table `{ message =, line =, column = }` or `{ message =, offset = }`
-- (line, column and offset from 1, nil when unknown)
function _M.decode(source, opts)
    local self = setmetatable({
        parser = libyaml.parser(source),
        source = source,
        has_nul = has_nul(source),
        byte = find(source, "^\239\187\191") and 4 or 1,
        index = 0,
        anchors = {},
        nodes = 0,
        aliased = 0,
        max_aliased = math.max(LEAST_NODES, #source / BYTES_A_NODE),
        pause = opts and opts.pause,
        lines = opts and opts.lines,
    }, reader_mt)
    local ok, value = pcall(self.document, self)
    if ok then
        return value
    end
    if type(value) ~= "table" then
        return nil, { message = value }
    elseif value.is_stop then
        error(value, 0)
    end
    return nil, value
end

return _M
