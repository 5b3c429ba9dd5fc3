--- The tokens of the admin listener: `admin_token`, `admin_read_token`, and those of the file
-- `admin_named_tokens`, which has one a line, as `name role sha256:DIGEST`. Empty lines and those
-- that begin with # are nobody's.
--
-- The file has digests alone: who reads a backup of it cannot ask for anything.

local file = require("sluice.file")
local sha256 = require("sluice.sha256")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local _M = {}

-- Far more tokens than people can tell apart.
local MAX_BYTES = 1048576

--- What a name is, for people, and as a pattern.
local NAME = "a name has up to 64 letters, digits, dots, hyphens and underscores, and begins with "
    .. "a letter or digit"
local NAME_PATTERN, NAME_MAX = "^%w[%w._-]*$", 64
local LINE = "expected `name role sha256:DIGEST`"
local DIGEST_PATTERN = "^sha256:(" .. ("%x"):rep(64) .. ")$"

--- What a token may do.
_M.roles = { "read", "write" }

-- Names that others than a token of the file have in logs (gateway.admin.auth).
local RESERVED = { anyone = true, admin_token = true, admin_read_token = true }

--- The path of the file.
-- @tparam table settings `admin_named_tokens`, `prefix`
-- @treturn string
function _M.path(settings)
    local path = settings.admin_named_tokens
    return path and path ~= "" and path or settings.prefix .. "/tokens"
end

--- What is wrong with the name of a token.
-- @tparam string name
-- @treturn string|nil
function _M.check_name(name)
    if #name > NAME_MAX or not name:find(NAME_PATTERN) then
        return NAME
    elseif RESERVED[name] then
        return ("'%s' is the name of another"):format(name)
    end
    return nil
end

-- One token of a line, or what is wrong with it: its words are not shown, since one may be a token.
local function read_line(text, names, digests)
    local name, role, given, rest = text:match("^%s*(%S+)%s+(%S+)%s+(%S+)%s*(.-)%s*$")
    local digest = given and given:match(DIGEST_PATTERN)
    if not name or rest ~= "" then
        return nil, LINE
    end
    local wrong = _M.check_name(name)
    if wrong then
        return nil, wrong
    elseif role ~= "read" and role ~= "write" then
        return nil, ("the role of '%s' is neither read nor write"):format(name)
    elseif not digest then
        local what = "'%s' has no digest; expected sha256: and 64 hexadecimal digits, as `sluice "
            .. "token add NAME` writes them"
        return nil, what:format(name)
    end
    digest = digest:lower()
    if names[name] then
        return nil, ("'%s' is on line %d already"):format(name, names[name])
    elseif digests[digest] then
        return nil, ("'%s' is the same token as '%s'"):format(name, digests[digest])
    end
    return { name = name, role = role, digest = digest }
end

--- Reads the text of such a file.
-- @tparam string text
-- @treturn {table,...} `{ name =, role = "read" or "write", digest = hexadecimal, line = number }`
-- @treturn {string,...} what is wrong, each with its line
function _M.parse(text)
    local list, errors, names, digests = {}, {}, {}, {}
    local number = 0
    for line in (text .. "\n"):gmatch("(.-)\n") do
        number = number + 1
        if line:find("^%s*[^%s#]") then
            local token, wrong = read_line(line, names, digests)
            if token then
                token.line = number
                names[token.name], digests[token.digest] = number, token.name
                list[#list + 1] = token
            else
                errors[#errors + 1] = ("%d: %s"):format(number, wrong)
            end
        end
    end
    return list, errors
end

--- Reads the file, which has to be the user's own and nobody else's to read.
-- @tparam string path
-- @treturn {table,...}|nil tokens as of `parse`
-- @treturn string|{string,...} its text; lines that say what is wrong
function _M.load(path)
    local text, reason =
        file.read(path, { max = MAX_BYTES, owner = unistd.geteuid(), is_private = true })
    if not text then
        return nil, { "admin_named_tokens: cannot read " .. reason }
    end
    local list, errors = _M.parse(text)
    for i, line in ipairs(errors) do
        errors[i] = ("admin_named_tokens: %s:%s"):format(path, line)
    end
    if #errors > 0 then
        return nil, errors
    end
    return list, text
end

--- Whether clients of the admin listener need a token; does not look into the file, which may be
-- another user's.
-- @tparam table settings `admin_token`, `admin_named_tokens`, `prefix`
-- @treturn boolean
function _M.are_required(settings)
    return settings.admin_token ~= ""
        or settings.admin_named_tokens ~= ""
        or (settings.prefix ~= nil and stat.lstat(_M.path(settings)) ~= nil)
end

--- Checks the tokens that are settings.
-- @tparam table settings resolved settings
-- @tparam {string,...} errors gets a line where one is wrong
function _M.check(settings, errors)
    local token, read_token = settings.admin_token, settings.admin_read_token
    if not read_token or read_token == "" then
        return
    end
    local why
    if not _M.are_required(settings) then
        why = "there is no admin_token, so anyone can write"
    elseif token == read_token then
        why = "it is the same as admin_token, which can write"
    end
    errors[#errors + 1] = why and "admin_read_token: " .. why or nil
end

local function check_same(list, settings, errors)
    for _, name in ipairs({ "admin_token", "admin_read_token" }) do
        local text = settings[name]
        local digest = text ~= "" and sha256.hex(text)
        for _, token in ipairs(list) do
            if token.digest == digest then
                local line = "admin_named_tokens: '%s' in %s is the same token as %s"
                errors[#errors + 1] = line:format(token.name, _M.path(settings), name)
            end
        end
    end
end

--- The tokens of the file.
-- @tparam table settings resolved settings
-- @tparam {string,...} errors gets a line for each that is wrong
-- @treturn {table,...}|nil as of `parse`, without their lines, so that a comment changes nothing;
-- nil where there is no file
function _M.list(settings, errors)
    local path = _M.path(settings)
    local _, lack = file.lstat(path)
    if settings.admin_named_tokens == "" and lack == file.MISSING then
        return nil
    end
    local list, wrong = _M.load(path)
    if not list then
        for _, line in ipairs(wrong) do
            errors[#errors + 1] = line
        end
        return nil
    end
    for _, token in ipairs(list) do
        token.line = nil
    end
    check_same(list, settings, errors)
    return list
end

return _M
