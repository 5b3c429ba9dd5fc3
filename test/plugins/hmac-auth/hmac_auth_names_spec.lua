-- A name that nobody has cannot be told from one that somebody has by the time that hmac-auth
-- takes: the same is hashed for both. Time itself is no test's; what is hashed is.

local core = require("test.unit.support.core")
local judge = require("test.unit.support.judge").judge
local people = require("test.unit.support.people")

local ffi = core.ffi

-- Alice, and others with secrets around the blocks of hashes: names of one length.
local SECRETS = { alice = 32, size1 = 64, size2 = 65, size3 = 128, size4 = 129, size5 = 100000 }
local ALICE = { id = "00000000-0000-4000-8000-000000000001", username = "alice", credentials = {} }
for name, size in pairs(SECRETS) do
    table.insert(ALICE.credentials, {
        plugin = "hmac-auth",
        kind = "hmacauth_credentials",
        key = name,
        entity = { secret = ("s"):rep(size) },
    })
end

local DATE = "Thu, 01 Jan 1970 00:00:00 GMT"
-- What the digest below makes, zeros, and something else.
local MADE = ("A"):rep(43) .. "="
local WRONG = ("B"):rep(42) .. "A="

local VALUE = 'hmac username="%s", algorithm="hmac-%s", headers="x-date x-one", signature="%s"'

local function value_of(name, algorithm, signature)
    return VALUE:format(name, algorithm, signature or WRONG)
end

describe("hmac-auth", function()
    local known = people.new({ ALICE })
    local hashed
    -- Lengths of the key and the texts of each digest.
    local counts = setmetatable({
        digest = ffi.cast("sluice_judge_digest_pt", function(_, name, key, texts, count, out)
            local lengths = { ffi.string(name), key ~= nil and key.length or "none" }
            for i = 0, count - 1 do
                lengths[#lengths + 1] = texts[i].length
            end
            hashed[#hashed + 1] = table.concat(lengths, " ")
            ffi.fill(out, 32)
            return 32
        end),
    }, { __index = known })

    local function hashes(value, anonymous)
        hashed = {}
        local config = {
            realm = "here",
            anonymous = anonymous,
            algorithms = { "hmac-sha256", "hmac-sha512" },
            validate_request_body = true,
        }
        local decision, result = judge("hmac-auth", config, {
            headers = { "Authorization", value, "X-Date", DATE, "X-One", "1" },
            credential = false,
            people = counts,
            own = known.date,
        })
        return hashed, decision, result
    end

    it("hashes as much for a name that nobody has", function()
        for _, algorithm in ipairs({ "sha256", "sha512" }) do
            local wrong, decision, refused = hashes(value_of("alice", algorithm))
            assert.equal("respond", decision)
            assert.same({ algorithm .. " 32 " .. #("x-date: " .. DATE .. "\nx-one: 1") }, wrong)
            local unknown, other, refused_too = hashes(value_of("mallo", algorithm))
            assert.equal("respond", other)
            assert.same(wrong, unknown)
            assert.equal(refused.challenge, refused_too.challenge)
        end
    end)

    it("hashes as much however long a secret is: no key is longer than a block", function()
        for algorithm, block in pairs({ sha256 = 64, sha512 = 128 }) do
            local rest = " " .. #("x-date: " .. DATE .. "\nx-one: 1")
            for name in pairs(SECRETS) do
                local found = hashes(value_of(name, algorithm))
                assert.equal(1, #found)
                local size = found[1]:match("^" .. algorithm .. " (%d+)" .. rest .. "$")
                assert.is_true(tonumber(size) <= block, name .. ": " .. found[1])
            end
        end
    end)

    it(
        "tells them apart by its words, as Kong, and not at all with an anonymous consumer",
        function()
            local _, _, wrong = hashes(value_of("alice", "sha256"))
            local _, _, unknown = hashes(value_of("mallo", "sha256"))
            assert.equal("HMAC signature does not match", wrong.message)
            assert.equal("HMAC signature cannot be verified", unknown.message)
            for _, name in ipairs({ "alice", "mallo" }) do
                local found, decision, result = hashes(value_of(name, "sha256"), "alice")
                assert.equal(1, #found)
                assert.equal("pass", decision)
                assert.equal("alice", result.identity.username)
                assert.is_nil(result.identity.credential)
            end
        end
    )

    it("lets nobody in by what stands for a secret that is not there", function()
        local _, decision = hashes(value_of("mallo", "sha256", MADE))
        assert.equal("respond", decision)
    end)
end)
