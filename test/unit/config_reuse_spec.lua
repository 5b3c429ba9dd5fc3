--- Files that are checked where they differ from the last one, beside the same files checked whole:
-- the same answers, the same in the store and in the image.
--
-- SEED repeats a run, LONG=1 makes it longer.

local blocks = require("gateway.threads.blocks")
local C = require("sluice.ffi.core").C
local checker = require("gateway.checker")
local checks = require("gateway.change.checks")
local cjson = require("cjson")
local entities = require("gateway.entities")
local ffi = require("ffi")
local items = require("gateway.config.items")
local layout = require("gateway.store.layout")
local stdlib = require("posix.stdlib")
local soak = require("test.unit.support.soak")
local support = require("test.unit.support.writer")
local files = require("test.unit.support.changed_files")

local ROUNDS = soak(400, 4000)
local SEED = require("test.unit.support.seed")("config_reuse")
local MAX_ENTITIES = 140

-- What ends a check, which nobody does.
local flags = ffi.new("int32_t[2]")

local function listed(list)
    local found = {}
    blocks.each(list, function(item)
        found[#found + 1] = item
    end)
    return found
end

local function check(verb, text, more)
    local address = tonumber(ffi.cast("uintptr_t", ffi.cast("void *", flags)))
    local request = {
        verb = verb,
        sent = { text = text, media_type = "application/json" },
        plugins = { "bundled" },
        vault_env = files.VARIABLES,
        max_entities = MAX_ENTITIES,
        surroundings = "s",
        flattens = true,
        flags = { address, address + 4 },
    }
    for name, value in pairs(more) do
        request[name] = value
    end
    return checker.run(request)
end

-- The items of what was made of a file, and of its names.
local function items_of(found)
    local all = listed(found.made)
    for _, name in ipairs(listed(found.names)) do
        all[#all + 1] = { kind = "names", put = items.name(name, { "192.0.2.1" }) }
    end
    return all
end

local methods = {}
local mt = { __index = methods }

-- One who makes files live; `reuses`: where they differ from the last one.
local function begin(reuses)
    local layouts = layout.derive(entities.stored(), entities.of_plugins())
    local place = support.place({ layouts = layouts, delta_bytes = 1024 * 1024 })
    local opened = support.open(place)
    local self = { place = place, writer = opened, reuses = reuses, reused = 0, refused = {} }
    return setmetatable(self, mt)
end

function methods:keep(found)
    if self.last then
        blocks.free(self.last.list)
    end
    self.last = { list = found.remembered, origin = found.origin }
    found.remembered = nil
    if self.last.list.count == 0 then
        blocks.free(self.last.list)
        self.last = nil
    end
end

function methods:patch(text, at)
    local more = { at = at, store = self.place.store }
    more.remembered = self.last.list
    local found = check("compare", text, more)
    if not found.made then
        return nil
    end
    local sent = { before = self.last.origin, origin = found.origin, changes = listed(found.made) }
    local done, err = self.writer:patch(sent, "somebody")
    if done then
        self.reused = self.reused + 1
        self:keep(found)
    else
        self.refused[err.err] = (self.refused[err.err] or 0) + 1
    end
    checks.free(found)
    return done and { hash = found.hash, warnings = found.warnings, revision = done.revision }
end

--- What a file is answered: what is wrong, or its hash and warnings.
function methods:post(text, at)
    local made = self.last and self:patch(text, at)
    if made then
        return made
    end
    local found = check("replace", text, { at = at, remembers = self.reuses })
    if found.word then
        return { word = found.word, errors = found.errors, flattened = found.flattened }
    end
    local done = assert(self.writer:replace(items_of(found), found.origin, "somebody"))
    if self.reuses then
        self:keep(found)
    end
    checks.free(found)
    return { hash = found.hash, warnings = found.warnings, revision = done.revision }
end

function methods:rows(sql)
    local found = {}
    for i, row in
        ipairs(assert(self.writer.store:read(function(db)
            return db:rows(sql)
        end)))
    do
        for at = 1, 40 do
            row[at] = row[at] == nil and cjson.null or row[at]
        end
        found[i] = cjson.encode(row):gsub("[%z\1-\31\127-\255]", "?")
    end
    return table.concat(found, "\n")
end

--- All rows of all tables. The places of names and their revisions are nobody's to see: they follow
-- from the order in which a whole file has them.
function methods:contents()
    local found = {}
    for _, of in ipairs(self.place.layouts) do
        local columns = { "id", "slot", "generation", "text", "hex(packed)" }
        for _, column in ipairs(of.kind ~= "names" and of.columns or {}) do
            columns[#columns + 1] = column.column
        end
        local own = of.kind ~= "names" and "sequence, revision, " or ""
        local sql = "SELECT %s%s FROM e_%s ORDER BY id"
        found[#found + 1] = of.kind
        found[#found + 1] = self:rows(sql:format(own, table.concat(columns, ", "), of.kind))
        if of.has_tags then
            sql = "SELECT tag, sequence FROM t_%s ORDER BY tag, sequence"
            found[#found + 1] = self:rows(sql:format(of.kind))
        end
    end
    for _, sql in ipairs({
        "SELECT kind, slot, generation, id, revision, released FROM gone ORDER BY kind, slot, "
            .. "generation",
        "SELECT revision, sequence, origin FROM meta",
        "SELECT name, next_slot FROM space ORDER BY name",
        "SELECT space, slot, generation FROM free_slot ORDER BY space, slot",
    }) do
        found[#found + 1] = self:rows(sql)
    end
    return table.concat(found, "\n")
end

--- What workers map. Keys of credentials are digests with the uuid of the store.
function methods:image()
    local text = support.published(self.place)
    local of_names = "(kind " .. tonumber(C.SLUICE_CORE_NAME) .. " slot %S+) revision %d+"
    return (text:gsub(("%x"):rep(64), "digest"):gsub(of_names, "%1"))
end

-- The lines that only one of two texts has.
local function difference(one, other)
    local counts, found = {}, {}
    for sign, text in pairs({ [1] = one, [-1] = other }) do
        for line in text:gmatch("[^\n]+") do
            counts[line] = (counts[line] or 0) + sign
        end
    end
    for line, count in pairs(counts) do
        found[#found + 1] = count ~= 0 and ("%+d %s"):format(count, line) or nil
    end
    table.sort(found)
    return table.concat(found, "\n")
end

describe("a file that is checked where it differs", function()
    local whole, reusing

    before_each(function()
        for _, name in ipairs(files.VARIABLES) do
            stdlib.setenv(name, "http://192.0.2.9/" .. name)
        end
        whole, reusing = begin(false), begin(true)
    end)

    after_each(function()
        whole.writer:close()
        reusing.writer:close()
        support.clean()
    end)

    -- Posts a file to both; what both answer.
    local function post(text, at, what)
        local one, other = whole:post(text, at), reusing:post(text, at)
        assert.same(one, other, what)
        assert.equal("", difference(whole:contents(), reusing:contents()), what)
        assert.equal("", difference(whole:image(), reusing:image()), what)
        return one
    end

    -- A service's host that needs no name any more: neither has one who is disabled it.
    it("leaves no name behind that only a disabled service has", function()
        local random, model = files.random(1), files.model()
        model.services[1].host, model.services[2].host = "host.example", "host.example"
        model.services[2].enabled = false
        post(files.text(model, random), 1, "two have it")
        model.services[1].host = "192.0.2.1"
        post(files.text(model, random), 2, "who is disabled has it")
        model.services[2].tags = { "another" }
        post(files.text(model, random), 3, "and changes")
        model.services[2].enabled = true
        post(files.text(model, random), 4, "and is enabled")
        model.services[1].host = "host.example"
        post(files.text(model, random), 5, "two have it again")
        model.services[2].enabled = false
        post(files.text(model, random), 6, "one is disabled again")
    end)

    -- What was read of the store while another file was live is of another one.
    it("is not made of what the store had in between", function()
        local random, model = files.random(1), files.model()
        post(files.text(model, random), 1, "the first")
        model.services[1].tags = { "changed" }
        model.plugins[1].config.max_age = 6
        local more = { store = reusing.place.store, remembered = reusing.last.list }
        local before = reusing.last.origin
        local found = check("compare", files.text(model, random), more)
        local sent = { before = before, origin = found.origin, changes = listed(found.made) }
        sent.revision = found.revision
        local text = files.text(files.model(), files.random(1))
        model.services[1].tags = { "again" }
        post(files.text(model, random), 2, "another")
        post(text, 3, "the first again")
        assert.equal(before, reusing.last.origin)
        local done, err = reusing.writer:patch(sent, "somebody")
        assert.is_nil(done)
        assert.equal("changed", err.err)
        checks.free(found)
    end)

    it("is answered as one that is checked whole, and leads to the same", function()
        local random = files.random(SEED)
        local good, accepted = files.model(), 0
        assert.is_string(post(files.text(good, random), 1, "the first").hash)
        local model = good
        for round = 1, ROUNDS do
            local next_model, said = files.changed(model, random)
            local what = ("seed %d, round %d: %s"):format(SEED, round, said)
            if post(files.text(next_model, random), round + 1, what).hash then
                accepted = accepted + 1
                good, model = next_model, next_model
            else
                -- Now and then one is wrong for a second time, or made right by another change.
                model = model == good and random(4) == 1 and next_model or good
            end
        end
        assert.is_true(accepted >= ROUNDS / 4, accepted)
        assert.is_true(reusing.reused >= ROUNDS / 20, reusing.reused .. " of " .. accepted)
    end)
end)
