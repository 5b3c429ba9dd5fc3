local tokens = require("cli.options.tokens")

local DIGEST = ("0a"):rep(32)
local OTHER = ("0b"):rep(32)

describe("A file of tokens", function()
    it("has one a line, and what people write between them", function()
        local list, errors = tokens.parse(
            ("# ours\n\n ci\twrite  sha256:%s \r\nbob.x-1_2 read sha256:%s"):format(
                DIGEST,
                OTHER:upper()
            )
        )
        assert.same({}, errors)
        assert.same({
            { name = "ci", role = "write", digest = DIGEST, line = 3 },
            { name = "bob.x-1_2", role = "read", digest = OTHER, line = 4 },
        }, list)
        assert.same({ {}, {} }, { tokens.parse("") })
    end)

    it("names the line of what is wrong, and shows no token", function()
        local secret = "correct-horse-battery"
        local name = "a name has up to 64 letters, digits, dots, hyphens and underscores, and "
            .. "begins with a letter or digit"
        local line = "expected `name role sha256:DIGEST`"
        local none = "'a' has no digest; expected sha256: and 64 hexadecimal digits, as `sluice "
            .. "token add NAME` writes them"
        local digest = "sha256:" .. DIGEST
        for text, why in pairs({
            [secret] = line,
            ["a " .. secret] = line,
            ["a read"] = line,
            ["a read " .. digest .. " more"] = line,
            ["a read " .. digest .. "#"] = none,
            ["a read " .. secret] = none,
            ["a read " .. DIGEST] = none,
            ["a read sha256:" .. DIGEST:sub(2)] = none,
            ["a read sha256:" .. DIGEST .. "0"] = none,
            ["a read sha256:" .. ("g"):rep(64)] = none,
            ["a read sha1:" .. DIGEST] = none,
            ["a admin " .. digest] = "the role of 'a' is neither read nor write",
            ["a READ " .. digest] = "the role of 'a' is neither read nor write",
            ["-a read " .. digest] = name,
            ["\195\164 read " .. digest] = name,
            ["a\0b read " .. digest] = name,
            ["a\27[2J read " .. digest] = name,
            [("a"):rep(65) .. " read " .. digest] = name,
            ["anyone read " .. digest] = "'anyone' is the name of another",
            ["admin_token read " .. digest] = "'admin_token' is the name of another",
        }) do
            local list, errors = tokens.parse("x write sha256:" .. OTHER .. "\n" .. text)
            assert.same({ "2: " .. why }, errors, text)
            assert.equal(1, #list)
            assert.is_nil(errors[1]:find(secret, 1, true))
        end
    end)

    it("has each name and each token once", function()
        local text = ("a read sha256:%s\nb read sha256:%s\na read sha256:%s"):format(
            DIGEST,
            DIGEST:upper(),
            OTHER
        )
        local list, errors = tokens.parse(text)
        assert.equal(1, #list)
        assert.same({ "2: 'b' is the same token as 'a'", "3: 'a' is on line 1 already" }, errors)
    end)
end)
