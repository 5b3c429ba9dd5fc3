--- On which addresses somebody listens already, by what the kernel says of this machine.

local process = require("cli.instance.process")

local _M = {}

local LISTEN = "0A"
-- Words of 32 bits in the machine's order, which is x86's and ARM's.
local function ipv4(hex)
    local bytes = {}
    for byte in hex:gmatch("%x%x") do
        table.insert(bytes, 1, tonumber(byte, 16))
    end
    return table.concat(bytes, ".")
end

-- Calls `fn(address, port)` with hexadecimal digits for each socket of a file that listens.
local function each_socket(path, fn)
    for line in (process.read_file(path) or ""):gmatch("[^\n]+") do
        local address, port, state = line:match("^%s*%d+: (%x+):(%x+) %x+:%x+ (%x+)")
        if state == LISTEN then
            fn(address, tonumber(port, 16))
        end
    end
end

--- Whether it is these addresses alone that keep others from a port.
-- @tparam number port
-- @tparam table held set of bare addresses ("127.0.0.1:8000")
-- @treturn string|nil one of them; nil where others listen there as well, on IPv6 anybody
function _M.holder(port, held)
    local found, are_others = nil, false
    each_socket("/proc/net/tcp", function(address, at)
        local text = ("%s:%d"):format(ipv4(address), at)
        -- Which a setting may call so.
        local any = ("*:%d"):format(at)
        if at == port and (held[text] or text == "0.0.0.0:" .. at and held[any]) then
            found = text
        elseif at == port then
            are_others = true
        end
    end)
    each_socket("/proc/net/tcp6", function(_, at)
        are_others = are_others or at == port
    end)
    return not are_others and found or nil
end

return _M
