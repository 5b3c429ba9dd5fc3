--- What the kit asks the control worker, over the events of all workers: lists of entities, and
-- changes.
--
-- It may be another worker by the time of an answer, or be one that leaves: so a question is asked
-- again. One of a change has an id, by which who answers knows it again, and a new entity has one
-- that the asker has drawn; so what was made once is not made twice.
-- @module gateway.kit.db.remote

local seconds = require("sluice.clock").monotonic

local ngx = ngx
local min = math.min

-- A change waits for others, and for the disk.
local WAIT_SECONDS, ASK_AGAIN_SECONDS = 30, 1

local CONTROL_WORKER = { worker = 0 }

local _M = {
    --- The events: `ask` with {id, worker, pid, tries, question}, `answer` with {id, pid, answer}.
    SOURCE = "sluice-gateway-kit",
}

local bus, answer_here

-- id -> {semaphore, answer}, as long as somebody waits
local asked = {}

-- the last id
local last = 0

local function hear(message)
    local waiting = message.pid == ngx.worker.pid() and asked[message.id]
    if waiting then
        asked[message.id] = nil
        waiting.answer = message.answer
        waiting.semaphore:post(1)
    end
end

--- Hears answers from then on.
-- @tparam table events of sluice.events, of this worker
-- @phases init_worker
function _M.init_worker(events)
    bus = events
    bus:subscribe(_M.SOURCE, "answer", hear)
end

-- Answers by question, so that one that is asked again is not done again: two generations of so
-- many.
local MAX_KEPT = 1000

local memory_methods = {}
local memory_mt = { __index = memory_methods }

local function new_memory()
    return setmetatable({ young = {}, old = {}, count = 0 }, memory_mt)
end

function memory_methods:get(key)
    local found = self.young[key]
    if found == nil then
        found = self.old[key]
    end
    return found
end

function memory_methods:set(key, value)
    if self.count >= MAX_KEPT then
        self.young, self.old, self.count = {}, self.young, 0
    end
    self.young[key], self.count = value, self.count + 1
end

function memory_methods:forget(key)
    self.young[key], self.old[key] = nil, nil
end

local function reply(message, found)
    local sent, err = bus:publish(
        { worker = message.worker },
        _M.SOURCE,
        "answer",
        { id = message.id, pid = message.pid, answer = found }
    )
    if not sent then
        ngx.log(ngx.ERR, "kong.db: an answer cannot be sent: ", err)
    end
end

--- Has a function answer the questions of all workers: it yields, and returns the answer; at once
-- nil where this worker has not the role of answering.
-- @tparam function answer `(question, tries)`
-- @phases init_worker
function _M.serve(answer)
    local kept = new_memory()
    answer_here = answer
    bus:subscribe(_M.SOURCE, "ask", function(message)
        local key = message.pid .. "/" .. message.id
        local known = kept:get(key)
        if known ~= nil then
            -- false: whoever makes it answers
            return known and reply(message, known)
        end
        kept:set(key, false)
        local ok, found = pcall(answer, message.question, message.tries)
        if not ok then
            ngx.log(ngx.ERR, "kong.db: ", tostring(found))
            found = { err = { message = "an internal error" } }
        end
        if not found then
            return kept:forget(key)
        end
        kept:set(key, found)
        reply(message, found)
    end)
end

local function send(id, tries, question)
    return bus:publish(CONTROL_WORKER, _M.SOURCE, "ask", {
        id = id,
        pid = ngx.worker.pid(),
        worker = ngx.worker.id(),
        tries = tries,
        question = question,
    })
end

local function wait_for(waiting, id, question)
    local deadline, tries = seconds() + WAIT_SECONDS, 0
    repeat
        tries = tries + 1
        local sent, err, why = send(id, tries, question)
        if not sent then
            return nil, err == "not serialisable" and err .. ": " .. tostring(why) or err
        end
        local left = deadline - seconds()
        local done = waiting.semaphore:wait(min(left, ASK_AGAIN_SECONDS))
        if done then
            return waiting.answer
        end
    until seconds() >= deadline
    return nil, "the control worker did not answer"
end

--- Asks. Yields.
-- @tparam table question plain data
-- @treturn table|nil what `serve`'s function answers
-- @treturn nil|string why there is no answer
-- @phases rewrite, access, response, certificate, content, timer
function _M.ask(question)
    if answer_here then
        local found = answer_here(question, 1)
        return found, not found and "the control worker has no role" or nil
    end
    last = last + 1
    local id, waiting = last, { semaphore = assert(require("ngx.semaphore").new(0)) }
    asked[id] = waiting
    local found, err = wait_for(waiting, id, question)
    asked[id] = nil
    return found, err
end

return _M
