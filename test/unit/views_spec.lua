-- Read-only views (lib/sluice/views.lua).

local views = require("sluice.views")

-- An object as classes make them: methods in a metatable, and state.
local function counter()
    local methods = {}
    function methods:add()
        self.count = self.count + 1
        return self.count
    end
    return setmetatable({ count = 0, inner = { value = 1 } }, { __index = methods })
end

describe("a view", function()
    it("shows what its table has, and what that has later", function()
        local target = { one = 1, deep = { two = 2 } }
        local view = views.of(target, "t")
        assert.equal(1, view.one)
        assert.equal(2, view.deep.two)
        target.three = 3
        assert.equal(3, view.three)
        assert.is_nil(view.four)
        assert.is_false(getmetatable(view))
    end)

    it("cannot be written, however deep, and says what was", function()
        local target = { one = 1, deep = { two = 2 } }
        local view = views.of(target, "t")
        assert.has_error(function()
            view.one = 2
        end, "Can not modify t.one. Protected by the sandbox.")
        assert.has_error(function()
            view.deep.other = 2
        end, "Can not modify t.deep.other. Protected by the sandbox.")
        assert.same({ one = 1, deep = { two = 2 } }, target)
    end)

    it("lets methods of an object write to the object", function()
        local target = { object = counter() }
        local view = views.of(target, "t")
        assert.equal(1, view.object:add())
        assert.equal(2, view.object:add())
        assert.equal(2, target.object.count)
        assert.has_error(function()
            view.object.add = nil
        end)
        assert.has_error(function()
            view.object.inner.value = 2
        end)
    end)

    it("can be called where its table can", function()
        local target = setmetatable({}, {
            __call = function(_, a, b)
                return a + b
            end,
        })
        assert.equal(3, views.of(target, "t")(1, 2))
    end)

    it("has other things in the place of some, and some as they are", function()
        local target = { hidden = 1, raw = { x = 1 } }
        local view = views.of(target, "t", { instead = { hidden = 2 }, raw = { raw = true } })
        assert.equal(2, view.hidden)
        view.raw.x = 2
        assert.equal(2, target.raw.x)
    end)

    it("views what a table makes when it is asked, if it is to", function()
        local made = { select = tostring }
        local function found()
            return { db = setmetatable({}, { __index = { consumers = made } }) }
        end
        local view = views.of(found(), "t", { lazy = { db = true } })
        assert.has_error(function()
            view.db.consumers.select = nil
        end)
        views.of(found(), "t").db.consumers.select = nil
        assert.is_nil(made.select)
    end)

    it("takes new names where it may, and keeps them to itself", function()
        local target = { one = 1 }
        local view = views.of(target, "t", { adds = true })
        view.two = 2
        assert.equal(2, view.two)
        assert.is_nil(target.two)
        assert.has_error(function()
            view.one = 2
        end)
    end)

    it("ends where tables refer to each other", function()
        local target = {}
        target.self = target
        local view = views.of(target, "t")
        assert.equal(view, view.self.self)
    end)
end)

describe("a class that is its own index", function()
    it("is not to be had from its objects any more", function()
        local class = {}
        class.__index = class
        function class.name()
            return "mine"
        end
        local object = setmetatable({}, class)
        assert.equal(class, object.__index)
        assert.equal(object, views.hide_class(object))
        assert.is_nil(object.__index)
        assert.equal("mine", object.name())
        assert.equal(7, views.hide_class(7))
    end)
end)
