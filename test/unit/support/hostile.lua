--- Bodies of some size that cost as much as their author can make them: name -> text.
-- Each is about one thing: width, depth, aliases, errors, long texts for each validator.

local concat = table.concat
local rep = string.rep

local HEAD = '{"_format_version":"3.0",'
local YAML_HEAD = '_format_version: "3.0"\n'

local _M = {}

--- As many items as fit, joined by commas; `%d` in an item is its number.
local function many(item, size)
    local out, length, i = {}, 0, 0
    while length < size do
        i = i + 1
        out[i] = (item:gsub("%%d", tostring(i)))
        length = length + #out[i] + 1
    end
    return concat(out, ",")
end

--- One entity with a field whose text is `filler` times and `tail`.
local function long(collection, before, filler, tail, after)
    return function(size)
        return HEAD
            .. ('"%s":[{%s'):format(collection, before)
            .. rep(filler, math.floor(size / #filler))
            .. tail
            .. (after or '"')
            .. "}]}"
    end
end

local function yaml(build)
    return function(size)
        return YAML_HEAD .. build(size)
    end
end

--- A text with as many items between two others as fit.
local function filled(before, item, after)
    return function(size)
        return HEAD .. before .. many(item, size) .. after
    end
end

--- A text in YAML with a part once for so many bytes.
local function repeated(before, part, bytes, after)
    return yaml(function(size)
        return before .. rep(part, size / bytes) .. (after or "")
    end)
end

local function json(collection, item)
    return filled('"' .. collection .. '":[', item, "]}")
end

local function nested(open, close)
    return function(size)
        return HEAD .. '"services":' .. rep(open, size / 2) .. rep(close, size / 2) .. "}"
    end
end

local function flow_of(item)
    return yaml(function(size)
        return "services: [" .. many(item, size) .. "]"
    end)
end

local function bomb(leaf, field)
    return yaml(function(size)
        local lines = { "_ignore:", "- &a0 [" .. many(leaf, size / 12) .. "]" }
        for i = 1, 9 do
            local item = "*a" .. i - 1
            lines[#lines + 1] = ("- &a%d [%s]"):format(i, many(item, size / 12))
        end
        lines[#lines + 1] = field .. ": *a9"
        return concat(lines, "\n")
    end)
end

local function aliased(anchor, field)
    return yaml(function(size)
        return ("_ignore:\n- &a %s\n%s: [%s]\n"):format(anchor, field, many("*a", size))
    end)
end

local function regexes(pattern)
    return json("routes", '{"paths":["~/%d' .. pattern:gsub("\\", "\\\\") .. '"]}')
end

local ENDPOINT = '"name":"http-log","config":{"http_endpoint":"http://'
local plugin = '{"name":"key-auth","instance_name":"p%d"}'

_M.bodies = {
    ["entities without a field"] = json("services", "{}"),
    ["entities that are no records"] = json("services", "1"),
    ["entities with an unknown field"] = json("services", '{"host":"a","x":1}'),
    ["entities with every field wrong"] = json(
        "services",
        '{"name":1,"host":1,"port":"","path":1,"retries":"","tags":1,"protocol":1,"x":1}'
    ),
    ["one entity with unknown fields"] = filled('"services":[{', '"x%d":1', "}]}"),
    ["unknown collections"] = function(size)
        return HEAD .. many('"x%d":1', size) .. "}"
    end,
    ["unknown fields of a plugin"] = filled(
        '"plugins":[{"name":"key-auth","config":{',
        '"x%d":1',
        "}}]}"
    ),
    ["names that stand twice"] = json("services", '{"name":"a","host":"a"}'),
    ["references to nothing"] = json("routes", '{"paths":["/"],"service":"x%d"}'),
    ["references with long names"] = function(size)
        local name = rep("x", size / 2)
        return HEAD
            .. ('"services":[{"name":"%s","host":"a"}],"routes":['):format(name)
            .. many('{"paths":["/"],"service":"y"}', size / 2)
            .. "]}"
    end,
    ["plugins that stand twice"] = json("plugins", '{"name":"key-auth"}'),
    ["plugins that nobody knows"] = json("plugins", '{"name":"x%d"}'),
    ["plugins of routes"] = json("routes", '{"paths":["/%d"],"plugins":[' .. plugin .. "]}"),
    ["plain services"] = json("services", '{"host":"a"}'),
    ["plain routes"] = json("routes", '{"paths":["/%d"]}'),
    ["plain upstreams"] = json("upstreams", '{"name":"u%d"}'),
    ["plain consumers"] = json("consumers", '{"username":"c%d"}'),
    ["credentials"] = filled(
        '"consumers":[{"username":"a","keyauth_credentials":[',
        '{"key":"k%d"}',
        "]}]}"
    ),
    ["targets of one upstream"] = filled(
        '"services":[{"host":"u"}],"upstreams":[{"name":"u","targets":[',
        '{"target":"127.0.0.1:%d"}',
        "]}]}"
    ),
    ["rotations as long as can be"] = function(size)
        return HEAD
            .. '"services":['
            .. many('{"host":"u%d"}', size / 9)
            .. '],"upstreams":['
            .. many(
                '{"name":"u%d","slots":65536,"targets":[{"target":"127.0.0.1:1","weight":65535},'
                    .. '{"target":"127.0.0.1:2","weight":65534}]}',
                size * 8 / 9
            )
            .. "]}"
    end,
    ["hosts by paths"] = function(size)
        return HEAD
            .. '"routes":[{"hosts":['
            .. many('"a%d"', size / 2)
            .. '],"paths":['
            .. many('"/%d"', size / 2)
            .. "]}]}"
    end,
    ["consumers by routes"] = function(size)
        local own = '"plugins":[{"name":"rate-limiting","config":{"hour":1}%s}]'
        return HEAD
            .. '"consumers":['
            .. many('{"username":"c%d",' .. own:format("") .. "}", size / 2)
            .. '],"routes":['
            .. many('{"paths":["/%d"],' .. own:format(',"consumer":"c1"') .. "}", size / 2)
            .. "]}"
    end,
    ["paths of one route"] = filled('"routes":[{"paths":[', '"/%d"', "]}]}"),
    ["hosts of one route"] = filled('"routes":[{"hosts":[', '"a%d"', "]}]}"),
    ["wildcard hosts"] = filled('"routes":[{"hosts":[', '"*.a%d"', "]}]}"),
    ["headers of one route"] = filled('"routes":[{"headers":{', '"a%d":["b"]', "}}]}"),
    ["tags of one entity"] = filled('"services":[{"host":"a","tags":[', '"t%d"', "]}]}"),
    ["the same tag"] = filled('"services":[{"host":"a","tags":[', '"t"', "]}]}"),
    ["wrong tags"] = filled('"services":[{"host":"a","tags":[', '"a,%d"', "]}]}"),
    ["methods of one route"] = filled('"routes":[{"methods":[', '"GET"', "]}]}"),
    ["key names"] = filled(
        '"plugins":[{"name":"key-auth","config":{"key_names":[',
        '"k%d"',
        "]}}]}"
    ),
    ["headers of http-log"] = filled(
        '"plugins":[{"name":"http-log","config":{"http_endpoint":"http://a","headers":{',
        '"k%d":"v"',
        "}}}]}"
    ),
    ["statuses of a health check"] = filled(
        '"upstreams":[{"name":"u","healthchecks":{"active":{"healthy":{"http_statuses":[',
        "200",
        "]}}}}]}"
    ),
    ["lists in JSON"] = nested("[", "]"),
    ["maps in JSON"] = function(size)
        local n = math.floor(size / 6)
        return HEAD .. '"services":' .. rep('{"a":', n) .. "1" .. rep("}", n) .. "}"
    end,
    ["lists side by side in JSON"] = json("_ignore", "[]"),
    ["keys that stand twice in JSON"] = function(size)
        return HEAD .. many('"a":1', size) .. "}"
    end,
    ["long keys that stand twice in JSON"] = function(size)
        local key = rep("k", size / 2)
        return HEAD .. ('"%s":1,"%s":2}'):format(key, key)
    end,
    ["escaped keys in JSON"] = function(size)
        return HEAD .. many('"\\u0041%d":1', size) .. "}"
    end,
    ["an open text in JSON"] = function(size)
        return HEAD .. '"services":"' .. rep("\\\\", size / 2)
    end,
    ["numbers in JSON"] = function(size)
        return HEAD .. '"_ignore":[' .. rep("1", size) .. "]}"
    end,
    ["lists in YAML"] = yaml(function(size)
        return "services: " .. rep("[", size / 2) .. rep("]", size / 2)
    end),
    ["maps in YAML"] = repeated("services: ", "{a: ", 4),
    ["block lists in YAML"] = repeated("services:\n", "- ", 2, "a"),
    ["scalars in YAML"] = flow_of("a"),
    ["empty lists in YAML"] = flow_of("[]"),
    ["nulls in YAML"] = flow_of("~"),
    ["records in YAML"] = flow_of("{host: a}"),
    ["numbers in YAML"] = flow_of("1:1"),
    ["a long number in YAML"] = repeated("services: ", "1", 1),
    ["a long time in YAML"] = repeated("services: 1", ":1", 2, ":"),
    ["a long float in YAML"] = repeated("services: 1", "_1", 2, "."),
    ["anchors in YAML"] = flow_of("&a%d a"),
    ["aliases of a text"] = aliased("a", "services"),
    ["aliases of a service"] = aliased("{host: a}", "services"),
    ["aliases of a route"] = aliased("{paths: [/]}", "routes"),
    ["aliases of an upstream's default"] = aliased("{name: a}", "upstreams"),
    ["aliases of something wrong"] = aliased("{a: 1, b: 2, c: 3}", "services"),
    ["aliases of a long text"] = yaml(function(size)
        return ('_ignore: [&a "%s"]\nservices: [%s]'):format(
            rep("x ", size / 4),
            many("{host: *a}", size / 2)
        )
    end),
    ["a bomb of texts"] = bomb("x", "services"),
    ["a bomb of services"] = bomb("{}", "services"),
    ["a bomb in a list of tags"] = yaml(function(size)
        return ("_ignore: [&a [%s]]\nservices: [%s]"):format(
            many("b%d", size / 2),
            many("{host: a, tags: *a}", size / 2)
        )
    end),
    ["merges of one map"] = yaml(function(size)
        return ("_ignore:\n- &a {%s}\nservices: [%s]"):format(
            many("x%d: 1", size / 2),
            many("{<<: *a}", size / 2)
        )
    end),
    ["one merge of many"] = yaml(function(size)
        return ("_ignore:\n- &a {%s}\nservices: [{<<: [%s]}]"):format(
            many("x%d: 1", size / 2),
            many("*a", size / 2)
        )
    end),
    ["keys that stand twice in YAML"] = yaml(function(size)
        return "services: {" .. many("a: 1", size) .. "}"
    end),
    ["tags in YAML"] = flow_of("!!str a"),
    ["a long tag in YAML"] = repeated("services: !", "a", 1, " a"),
    ["a long anchor in YAML"] = repeated("services: *", "a", 1),
    ["escapes in YAML"] = repeated('services: "', "\\u0041", 6, '"'),
    ["bytes that are no UTF-8"] = repeated("services: ", "\195\164", 2, "\255"),
    ["comments in YAML"] = yaml(function(size)
        return rep("#\n", size / 2) .. "services: 1"
    end),
    ["documents in YAML"] = yaml(function(size)
        return rep("---\n", size / 4)
    end),
    ["an empty line after the other"] = repeated("services: a", "\n ", 2),
    ["a long name"] = long("services", '"host":"a","name":"', "x", " "),
    ["a long name in UTF-8"] = long("services", '"host":"a","name":"', "ä", "ä ä"),
    ["a long tag"] = long("services", '"host":"a","tags":["', "x", ",", '"]'),
    ["a host of digits"] = long("services", '"host":"', "1.", "x"),
    ["a host of groups"] = long("services", '"host":"', "1:", "x"),
    ["a host with an IPv4 tail"] = long("services", '"host":":', "1.", "x"),
    ["a host of colons"] = long("services", '"host":"', ":", "1.1.1.1x"),
    ["a host of dots"] = long("services", '"host":"', ".", "x"),
    ["a host in brackets"] = long("services", '"host":"[', "1:", "x]"),
    ["a host with a long port"] = long("services", '"host":"a:', "1", "x"),
    ["a url with a long host"] = long("services", '"url":"http://', "1", ":x"),
    ["a url of ports"] = long("services", '"url":"http://a', ":1", "x"),
    ["a url with a long path"] = long("services", '"url":"http://a/', "/a", "?"),
    ["a long path of a service"] = long("services", '"host":"a","path":"/', "%41", "%4"),
    ["a path of slashes"] = long("services", '"host":"a","path":"', "/a", "//"),
    ["a long path of a route"] = long("routes", '"paths":["/', "a/", "%4", '"]'),
    ["a path of dots"] = long("routes", '"paths":["/', "./", "../", '"]'),
    ["a host of a route"] = long("routes", '"hosts":["', "a", "**", '"]'),
    ["a host of a route of stars"] = long("routes", '"hosts":["', "*.", "*", '"]'),
    ["a host of a route of digits"] = long("routes", '"hosts":[":', "1.", "*", '"]'),
    ["a target"] = long("targets", '"upstream":"a","target":"', "1:", "x"),
    ["a name of an upstream"] = long("upstreams", '"name":"', "1.", "x"),
    ["a method"] = long("routes", '"methods":["', "A", "a", '"]'),
    ["a header's name"] = long("routes", '"headers":{"', "a", ' ":["b"]}', ""),
    ["an id"] = long("services", '"host":"a","id":"', "1-", ""),
    ["an endpoint"] = long("plugins", ENDPOINT, "a", " ", '"}'),
    ["an endpoint of digits"] = long("plugins", ENDPOINT, "1", ":x", '"}'),
    ["an endpoint of users"] = long("plugins", ENDPOINT, "a@", ":", '"}'),
    ["a long regex"] = long("routes", '"paths":["~/', "a", "", '"]'),
    ["a regex of stars"] = long("routes", '"paths":["~/', "a*", "|b", '"]'),
    ["a regex of classes"] = long("routes", '"paths":["~/', "[a-z]", "", '"]'),
    ["a regex of groups"] = long("routes", '"paths":["~/', "(?:a|b)", "|c", '"]'),
    ["a regex of open groups"] = long("routes", '"paths":["~/', "(", "", '"]'),
    ["a regex with a long comment"] = long("routes", '"paths":["~/(?x)#', "(", "\\n|b", '"]'),
    ["a regex with a comment of classes"] = long(
        "routes",
        '"paths":["~/(?x)#',
        "[a",
        "\\n|b",
        '"]'
    ),
    ["a regex of choices"] = long("routes", '"paths":["~/', "a|", "b", '"]'),
    ["a regex of recursions"] = long("routes", '"paths":["~/(a)', "(?1)", "b", '"]'),
    ["a regex of lookbehinds"] = long("routes", '"paths":["~/(?<=', "a|", "b)", '"]'),
    ["plain regexes"] = regexes(""),
    ["regexes that repeat groups"] = regexes("((a{50}){50}){9}"),
    ["regexes that repeat classes"] = regexes("([a-z]{1,9}[^a-z]{1,9}){1,200}"),
    ["regexes of ranges"] = regexes("(?:[a-c]|[d-f]|[g-i]){1,99}"),
    ["regexes that do not compile"] = regexes("("),
    ["regexes that recurse"] = regexes("(a(?1)?b){99}"),
    ["regexes for headers"] = json("routes", '{"headers":{"x":["~*%d(a{50}){50}"]}}'),
}

return _M
