-- What errors of a file say beside what is wrong: what to write instead, and how many there are.

local config = require("gateway.config")
local support = require("test.unit.support.config")

describe("what to write instead", function()
    local function said(body)
        local source = '_format_version: "3.0"\n' .. body
        local _, errors = config.parse(source, "yaml", support.registry)
        return config.format_errors(errors)
    end

    it("is told of values of another type", function()
        for body, line in pairs({
            ["routes: [{paths: /a}]"] = "paths: expected an array; write a list: [...]",
            ["routes: [{methods: get}]"] = "methods: expected a set; write a list: [...]",
            ["routes: [{paths: [/a], strip_path: 'no'}]"] = "strip_path: expected a boolean; "
                .. "write it without quotes",
            ["services: [{host: a, port: '80'}]"] = "port: expected an integer; write it without "
                .. "quotes",
            ["services: {name: a, host: b}"] = "services: expected an array; begin each entry "
                .. "with '- '",
            ["services: [{host: a, routes: {name: b}}]"] = "services[0].routes: expected an array; "
                .. "begin each entry with '- '",
            ["routes: [{headers: {X-A: b}}]"] = "headers.X-A: expected an array; write a "
                .. "list: [...]",
            ["services: [{url: host/x}]"] = "url: missing scheme in url; begin it with http:// or "
                .. "https://",
            ["services: [{url: 'host:80'}]"] = "url: missing scheme in url; begin it with http:// "
                .. "or https://",
            ["upstreams: [{name: u, healthchecks: {active: {healthy: {interval: 1}}}}]"] = "'1' is "
                .. "not supported by this version (supported: 0); set it to 0 or leave it out: "
                .. "there are no such health checks",
            ["routes: [{paths: -/a -/b}]"] = "paths: expected an array; write a space after "
                .. "each '-'",
            ["services:\n  -name: a\n  -host: b\n"] = "line 3: services: expected an array; write "
                .. "'- name', with a space after the dash",
        }) do
            assert.matches(line, said(body), 1, true)
        end
        -- Not where it would not help.
        for body, line in pairs({
            ["routes: [{paths: {a: b}}]"] = "paths: expected an array",
            ["routes: [{paths: [/a], strip_path: maybe}]"] = "strip_path: expected a boolean",
            ["services: [{host: a, port: many}]"] = "port: expected an integer",
        }) do
            assert.equal(line, said(body):match("[%l_]+: expected.*$"))
        end
        assert.matches("missing scheme in url$", said("services: [{url: /x}]"))
    end)

    it("is told of a time with its unit, where the field has one", function()
        local plugin = "plugins: [{name: http-log, config: {http_endpoint: 'http://a/', %s}}]"
        for body, line in pairs({
            ["services: [{host: a, connect_timeout: 5s}]"] = "milliseconds: write 5000",
            ["services: [{host: a, read_timeout: '1m'}]"] = "milliseconds: write 60000",
            ["services: [{host: a, write_timeout: 1.5 s}]"] = "milliseconds: write 1500",
            ["services: [{host: a, write_timeout: 1.001s}]"] = "milliseconds: write 1001",
            ["services: [{host: a, write_timeout: 2 Minutes}]"] = "milliseconds: write 120000",
            [plugin:format("timeout: 250ms")] = "milliseconds: write 250",
            [plugin:format("queue: {max_retry_time: 1h}")] = "seconds: write 3600",
            [plugin:format("queue: {max_retry_delay: 500ms}")] = "seconds: write 0.5",
            [plugin:format("queue: {max_bytes: 10k}")] = "bytes: write 10240",
            [plugin:format("queue: {max_bytes: 1.5 MB}")] = "bytes: write 1572864",
        }) do
            assert.matches("; it is in " .. line .. "$", said(body))
        end
        for _, body in ipairs({
            "consumers: [{username: a, keyauth_credentials: [{key: k, ttl: 500ms}]}]",
            "plugins: [{name: rate-limiting, config: {minute: 5s}}]",
            "services: [{host: a, retries: 5s}]",
            "services: [{host: a, connect_timeout: 5x}]",
            "services: [{host: a, connect_timeout: 5k}]",
            plugin:format("queue: {max_bytes: 5s}"),
            -- Beyond the field, and what a search for the unit would go through for minutes.
            "services: [{host: a, connect_timeout: 99999999s}]",
            ("services: [{host: a, connect_timeout: '%s!'}]"):format(("1"):rep(1000000)),
        }) do
            assert.matches("expected an? %a+$", said(body))
        end
    end)

    it("is told of names in the place of entities, and how to write one", function()
        for body, hint in pairs({
            ["plugins: [key-auth]"] = "; write `- name: key-auth`",
            ["services: [{host: a, plugins: [key-auth]}]"] = "; write `- name: key-auth`",
            ["plugins: [s3cret]"] = "; write `- name: ...`",
            ["services: [a]"] = "; write `- name: ...`",
            ["consumers: [{username: a, keyauth_credentials: [b]}]"] = "; write `- key: ...`",
            ["consumers: [{username: a, acls: [b]}]"] = "; write `- group: ...`",
            ["consumers: [a]"] = "; write `- username: ...`",
            ["upstreams: [{name: u, targets: ['1.2.3.4:80']}]"] = "; write `- target: 1.2.3.4:80`",
            ["upstreams: [{name: u, targets: [a]}]"] = "; write `- target: ...`",
            ["upstreams: [{name: u, targets: ['[::1]:80']}]"] = "",
            ["upstreams: [{name: u, targets: ['target:80']}]"] = " (is a space missing after "
                .. "'target:'?)",
            ["routes: [/x]"] = "; write `- paths: [/x]`",
            ["services: [{host: a, routes: ['/x/y-1']}]"] = "; write `- paths: [/x/y-1]`",
            ["routes: ['/a b']"] = "",
            [("routes: ['/%s']"):format(("a"):rep(60))] = "",
            ["upstreams: [a]"] = "",
            ["services: [a b]"] = "",
        }) do
            local message = "expected a record, found a string" .. hint
            assert.equal(message, said(body):sub(-#message))
        end
        local _, errors = config.parse(
            '{"_format_version": "3.0", "plugins": ["key-auth"], "services": {"name": "a"}, '
                .. '"routes": ["/x"]}',
            "json",
            support.registry
        )
        assert.equal(
            "services: expected an array; write a list: [...]\nroutes[0]: expected a record, "
                .. 'found a string; write {"paths": ["/x"]}\nplugins[0]: expected a record, '
                .. 'found a string; write {"name": "key-auth"}',
            config.format_errors(errors)
        )
    end)

    it("is told of a host with a scheme, a port or a path", function()
        for host, hint in pairs({
            ["http://x"] = "; expected a host alone; write url: http://x",
            ["https://x.y:8080/p"] = "; expected a host alone; write url: https://x.y:8080/p",
            ["x/p"] = "; expected a host alone; write url: http://x/p",
            ["x:80/"] = "; expected a host alone; write url: http://x:80/",
            ["x:8080"] = "must not have a port; write host: x and port: 8080",
            ["a b"] = "invalid value: a b",
            ["http://a b"] = "invalid value: http://a b",
            ["http://u:p@x"] = "invalid value: http://u:p@x",
        }) do
            assert.equal(hint, said(("services: [{host: '%s'}]"):format(host)):sub(-#hint))
        end
        local long = "http://" .. ("x"):rep(100)
        assert.matches("x$", said(("services: [{host: '%s'}]"):format(long)))
        assert.is_nil(said(("services: [{host: '%s'}]"):format(long)):find("write url"))
    end)

    it("is told of a plugin's fields that stand beside its name", function()
        local body = "plugins:\n- name: cors\n  max_age: 5\n  maxage: 5\n"
        assert.equal(
            'line 4: plugins[0] "cors".max_age: unknown field; it belongs under config\n'
                .. 'line 5: plugins[0] "cors".maxage: unknown field; did you mean config.max_age?',
            said(body)
        )
    end)

    it("is told of fields that begin alike, and of what entities are known by", function()
        local unknown = 'line 2: consumers[0] "a".%s: unknown field; did you mean %s?'
        for key, meant in pairs({
            keyauth = "keyauth_credentials",
            ["basicauth-cred"] = "basicauth_credentials",
        }) do
            local body = ("consumers: [{username: a, %s: []}]"):format(key)
            assert.equal(unknown:format(key, meant), said(body))
        end
        local named = "consumers: [{name: a, username: a}]"
        assert.equal(unknown:format("name", "username"), said(named))
        assert.matches("%.con: unknown field$", said("consumers: [{username: a, con: 1}]"))
    end)

    it("is told of plugins and references that are written or begin alike", function()
        assert.matches("; did you mean rate%-limiting%?$", said("plugins: [{name: ratelimit}]"))
        assert.matches("; did you mean keyauth_credentials%?", said("key_auth: [{key: a}]"))
        local routes = "routes: [{paths: [/a], service: %s}]"
        local both = "services: [{name: orders, host: a}]\n" .. routes
        local hint = "%(no such entry in 'services'%); did you mean orders%?$"
        assert.matches(hint, said(both:format("order")))
        assert.matches(hint, said(both:format("{name: order}")))
        assert.matches("'services'%)$", said(both:format("{id: order}")))
        assert.matches("'services'%)$", said(both:format("bills")))
    end)

    it("compares few references with few names", function()
        local services, routes = {}, {}
        for i = 1, 1001 do
            services[i] = ("{name: orders%d, host: a}"):format(i)
        end
        for i = 1, 11 do
            routes[i] = ("{paths: [/a%d], service: order}"):format(i)
        end
        local body = "services: [%s]\nroutes: [%s]\n"
        local errors = said(body:format("{name: orders, host: a}", table.concat(routes, ", ")))
        assert.equal(10, select(2, errors:gsub("did you mean orders%?", "")))
        errors = said(body:format(table.concat(services, ", "), routes[1]))
        assert.matches("'services'%)$", errors)
    end)

    it("is told of a trailing comma in JSON", function()
        for source, place in pairs({
            ['{"services": [{"host": "a"}, ]}'] = "line 1, column 28: ",
            ['{"services": [],\n\n}'] = "line 1, column 16: ",
            [" ]"] = false,
            ['{"services": ]}'] = false,
        }) do
            local _, errors = config.parse(source, "json", support.registry)
            local message = config.format_errors(errors):match("^[^\n]+")
            if place then
                assert.equal(place .. "trailing comma; delete it", message)
            else
                assert.is_nil(message:find("comma; delete", 1, true))
            end
        end
    end)

    it("is told of a placeholder in a value that is wrong", function()
        for body, found in pairs({
            ["services: [{host: '{{ host }}'}]"] = "{{ host }}",
            ["services: [{url: 'http://{{ host }}/'}]"] = "{{ host }}",
            ["services: [{host: h, port: '${PORT}'}]"] = "${PORT}",
            ["routes: [{paths: ['<your path>']}]"] = "<your path>",
            ["routes: [{paths: [/a], service: '{{ name }}'}]"] = "{{ name }}",
            ["plugins: [{name: '{% plugin %}'}]"] = "{% plugin %}",
            ["services: ['{{ a }}']"] = "{{ a }}",
        }) do
            local message = "; '%s' is a placeholder; fill in the template first"
            local errors = said(body)
            assert.equal(message:format(found), errors:sub(-#message:format(found)))
        end
        for body, start in pairs({
            ["services: [{host: h, port: '${PORT:-s3cret}'}]"] = "${PORT",
            ["services: ['{{ a | s3cret }}']"] = "{{",
        }) do
            local errors = said(body)
            assert.matches(("; '%s' begins a placeholder; fill in"):format(start), errors, 1, true)
            assert.is_nil(errors:find("s3cret", 1, true))
        end
        local plugins = said("plugins: [{name: '{{ a }}'}, {name: none}]")
        assert.matches("'none' not installed; the setting `plugins` has ", plugins, 1, true)
        for _, body in ipairs({
            "routes: [{paths: ['a<b>']}]",
            "routes: [{paths: ['<(b)>']}]",
            "routes: [{paths: ['${(b)}']}]",
            "routes: [{path: '{{ a }}', paths: [/a]}]",
            "routes: [{paths: ['{{a: b}}']}]",
            'routes: [{paths: ["{{ a\\nb }}"]}]',
        }) do
            assert.is_nil(said(body):find("placeholder"))
        end
        assert.equal("", support.errors("routes: [{paths: ['/a'], headers: {a: ['{{ b }}']}}]"))
    end)

    it("is told of a placeholder in a text that cannot be read", function()
        for text, place in pairs({
            ["a: {{ x }}\n"] = "line 1, column 4: '{{ x }}'",
            ["é: [{{x}}:80]\n"] = "line 1, column 5: '{{x}}'",
            ["a:\n  {% if x %}\n  b: 1\n"] = "line 2, column 3: '{% if x %}'",
            ["a: 'b'\n{{- x }}\n"] = "line 2, column 1: '{{- x }}'",
            ['{"a": "b",\n"c": {{ x }}}'] = "line 2, column 6: '{{ x }}'",
        }) do
            local _, errors = config.parse(text, nil, support.registry)
            local line = config.format_errors(errors):match("^[^\n]+")
            assert.equal(place .. " is a placeholder; fill in the template first", line)
        end
        for _, text in ipairs({
            "a: '{{ b }}': c",
            '{"a": "{{ b }}" 1}',
            "a: b: c # {{ d }}",
            "# {{ d }}\na: b: c",
            "[a {{name: b, host: c}}]",
        }) do
            local _, errors = config.parse(text, nil, support.registry)
            assert.is_nil(config.format_errors(errors):match("^[^\n]+"):find("placeholder"))
        end
    end)

    it("is told once which plugins there are, by the first line", function()
        local list = "; the setting `plugins` has access%-log, acl, [^;\n]*$"
        local lines = {}
        local body = "plugins:\n- name: none\n- {name: key-aut}\n- {name: other}\n"
            .. "services: [{host: h, plugins: [{name: no-other}]}]"
        for line in said(body):gmatch("[^\n]+") do
            lines[#lines + 1] = line
        end
        assert.matches("plugin 'none' not installed" .. list, lines[1])
        assert.matches("plugin 'key%-aut' not installed; did you mean key%-auth%?$", lines[2])
        assert.matches("plugin 'other' not installed$", lines[3])
        assert.matches("plugin 'no%-other' not installed$", lines[4])
        assert.is_nil(lines[5])
    end)

    it("is told of a text without its lines, as curl's -d sends it", function()
        local text = ("_format_version: '3.0'\nservices:\n- host: a\n"):gsub("\n", "")
        local _, errors = config.parse(text, "yaml", support.registry)
        local found = config.format_errors(errors)
        assert.matches("--data-binary, not -d\n", found, 1, true)
        _, errors = config.parse("_format_version: [", "yaml", support.registry)
        assert.is_nil(config.format_errors(errors):find("curl"))
    end)

    it("is told where the format is missing", function()
        local _, errors = config.parse("services: []", "yaml", support.registry)
        local line =
            '_format_version: required field missing; begin the file with _format_version: "3.0"'
        assert.equal(line, config.format_errors(errors))
    end)
end)

describe("the count of errors", function()
    local function count(body)
        local source = '_format_version: "3.0"\n' .. body
        local _, errors = config.parse(source, "yaml", support.registry)
        local text, found = config.format_errors(errors)
        local _, lines = text:gsub("[^\n]+", "")
        return found, lines
    end

    it("is that of the lines that are shown", function()
        assert.same({ "1 error", 1 }, { count("services: [{host: a, x: 1}]") })
        assert.same({ "2 errors", 2 }, { count("services: [{host: a, x: 1, y: 2}]") })
        -- Two of one place are in one line.
        assert.same({ "1 error", 1 }, { count("plugins: [{name: acl, config: {}}]") })
        local many = "services:\n" .. ("- {host: a, x: 1}\n"):rep(100)
        assert.same({ "100 errors", 100 }, { count(many) })
        assert.same({ "more than 100 errors", 101 }, { count(many .. "- {host: a, x: 1}\n") })
    end)

    it("is one of a text that cannot be read", function()
        assert.equal("1 error", (count("services: [")))
    end)

    it("is told of JSON that is not UTF-8, which Kong takes", function()
        local source = '{"_format_version": "3.0",\n"services": [{"host": "a", "tags": %s}],'
            .. '\n"_comment": "%s"}'
        local snapshot =
            assert(config.parse(source:format("[]", "\233t\233"), nil, support.registry))
        local warning = "line 3, column 14: byte 0xE9 is not UTF-8 (the file may be Latin-1); save "
            .. "it as UTF-8: `iconv -f latin1 -t utf-8`"
        assert.same({ warning }, snapshot.warnings)
        snapshot = assert(config.parse(source:format("[]", "\195\169"), nil, support.registry))
        assert.same({}, snapshot.warnings)
        local _, errors = config.parse(source:format("1", "\233"), nil, support.registry)
        assert.same({ warning }, errors.warnings)
    end)
end)

describe("what is probably meant", function()
    local function said(text, kind)
        local snapshot, errors = config.parse(text, kind or "yaml", support.registry)
        assert.is_nil(snapshot)
        return config.format_errors(errors)
    end

    it("is said of numbers and booleans in the place of texts, not of other values", function()
        local text = "_format_version: 3\nconsumers:\n- username: 12345\n  custom_id: no\n"
            .. "- username: [a]\nroutes: [{hosts: [a, on]}]\n"
        local is_read = "expected a string; YAML reads it as %s; write it in quotes"
        assert.equal(
            'line 1: _format_version: expected a string; write "3.0"\n'
                .. "line 3: consumers[0].username: expected a string; write it in quotes\n"
                .. ("line 4: consumers[0].custom_id: %s\n"):format(is_read:format("false"))
                .. "line 5: consumers[1].username: expected a string\n"
                .. "line 6: routes[0].hosts[1]: "
                .. is_read:format("true"),
            said(text)
        )
        assert.equal(
            '_format_version: expected a string; write "2.1"\n'
                .. "consumers[0].username: expected a string; write it in quotes",
            said('{"_format_version": 2.1, "consumers": [{"username": true}]}', "json")
        )
    end)

    it("is said of paths as others write them", function()
        local meant = {
            shop = "/shop",
            ["^/shop"] = "~/shop",
            ["~ ^/shop/(.*)$"] = "~/shop/(.*)$",
            ["~ ^/shop"] = "~/shop",
            ["~*^/shop"] = "~/(?i)shop",
            ["~* ^/shop"] = "~/(?i)shop",
            ["= /shop"] = "~/shop$",
        }
        local line = "routes[0].paths[0]: should start with: / (fixed path) or ~/ (regex path)"
        for path, write in pairs(meant) do
            local json = ('{"_format_version": "3.0", "routes": [{"paths": ["%s"]}]}'):format(path)
            assert.equal(("%s; write %s"):format(line, write), said(json, "json"))
        end
        local others = { "", "http://x", "*.php", ("a"):rep(61), "^/)(", "~ /x", "~* /x" }
        for _, path in ipairs(others) do
            local json = ('{"_format_version": "3.0", "routes": [{"paths": ["%s"]}]}'):format(path)
            assert.is_nil(said(json, "json"):find("write", 1, true))
        end
        local empty = '{"_format_version": "3.0", "routes": [{"paths": ["a//b"]}]}'
        assert.is_nil(said(empty, "json"):find("write", 1, true))
    end)

    it("is the kind that has a field, where a line is not indented or not in a list", function()
        local text = '_format_version: "3.0"\nservices:\n- name: a\n  host: x\n  hosts: [a]\n'
            .. "  routes:\n  - name: r\n    paths: [/]\n  methods: [GET]\n  plugin: x\n"
            .. "  service: x\nconsumers:\n- username: u\n  key: s\nurl: http://x\nroute: r\n"
            .. "name: x\n"
        local lines = {
            'line 5: services[0] "a".hosts: unknown field; did you mean host? '
                .. "hosts is a field of routes",
            'line 9: services[0] "a".methods: unknown field; it is a field of routes',
            'line 10: services[0] "a".plugin: unknown field; did you mean plugins?',
            'line 11: services[0] "a".service: unknown field',
            'line 14: consumers[0] "u".key: unknown field; '
                .. "it is a field of keyauth_credentials",
            "line 15: url: unknown field; it is a field of services",
            "line 16: route: unknown field; did you mean routes?",
            "line 17: name: unknown field",
        }
        assert.equal(table.concat(lines, "\n"), said(text))
    end)

    it("is said of expressions, which are not supported", function()
        local text =
            '_format_version: "3.0"\nroutes: [{paths: [/a], expression: http.path == "/x"}]\n'
        assert.equal(
            "line 2: routes[0].expression: unknown field; expressions are not supported: use "
                .. "paths, hosts, methods, headers and snis",
            said(text)
        )
    end)

    it("is said of methods in lower case, not of what is none", function()
        local text = '_format_version: "3.0"\nroutes: [{methods: [get, "g t", POST, 1]}]\n'
        local lines = said(text)
        assert.is_truthy(lines:find("methods[0]: invalid value: get; did you mean GET?", 1, true))
        assert.is_truthy(lines:find("methods[1]: invalid value: g t\n", 1, true), lines)
        assert.is_truthy(lines:find("methods[3]: expected a string; write it in quotes", 1, true))
    end)

    it("is the url where a field comes from it, and the field where it does not", function()
        local text = '_format_version: "3.0"\nservices:\n- name: a\n  retries: 1\n  url: htp://x\n'
            .. "- name: b\n  host: x\n  protocol: htp\n"
        local protocols =
            "expected one of: grpc, grpcs, http, https, tcp, tls, tls_passthrough, udp"
        assert.equal(
            ('line 5: services[0] "a".protocol: %s; it is from url\n'):format(protocols)
                .. ('line 8: services[1] "b".protocol: %s'):format(protocols),
            said(text)
        )
    end)
end)
