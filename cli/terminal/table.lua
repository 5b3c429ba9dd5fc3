--- Tables of text for people.

local console = require("cli.terminal.console")
local ffi = require("ffi")
local unistd = require("posix.unistd")

local _M = {}

local GAP = "  "
-- Columns of a terminal that a cut column keeps at least, and the mark of a cut.
local LEAST = 8
local CUT = "…"

ffi.cdef([[
typedef struct { unsigned short rows, columns, x, y; } sluice_winsize_t;
int ioctl(int fd, unsigned long request, ...);
]])
-- Linux, asm-generic/ioctls.h
local TIOCGWINSZ = 0x5413

--- How wide the terminal is that standard output goes to.
-- @treturn number|nil columns; nil where it goes elsewhere, and nothing has to be cut
function _M.terminal_width()
    if unistd.isatty(unistd.STDOUT_FILENO) ~= 1 then
        return nil
    end
    local size = ffi.new("sluice_winsize_t")
    local asked = ffi.C.ioctl(unistd.STDOUT_FILENO, TIOCGWINSZ, size)
    return asked == 0 and size.columns > 0 and size.columns or nil
end

-- Characters, each taken for one column.
local function width_of(text)
    return #text - select(2, text:gsub("[\128-\191]", ""))
end

local function cut(text, width)
    if width_of(text) <= width then
        return text
    end
    local kept = {}
    for character in text:gmatch("[%z\1-\127\192-\255][\128-\191]*") do
        if #kept == width - 1 then
            break
        end
        kept[#kept + 1] = character
    end
    return table.concat(kept) .. CUT
end

local function widths_of(rows)
    local widths = {}
    for _, row in ipairs(rows) do
        for i, text in ipairs(row) do
            widths[i] = math.max(widths[i] or 0, width_of(text))
        end
    end
    return widths
end

-- Takes from the widest until all fit, or there is nothing to take.
local function fit(widths, room)
    local total = (#widths - 1) * #GAP
    for _, width in ipairs(widths) do
        total = total + width
    end
    while total > room do
        local widest = 1
        for i, width in ipairs(widths) do
            widest = width > widths[widest] and i or widest
        end
        if widths[widest] <= LEAST then
            return
        end
        widths[widest] = widths[widest] - 1
        total = total - 1
    end
end

-- What is anybody's, such as a name, stays in its cell.
local function cells_of(rows)
    local found = {}
    for r, row in ipairs(rows) do
        found[r] = {}
        for i, text in ipairs(row) do
            found[r][i] = console.one_line(text)
        end
    end
    return found
end

--- Lays rows out in columns.
-- @tparam {table,...} rows of texts, the first one the titles
-- @tparam[opt] table opts `left`: set of the columns that are not numbers; `width` to fit in
-- @treturn {string,...} lines
function _M.lines(rows, opts)
    local left, room = opts and opts.left or {}, opts and opts.width
    rows = cells_of(rows)
    local widths = widths_of(rows)
    if room then
        fit(widths, room)
    end
    local lines = {}
    for r, row in ipairs(rows) do
        local cells = {}
        for i, text in ipairs(row) do
            text = cut(text, widths[i])
            local padding = (" "):rep(widths[i] - width_of(text))
            cells[i] = left[i] and text .. padding or padding .. text
        end
        lines[r] = table.concat(cells, GAP):gsub(" +$", "")
    end
    return lines
end

return _M
