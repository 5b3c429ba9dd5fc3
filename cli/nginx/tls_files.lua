--- The files of TLS that nginx's master reads itself: CAs of upstreams, lists of revoked client
-- certificates, certificates of listeners. Checked before nginx is asked to, so that a mistake is
-- one clear line.

local crl = require("sluice.ffi.crl")
local digest = require("openssl.digest")
local file = require("sluice.file")
local options = require("cli.options")
local pem = require("sluice.pem")
local pkey = require("openssl.pkey")
local stdlib = require("posix.stdlib")
local tls = require("cli.nginx.tls")
local unistd = require("posix.unistd")
local x509 = require("openssl.x509")

local _M = {}

-- Of one file; that of lists is the module's, too (ngx_http_sluice_crl.c).
local MAX_BYTES = 16777216

local TRUSTED, LISTS = "proxy_ssl_trusted_certificate", "ssl_crl"
local CLIENT_CA = "admin_client_ca"

local function add(errors, name, reason)
    local line = "%s: %s; set %s to another"
    errors[#errors + 1] = line:format(name, reason, options.flag(options.by_name[name]))
end

-- A link is followed: "the list of today" is often one.
local function read(path)
    local real, err = stdlib.realpath(path)
    if not real then
        return nil, path .. ": " .. err:gsub("^realpath: ", "")
    end
    local text, reason = file.read(real, { max = MAX_BYTES })
    if reason and real ~= path then
        reason = ("%s: is a link to %s"):format(path, reason)
    end
    return text, reason
end

local function check_lists(path, errors, warnings)
    local text, reason = read(path)
    if text then
        local is_right, why = crl.check(text)
        reason = not is_right and ("%s: %s"):format(path, why)
    end
    if reason then
        add(errors, LISTS, "cannot read " .. reason)
        return nil
    end
    for _, warning in ipairs(crl.warnings(text, os.time())) do
        warnings[#warnings + 1] = ("warning: %s: %s: %s"):format(LISTS, path, warning)
    end
    return text
end

local function check_trusted(path, errors)
    if not unistd.access(path, "r") then
        add(errors, TRUSTED, "cannot read " .. path)
        return nil
    end
    return read(path)
end

-- What OpenSSL reads each with.
local PARSERS = { certificate = x509.new, ["private key"] = pkey.new }

-- What is in a file of certificates or keys, and what OpenSSL reads of it.
local function read_pem(setting, each, kind, errors)
    local text, reason = each.text, nil
    if not text then
        text, reason = read(each.path)
    end
    local is_right, value
    if text then
        is_right, value = pcall(PARSERS[kind], text)
    end
    if reason then
        errors[#errors + 1] = ("%s: cannot read %s"):format(setting, reason)
    elseif not is_right then
        local what = each.text and "the text that is given" or each.path
        local mistake = pem.mistake(text, kind)
        local line = ("%s: %s is no %s in PEM"):format(setting, what, kind)
        errors[#errors + 1] = mistake and line .. ": " .. mistake or line
    end
    return text, is_right and value or nil
end

-- That clients refuse a certificate, by its dates.
local function warn_of_dates(name, each, certificate, warnings)
    local from, to = certificate:getLifetime()
    local now, reason = os.time(), nil
    if to and now > to then
        reason = "it expired on " .. os.date("!%Y-%m-%d", to)
    elseif from and now < from then
        reason = "it is not valid before " .. os.date("!%Y-%m-%d", from)
    end
    if reason then
        local line = "warning: %s: %s: clients refuse the certificate: %s"
        warnings[#warnings + 1] = line:format(name, each.path, reason)
    end
end

-- Certificates of our own, each with its key.
local function check_own(settings, name, errors, warnings, take)
    local keys = tls.own_files(settings, name .. "_key")
    for i, each in ipairs(tls.own_files(settings, name)) do
        local text, certificate = read_pem(name, each, "certificate", errors)
        take(each.path, text)
        if certificate then
            warn_of_dates(name, each, certificate, warnings)
        end
        local secret, key = read_pem(name .. "_key", keys[i], "private key", errors)
        take(keys[i].path, secret)
        local fits = certificate
            and key
            and certificate:getPublicKey():toPEM("public") == key:toPEM("public")
        if certificate and key and not fits then
            local line = "%s_key: key %d is not that of certificate %d in %s"
            errors[#errors + 1] = line:format(name, i, i, name)
        end
    end
end

-- What is given of versions and ciphers, and of no effect beside a suite.
local function warn_of_suite(settings, warnings)
    local suite = tls.suite(settings)
    for _, pair in ipairs({
        { "ssl_protocols", suite.protocols },
        { "ssl_ciphers", suite.ciphers },
    }) do
        local name, used = pair[1], pair[2]
        local value = settings[name]
        if value ~= used and value ~= options.by_name[name].default then
            local line = "warning: %s has no effect while ssl_cipher_suite is %s, and not custom"
            warnings[#warnings + 1] = line:format(name, settings.ssl_cipher_suite)
        end
    end
end

--- Checks the files that the settings name, and whether those of TLS are used.
-- @tparam table settings resolved settings
-- @tparam table errors array that gets a line for each that is wrong
-- @treturn table `warnings`, lines about those that are right and of no use; `digest`, of what is
-- in them: where it is another at a reload, nginx has to read them again
function _M.check(settings, errors)
    local warnings, all = {}, digest.new("sha256")
    local function take(path, text)
        all:update(("%d %s %d "):format(#path, path, text and #text or 0))
        all:update(text or "")
    end
    warn_of_suite(settings, warnings)
    for _, path in ipairs(tls.trusted(settings)) do
        take(path, check_trusted(path, errors))
    end
    for _, path in ipairs(settings[LISTS]) do
        take(path, check_lists(path, errors, warnings))
    end
    for _, name in ipairs({ "ssl_cert", "admin_ssl_cert", "status_ssl_cert" }) do
        check_own(settings, name, errors, warnings, take)
    end
    if settings[CLIENT_CA] ~= "" then
        take(
            settings[CLIENT_CA],
            (read_pem(CLIENT_CA, { path = settings[CLIENT_CA] }, "certificate", errors))
        )
    end
    local hex = all:final():gsub(".", function(byte)
        return ("%02x"):format(byte:byte())
    end)
    return { warnings = warnings, digest = hex }
end

return _M
