--- Makes revisions one after the other, publishes them, merges now and then, and says what was
--- answered, on a line each.
---
---     luajit publisher.lua <folder> <revision to end with> <merge after each>

local publishing = require("test.store.publishing")

local folder, last, period = arg[1], tonumber(arg[2]), tonumber(arg[3])

local function say(text)
    io.write(text, "\n")
    io.flush()
end

local opened, from = publishing.open(publishing.place(folder))
if not opened then
    say("refused " .. from.err)
    os.exit(3)
end
local revision = opened.store:revision().revision
say("opened " .. revision)
local refused, job = 0, nil
while revision < last and refused < 3 do
    local done, err = opened:batch({ publishing.changes(opened, revision + 1) })
    if done then
        revision = done[1].revision
        say("answered " .. revision)
    else
        refused = refused + 1
        say("refused " .. err.err)
    end
    if job then
        if opened:merge(job) and opened:finish_merge(job) then
            local live = opened:live()
            if opened:save(live) then
                opened:compact(live.base_revision)
            end
        end
        job = nil
    elseif revision % period == 0 then
        job = opened:start_merge()
    end
end
opened:close()
say("done")
