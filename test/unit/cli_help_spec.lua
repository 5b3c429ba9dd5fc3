-- Help, usage and examples of every command: complete, plain, and understood by the parser itself.

local arguments_of = require("cli.options.arguments")
local help = require("cli.options.help")
local options = require("cli.options")

local parser = arguments_of.parser()

local function each_command(run)
    local count = 0
    for _, command in ipairs(parser._commands) do
        count = count + 1
        run(command._name, help.text(parser, command._name), command)
    end
    assert.is_true(count > 20)
end

local function words_of(line)
    local words = {}
    for word in line:gmatch("%S+") do
        words[#words + 1] = word
    end
    return words
end

-- The words of a command with something in the place of each argument that it needs.
local function complete(command)
    local words = { command._name }
    local values = { shell = "bash", revision = "1", action = "list" }
    for _, argument in ipairs(command._arguments) do
        if argument._minargs > 0 then
            words[#words + 1] = values[argument._name] or "x"
        end
    end
    return words
end

describe("the help of a command", function()
    it("has usage, what it does, and flags in groups, without Markdown", function()
        each_command(function(name, text, command)
            assert.equal(1, (text:find("Usage: sluice " .. name .. " ", 1, true)))
            assert.is_truthy(text:match("\n\n%u[^\n]+[^\n]*"), name)
            assert.is_nil(text:find("[`\27]"), name)
            assert.is_nil(text:find("](", 1, true), name)
            local has_settings = #command._options > 1
            assert.equal(has_settings, text:find("\nFlags:\n", 1, true) ~= nil, name)
            assert.is_nil(text:find("Other options", 1, true), name)
            for line in text:gmatch("[^\n]+") do
                assert.is_true(#line <= 100, line)
            end
        end)
    end)

    it("has an example that the parser reads as this command", function()
        each_command(function(name, text)
            local example = text:match("\nExample:\n   ([^\n]+)\n$")
            assert.is_truthy(example, name)
            local words = words_of(example:match("sluice ([^)]+)"))
            local found, lines = arguments_of.read(words)
            assert.is_truthy(found, lines and lines[1])
            assert.equal(name, found.command)
        end)
    end)

    it("describes every flag, with the values of an enum and its limits", function()
        each_command(function(name, text, command)
            for _, flag in ipairs(command._options) do
                assert.is_truthy(flag._description, name .. flag._name)
                assert.is_truthy(text:find(flag._name, 1, true), name .. flag._name)
            end
        end)
        local text = help.text(parser, "start"):gsub("%s+", " ")
        for _, option in ipairs(options.list) do
            if option.type == "enum" then
                local flag = options.flag(option) .. " <" .. table.concat(option.values, "|") .. ">"
                assert.is_truthy(text:find(flag, 1, true), flag)
            elseif option.type ~= "secret" and option.min and option.max then
                local limits = ("From %d to %d."):format(option.min, option.max)
                assert.is_truthy(text:find(limits, 1, true), option.name)
            end
        end
        assert.is_truthy(text:find("See docs/tls.md.", 1, true))
    end)

    it("is in the list of all commands, in a group", function()
        local text = help.text(parser)
        each_command(function(name)
            assert.is_truthy(text:find("\n   " .. name .. "  ", 1, true), name)
        end)
        assert.is_nil(text:find("Other commands", 1, true))
    end)

    it("is not there for what is no command", function()
        local text, err = help.text(parser, "relaod")
        assert.is_nil(text)
        assert.equal("unknown command 'relaod'; did you mean 'reload'?", err)
        assert.equal(
            "unknown command 'quux'; `sluice help` lists them",
            select(2, help.text(parser, "quux"))
        )
    end)

    it("names the command that does what one of Kong's does", function()
        for name, here in pairs({
            config = "`sluice check FILE`",
            health = "`sluice status`",
            migrations = "`sluice start`",
            prepare = "`sluice start`",
        }) do
            local _, said = help.text(parser, name)
            assert.is_truthy(said:find(here, 1, true), said)
            local lines = help.refusal(parser, ("unknown command '%s'"):format(name))
            assert.equal(said, lines[1])
        end
    end)
end)

describe("a command line", function()
    it("asks for help and version anywhere", function()
        for _, case in ipairs({
            { "-h", "help" },
            { "--help", "help" },
            { "help", "help" },
            { "help reload", "help", "reload" },
            { "reload -h", "help", "reload" },
            { "get --bogus --help", "help", "get" },
            { "--help reload", "help", "reload" },
            { "reload --version", "version" },
            { "-v", "version" },
            { "--version", "version" },
            { "version", "version" },
            { "version -h -v", "help", "version" },
        }) do
            local found, lines = arguments_of.read(words_of(case[1]))
            assert.is_truthy(found, lines and lines[1])
            assert.equal(case[2], found.command, case[1])
            assert.equal(case[3], found.topic, case[1])
        end
        assert.equal("-h", arguments_of.read({ "get", "--", "-h" }).kind)
    end)

    it("is read for every command, and refused with its usage for a flag that is none", function()
        each_command(function(name, _, command)
            local words = complete(command)
            assert.equal(name, assert(arguments_of.read(words)).command)
            words[#words + 1] = "--prefxi"
            local found, lines = arguments_of.read(words)
            assert.is_nil(found)
            local has_prefix = (command:get_help()):find("--prefix", 1, true)
            local hint = has_prefix and "; did you mean '--prefix'?" or ""
            assert.same({
                "unknown option '--prefxi'" .. hint,
                "  " .. command:get_usage():gsub("^U", "u"),
                "  more:  sluice help " .. name,
            }, lines)
        end)
    end)

    it("is refused without an argument that the command needs", function()
        local count = 0
        each_command(function(name, _, command)
            local words = complete(command)
            if #words > 1 then
                count = count + 1
                local found, lines = arguments_of.read({ name })
                assert.is_nil(found)
                assert.is_truthy(lines[1]:find("^missing argument '"), lines[1])
                assert.is_truthy(lines[2]:find("usage: sluice " .. name, 1, true))
            end
        end)
        assert.is_true(count >= 8)
    end)

    it("names no file with --no-file, as with an empty --file", function()
        for _, name in ipairs({ "start", "restart", "reload", "upgrade" }) do
            assert.equal("", arguments_of.read({ name, "--no-file" }).file)
            assert.equal("", arguments_of.read({ name, "--file", "" }).file)
            local found, lines = arguments_of.read({ name, "--file", "x", "--no-file" })
            assert.is_nil(found)
            assert.is_truthy(lines[1]:find("can not be used together", 1, true))
        end
    end)
end)
