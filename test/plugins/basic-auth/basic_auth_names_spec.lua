-- A name that nobody has cannot be told from one that somebody has by the time that basic-auth
-- takes: the same is hashed for both. Time itself is no test's; what is hashed is.

local core = require("test.unit.support.core")
local judge = require("test.unit.support.judge").judge
local people = require("test.unit.support.people")

local ffi = core.ffi

local ALICE = {
    id = "00000000-0000-4000-8000-000000000001",
    username = "alice",
    credentials = {
        {
            plugin = "basic-auth",
            kind = "basicauth_credentials",
            key = "alice",
            entity = { password = ("f"):rep(40) },
        },
    },
}

-- "alice" and "mallo" with a password; what is no pair.
local WRONG = "Basic YWxpY2U6c2VjcmV0"
local UNKNOWN = "Basic bWFsbG86c2VjcmV0"
local NONE = { "Basic bWFsbG8=", "Basic !", "Bearer YWxpY2U6c2VjcmV0", "Basic " }

describe("basic-auth", function()
    local known = people.new({ ALICE })
    local hashed
    -- Lengths of the texts of each digest.
    local counts = setmetatable({
        digest = ffi.cast("sluice_judge_digest_pt", function(_, name, _, texts, count, out)
            local lengths = { ffi.string(name) }
            for i = 0, count - 1 do
                lengths[#lengths + 1] = texts[i].length
            end
            hashed[#hashed + 1] = table.concat(lengths, " ")
            ffi.fill(out, 20)
            return 20
        end),
    }, { __index = known })

    local function hashes(value, anonymous)
        hashed = {}
        local decision, result = judge("basic-auth", { realm = "here", anonymous = anonymous }, {
            headers = value and { "Authorization", value } or {},
            credential = false,
            people = counts,
        })
        return hashed, decision, result
    end

    it("hashes as much for a name that nobody has", function()
        local wrong, decision, refused = hashes(WRONG)
        assert.equal("respond", decision)
        assert.same({ "sha1 6 36" }, wrong)
        local unknown, other, refused_too = hashes(UNKNOWN)
        assert.equal("respond", other)
        assert.same(wrong, unknown)
        assert.equal(refused.message, refused_too.message)
        assert.equal(refused.challenge, refused_too.challenge)
        assert.same(wrong, (hashes(UNKNOWN, "alice")))
    end)

    it("hashes nothing of what is no pair", function()
        assert.same({}, (hashes(nil)))
        for _, value in ipairs(NONE) do
            assert.same({}, (hashes(value)), value)
        end
    end)
end)
