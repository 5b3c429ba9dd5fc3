-- Listen addresses as the kernel has them, and who has what is in the way of one.

local listening = require("cli.instance.listening")
local process = require("cli.instance.process")
local socket = require("posix.sys.socket")
local sockets = require("cli.options.sockets")
local unistd = require("posix.unistd")

local PID = unistd.getpid()
-- From which no outgoing connection starts; nobody else may have the one that is taken.
local FIRST_PORT = 9000

local function one(text)
    local found = sockets.of(text)
    assert.equal(1, #found)
    return found[1]
end

describe("the sockets of a listen address", function()
    it("are equal where the kernel takes them for one", function()
        for _, row in ipairs({
            { "*:80", "0.0.0.0:80 reuseport" },
            { "127.0.0.1:80", "127.0.0.1:80 ssl" },
            { "[::1]:80", "[0:0:0:0:0:0:0:0001]:80" },
            { "[::]:80", "[0::0]:80" },
            { "[::ffff:10.0.0.1]:80", "[::FFFF:A00:1]:80" },
        }) do
            assert.equal(one(row[1]).key, one(row[2]).key)
        end
        for _, row in ipairs({
            { "127.0.0.1:80", "127.0.0.1:81" },
            { "127.0.0.1:80", "0.0.0.0:80" },
            { "[::]:80", "0.0.0.0:80" },
            { "10.0.0.1:80", "[::ffff:10.0.0.1]:80" },
        }) do
            assert.not_equal(one(row[1]).key, one(row[2]).key)
        end
    end)

    it("are one for each address of a name", function()
        local found, seen = sockets.of("localhost:80 backlog=5"), {}
        assert.is_true(#found >= 1)
        for _, each in ipairs(found) do
            assert.is_nil(seen[each.key])
            seen[each.key] = true
            assert.equal(one(each.text).key, each.key)
            assert.equal("localhost:80", each.given)
        end
    end)

    it("are none where another version wrote what is no address", function()
        assert.same({}, sockets.of("unix:/run/a.sock"))
    end)

    it("overlap where the kernel opens one alone", function()
        for _, row in ipairs({
            { "127.0.0.1:80", "127.0.0.1:80", true },
            { "127.0.0.1:80", "127.0.0.2:80", false },
            { "127.0.0.1:80", "*:80", true },
            { "127.0.0.1:80", "*:81", false },
            { "[::1]:80", "[::]:80", true },
            { "[::1]:80", "*:80", false },
            { "127.0.0.1:80", "[::]:80", false },
            { "127.0.0.1:80", "[::]:80 ipv6only=off", true },
            { "127.0.0.1:80", "[::1]:80 ipv6only=off", false },
            { "127.0.0.1:80", "[::ffff:127.0.0.1]:80", true },
        }) do
            local a, b = one(row[1]), one(row[2])
            assert.equal(row[3], sockets.overlap(a, b))
            assert.equal(row[3], sockets.overlap(b, a))
        end
    end)

    it("are opened as nginx opens them", function()
        local function opened(...)
            local texts = {}
            for i, each in ipairs(sockets.opened({ a = { ... }, b = { "*:81" } }, { "a", "b" })) do
                texts[i] = each.text
            end
            return texts
        end
        assert.same({ "127.0.0.1:80", "0.0.0.0:81" }, opened("127.0.0.1:80", "127.0.0.1:81"))
        assert.same(
            { "[::1]:81", "127.0.0.1:81", "0.0.0.0:81" },
            opened("[::1]:81", "127.0.0.1:81 bind", "127.0.0.2:81")
        )
    end)
end)

describe("an address that somebody has", function()
    local fd, port

    before_each(function()
        fd = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        local place = { family = socket.AF_INET, addr = "127.0.0.1", port = FIRST_PORT }
        while socket.bind(fd, place) ~= 0 do
            place.port = place.port + 1
        end
        port = place.port
    end)

    after_each(function()
        unistd.close(fd)
    end)

    local function said(new, old, is_left)
        local errors = {}
        listening.check(
            { proxy_listen = { new:format(port) } },
            old and { proxy_listen = { old:format(port) } },
            errors,
            is_left
        )
        assert.is_true(#errors <= 1)
        return errors[1]
    end

    -- Where the kernel does not tell whose sockets are.
    local function said_unnamed()
        local real = process.open_files
        process.open_files = function()
            return function() end
        end
        local line = said("127.0.0.1:%d")
        process.open_files = real
        return line
    end

    local function name()
        return (process.read_file("/proc/self/comm"):gsub("\n", ""))
    end

    it("is another program's, with its name and pid", function()
        assert.equal(0, socket.listen(fd, 1))
        local line = "proxy_listen: %s:%d is in use by another program (%s, pid %d); stop it, or "
            .. "set --proxy-listen to another port"
        for _, host in ipairs({ "127.0.0.1", "0.0.0.0", "*" }) do
            assert.equal(line:format(host, port, name(), PID), said(host .. ":%d"))
        end
        -- Also where the instance has another one on that port.
        assert.equal(line:format("*", port, name(), PID), said("*:%d", "127.0.0.2:%d", true))
    end)

    it("is a connection's of another program", function()
        local other = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        local place = { family = socket.AF_INET, addr = "127.0.0.1", port = port }
        repeat
            place.port = place.port + 1
        until socket.bind(other, place) == 0
        assert.equal(0, socket.listen(other, 1))
        assert.equal(0, socket.connect(fd, place))
        local line, unnamed = said("127.0.0.1:%d"), said_unnamed()
        unistd.close(other)
        assert.truthy(line:find(("(%s, pid %d)"):format(name(), PID), 1, true))
        assert.truthy(unnamed:find("another program (see `ss -tanp`)", 1, true), unnamed)
    end)

    it("is without a name where the kernel does not tell it", function()
        assert.equal(0, socket.listen(fd, 1))
        local line = said_unnamed()
        local expected = "proxy_listen: 127.0.0.1:%d is in use by another program "
            .. "(see `ss -ltnp`); stop it, or set --proxy-listen to another port"
        assert.equal(expected:format(port), line)
    end)

    it("shows no control characters of the name", function()
        assert.equal(0, socket.listen(fd, 1))
        local real = process.read_file
        process.read_file = function(path)
            return path:find("/comm$") and "a\27[2J\nb\n" or real(path)
        end
        local line = said("127.0.0.1:%d")
        process.read_file = real
        assert.truthy(line:find("(a?[2J?b, pid ", 1, true))
    end)

    it("is the instance's own", function()
        assert.equal(0, socket.listen(fd, 1))
        for _, new in ipairs({ "127.0.0.1:%d", "127.0.0.1:%d backlog=5" }) do
            assert.is_nil(said(new, "127.0.0.1:%d"))
        end
        local expected = "proxy_listen: *:%d overlaps 127.0.0.1:%d, which this gateway has open: "
            .. "only `sluice restart` can change to it"
        assert.equal(expected:format(port, port), said("*:%d", "127.0.0.1:%d"))
        assert.is_nil(said("*:%d", "127.0.0.1:%d", true))
    end)

    it("is handed on only as it was opened", function()
        assert.is_nil(said("[::]:%d ipv6only=off", "[::]:%d ipv6only=off"))
        -- Nothing of the instance is there, and the other one is in the way of IPv4.
        assert.equal(0, socket.listen(fd, 1))
        assert.truthy(said("[::]:%d ipv6only=off", "[::]:%d"))
    end)
end)
