--- The global `ngx` that schemas of plugins find outside of nginx.

package.path = "./compat/?.lua;./compat/?/init.lua;" .. package.path

local kit = require("gateway.kit")

describe("ngx outside of nginx", function()
    kit.install()
    local ngx = rawget(_G, "ngx")

    it("is there with the global kong, and is not taken for nginx's", function()
        assert.equal(require("cjson").null, ngx.null)
        assert.is_nil(ngx.get_phase)
        assert.equal("http", ngx.config.subsystem)
        assert.is_nil(ngx.log(ngx.ERR, "nobody reads this"))
    end)

    it("knows texts and digests", function()
        assert.equal("+/8=", ngx.encode_base64("\251\255"))
        assert.equal("+/8", ngx.encode_base64("\251\255", true))
        assert.equal("\251\255", ngx.decode_base64("+/8="))
        assert.equal("a%20b%2Fc~", ngx.escape_uri("a b/c~"))
        assert.equal("a b/", ngx.unescape_uri("a+b%2f"))
        assert.equal("0cc175b9c0f1b6a831c399e269772661", ngx.md5("a"))
        assert.equal(16, #ngx.md5_bin("a"))
        assert.equal(20, #ngx.sha1_bin("a"))
    end)

    it("lets take what needs nginx, and names it when it is called", function()
        local read_body, get = ngx.req.read_body, ngx.shared.kong.get
        assert.has_error(function()
            read_body()
        end, "ngx.req.read_body: there is none outside of nginx")
        assert.has_error(function()
            get(ngx.shared.kong, "a")
        end, "ngx.shared.kong.get: there is none outside of nginx")
    end)

    it("has what libraries ask while they are loaded, as nginx's master does", function()
        assert.is_true(ngx.config.ngx_lua_version >= 10023)
        assert.is_true(ngx.config.nginx_version >= 1022001)
        assert.is_nil(ngx.config.is_console)
        assert.is_true(require("resty.core").version >= "0.1.25")
        assert.equal(401, ngx.HTTP_UNAUTHORIZED)
        assert.equal(-5, ngx.DECLINED)
        assert.is_nil(ngx.worker.id())
        assert.is_false(ngx.worker.exiting())
        assert.equal(require("posix.unistd").getpid(), ngx.worker.pid())
        assert.has_error(ngx.sleep, "ngx.sleep: there is none outside of nginx")
    end)

    it("has the libraries' modules, to be taken and not called", function()
        for _, row in ipairs({
            { "ngx.re", "split" },
            { "ngx.ssl.session", "get_session_id" },
            { "resty.core.regex", "set_buf_grow_ratio" },
            { "resty.core.base", "ref_in_table" },
            { "sluice.var", "get" },
        }) do
            local module, key = row[1], row[2]
            assert.has_error(
                require(module)[key],
                ("%s.%s: there is none outside of nginx"):format(module, key)
            )
        end
        local base = require("resty.core.base")
        base.allows_subsystem("http")
        assert.same({}, base.new_tab(0, 4))
        assert.is_nil(base.get_request())
        assert.equal(8192, require("ffi").sizeof(base.get_string_buf(8192)))
        assert.is_truthy(require("ffi").typeof("ngx_http_request_t *"))
        local handle = require("sluice.var").handle("host")
        assert.has_error(function()
            handle:get()
        end, "sluice.var.handle('host').get: there is none outside of nginx")
        local pipe = "ngx.pipe: Debian's nginx has none; it needs a patch of OpenResty's"
        assert.has_error(function()
            require("ngx.pipe")
        end, pipe)
        assert.is_false(pcall(require, "ngx.none"))
        assert.is_false(pcall(require, "resty.core.none"))
    end)

    it("matches as nginx does", function()
        local re = ngx.re
        local groups = re.match("id=42;", "(?<key>[a-z]+)=([0-9]+)(x)?", "jo")
        assert.same({ [0] = "id=42", "id", "42", false, key = "id" }, groups)
        assert.same({ [0] = "ac", "a", false, "c" }, re.match("ac", "(a)(b)?(c)"))
        assert.same({}, { re.find("ac", "(a)(b)?(c)", "", nil, 2) })
        assert.is_nil((re.match("none", "[0-9]")))
        assert.same({ 2, 3 }, { re.find("abcd", "BC", "ijo") })
        assert.same({ 3, 3 }, { re.find("abc", "b(c)", nil, nil, 1) })
        assert.same({ "[b][b]c", 2 }, { re.gsub("aac", "a", "[b]") })
        assert.same({ "$-a-ac", 1 }, { re.sub("aac", "(a)", "$$-${1}-") })
        assert.same({ "A-B", 2 }, {
            re.gsub("a-b", "[a-z]", function(found)
                return found[0]:upper()
            end, "o"),
        })
        local found = {}
        for one in re.gmatch("a1b22", "[0-9]+") do
            found[#found + 1] = one[0]
        end
        assert.same({ "1", "22" }, found)
        local ctx = { pos = 2 }
        assert.equal("a", re.match("aab", "a", "", ctx)[0])
        assert.equal(3, ctx.pos)
    end)

    it("says what is wrong with a pattern, and which flags only nginx has", function()
        local re = ngx.re
        local said = 'pcre_compile() failed: missing closing parenthesis in "a("'
        assert.same({ nil, said }, { re.match("a", "a(") })
        assert.same({ nil, nil, said }, { re.find("a", "a(") })
        assert.same({ nil, nil, said }, { re.gsub("a", "a(", "") })
        assert.same({ nil, said }, { re.gmatch("a", "a(") })
        said = 'pcre_compile() failed: unmatched closing parenthesis in "a)b" at ")b"'
        assert.same({ nil, said }, { re.match("a", "a)b") })
        local template = "failed to compile the replacement template"
        assert.same({ nil, nil, template }, { re.sub("a", "a", "$x") })
        local function fails(words, fn, ...)
            local ok, err = pcall(fn, ...)
            assert.is_false(ok)
            assert.is_truthy(err:find("kit_outside_spec.lua:%d+: " .. words), err)
        end
        fails('unknown flag "y" %(flags "jy"%)$', function()
            return (re.match("a", "a", "jy"))
        end)
        fails(
            "ngx.re: the flag d %(DFA%) is there in nginx only; .* i, j, m, o, s, u, U and x$",
            function()
                return (re.gsub("a", "a", "", "d"))
            end
        )
        fails("the regular expression must be a string, got nil", function()
            return (re.find("a"))
        end)
    end)

    it("ends a match that goes back and forth", function()
        local text = ("a"):rep(40) .. "!"
        assert.same({ nil, "pcre_exec() failed: -47" }, { ngx.re.match(text, "(a+)+$") })
    end)

    it("keeps a bounded number of patterns", function()
        for i = 1, 2100 do
            assert.equal(tostring(i), ngx.re.match("-" .. i, "-(" .. i .. ")")[1])
        end
    end)

    it("leaves one that is there", function()
        local other = {}
        rawset(_G, "ngx", other)
        require("gateway.kit.outside").install()
        local found = rawget(_G, "ngx")
        rawset(_G, "ngx", ngx)
        assert.equal(other, found)
    end)
end)
