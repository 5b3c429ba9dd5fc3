--- Resolves the settings: a flag beats the environment, which beats the settings file, which
-- beats the default. In the environment ours (SLUICE_*) beat Kong's (KONG_*). The command `kong`
-- has defaults of its own (cli.kong).
--
-- `reload` and `restart` add what `start` was given: a flag of this command, then a flag given to
-- start, then the environment of this command, then the environment of start, then the file as it
-- is now. Nothing here touches a running gateway.

local address = require("sluice.address")
local conf_file = require("cli.options.conf_file")
local client_ca = require("cli.options.client_ca")
local cpus = require("cli.options.cpus")
local environments = require("cli.options.environment")
local kong_reader = require("cli.options.kong_reader")
local listen_of = require("cli.options.listen")
local options = require("cli.options")
local sockets = require("cli.options.sockets")
local stdlib = require("posix.stdlib")
local tokens = require("cli.options.tokens")
local values = require("cli.options.values")

local _M = {}

local function trim(text)
    return text:match("^%s*(.-)%s*$")
end

local function directory_of(path)
    return path:match("^(.*)/[^/]*$") or "."
end

local function pick(option, sources, defaults)
    for _, source in ipairs(sources) do
        local given = source[option.name]
        if given then
            return given
        end
    end
    return { text = defaults[option.name] or option.default, source = "default", base = "/" }
end

-- Whether each of the options stands in one of the sources.
local function all_given(names, sources)
    for _, name in ipairs(names) do
        if pick(options.by_name[name], sources, {}).source == "default" then
            return false
        end
    end
    return true
end

-- `listed`: type -> option of which a long list of what is right has been said.
local function read(option, given, listed)
    local value, expected, is_long = values.read(option, given.text, given.base)
    if is_long and listed[option.type] then
        expected = ("what %s takes"):format(listed[option.type])
    elseif is_long then
        listed[option.type] = option.name
    end
    if value == nil and (options.is_secret(option) or given.is_secret) then
        return nil,
            ("%s (%s) is not valid; expected %s"):format(option.name, given.source, expected)
    elseif value == nil then
        return nil,
            ("%s (%s): '%s' is not valid; expected %s"):format(
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
            -- The blanks at the start of a document mean something.
            text = option.type == "document" and text or trim(text)
            found[option.name] = { text = text, source = source, base = cwd }
        end
    end
    return found
end

local function from_environment(environment, cwd)
    return given_by(function(option)
        local name = options.variable(option)
        return environment[name], "environment " .. name
    end, cwd)
end

local function from_flags(flags, cwd)
    return given_by(function(option)
        return flags[option.name], "flag " .. options.flag(option)
    end, cwd)
end

local function read_settings_file(given, open)
    local path, err = read(options.by_name.conf, given, {})
    if not path then
        return {}, { err }, {}
    end
    local file, reason = open(path, "r")
    local text = file and file:read("*a")
    if file then
        file:close()
    end
    if not text then
        if given.source == "default" and not file then
            return {}, {}, {}
        end
        return {}, { ("conf (%s): cannot read %s"):format(given.source, reason or path) }, {}
    end
    local found, errors, kongs = conf_file.parse(path, text)
    for _, list in ipairs({ found, kongs }) do
        for _, entry in pairs(list) do
            entry.base = directory_of(path)
        end
    end
    return found, errors, kongs
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

-- Everybody who can connect may do everything: refused, but taken from Kong's users with a warning,
-- as their containers are made so.
local function check_admin(settings, sources, errors, warnings)
    local reachable = {}
    local is_open = not tokens.are_required(settings) and settings.admin_insecure == false
    for _, text in ipairs(is_open and settings.admin_listen or {}) do
        local is_local = true
        for _, socket in ipairs(sockets.of(text)) do
            is_local = is_local and address.is_loopback(socket.ip)
        end
        if not (is_local or client_ca.guards(settings, listen_of.parse(text))) then
            reachable[#reachable + 1] = text:match("^%S+")
        end
    end
    if #reachable == 0 then
        return
    end
    local places = table.concat(reachable, ", ")
    local variable = options.variable(options.by_name.admin_token)
    if sources.admin_listen.is_kongs then
        local line = "admin_listen (%s): everybody who can connect to %s can read all keys and "
            .. "replace the configuration; set a token (%s, or `sluice token add NAME`)"
        warnings[#warnings + 1] = line:format(sources.admin_listen.source, places, variable)
    else
        errors[#errors + 1] = (
            "admin_listen: %s is not on loopback, and there is no admin_token; set one (%s, "
            .. "the settings file, or `sluice token add NAME`), listen on 127.0.0.1, or allow "
            .. "anyone who can connect (admin_insecure = on)"
        ):format(places, variable)
    end
end

-- Addresses in headers of the PROXY protocol are used where both ends of it are set.
local function check_proxy_protocol(settings, warnings)
    local is_used = settings.real_ip_header == "proxy_protocol"
        and #(settings.trusted_ips or {}) > 0
    local has_any = false
    for _, name in ipairs(options.listens) do
        local has = false
        for _, text in ipairs(settings[name] or {}) do
            has = has or listen_of.parse(text).proxy_protocol
        end
        has_any = has_any or has
        if has and not is_used then
            local line = "%s: the addresses in headers of the PROXY protocol are not used; set "
                .. "real_ip_header to proxy_protocol, and trusted_ips"
            warnings[#warnings + 1] = line:format(name)
        end
    end
    if settings.real_ip_header == "proxy_protocol" and not has_any then
        warnings[#warnings + 1] = "real_ip_header: no address has proxy_protocol, so clients have "
            .. "the addresses of their connections"
    end
end

-- What two listen addresses that are one are told, as they were written.
local function say_same(one, other)
    if one.name == other.name and one.given == other.given then
        return ("%s: %s is given twice; leave one out"):format(one.name, one.given)
    elseif one.name == other.name then
        local line = "%s: %s and %s are one address; leave one out"
        return line:format(one.name, other.given, one.given)
    elseif one.given == other.given then
        local line = "%s: %s is also a %s address; use another port"
        return line:format(one.name, one.given, other.name)
    end
    local line = "%s: %s is also the %s address %s; use another port"
    return line:format(one.name, one.given, other.name, other.given)
end

-- Each address has one listener: nginx would give all its connections to the first. The kernel
-- opens no two sockets that overlap, save with reuseport.
local function check_addresses(settings, errors)
    local lines, seen = {}, {}
    local function add(line)
        -- A name has several addresses.
        errors[#errors + 1] = not lines[line] and line or nil
        lines[line] = true
    end
    for _, socket in ipairs(sockets.all(settings, options.listens)) do
        local other = seen[socket.key]
        if other then
            add(say_same(socket, other))
        end
        seen[socket.key] = other or socket
    end
    local opened = sockets.opened(settings, options.listens)
    for i, one in ipairs(opened) do
        for j = 1, i - 1 do
            local other = opened[j]
            local may_be = one.key == other.key or (one.is_shared and other.is_shared)
            if not may_be and sockets.overlap(one, other) then
                local line = "%s: %s overlaps %s of %s, and nginx would open both; leave one out, "
                    .. "or give both reuseport"
                add(line:format(one.name, one.given, other.given, other.name))
            end
        end
    end
end

-- Kong's database is not there, and what runs without it keeps its own store.
local function check_database(settings, sources, errors, warnings)
    if settings.database ~= "postgres" then
        return
    end
    local source = sources.database.source
    if not settings.single_node then
        local line = "database (%s): 'postgres' needs a cluster, which this version does not have; "
            .. "let each node keep a store of its own (%s=on), or set it to off"
        local variable = options.variable(options.by_name.single_node)
        errors[#errors + 1] = line:format(source, variable)
    else
        local line = "database (%s): this node keeps a store of its own, which no other node sees"
        warnings[#warnings + 1] = line:format(source)
    end
end

-- Each certificate has its key.
local function check_certificates(settings, errors)
    for _, option in ipairs(options.list) do
        local keys = settings[option.name .. "_key"]
        local certificates = settings[option.name]
        if option.type == "pem_list" and keys and certificates and #keys ~= #certificates then
            errors[#errors + 1] = ("%s: %d certificate%s, but %d key%s in %s_key"):format(
                option.name,
                #certificates,
                #certificates == 1 and "" or "s",
                #keys,
                #keys == 1 and "" or "s",
                option.name
            )
        end
    end
end

-- Rules that hold between settings.
local function check_together(settings, sources, errors, warnings)
    check_proxy_buffers(settings, errors)
    tokens.check(settings, errors)
    check_addresses(settings, errors)
    check_admin(settings, sources, errors, warnings)
    check_proxy_protocol(settings, warnings)
    client_ca.check(settings, errors, warnings)
    check_database(settings, sources, errors, warnings)
    check_certificates(settings, errors)
end

-- What follows from other settings: those that are empty inherit, and a document is a file.
local function complete(settings, sources, master)
    for _, option in ipairs(options.list) do
        if option.inherits and settings[option.name] == "" then
            settings[option.name] = settings[option.inherits]
        end
    end
    local document = settings.declarative_config_string
    if document and document ~= "" and settings.file == "" then
        settings.file = sources.declarative_config_string.source
    end
    if settings.workers == "auto" then
        settings.workers = cpus.count(master)
    end
end

-- The settings of Kong in the environment and in the file, each as ours.
local function read_kongs(variables, of_vaults, in_file, opts)
    local is_of_vaults = {}
    for _, name in ipairs(of_vaults) do
        is_of_vaults[name] = true
    end
    local in_environment = kong_reader.of_environment(variables, function(name, text)
        return is_of_vaults[name] or environments.is_of_a_service(name, text)
    end, opts.cwd, opts.open or io.open)
    local found, errors, warnings = kong_reader.read(in_environment, in_file)
    local of_file, wrong, more = kong_reader.read(in_file, in_environment)
    for _, lists in ipairs({ { errors, wrong }, { warnings, more } }) do
        for _, line in ipairs(lists[2]) do
            table.insert(lists[1], line)
        end
    end
    return found, of_file, errors, warnings
end

-- Where settings stand, read for `resolve`, with what is wrong there: unknown names, a file that
-- cannot be read.
local function read_places(opts)
    local remembered = opts.remembered or { flags = {}, environment = {} }
    local variables = opts.environment or stdlib.getenv()
    local places = {
        defaults = merge(remembered.defaults or {}, opts.defaults or {}),
        flags = merge(from_flags(opts.flags, opts.cwd), remembered.flags),
        variables = variables,
        ours = from_environment(variables, opts.cwd),
        remembered = remembered,
    }
    local flags, defaults = places.flags, places.defaults
    local environment = merge(places.ours, remembered.environment)
    local given_conf = pick(options.by_name.conf, { flags, environment }, defaults)
    local file, errors, kongs_file = read_settings_file(given_conf, opts.open or io.open)
    local vault_env = options.by_name.vault_env
    local given = pick(vault_env, { flags, environment, file }, defaults)
    places.of_vaults = read(vault_env, given, {}) or {}
    places.unknown = environments.unknown(variables, places.of_vaults)
    for _, err in ipairs(places.unknown) do
        errors[#errors + 1] = err
    end
    places.file, places.kongs_file = file, kongs_file
    return places, errors
end

--- The variables in the environment that look like settings and are none, for a command that takes
-- no more than the prefix.
-- @tparam table opts of `resolve`
-- @treturn {string,...} errors, a line each
function _M.unknown(opts)
    return (read_places(opts)).unknown
end

-- Says which lines of the settings file have no effect, as what an earlier command was given counts
-- first.
local function overridden(remembered, flags, environment, file)
    local lines, others = {}, {}
    for _, option in ipairs(options.list) do
        local name = option.name
        local given, own = flags[name] or environment[name], file[name]
        local is_kept = given
            and (given == remembered.flags[name] or given == remembered.environment[name])
        if own and is_kept and own.text:gsub("%s", "") ~= given.text:gsub("%s", "") then
            lines[#lines + 1] = ("%s (%s)"):format(name, own.source)
            others[#others + 1] = flags[name] and options.flag(option) or options.variable(option)
        end
    end
    if #lines == 0 then
        return nil
    end
    local line = "warning: %s: no effect, since an earlier start or reload was given %s; give "
        .. "another value here, or run `sluice stop` and `sluice start`"
    return line:format(table.concat(lines, ", "), table.concat(others, ", "))
end

--- Resolves all settings.
-- Reads the settings file; its cost is bounded by that file's size.
-- @tparam table opts
--   `flags` name -> text as typed;
--   `environment` name -> text (default that of this process);
--   `cwd` directory for relative paths;
--   `remembered` what start was given: { flags = {name -> {text, base}}, environment = {...},
--   is_supervised, is_contained, defaults };
--   `defaults` name -> text, of options that have another default for this command;
--   `master` pid of the running nginx, whose CPUs count then;
--   `open` io.open's stand-in;
--   `only` array of names: resolve these alone and check nothing else; unknown names are told
--   only where one of these is not given, as it may have been meant
-- @treturn table|nil name -> typed value
-- @treturn table array of one-line errors (empty on success)
-- @treturn table what a later reload must know, as `remembered`
-- @treturn {string,...} warnings, a line each
-- @treturn string|nil a warning of lines of the settings file that what is remembered overrides
function _M.resolve(opts)
    local places, errors = read_places(opts)
    local remembered, flags, defaults = places.remembered, places.flags, places.defaults
    local kongs, of_file, wrong, warnings =
        read_kongs(places.variables, places.of_vaults, places.kongs_file, opts)
    local environment = merge(merge(places.ours, kongs), remembered.environment)
    local file = merge(places.file, of_file)
    if flags.file and flags.file.text == "" then
        -- With --no-file a text is none either.
        environment.declarative_config_string, file.declarative_config_string = nil, nil
    end
    if opts.only and all_given(opts.only, { flags, environment, file }) then
        errors = {}
    end
    for _, err in ipairs(opts.only and {} or wrong) do
        errors[#errors + 1] = err
    end

    local settings, sources = {}, {}
    local wanted, listed = {}, {}
    for _, name in ipairs(opts.only or {}) do
        wanted[name] = true
    end
    for _, option in ipairs(options.list) do
        if not opts.only or wanted[option.name] then
            local given = pick(option, { flags, environment, file }, defaults)
            local value, err = read(option, given, listed)
            if err and option.name ~= "conf" then
                errors[#errors + 1] = err
            end
            settings[option.name], sources[option.name] = value, given
        end
    end
    if not opts.only then
        check_together(settings, sources, errors, warnings)
    end
    if #errors > 0 then
        return nil, errors
    end
    complete(settings, sources, opts.master)
    local given = {
        flags = flags,
        environment = environment,
        is_supervised = remembered.is_supervised,
        is_contained = remembered.is_contained,
        defaults = defaults,
    }
    local ignored = overridden(remembered, flags, environment, file)
    return settings, errors, given, warnings, ignored
end

return _M
