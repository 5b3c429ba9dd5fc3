--- Resolves the settings: a flag beats the environment, which beats the settings file, which
-- beats the default.
--
-- `reload` and `restart` add what `start` was given: a flag of this command, then a flag given to
-- start, then the environment of this command, then the environment of start, then the file as it
-- is now. Nothing here touches a running gateway.

local options = require("cli.options")
local cpus = require("cli.cpus")
local values = require("cli.values")

local _M = {}

local function trim(text)
    return text:match("^%s*(.-)%s*$")
end

-- The value without its comment and quotes.
local function plain_value(text)
    return text:match('^"([^"]*)"%s*$')
        or text:match('^"([^"]*)"%s+#')
        or trim((text:gsub("^#.*$", ""):gsub("%s#.*$", "")))
end

--- Reads a settings file.
-- Lines are `name = value`; a `#` at the start or after a blank begins a comment; a value may
-- stand between double quotes, which keep blanks and `#`.
-- @tparam string path the file
-- @tparam string text its content
-- @treturn table name -> { text, source = "path:line" }
-- @treturn table array of one-line errors, empty when all is well
function _M.parse_file(path, text)
    local found, errors = {}, {}
    local number = 0
    local function complain(format, ...)
        errors[#errors + 1] = ("%s:%d: "):format(path, number) .. format:format(...)
    end
    for line in (text .. "\n"):gmatch("(.-)\r?\n") do
        number = number + 1
        line = trim((line:gsub("^%s*#.*$", "")))
        local name, value = line:match("^([%w_-]+)%s*=%s*(.-)$")
        local known = options.by_name[name] and name ~= "conf"
        if known and not found[name] then
            found[name] = { text = plain_value(value), source = ("%s:%d"):format(path, number) }
        elseif known then
            complain("'%s' is already set in %s", name, found[name].source)
        elseif name then
            complain("unknown setting '%s' (docs/config.md lists them)", name)
        elseif line ~= "" then
            -- What follows may be a secret.
            complain("expected `name = value`, found `%s`", line:match("^%S+"))
        end
    end
    return found, errors
end

local function directory_of(path)
    return path:match("^(.*)/[^/]*$") or "."
end

local function pick(option, sources)
    for _, source in ipairs(sources) do
        local given = source[option.name]
        if given then
            return given
        end
    end
    return { text = option.default, source = "default", base = "/" }
end

-- Whether each of the options stands in one of the sources.
local function all_given(names, sources)
    for _, name in ipairs(names) do
        if pick(options.by_name[name], sources).source == "default" then
            return false
        end
    end
    return true
end

local function read(option, given)
    local value, expected = values.read(option, given.text, given.base)
    if value == nil and option.type == "secret" then
        return nil,
            ("%s (%s) is not right; expected %s"):format(option.name, given.source, expected)
    elseif value == nil then
        return nil,
            ("%s (%s): '%s' is not right; expected %s"):format(
                option.name,
                given.source,
                given.text,
                expected
            )
    end
    return value
end

-- What stands somewhere for each option: `look(option)` gives its text, if any, and the source.
local function given_by(look, cwd)
    local found = {}
    for _, option in ipairs(options.list) do
        local text, source = look(option)
        if text then
            found[option.name] = { text = trim(text), source = source, base = cwd }
        end
    end
    return found
end

local function from_environment(getenv, cwd)
    return given_by(function(option)
        local name = options.variable(option)
        return getenv(name), "environment " .. name
    end, cwd)
end

local function from_flags(flags, cwd)
    return given_by(function(option)
        return flags[option.name], "flag " .. options.flag(option)
    end, cwd)
end

local function read_settings_file(given, open)
    local path, err = read(options.by_name.conf, given)
    if not path then
        return {}, { err }
    end
    local file, reason = open(path, "r")
    local text = file and file:read("*a")
    if file then
        file:close()
    end
    if not text then
        if given.source == "default" and not file then
            return {}, {}
        end
        return {}, { ("conf (%s): cannot read %s"):format(given.source, reason or path) }
    end
    local found, errors = _M.parse_file(path, text)
    for _, entry in pairs(found) do
        entry.base = directory_of(path)
    end
    return found, errors
end

local function merge(high, low)
    local merged = {}
    for name, given in pairs(low) do
        merged[name] = given
    end
    for name, given in pairs(high) do
        merged[name] = given
    end
    return merged
end

-- Whether only this machine reaches an address, as nginx reads it.
local function is_loopback(host)
    return host == "localhost" or host:find("^127%.") ~= nil or host:find("^[0:]*:0*1$") ~= nil
end

-- nginx sends twice the larger of the two sizes to the client at a time, and wants room for that
-- beside the one buffer that it reads into.
local function check_proxy_buffers(settings, errors)
    if not (settings.proxy_buffers and settings.proxy_buffer_size) then
        return
    end
    local count, size = settings.proxy_buffers:match("^(%d+) (%w+)$")
    local bytes = values.size_bytes(size)
    local least = 2 * math.max(bytes, values.size_bytes(settings.proxy_buffer_size))
    if (count - 1) * bytes < least then
        errors[#errors + 1] = (
            "proxy_buffers: %s are too few for proxy_buffer_size %s; all but one "
            .. "of them have to hold %d bytes"
        ):format(settings.proxy_buffers, settings.proxy_buffer_size, least)
    end
end

-- A token that only reads is none where the other is missing, or the same.
local function check_tokens(settings, errors)
    local token, read_token = settings.admin_token, settings.admin_read_token
    if read_token and read_token ~= "" and (token == "" or token == read_token) then
        local why = token == "" and "there is no admin_token, so anyone may write"
            or "it is the same as admin_token, which may write"
        errors[#errors + 1] = "admin_read_token: " .. why
    end
end

-- Rules that hold between settings.
local function check_together(settings, errors)
    check_proxy_buffers(settings, errors)
    check_tokens(settings, errors)
    local seen = {}
    for _, address in ipairs(settings.proxy_listen or {}) do
        seen[address:match("^%S+")] = true
    end
    for _, address in ipairs(settings.admin_listen or {}) do
        local bare = address:match("^%S+")
        if seen[bare] then
            errors[#errors + 1] = "admin_listen: "
                .. bare
                .. " is a proxy_listen address too; give it another port"
        end
        local is_open = settings.admin_token == "" and settings.admin_insecure == false
        if is_open and not is_loopback(values.parse_listen(address).host) then
            errors[#errors + 1] = (
                "admin_listen: %s is not on loopback, and there is no "
                .. "admin_token: set one (%s, or in the settings file), or listen on 127.0.0.1; "
                .. "admin_insecure = on opens it to whoever reaches it"
            ):format(bare, options.variable(options.by_name.admin_token))
        end
    end
end

--- Resolves all settings.
-- Reads the settings file; its cost is bounded by that file's size.
-- @tparam table opts
--   `flags` name -> text as typed;
--   `getenv` function(name) -> text|nil (default os.getenv);
--   `cwd` directory for relative paths;
--   `remembered` what start was given: { flags = {name -> {text, base}}, environment = {...},
--   is_supervised, is_contained };
--   `master` pid of the running nginx, whose CPUs count then;
--   `open` io.open's stand-in;
--   `only` array of names: resolve these alone and check nothing else; errors of the settings
--   file are told only where one of these is not given, as it may have been meant to stand there
-- @treturn table|nil name -> typed value
-- @treturn table array of one-line errors (empty on success)
-- @treturn table what a later reload must know, as `remembered`
-- @treturn table name -> source of each value, for messages
function _M.resolve(opts)
    local remembered = opts.remembered or { flags = {}, environment = {} }
    local flags = merge(from_flags(opts.flags, opts.cwd), remembered.flags)
    local environment =
        merge(from_environment(opts.getenv or os.getenv, opts.cwd), remembered.environment)

    local given_conf = pick(options.by_name.conf, { flags, environment })
    local file, errors = read_settings_file(given_conf, opts.open or io.open)
    if opts.only and all_given(opts.only, { flags, environment, file }) then
        errors = {}
    end

    local settings, sources = {}, {}
    local wanted = {}
    for _, name in ipairs(opts.only or {}) do
        wanted[name] = true
    end
    for _, option in ipairs(options.list) do
        if not opts.only or wanted[option.name] then
            local given = pick(option, { flags, environment, file })
            local value, err = read(option, given)
            if err and option.name ~= "conf" then
                errors[#errors + 1] = err
            end
            settings[option.name], sources[option.name] = value, given.source
        end
    end
    if not opts.only then
        check_together(settings, errors)
    end
    if #errors > 0 then
        return nil, errors
    end
    if settings.workers == "auto" then
        settings.workers = cpus.count(opts.master)
    end
    local given = {
        flags = flags,
        environment = environment,
        is_supervised = remembered.is_supervised,
        is_contained = remembered.is_contained,
    }
    return settings, errors, given, sources
end

return _M
