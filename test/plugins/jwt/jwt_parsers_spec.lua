-- The plugin's parser of tokens, which is C, and kong.plugins.jwt.jwt_parser, which calls it: of
-- tokens at random, both say what a slow one in Lua says.

package.path = "./compat/?.lua;./compat/?/init.lua;" .. package.path

local base64 = require("sluice.base64")
local cjson = require("cjson.safe")
local judge = require("test.unit.support.judge").judge
local parser = require("plugins.jwt.kong.jwt_parser")
local people = require("test.unit.support.people")
local seed = require("test.unit.support.seed")("jwt_parsers")
local soak = require("test.unit.support.soak")

local JWT = {
    key_claim_name = "iss",
    header_names = { "authorization" },
    run_on_preflight = true,
    realm = "here",
}

-- Members of objects, and what else may stand in place of one.
local MEMBERS = {
    '"alg":"HS256"',
    '"alg":"HS256"',
    '"alg":"ES512"',
    '"alg":"none"',
    '"alg":"hs256"',
    '"alg":1',
    '"\\u0061lg":"HS256"',
    '"alg":"HS\\u0032\\u00356"',
    '"iss":"alice"',
    '"iss":"alice"',
    '"iss":""',
    '"iss":7',
    '"iss":null',
    '"iss":["alice"]',
    '"iss":"\\ud83d\\ude00\\n"',
    '"i\\u0073s":"bob"',
    '"exp":1e3',
    '"typ":"JWT"',
    '"deep":[[[[{"iss":"x"}]]]]',
    '"x":tru',
    '"x":01',
    '"x":"a\tb"',
    '"x":"\\x"',
    '"x"',
    ' "y" : { } ',
}
local OTHERS =
    { "", "null", "[]", "1", '"iss"', "{", "}", "{}{}", "{} x", " {} ", "{,}", '{"a":1,}' }

local function one_of(list)
    return list[math.random(#list)]
end

-- No member twice: of such an object the plugin takes neither, and cjson the last.
local function object()
    if math.random(8) == 1 then
        return one_of(OTHERS)
    end
    local members, seen = {}, {}
    for _ = 1, math.random(0, 5) do
        local member = one_of(MEMBERS)
        local name = member:find("lg", 1, true) and "alg" or member:find('^"i') and "iss" or member
        if not seen[name] then
            seen[name] = true
            members[#members + 1] = member
        end
    end
    return "{" .. table.concat(members, ",") .. "}"
end

-- Another spelling of base64, or what is none.
local function spoilt(text)
    local at = math.random(#text + 1)
    local what = one_of({ "=", "==", "+", "/", "-", "_", "!", " ", "\n", "A", "." })
    return text:sub(1, at - 1) .. what .. text:sub(at)
end

local function token()
    local header, claims = object(), object()
    if math.random(2) == 1 then
        header = '{"alg":"HS256","typ":"JWT"}'
    end
    local parts =
        { base64.encode_url(header), base64.encode_url(claims), one_of({ "", "c2ln", "c" }) }
    if math.random(4) == 1 then
        local at = math.random(3)
        parts[at] = spoilt(parts[at])
    end
    if math.random(20) == 1 then
        table.remove(parts)
    end
    return table.concat(parts, ".")
end

local ALGORITHMS = { EdDSA = true }
for _, family in ipairs({ "HS", "RS", "PS", "ES" }) do
    for _, bits in ipairs({ "256", "384", "512" }) do
        ALGORITHMS[family .. bits] = true
    end
end

-- An array is none.
local function object_of(text)
    local json = base64.decode_url(text) or ""
    return json:find("^[ \t\r\n]*{") and cjson.decode(json) or nil
end

-- What has more than three parts has them in the signature, which then is none.
local function slow_parse(text)
    local header_64, claims_64, signature_64 = text:match("^([^.]*)%.([^.]*)%.(.*)$")
    local header = header_64 and object_of(header_64)
    local claims = header and object_of(claims_64)
    local signature = claims and base64.decode_url(signature_64)
    if not claims then
        return nil, "invalid JSON"
    elseif type(header.alg) ~= "string" or not ALGORITHMS[header.alg] then
        return nil, "invalid alg"
    elseif not signature then
        return nil, "invalid signature"
    end
    return { header = header, claims = claims, signature = signature }
end

-- What the plugin answers where nobody has the key that a token names.
local function expected(found, err)
    if not found then
        return "Bad token; " .. err
    end
    local key = found.claims.iss
    if key == nil then
        key = found.header.iss
    end
    if key == nil then
        return "No mandatory 'iss' in claims"
    elseif type(key) ~= "string" or key == "" then
        return "Invalid 'iss' in claims"
    end
    return "No credentials found for given 'iss'"
end

describe("the parser of tokens", function()
    it("says what a slow one does", function()
        math.randomseed(seed)
        local nobody = people.new({})
        local seen = {}
        for case = 1, soak(4000, 100000) do
            local text = token()
            local _, result = judge("jwt", JWT, {
                method = "GET",
                query = false,
                headers = { "Authorization", "Bearer " .. text },
                people = nobody,
            })
            -- what stands before a token in the header is none of it
            text = text:gsub("^[ \t]+", "")
            local slow, why = slow_parse(text)
            local wanted = expected(slow, why)
            local shown = ("SEED=%d, case %d: %s"):format(seed, case, text)
            local found, err = parser:new(text)
            assert.equal(why, err, shown)
            for _, part in ipairs(slow and { "header", "claims", "signature" } or {}) do
                assert.same(slow[part], found[part], shown)
            end
            assert.equal('{"message":"' .. wanted .. '"}', result.message, shown)
            seen[wanted] = true
        end
        for _, words in ipairs({
            "Bad token; invalid JSON",
            "Bad token; invalid alg",
            "Bad token; invalid signature",
            "No mandatory 'iss' in claims",
            "Invalid 'iss' in claims",
            "No credentials found for given 'iss'",
        }) do
            assert.is_true(seen[words], words)
        end
    end)
end)
