--- Draws a flame graph: folded stacks to an SVG that needs nothing else.
--
-- Folded stacks are lines of `outermost;...;innermost number`; a frame is as wide as its share of
-- the sum, and stands on the frame that called it. The idea and the format are Brendan Gregg's
-- (https://www.brendangregg.com/flamegraphs.html).

local _M = {}

local WIDTH, MARGIN = 1200, 10
local FRAME, TITLE = 18, 40
local CHAR = 6.8 -- of the font, in pixels

-- Narrower frames are left out: nobody could see them.
local MIN_PIXELS = 0.2

local HEAD = [[
<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">
<style>
  text { font: 11px monospace; }
  .title { font: 15px sans-serif; text-anchor: middle; }
  rect { stroke: #fff; stroke-width: 0.5; }
  g:hover rect { stroke: #000; }
</style>
<rect width="100%%" height="100%%" fill="#fdfaf3"/>
<text class="title" x="%d" y="24">%s</text>
]]

local FRAME_FORM = '<g><title>%s</title><rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>'
    .. '<text x="%.1f" y="%d">%s</text></g>\n'

local ESCAPES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

local function escape(text)
    return (text:gsub('[&<>"]', ESCAPES):gsub("[%z\1-\31]", "?"))
end

local function new_node(name)
    return { name = name, value = 0, children = {}, order = {} }
end

local function child_of(node, name)
    local child = node.children[name]
    if not child then
        child = new_node(name)
        node.children[name] = child
        node.order[#node.order + 1] = name
    end
    return child
end

--- Reads folded stacks into a tree.
-- @treturn table root `{name, value, children = name -> node, order = {name,...}}`
-- @treturn number depth
local function read(folded)
    local root, depth = new_node("all"), 1
    for line in folded:gmatch("[^\n]+") do
        local stack, number = line:match("^(.*) (%d+%.?%d*)$")
        number = tonumber(number)
        if number and number > 0 then
            local node, level = root, 1
            root.value = root.value + number
            for name in stack:gmatch("[^;]+") do
                node = child_of(node, name)
                node.value = node.value + number
                level = level + 1
            end
            depth = math.max(depth, level)
        end
    end
    return root, depth
end

--- A warm colour that a name always has.
local function color(name)
    local hash = 0
    for i = 1, #name do
        hash = (hash * 31 + name:byte(i)) % 65521
    end
    return ("rgb(%d,%d,%d)"):format(205 + hash % 50, 60 + hash % 170, 20 + hash % 45)
end

local function number_text(value)
    return value % 1 == 0 and ("%d"):format(value) or ("%.3f"):format(value)
end

local function draw(out, node, x, y, scale, root, unit)
    local width = node.value * scale
    if width < MIN_PIXELS then
        return
    end
    local share = 100 * node.value / root.value
    local title = ("%s (%s %s, %.1f%%)"):format(node.name, number_text(node.value), unit, share)
    local room = math.floor((width - 6) / CHAR)
    local label = room >= #node.name and node.name
        or room >= 3 and node.name:sub(1, room - 2) .. ".."
        or ""
    out[#out + 1] = FRAME_FORM:format(
        escape(title),
        x,
        y,
        width,
        FRAME - 1,
        color(node.name),
        x + 3,
        y + 13,
        escape(label)
    )
    table.sort(node.order)
    for _, name in ipairs(node.order) do
        local child = node.children[name]
        draw(out, child, x, y - FRAME, scale, root, unit)
        x = x + child.value * scale
    end
end

--- Draws folded stacks.
-- @tparam string folded
-- @tparam string title
-- @tparam string unit what the numbers count
-- @treturn string SVG
function _M.svg(folded, title, unit)
    local root, depth = read(folded)
    local height = TITLE + depth * FRAME + MARGIN
    if root.value == 0 then
        title = title .. ": nothing"
    end
    local out = { HEAD:format(WIDTH, height, WIDTH, height, WIDTH / 2, escape(title)) }
    if root.value > 0 then
        local scale = (WIDTH - 2 * MARGIN) / root.value
        draw(out, root, MARGIN, height - MARGIN - FRAME, scale, root, unit)
    end
    out[#out + 1] = "</svg>\n"
    return table.concat(out)
end

return _M
