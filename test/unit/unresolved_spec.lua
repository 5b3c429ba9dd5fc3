--- What is logged of hosts that have no addresses, and when.

local STUBS = { "gateway.upstream.unresolved", "gateway.upstream.queries", "sluice.clock" }

describe("unresolved hosts", function()
    local before, old_ngx = {}, nil
    local unresolved, logged, asked, now, tick

    before_each(function()
        for _, name in ipairs(STUBS) do
            before[name] = package.loaded[name]
            package.loaded[name] = nil
        end
        logged, asked, now = {}, {}, 0
        old_ngx = _G.ngx
        _G.ngx = {
            WARN = "warn",
            NOTICE = "notice",
            log = function(level, ...)
                logged[#logged + 1] = level .. " " .. table.concat({ ... })
            end,
            worker = {
                exiting = function()
                    return false
                end,
            },
        }
        package.loaded["sluice.clock"] = {
            monotonic = function()
                return now
            end,
        }
        package.loaded["gateway.upstream.queries"] = {
            ask_one = function(_, host, callback)
                asked[host] = callback
            end,
        }
        unresolved = require("gateway.upstream.unresolved")
        unresolved.start({ subscribe = function() end }, {
            at = function(_, _, callback)
                tick = callback
                return 1
            end,
            cancel = function() end,
        }, function() end)
    end)

    after_each(function()
        _G.ngx = old_ngx
        for _, name in ipairs(STUBS) do
            package.loaded[name] = before[name]
        end
    end)

    local function pass(seconds)
        now = now + seconds
        tick(false)
    end

    local LINE = "warn names: %s: cannot be resolved: no such name; "
        .. "requests for it are answered 503"

    it("are named once, and when they have addresses", function()
        unresolved.note("a.test")
        for _ = 1, 3 do
            pass(30)
            asked["a.test"]("no such name")
        end
        unresolved.forget("a.test")
        unresolved.forget("b.test")
        assert.same({ LINE:format("a.test"), "notice names: a.test: has addresses now" }, logged)
        unresolved.note("a.test")
        pass(30)
        asked["a.test"]("no such name")
        assert.equal(LINE:format("a.test"), logged[3])
    end)

    it("are not named by an answer that comes when they have addresses", function()
        unresolved.note("a.test")
        pass(1)
        unresolved.forget("a.test")
        asked["a.test"]("no such name")
        assert.same({}, logged)
    end)

    it("are named a hundred in a period, the others later", function()
        for i = 1, 150 do
            unresolved.note("h" .. i)
        end
        pass(1)
        for i = 1, 150 do
            asked["h" .. i]("no such name")
        end
        assert.equal(100, #logged)
        pass(31)
        for i = 1, 150 do
            asked["h" .. i]("no such name")
        end
        assert.equal(150, #logged)
        assert.equal(LINE:format("h150"), logged[150])
    end)
end)
