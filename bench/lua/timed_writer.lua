--- The writer of the control worker's threads, with a clock: it is loaded in place of the gateway's
-- by those VMs whose path begins with this folder (plugins/bench-publish), and loads that.
--
-- Of each commit it notes, in a line of LOG, the nanoseconds of what publishes it: what has changed
-- is read from the store, staged, linked, published. The commit between is not in them, nor are the
-- changes of the store.

local clock = require("clock")
local files = require("gateway.store.files")
local trees = require("trees")

local LOG = "/publish.log"

local path = package.path
package.path = path:gsub("^[^;]*;", "")
local name = trees.name("gateway.writer")
package.loaded[name] = nil
local writer = require(name)
package.path = path

local function timed(opened)
    local store, images = opened.store, opened.images
    local stage, publish = store.before_commit, images.publish
    local log, staged_ns = assert(io.open(files.folder_of(opened.path) .. LOG, "a")), nil
    function store.before_commit(...)
        local begun = clock.now_ns()
        stage(...)
        staged_ns = clock.now_ns() - begun
    end
    function images.publish(...)
        local begun = clock.now_ns()
        publish(...)
        local took_ns = clock.now_ns() - begun
        -- What begins and merges publish is no change.
        if staged_ns then
            log:write(("%d\n"):format(staged_ns + took_ns))
            log:flush()
        end
        staged_ns = nil
    end
    return opened
end

local open, attach = writer.open, writer.attach

function writer.open(opts)
    local opened, err = open(opts)
    return opened and timed(opened), err
end

function writer.attach(handle)
    return timed(attach(handle))
end

return writer
