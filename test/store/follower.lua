--- What a publisher has left behind: for each folder on a line of the input, whether what is
--- published is whole, and a successor makes live what the store holds. One more revision is made.

local core = require("sluice.ffi.core")
local evidence = require("gateway.writer.evidence")
local ffi = require("ffi")
local publishing = require("test.store.publishing")

local function published(place)
    local found = ffi.new("sluice_core_published_t")
    local page = ffi.cast("sluice_core_page_t *", ffi.cast("uintptr_t", place.page))
    if core.C.sluice_core_published(page, found) ~= 0 then
        return nil
    end
    local text, revision = publishing.published(place)
    local expected = publishing.expected(revision)
    assert(publishing.names(text) == expected, "what is live is " .. publishing.names(text))
    return revision
end

local function follow(folder)
    local place = publishing.place(folder)
    local before = published(place) or 0
    -- What a start looks at: a death is no damage.
    local _, damage = evidence.examine(place.store, place.layouts)
    local is_new = damage and (damage.err == "empty" or damage.err == "cannot open")
    assert(not damage or is_new, damage and damage.message)
    local opened, from = publishing.open(place)
    if not opened then
        error(from.message)
    end
    local revision = opened.store:revision().revision
    assert(published(place) == revision, "not what the store has")
    local text = publishing.published(place)
    assert(text == publishing.built(opened), "not what a build has")
    assert(opened:batch({ publishing.changes(opened, revision + 1) })[1].revision)
    assert(published(place) == revision + 1)
    opened:close()
    return ("%d %d %s fine"):format(before, revision, from)
end

for folder in io.lines() do
    local ok, said = pcall(follow, folder)
    io.write(ok and said or "no: " .. tostring(said):gsub("\n", " "), "\n")
    io.flush()
end
