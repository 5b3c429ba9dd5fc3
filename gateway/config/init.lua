--- A declarative file to a snapshot: flat, checked, defaults filled, ids given.
-- @module gateway.config
-- @usage
-- local snapshot, errors = config.load("sluice.yaml", registry)
-- if not snapshot then
--     io.stderr:write(config.format_errors(errors), "\n")
-- end

local coverage = require("gateway.config.coverage")
local collect = require("gateway.config.collect")
local document = require("gateway.config.document")
local doubts = require("gateway.config.doubts")
local link = require("gateway.config.link")
local locate = require("gateway.config.locate")
local report = require("gateway.config.report")
local source_line = require("gateway.config.source_line")
local text_hash = require("gateway.config.text_hash")
local yaml = require("gateway.config.yaml")

local concat = table.concat
local format = string.format

local MAX_SHOWN = 60

local _M = {}

--- Where the time and the memory of a check are bounded, `pause`, a text of so many bytes is not
-- read once more for the lines of what it is only warned of.
_M.MAX_WARNED = 4 * 1024 * 1024

--- The hash by which a text is known: 32 hexadecimal digits.
-- @tparam string source
-- @treturn string
_M.hash = text_hash.of

-- Kong takes any bytes in JSON, and so does cjson; exported as YAML they cannot be read again.
local function warn_of_bytes(state, source, kind, opts)
    local is_json = (kind or document.kind_of(source)) == "json"
    if not is_json or (opts.pause and #source > _M.MAX_WARNED) then
        return
    end
    local at, message = yaml.no_utf8(source)
    if at then
        local line, column = source_line.place(source, at)
        local warning = { path = "", message = message, line = line, column = column }
        table.insert(state.warnings, warning)
    end
end

-- decK, and scripts with envsubst, replace these before they send a file; here, as in Kong, the
-- text is the value. No two tries of a pattern look at the same bytes, but for a few.
local PLACEHOLDERS = {
    "()(%${{ ?env +[\"'][%w_]+[\"'] ?}})",
    ":%s+[\"']?()(%${[%u_][%u%d_]*})[\"']?,?%s*%f[\r\n%z]",
}
-- Of each, where the first ones stand in comments.
local MAX_PLACEHOLDERS, MAX_BEFORE = 100, 200
local NOT_REPLACED = "%s is not replaced, the text is the value; replace it before the file is "
    .. "used, as with `deck file render --populate-env-vars` or envsubst"

-- The first place that is no comment.
local function find_value(source, pattern)
    local ends = 0
    for _ = 1, MAX_PLACEHOLDERS do
        local _, last, at, shown = source:find(pattern, ends + 1)
        if not at then
            return nil
        end
        local line = source:sub(math.max(1, at - MAX_BEFORE), at):match("[^\n]*$")
        if not line:find("^%s*#") then
            return at, shown
        end
        ends = last
    end
    return nil
end

local function warn_of_placeholders(state, source, opts)
    local is_large = opts.pause and #source > _M.MAX_WARNED
    if is_large or not source:find("${", 1, true) then
        return
    end
    for _, pattern in ipairs(PLACEHOLDERS) do
        local at, shown = find_value(source, pattern)
        if at then
            local line, column = source_line.place(source, at)
            local message = format(NOT_REPLACED, shown:sub(1, MAX_SHOWN))
            local warning = { path = "", message = message, line = line, column = column }
            table.insert(state.warnings, warning)
        end
    end
end

local function collect_all(source, kind, registry, opts, errors)
    local decoded, _, wrong =
        document.decode(source, kind, { pause = opts.pause, list_of = opts.list_of })
    if not decoded then
        local err = errors:add(wrong.path or "", wrong.message)
        err.line, err.column = wrong.line, wrong.column
        err.excerpt = err.line and source_line.excerpt(source, err.line, err.column)
        -- curl's -d takes the ends of lines away.
        local is_one_line = source:find("^_format_version: *[^%s]+ *[%w_]+:[^\n]*$")
        err.hint = is_one_line and "; curl sends a file as it is with --data-binary, not -d" or nil
        return nil
    end
    local state = collect.run(decoded, registry, errors, opts)
    errors.warnings = state.warnings
    warn_of_bytes(state, source, kind, opts)
    warn_of_placeholders(state, source, opts)
    return state
end

local function build(source, kind, registry, opts, errors)
    local state = collect_all(source, kind, registry, opts, errors)
    if not state then
        return nil
    end
    local snapshot, facts = link.run(state, opts.at or os.time(), opts.size or #source)
    if opts.doubts and #errors == 0 then
        doubts.add(state, snapshot, registry, opts.doubts)
    end
    if opts.keeps_items then
        facts.items, facts.pairs = state.items, state.pairs.count
        facts.workspace, facts.deck_values = state.workspace, state.deck:count()
        snapshot.facts = facts
    end
    snapshot.format_version = "3.0"
    snapshot.hash = _M.hash(source)
    snapshot.warnings = state.warnings
    snapshot.select_tags = state.deck.tags
    return snapshot
end

-- Where an error or a warning stands, for people.
local function place(err)
    local column = err.column and format(", column %d", err.column) or ""
    local line = err.line and format("line %d%s: ", err.line, column) or ""
    return line .. (err.path ~= "" and (err.where or err.path) .. ": " or "")
end

-- What `fn` makes of a text; nil and its errors, with their places. The warnings become texts.
local function report_errors(fn, source, kind, registry, opts)
    local errors = report.new(opts.max_errors)
    local ok, made = pcall(fn, source, kind, registry, opts, errors)
    if not ok and made ~= report.FULL then
        error(made, 0)
    end
    local warnings = errors.warnings or {}
    local is_located = #warnings > 0 and not (opts.pause and #source > _M.MAX_WARNED)
    if #errors > 0 or is_located then
        locate.run(errors, warnings, collect.schema, source, kind, registry, opts.pause)
    end
    for i, warning in ipairs(warnings) do
        warnings[i] = place(warning) .. warning.message
    end
    if #errors > 0 then
        return nil, errors
    end
    return made
end

--- Parses and checks the text of a declarative file.
-- Errors are collected: those of the fields, then those of references and
-- uniqueness, 100 at most unless `max_errors` says more. Never throws for any text; about 10 us a
-- route.
-- @tparam string source
-- @tparam[opt] string kind "yaml" or "json"; told by the text when absent
-- @tparam table registry of plugins: `registry:get(name)` gives a plugin or nil
-- @tparam[opt] table opts
-- @tparam[opt] number opts.at when the text was loaded first, in seconds: the `created_at` and
-- `updated_at` of entities that name none; now when absent
-- @tparam[opt] function opts.vault looks references up, of gateway.config.vault; without it they
-- are errors
-- @tparam[opt] function opts.pause called every few entities, may yield, or throw a table with
-- `is_stop`, which comes through
-- @tparam[opt] number opts.max_entities how many a file may have, nested ones too
-- @tparam[opt] number opts.max_errors how many errors are looked for
-- @tparam[opt] function opts.doubts where what takes long to find is looked for as well, half a
-- second at most: `(plugin, entity)` -> what the gateway lacks for it, for people, or nil
-- @tparam[opt] function opts.known_id `(kind, entity)` -> the id by which an entity without one is
-- known already, or nil; its references are ids
-- @tparam[opt] function opts.limit `(kind, entity)` -> which field an image cannot have, and why,
-- of gateway.image.limits; without it they are not looked for
-- @tparam[opt] boolean opts.keeps_items whether the snapshot is to have `facts`
-- @tparam[opt] function opts.outside `(kind, by, value)` -> the id of an entity that is not in the
-- text, by its "id" or "name", that those of it may refer to
-- @tparam[opt] number opts.size bytes of the file that the text is a part of
-- @treturn table|nil snapshot: an array of entities for each kind (`services`,
-- `routes`, ...), in the order of the file; `format_version` "3.0"; `hash` of the
-- text, 32 hexadecimal digits; `warnings`, an array of strings, by line, each with its place;
-- `facts` of gateway.config.link, with `items` and `workspace` of gateway.config.collect,
-- `deck_values` of gateway.config.deck, `pairs` of gateway.config.route_pairs
-- @treturn nil|table array of `{ path =, message =, entity =, where =, line =, hint = }`, by line;
-- path is "" for the whole text, the last four as gateway.config.locate has them; `said` in place
-- of the message for people; `column` and `excerpt` where the text cannot be read. When it stopped
-- at the bound one more says so; its `warnings` are those of the snapshot that there is not
function _M.parse(source, kind, registry, opts)
    return report_errors(build, source, kind, registry, opts or {})
end

--- Parses a text and checks its entities each for itself: not where their references lead, nor
-- what is unique. Otherwise as `parse`.
-- @tparam string source
-- @tparam[opt] string kind
-- @tparam table registry
-- @tparam table opts `vault`, `pause`, `max_entities` of `parse`; `max_of`, whose bound that is,
-- for the error; `list_of`: a kind of which the text may be a list; `begin_of(prefix)` says what
-- the names of variables begin with of a vault that the text has not, nil: there is none
-- @treturn table|nil as gateway.config.collect returns it
-- @treturn nil|table errors, as from `parse`
function _M.collect(source, kind, registry, opts)
    return report_errors(collect_all, source, kind, registry, opts)
end

--- How many routes of a text need no change, though others do.
-- @tparam string source
-- @tparam[opt] string kind
-- @tparam table registry
-- @tparam table opts as for `parse`
-- @treturn table|nil of gateway.config.coverage; nil: the text cannot be read, or is too large
function _M.coverage(source, kind, registry, opts)
    local errors = report.new(math.huge)
    local ok, state = pcall(collect_all, source, kind, registry, opts, errors)
    if not ok and state ~= report.FULL then
        error(state, 0)
    end
    return ok and state and coverage.count(state.items) or nil
end

--- Reads, parses and checks a declarative file.
-- The format is told by the extension (`.json`, `.yaml`, `.yml`), otherwise by
-- the text. Does not yield, blocks on the file.
-- @tparam string path
-- @tparam table registry of plugins
-- @tparam[opt] table opts as for `parse`; and `source`, the text where it has been read already
-- @treturn table|nil snapshot, as from `parse`
-- @treturn nil|table errors, as from `parse`
function _M.load(path, registry, opts)
    local source, err = opts and opts.source, nil
    if not source then
        source, err = document.read(path)
    end
    if not source then
        return nil, { { path = "", message = err } }
    end
    return _M.parse(source, document.format_of(path), registry, opts)
end

-- What is wrong, for people.
local function reason(err)
    return (err.said or err.message) .. (err.hint or "")
end

--- Writes an error for people.
-- @tparam table err of `parse`
-- @treturn string such as `line 12: services[3] "orders".host: required field missing`
function _M.format_error(err)
    return place(err) .. reason(err)
end

--- Writes errors for people: a line for each place, below it the text's where that cannot be read.
-- @tparam table errors of `parse`
-- @treturn string without a newline at the end
-- @treturn string how many places that are: `1 error`, `more than 100 errors`
function _M.format_errors(errors)
    local lines, last, count, is_all = {}, nil, 0, true
    for _, err in ipairs(errors) do
        if err.path ~= "" and place(err) == last then
            lines[#lines] = lines[#lines] .. "; " .. reason(err)
        else
            last = place(err)
            lines[#lines + 1] = last .. reason(err)
            count = count + (err.is_end and 0 or 1)
        end
        lines[#lines + 1] = err.excerpt
        is_all = is_all and not err.is_end
    end
    local more = is_all and "" or "more than "
    return concat(lines, "\n"), format("%s%d error%s", more, count, count == 1 and "" or "s")
end

return _M
