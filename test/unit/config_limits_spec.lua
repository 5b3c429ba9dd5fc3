-- What an image cannot have is refused where a file is checked, by the name of its field.

local cjson = require("cjson")
local config = require("gateway.config")
local limits = require("gateway.image.limits")
local pem = require("test.unit.support.pem")
local support = require("test.unit.support.config")

local MOST = 2 ^ 20
local LONG = "is longer than 1 MiB"
local SUM = "makes the credential longer than 1 MiB"
local PUBLIC = select(3, pem.pair("rsa"))

local function text(size)
    return ("x"):rep(size)
end

-- A public key of so many bytes, most of them behind it.
local function public(size)
    return PUBLIC .. ("\n"):rep(size - #PUBLIC)
end

local function groups(count)
    local out = {}
    for i = 1, count do
        out[i] = "g" .. i
    end
    return out
end

local function errors_of(document, limit)
    document._format_version = "3.0"
    local opts = { limit = limit or limits.checker() }
    local _, errors = config.parse(cjson.encode(document), "json", support.registry, opts)
    return support.lines(errors or {})
end

local function of_consumer(kind, credential)
    return errors_of({ consumers = { { username = "alice", [kind] = { credential } } } })
end

-- Of 1 MiB less `packed` bytes one fits, and of one more none.
local function check(kind, field, packed, make, more)
    for _, over in ipairs({ 0, 1 }) do
        local credential = { [field] = make(MOST - packed + over) }
        for name, value in pairs(more or {}) do
            credential[name] = value
        end
        local reason = packed == 0 and LONG or SUM
        local path = ("consumers[0].%s[0].%s: %s"):format(kind, field, reason)
        assert.equal(over == 1 and path or "", of_consumer(kind, credential))
    end
end

describe("a credential of a file", function()
    it("has names and secrets of 1 MiB", function()
        check("keyauth_credentials", "key", 0, text)
        check("acls", "group", 0, text)
        check("hmacauth_credentials", "username", 0, text, { secret = "s" })
        check("basicauth_credentials", "username", 0, text, { password = "p" })
        check("jwt_secrets", "key", 0, text, { secret = "s" })
    end)

    it("has as much less as is packed with it", function()
        -- Three lengths, and the algorithm; a public key belongs to others, and is not there.
        check("jwt_secrets", "secret", 3 * 4 + 5, text, { key = "k" })
        local rsa = { key = "k", algorithm = "RS256" }
        check("jwt_secrets", "rsa_public_key", 3 * 4 + 5, public, rsa)
    end)

    it("is blamed for the field that has the most of it", function()
        local half = { key = "k", algorithm = "RS256", rsa_public_key = public(MOST / 2) }
        assert.equal("", of_consumer("jwt_secrets", half))
        half.secret = text(MOST / 2 + 1)
        assert.equal(
            "consumers[0].jwt_secrets[0].secret: " .. SUM,
            of_consumer("jwt_secrets", half)
        )
        half.rsa_public_key = public(MOST + 1)
        local path = "consumers[0].jwt_secrets[0].rsa_public_key: "
        assert.equal(path .. LONG, of_consumer("jwt_secrets", half))
    end)

    it("keeps no more of a password, and of a key of HMAC, than its hash", function()
        local long = { username = "alice", password = text(MOST + 1) }
        assert.equal("", of_consumer("basicauth_credentials", long))
        long = { username = "alice", secret = text(MOST + 1) }
        assert.equal("", of_consumer("hmacauth_credentials", long))
    end)
end)

describe("other entities of a file", function()
    it("have the same limit", function()
        local consumer = { username = "alice", custom_id = text(MOST + 1) }
        assert.equal("consumers[0].custom_id: " .. LONG, errors_of({ consumers = { consumer } }))
    end)

    it("are refused by lists of more than 65,535", function()
        local acl = { name = "acl", config = { allow = groups(65536) } }
        assert.equal(
            "plugins[0].config: has more than 65535 elements",
            errors_of({ plugins = { acl } })
        )
        acl.config.allow = groups(65535)
        assert.equal("", errors_of({ plugins = { acl } }))
    end)

    it("are looked at where decK's defaults may make them as large", function()
        local document = { plugins = { { name = "acl", _config = "many" } } }
        document._plugin_configs = { many = { allow = groups(65536) } }
        assert.equal("plugins[0].config: has more than 65535 elements", errors_of(document))
    end)

    it("are not looked at where they are small", function()
        local function never()
            error("it has been asked")
        end
        local consumer = { username = "alice", custom_id = text(30000) }
        assert.equal("", errors_of({ consumers = { consumer } }, never))
    end)
end)
