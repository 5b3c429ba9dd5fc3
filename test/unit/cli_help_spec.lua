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
                local shown = text:find("\n   " .. flag._name, 1, true) ~= nil
                assert.equal(not flag._hidden, shown, name .. flag._name)
            end
        end)
        local text = help.text(parser, "settings"):gsub("%s+", " ")
        for _, option in ipairs(options.list) do
            local named = text:find(" " .. options.flag(option) .. " <", 1, true) ~= nil
            assert.equal(not options.is_secret(option), named, option.name)
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

    it("fits a screen, and leads to the settings that it leaves out", function()
        local all = {}
        each_command(function(name, text, command)
            assert.is_true(select(2, text:gsub("\n", "")) <= 60, name)
            local flags, hides = {}, false
            for _, flag in ipairs(command._options) do
                flags[flag._target or ""] = flag._hidden or "shown"
                hides = hides or flag._hidden
            end
            local leads = text:find(
                "\n\nEach setting without secrets is a flag, too, such as --workers",
                1,
                true
            )
            assert.equal(hides == true, leads ~= nil, name)
            if hides then
                all[#all + 1] = name
                for _, shown in ipairs({ "prefix", "conf", "file", "proxy_listen" }) do
                    assert.equal("shown", flags[shown], name .. " " .. shown)
                end
                local words = complete(command)
                words[#words + 1] = "--log-level=info"
                assert.equal("info", arguments_of.read(words).log_level)
            end
        end)
        local settings = help.text(parser, "settings")
        for _, title in pairs(options.titles) do
            assert.is_truthy(settings:find("\n" .. title .. ":\n   --", 1, true), title)
        end
        table.sort(all)
        local named = {}
        for name in settings:match("^Flags of sluice ([^\n]+), a setting"):gmatch("%a+") do
            named[#named + 1] = name ~= "and" and name or nil
        end
        table.sort(named)
        assert.same(all, named)
    end)

    it("is in the list of all commands, in a group", function()
        local text = help.text(parser)
        each_command(function(name)
            assert.is_truthy(text:find("\n   " .. name .. "  ", 1, true), name)
        end)
        assert.is_nil(text:find("Other commands", 1, true))
        assert.is_truthy(text:find("`sluice kong --help`", 1, true))
    end)

    it("is not there for what is no command", function()
        local text, err = help.text(parser, "relaod")
        assert.is_nil(text)
        assert.equal("there is no command or setting 'relaod'; did you mean 'reload'?", err)
        for name, near in pairs({
            setings = "settings",
            lgo_level = "log_level",
            ["--log-levl"] = "log_level",
            ["nginx-cnf"] = "nginx-conf",
        }) do
            err = select(2, help.text(parser, name))
            assert.equal(("; did you mean '%s'?"):format(near), err:match("; .*"))
        end
        assert.equal(
            "there is no command or setting 'quux'; `sluice help` lists commands, "
                .. "`sluice help settings` settings",
            select(2, help.text(parser, "quux"))
        )
    end)

    it("is there for each setting, in the words of the help of all", function()
        local function words(text)
            return (text:gsub("%s+", " "))
        end
        local all = words(help.text(parser, "settings"))
        for _, option in ipairs(options.list) do
            local text = help.text(parser, options.flag(option))
            assert.is_truthy(text:find(options.variable(option), 1, true), option.name)
            local shown = words(text):match("Settings: (.*)$")
            assert.equal(options.is_secret(option), shown == nil, option.name)
            if shown then
                assert.is_truthy(all:find(shown, 1, true), option.name)
            else
                local may_be_text = option.type == "pem_list"
                    and " and it may contain the text of a key"
                local said = option.name
                    .. " has no flag, since everybody can see flags"
                    .. (may_be_text or "")
                    .. "; use "
                assert.is_truthy(words(text):find(said, 1, true), option.name)
            end
        end
        local text = help.text(parser, "--log-level")
        assert.equal(text, help.text(parser, "log-level"))
        assert.equal(text, help.text(parser, "log_level"))
        -- A command has the name of a setting.
        assert.is_truthy(help.text(parser, "plugins"):find("^Usage: sluice plugins"))
        assert.is_truthy(help.text(parser, "--plugins"):find("^The setting plugins"))
    end)

    it("names the command that does what another program's does", function()
        for name, here in pairs({
            list = "`sluice get`",
            ls = "`sluice get`",
            describe = "`sluice get KIND NAME`",
            show = "`sluice get KIND NAME`",
            validate = "`sluice check FILE`",
            test = "`sluice check FILE`",
            lint = "`sluice check FILE`",
            create = "`sluice apply FILE`",
            add = "`sluice apply FILE`",
            update = "`sluice apply FILE`",
            sync = "`sluice import FILE`",
            dump = "`sluice export FILE`",
            logs = "`sluice status`",
            config = "`sluice check FILE`",
            health = "`sluice status`",
            migrations = "`sluice start`",
            prepare = "`sluice start`",
            options = "`sluice help settings`",
            flags = "`sluice help settings`",
            commands = "`sluice help`",
            configtest = "`sluice check FILE`",
            deck = "`sluice diff FILE` gateway diff",
            env = "`sluice help settings`",
            gateway = "`sluice import FILE` is decK's gateway sync",
            konnect = "`sluice export FILE` gateway dump",
            log = "`sluice status`",
            metrics = "GET /metrics of the Admin API",
            routes = "`sluice get routes`",
            service = "`sluice get services`",
            down = "`sluice stop`",
            edit = "`sluice apply FILE`",
            kill = "`sluice quit`",
            ping = "`sluice status`",
            ps = "`sluice status`",
            remove = "`sluice delete KIND NAME`",
            reset = "`sluice import FILE`",
            rm = "`sluice delete KIND NAME`",
            run = "`sluice start`",
            serve = "`sluice start`",
            set = "`sluice apply FILE`",
            stat = "`sluice status`",
            certs = "`sluice get certificates`",
            drain = "`sluice quit`",
            healthz = "`sluice status`",
            man = "`sluice help`",
            shutdown = "`sluice stop`",
            tail = "names error.log",
            undo = "`sluice help rollback`",
            top = "`sluice timers`",
            up = "with --foreground",
        }) do
            local _, said = help.text(parser, name)
            assert.is_truthy(said:find(here, 1, true), said)
            assert.equal(said, select(2, arguments_of.read({ name, "x" }))[1])
            for typed in said:gmatch("`sluice ([^`]+)`") do
                assert.is_truthy(arguments_of.read(words_of(typed)), typed)
            end
        end
    end)

    it("is named where its topic is typed as a command", function()
        local said = select(2, arguments_of.read({ "settings" }))[1]
        assert.equal(
            "unknown command 'settings'; `sluice help settings` lists what can be set",
            said
        )
        said = select(2, arguments_of.read({ "file", "lint", "x" }))[1]
        assert.is_truthy(said:find("; `sluice check FILE` checks a file", 1, true), said)
        assert.is_truthy(help.text(parser, "help"):find("^Usage: sluice help"))
    end)
end)

describe("a command line", function()
    it("asks for help and version anywhere", function()
        for _, case in ipairs({
            { "-h", "help" },
            { "--help", "help" },
            { "help", "help" },
            { "help reload", "help", "reload" },
            { "help settings", "help", "settings" },
            { "help --workers", "help", "--workers" },
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
            -- Alone behind `help`, a flag is what to have the help of.
            words[#words + 1] = name == "help" and "start" or nil
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

    it("is told what a flag of nginx's is here, in words that can be typed", function()
        local count = 0
        for line, said in pairs({
            ["-c nginx.conf"] = "-c is a flag of nginx; here, --conf names the settings file",
            ["start -e x"] = "-e is a flag of nginx; here, --error-log names the error log",
            ["start -g x"] = "-g is a flag of nginx; here, `sluice help settings` ",
            ["start -p /x"] = "-p is a flag of nginx; here, --prefix names the directory ",
            ["-s reload"] = "-s is a flag of nginx; here, its signals are `sluice stop`, ",
            ["-t"] = "-t is a flag of nginx; here, `sluice check` checks the settings ",
            ["-T"] = "-T is a flag of nginx; here, the configuration of nginx is nginx.conf ",
            ["-V"] = "-V is a flag of nginx; here, `sluice version` shows the version, ",
        }) do
            local found, lines = arguments_of.read(words_of(line))
            assert.is_nil(found)
            assert.equal(said, lines[1]:sub(1, #said))
            for typed in lines[1]:gmatch("`sluice ([^`]+)`") do
                assert.is_truthy(arguments_of.read(words_of(typed)), typed)
            end
            for flag in lines[1]:gmatch("%-%-[%l-]+") do
                assert.is_truthy(arguments_of.read({ "start", flag, "x" }), flag)
                count = count + 1
            end
        end
        assert.equal(3, count)
        local line = "start -c /etc/kong/kong.conf"
        local said = select(2, arguments_of.read(words_of(line)))[1]
        assert.equal(
            "-c is a flag of nginx; here, --conf names the settings file; "
                .. "`sluice kong start -c /etc/kong/kong.conf` reads Kong's",
            said
        )
        said = select(2, arguments_of.read({ "start", "-c", "mykong.conf" }))[1]
        assert.is_nil(said:find("kong start", 1, true))
    end)

    it("is told what a habit's flag of one letter is here, and nothing of other letters", function()
        for line, said in pairs({
            ["apply -f x"] = "-f is not needed; use `sluice apply FILE`",
            ["check x -f"] = "-f is not needed; use `sluice check FILE`",
            ["delete -f x"] = "delete reads no file; use `sluice delete KIND NAME...`",
            ["reload -f x"] = "unknown option '-f'; use --file",
            ["history -n 3"] = "unknown option '-n'; use --size",
            ["timers -n 3"] = "unknown option '-n'; use --top",
            ["get -o json"] = "unknown option '-o'; use --json",
            ["stop -o json"] = "unknown option '-o'",
            ["get -n 3"] = "unknown option '-n'",
            ["history -f"] = "unknown option '-f'",
            ["-x"] = "unknown option '-x'",
        }) do
            assert.equal(said, select(2, arguments_of.read(words_of(line)))[1], line)
        end
    end)

    it("is told what a habit's long flag is here", function()
        for line, said in pairs({
            ["start --config x"] = "--file names the declarative file, --conf the settings file",
            ["reload --config=x"] = "--file names the declarative file, --conf the settings file",
            ["stop --config x"] = "--conf names the settings file",
            ["start --proxy-port 20000"] = "use --proxy-listen 0.0.0.0:20000",
            ["restart --proxy-port=80"] = "use --proxy-listen 0.0.0.0:80",
            ["start --port 9000"] = "use --proxy-listen 0.0.0.0:9000",
            ["start --admin-port 8001"] = "use --admin-listen 127.0.0.1:8001",
            ["start --port 65536"] = "use --proxy-listen 0.0.0.0:PORT",
            ["start --port \27[1m"] = "use --proxy-listen 0.0.0.0:PORT",
            ["reload --worker-processes 2"] = "use --workers",
            ["start --port"] = "use --proxy-listen 0.0.0.0:PORT",
        }) do
            local flag = line:match("%-%-[%l-]+")
            local lines = select(2, arguments_of.read(words_of(line)))
            assert.equal(("unknown option '%s'; %s"):format(flag, said), lines[1], line)
        end
        local lines = select(2, arguments_of.read({ "stop", "--port", "1" }))
        assert.equal("unknown option '--port'", lines[1])
    end)

    it("is shown with its flags behind the command", function()
        for line, said in pairs({
            ["--prefix o status"] = "`sluice status --prefix o`",
            ["--prefix=o status --json"] = "`sluice status --prefix=o --json`",
            ["--log-level info start"] = "`sluice start --log-level info`",
            ["--json get routes"] = "`sluice get --json routes`",
        }) do
            local found = select(2, arguments_of.read(words_of(line)))[1]
            assert.equal("put flags after the command: " .. said, found)
            assert.is_truthy(arguments_of.read(words_of(said:match("^`sluice (.*)`$"))))
        end
        -- What would be refused there is not shown.
        for _, line in ipairs({ "--workers 2 status", "--prefix o", "--bogus start" }) do
            local found = select(2, arguments_of.read(words_of(line)))[1]
            assert.equal("unknown option", found:sub(1, 14))
        end
    end)

    it("names the flag for a file where it is no argument", function()
        for _, name in ipairs({ "start", "restart", "reload", "upgrade" }) do
            local line = name .. " --log-level info --conf=a.conf ./o.yaml"
            assert.equal(
                name .. " takes no file as an argument; use --file ./o.yaml",
                select(2, arguments_of.read(words_of(line)))[1]
            )
        end
        for _, line in ipairs({ "start --prefix ./a b", "stop o.yaml", "apply a.yaml b.yaml" }) do
            assert.equal("too many arguments", select(2, arguments_of.read(words_of(line)))[1])
        end
    end)

    it("is refused without an argument that the command needs", function()
        local count = 0
        each_command(function(name, _, command)
            local words = complete(command)
            if #words > 1 then
                count = count + 1
                local found, lines = arguments_of.read({ name })
                assert.is_nil(found)
                assert.is_truthy(lines[1]:find("^missing argument '[%l]+': %l"), lines[1])
                assert.is_truthy(lines[2]:find("usage: sluice " .. name, 1, true))
            end
        end)
        assert.is_true(count >= 8)
        for _, name in ipairs({ "import", "diff" }) do
            local lines = select(2, arguments_of.read({ name }))
            assert.equal("missing argument 'path': the file; - for standard input", lines[1])
        end
        assert.equal(
            "missing argument 'revision': a revision number from sluice history; 0 is the state "
                .. "before the first",
            select(2, arguments_of.read({ "rollback" }))[1]
        )
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
