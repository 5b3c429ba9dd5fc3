--- What is logged of hosts that have no addresses, and when.

local cjson = require("cjson")

local STUBS = {
    "gateway.upstream.unresolved",
    "gateway.upstream.queries",
    "gateway.writer.role",
    "sluice.clock",
}

describe("unresolved hosts", function()
    local before, old_ngx = {}, nil
    local unresolved, logged, asked, now, tick
    -- Host -> its services; what is called while they are read.
    local services, meanwhile

    before_each(function()
        for _, name in ipairs(STUBS) do
            before[name] = package.loaded[name]
            package.loaded[name] = nil
        end
        logged, asked, now = {}, {}, 0
        services, meanwhile = {}, function() end
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
        package.loaded["gateway.writer.role"] = {
            read = function(verb, kind, opts)
                assert.same({ "list", "services" }, { verb, kind })
                meanwhile()
                local rows = {}
                for i, service in ipairs(services[opts.where.host] or {}) do
                    rows[i] = i <= opts.size and { text = cjson.encode(service) } or nil
                end
                return rows, #rows < #(services[opts.where.host] or {}) and "more" or nil
            end,
        }
        unresolved = require("gateway.upstream.unresolved")
        unresolved.start({ subscribe = function() end }, {
            at = function(_, delay, callback)
                if delay == 0 then
                    callback(false)
                else
                    tick = callback
                end
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
        for _ = 1, 2 do
            pass(30)
            asked["a.test"]("no such name")
        end
        assert.equal(LINE:format("a.test"), logged[3])
    end)

    it("are not named by an answer that comes when they have addresses", function()
        unresolved.note("a.test")
        pass(1)
        unresolved.forget("a.test")
        asked["a.test"]("no such name")
        assert.same({}, logged)
    end)

    it("are named with the enabled services that have them, three by name", function()
        local function line_of(count)
            services["a.test"] = { { id = "0", enabled = false, name = "off" } }
            for i = 1, count do
                local list = services["a.test"]
                list[#list + 1] = { id = "id" .. i, name = i ~= 2 and "s" .. i or nil }
            end
            unresolved.forget("a.test")
            unresolved.note("a.test")
            pass(1)
            logged = {}
            asked["a.test"]("no such name")
            -- Its services may come after it.
            assert.equal(count > 0, logged[1] ~= nil)
            pass(1)
            asked["a.test"]("no such name")
            assert.equal(1, #logged)
            assert.equal(LINE:format("a.test"), logged[1]:sub(1, #LINE:format("a.test")))
            return logged[1]:sub(#LINE:format("a.test") + 1)
        end
        assert.equal("", line_of(0))
        assert.equal("; services: s1", line_of(1))
        assert.equal("; services: s1, id2, s3", line_of(3))
        assert.equal("; services: s1, id2, s3 and 7 more", line_of(10))
        assert.equal("; services: s1, id2, s3 and others", line_of(200))
    end)

    it("are not named where they have addresses before their services are known", function()
        unresolved.note("a.test")
        pass(1)
        meanwhile = function()
            unresolved.forget("a.test")
        end
        asked["a.test"]("no such name")
        assert.same({}, logged)
    end)

    it("are named a hundred in a period, the others later", function()
        for i = 1, 150 do
            unresolved.note("h" .. i)
        end
        -- Of services nothing is known: the second answer is logged.
        for _, logged_until_now in ipairs({ 0, 100, 150 }) do
            pass(31)
            for i = 1, 150 do
                asked["h" .. i]("no such name")
            end
            assert.equal(logged_until_now, #logged)
        end
        assert.equal(LINE:format("h150"), logged[150])
    end)
end)
