-- The hash of a body tells what the text would have told that is read of it.

local config = require("gateway.config")
local sent_file = require("gateway.config.sent_file")

local TEXT = '{"_format_version":"3.0","services":[]}'
local FORM = "application/x-www-form-urlencoded"
local PARTS = 'multipart/form-data; boundary="b"'

local path, pauses

local function pause()
    pauses = pauses + 1
end

-- The body in memory and in a file.
local function sent_as(text, media_type, header)
    local file = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    return {
        { text = text, media_type = media_type, header = header },
        { path = path, media_type = media_type, header = header },
    }
end

describe("the hash of a posted file", function()
    before_each(function()
        path, pauses = os.tmpname(), 0
    end)

    after_each(function()
        os.remove(path)
    end)

    it("is that of its text, whatever says what it is", function()
        local large = TEXT .. (" "):rep(600 * 1024)
        for _, text in ipairs({ TEXT, "", "services: []\n", '{"config": 1}', large }) do
            for _, media_type in ipairs({ "application/json", "application/yaml", false }) do
                for _, sent in ipairs(sent_as(text, media_type or nil)) do
                    local expected = config.hash((sent_file.read(sent, pause)))
                    assert.equal(expected, sent_file.hash(sent, pause))
                end
            end
        end
    end)

    it("is read in turns", function()
        local in_memory, in_file = unpack(sent_as(("x"):rep(1024 * 1024), "text/plain"))
        sent_file.hash(in_memory, pause)
        assert.equal(0, pauses)
        sent_file.hash(in_file, pause)
        assert.equal(5, pauses)
        assert.has_error(function()
            sent_file.hash(in_file, function()
                error({ is_stop = true }, 0)
            end)
        end, { is_stop = true })
    end)

    it("is not that of a body in which the text is something else", function()
        local bodies = {
            { '{"config": "_format_version: ' .. "'3.0'" .. '"}', "application/json" },
            { "config=" .. TEXT, FORM, FORM },
            {
                '--b\r\nContent-Disposition: form-data; name="config"\r\n\r\n'
                    .. TEXT
                    .. "\r\n--b--",
                "multipart/form-data",
                PARTS,
            },
            { TEXT, "text/html" },
        }
        for _, body in ipairs(bodies) do
            for _, sent in ipairs(sent_as(unpack(body))) do
                assert.is_nil(sent_file.hash(sent, pause))
            end
        end
    end)
end)
