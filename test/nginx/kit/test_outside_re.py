"""`ngx.re` as the command line has it, beside nginx's own."""

from kit_runner import RUNNER, Worker, running

from sluice import Start
from upstream import Upstream

# Random subjects and patterns of pieces that mean something together.
COMPARE = r"""
    local theirs, ours = ngx.re, require("gateway.kit.outside.re")
    math.randomseed(SEED)
    local random = math.random
    local PIECES = {
        "a", "b", "(a)", "(b)?", "(?<n>a|b)", "(?:ab)*", "[a-c]+", ".", "^", "$", "\\b", "x*", " ",
        "(a|b)+", "\\d", "(", ")", "*", "\\", "(?=a)", "\xc3\xa9", "[^a]", "#c\n",
    }
    local TEXTS = { "a", "b", "c", "ab", " ", "1", "\n", "A", "\xc3\xa9", "" }
    local FLAGS = { "", "j", "jo", "i", "s", "m", "x", "a", "u", "ijosm", "uj", "D" }
    local REPLACEMENTS = { "", "-", "[$0]", "$1", "${2}x", "$$", "$9", "a$2b" }
    local function drawn(from, most)
        local out = {}
        for i = 1, random(0, most) do out[i] = from[random(#from)] end
        return table.concat(out)
    end
    -- Words and numbers of errors are those of a release of PCRE: nginx may have another.
    local function plain(value)
        if type(value) == "string" then
            value = value:gsub("^pcre2?_compile%(%) failed: .*", "no pattern")
            return (value:gsub("^(pcre_exec%(%) failed): .*", "%1"))
        elseif type(value) ~= "table" then
            return tostring(value)
        end
        local names, out = {}, {}
        for key in pairs(value) do names[#names + 1] = tostring(key) end
        table.sort(names)
        for i, key in ipairs(names) do
            out[i] = key .. "=" .. plain(value[tonumber(key) or key])
        end
        return "{" .. table.concat(out, ",") .. "}"
    end
    local function told(...)
        local out = {}
        for i = 1, 3 do out[i] = plain((select(i, ...))) end
        return table.concat(out, " ")
    end
    local function run(re, subject, pattern, flags, by, from)
        local out = { told(re.match(subject, pattern, flags)) }
        local ctx = { pos = from }
        out[2] = told(re.find(subject, pattern, flags, ctx, from % 3))
        out[3] = tostring(ctx.pos)
        out[4] = told(re.sub(subject, pattern, by, flags))
        out[5] = told(re.gsub(subject, pattern, by, flags))
        out[6] = told(re.gsub(subject, pattern, function(groups) return plain(groups) end, flags))
        local iterator, err = re.gmatch(subject, pattern, flags)
        out[7] = told(err)
        for i = 1, iterator and 20 or 0 do
            local groups, why = iterator()
            out[#out + 1] = told(groups, why)
            if not groups then break end
        end
        return table.concat(out, "\n")
    end
    local matched = 0
    for _ = 1, 3000 do
        local subject, pattern = drawn(TEXTS, 6), drawn(PIECES, 4)
        local flags, by = FLAGS[random(#FLAGS)], REPLACEMENTS[random(#REPLACEMENTS)]
        local from = random(#subject + 1)
        local one = run(theirs, subject, pattern, flags, by, from)
        local other = run(ours, subject, pattern, flags, by, from)
        matched = matched + (one:sub(1, 1) == "{" and 1 or 0)
        if one ~= other then
            return ("%q %q %q %q %d"):format(subject, pattern, flags, by, from), one, other
        end
    end
    return matched
"""


def test_it_does_what_nginxs_does(gateway: Start, upstream: Upstream) -> None:
    worker = Worker(gateway(running(upstream), plugins=RUNNER))
    for seed in range(1, 5):
        found = worker.run(COMPARE.replace("SEED", str(seed)))
        assert found[1:] == [None, None, None], f"seed {seed}: {found}"
        assert found[0] > 500
