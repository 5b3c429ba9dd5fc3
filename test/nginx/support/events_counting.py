"""Workers that count what they hear of a publisher."""

# Checks that numbers come in order, and which.
COUNT = """
    probe.count, probe.wrong, probe.last, probe.events = 0, 0, 0, 0
    ev:subscribe("n", "*", function(data)
        local n = type(data) == "table" and data.n or data
        if n ~= probe.last + 1 then probe.wrong = probe.wrong + 1 end
        probe.last = n
        probe.count = probe.count + 1
    end)
    ev:subscribe("sluice", "overrun", function(data)
        probe.missed = (probe.missed or 0) + data.missed
        probe.reason = data.reason
        probe.last_before = probe.last
    end)
"""


PUBLISH = """
    local answers, payload = {}, ("x"):rep(%d)
    for i = %d, %d do
        local ok, err = ev:publish("all", "n", "e", { n = i, payload = payload })
        local word = tostring(ok or err)
        answers[word] = (answers[word] or 0) + 1
    end
    return answers
"""
