--- Entities as Lua plugins see them, as what a worker has mapped changes between two calls.

local core = require("sluice.ffi.core").C

local STUBS = { "gateway.proxy.entities", "gateway.proxy.image", "sluice.ffi.images" }

local CONSUMER, PLUGIN = core.SLUICE_CORE_CONSUMER, core.SLUICE_CORE_PLUGIN

describe("the entities of the published image", function()
    local before, entities, changes = {}, nil, nil

    -- What the worker has mapped, nil if nothing: { id, [kind] = by slot: text }; what it finds
    -- when it looks; how often what is mapped has changed.
    local mapped, published, epoch

    local image = {}

    function image.look()
        if mapped ~= published then
            mapped, epoch = published, epoch + 1
        end
        return mapped and epoch, mapped and 1
    end

    function image.store()
        return mapped and mapped.id
    end

    function image.by_slot(kind, slot)
        return mapped and mapped[kind][slot] and { slot, mapped[kind][slot] }
    end

    function image.by_key(kind)
        return image.by_slot(kind, 1)
    end

    function image.place(found)
        return found[1], 1, 1
    end

    function image.body(found)
        return found[2]
    end

    -- One with a consumer and a plugin in the first slots, of the first revision.
    local function store(id)
        return {
            id = id,
            [CONSUMER] = { ('{"username":"%s"}'):format(id) },
            [PLUGIN] = {
                ('{"name":"p","enabled":true,"id":"%s","config":{"of":"%s"}}'):format(id, id),
            },
        }
    end

    local registry = {
        get = function()
            return {}
        end,
    }

    before_each(function()
        for _, name in ipairs(STUBS) do
            before[name] = package.loaded[name]
            package.loaded[name] = nil
        end
        package.loaded["gateway.proxy.image"] = image
        package.loaded["sluice.ffi.images"] = {
            C = {
                sluice_images_epoch = function()
                    return epoch
                end,
            },
        }
        mapped, published, epoch, changes = nil, nil, 0, 0
        entities = require("gateway.proxy.entities")
        entities.init_worker(registry, nil, error, function()
            changes = changes + 1
        end)
    end)

    after_each(function()
        for _, name in ipairs(STUBS) do
            package.loaded[name] = before[name]
        end
    end)

    it("are looked for where nothing has been mapped yet", function()
        published = store("one")
        assert.same("one", entities.configuration("p", 1, 1, 1).of)
    end)

    it("do not exist where nothing can be mapped", function()
        local conf, err = entities.configuration("p", 1, 1, 1)
        assert.is_nil(conf)
        assert.same("the configuration of plugin 'p' does not exist", err)
        assert.is_nil(entities.store.id())
        assert.same(0, changes)
    end)

    it("stay as they were where what is live cannot be mapped any more", function()
        published = store("one")
        local conf = entities.configuration("p", 1, 1, 1)
        published = nil
        assert.is_nil(image.look())
        assert.equal(conf, entities.configuration("p", 1, 1, 1))
        assert.same(1, changes)
        published = mapped
        entities.look()
        assert.equal(conf, entities.configuration("p", 1, 1, 1))
    end)

    it("are those of another store from the first look on", function()
        published = store("one")
        entities.look()
        assert.same("one", entities.store:get("consumers", "c").username)
        published = store("two")
        image.look()
        assert.same("two", entities.store:get("consumers", "c").username)
    end)

    it("are not taken for those in their slots of another store", function()
        published = store("one")
        local conf = entities.configuration("p", 1, 1, 1)
        assert.equal(conf, entities.store:current(conf))
        published = store("two")
        assert.is_nil(entities.store:current(conf))
        assert.same("two", entities.configuration("p", 1, 1, 1).of)
    end)
end)
