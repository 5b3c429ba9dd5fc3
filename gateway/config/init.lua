--- A declarative file to a snapshot: flat, checked, defaults filled, ids given.
-- @module gateway.config
-- @usage
-- local snapshot, errors = config.load("sluice.yaml", registry)
-- if not snapshot then
--     io.stderr:write(config.format_errors(errors), "\n")
-- end

local digest = require("openssl.digest")
local collect = require("gateway.config.collect")
local document = require("gateway.config.document")
local link = require("gateway.config.link")
local locate = require("gateway.config.locate")
local report = require("gateway.config.report")
local regex_trial = require("gateway.router.regex_trial")

local concat = table.concat
local format = string.format
local error = error
local ipairs = ipairs
local os = os
local pcall = pcall

-- hexadecimal digits of a snapshot's hash
local HASH_LENGTH = 32

local _M = {}

--- The hash by which a text is known: 32 hexadecimal digits.
-- @tparam string source
-- @treturn string
function _M.hash(source)
    local hex = digest.new("sha256"):final(source):gsub(".", function(c)
        return format("%02x", c:byte())
    end)
    return hex:sub(1, HASH_LENGTH)
end

local function collect_all(source, kind, registry, opts, errors)
    local decoded, err, where =
        document.decode(source, kind, { pause = opts.pause, list_of = opts.list_of })
    if not decoded then
        errors:add(where or "", err)
        return nil
    end
    return collect.run(decoded, registry, errors, opts)
end

local function build(source, kind, registry, opts, errors)
    local state = collect_all(source, kind, registry, opts, errors)
    if not state then
        return nil
    end
    local snapshot = link.run(state, opts.at or os.time(), #source)
    snapshot.format_version = "3.0"
    snapshot.hash = _M.hash(source)
    snapshot.warnings = state.warnings
    return snapshot
end

-- What `fn` makes of a text; nil and its errors, with their places.
local function report_errors(fn, source, kind, registry, opts)
    local errors = report.new()
    local ok, made = pcall(fn, source, kind, registry, opts, errors)
    if not ok and made ~= report.FULL then
        error(made, 0)
    elseif #errors > 0 then
        locate.run(errors, source, kind, opts.pause)
        return nil, errors
    end
    return made
end

--- Parses and checks the text of a declarative file.
-- Errors are collected: those of the fields, then those of references and
-- uniqueness, 100 at most. Never throws for any text; about 10 us a route.
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
-- @treturn table|nil snapshot: an array of entities for each kind (`services`,
-- `routes`, ...), in the order of the file; `format_version` "3.0"; `hash` of the
-- text, 32 hexadecimal digits; `warnings`, an array of strings
-- @treturn nil|table array of `{ path =, message =, entity =, where =, line = }`; path is "" for
-- the whole text, the last three as gateway.config.locate has them. When it stopped at 100 one
-- more says so
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
    local snapshot, errors = _M.parse(source, document.format_of(path), registry, opts)
    if errors and errors[1].path == "" then
        errors[1].message = path .. ": " .. errors[1].message
    end
    return snapshot, errors
end

--- What is not wrong with a snapshot, and takes long to find: patterns that a client can make give
-- up, and too many routes in one place. Blocks for half a second at most.
-- @tparam table snapshot
-- @treturn {string,...} warnings
-- @phases init, and outside nginx
function _M.slow_warnings(snapshot)
    return regex_trial.warnings(snapshot.routes)
end

--- Writes an error for people.
-- @tparam table err of `parse`
-- @treturn string such as `line 12: services[3] "orders".host: required field missing`
function _M.format_error(err)
    local line = err.line and format("line %d: ", err.line) or ""
    local where = err.path ~= "" and (err.where or err.path) .. ": " or ""
    return line .. where .. err.message
end

--- Writes errors for people, one a line.
-- @tparam table errors of `parse`
-- @treturn string without a newline at the end
function _M.format_errors(errors)
    local lines = {}
    for i, err in ipairs(errors) do
        lines[i] = _M.format_error(err)
    end
    return concat(lines, "\n")
end

return _M
