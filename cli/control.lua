--- Talks to a running gateway through its control socket: one request, one response.
--
-- The socket is the admin listener's, in a directory that only its owner may enter.

local cjson = require("cjson")
local socket = require("posix.sys.socket")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local _M = {}

-- The gateway itself waits less than this.
local TIMEOUT_S = 45

--- Of a request with a declarative file: a million routes are checked for a minute or two. A
-- control worker that hangs is killed long before, and the connection ends.
_M.FILE_TIMEOUT_S = 600

local PIECE_BYTES = 65536

local function connect(path, timeout_s)
    local fd, err = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    if not fd then
        return nil, err
    end
    socket.setsockopt(fd, socket.SOL_SOCKET, socket.SO_RCVTIMEO, timeout_s, 0)
    socket.setsockopt(fd, socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout_s, 0)
    local connected, reason = socket.connect(fd, { family = socket.AF_UNIX, path = path })
    if not connected then
        unistd.close(fd)
        return nil, reason
    end
    return fd
end

local function send_all(fd, text)
    local at = 1
    while at <= #text do
        local sent, err = socket.send(fd, text:sub(at, at + PIECE_BYTES - 1))
        if not sent then
            return nil, err
        end
        at = at + sent
    end
    return true
end

local function receive_all(fd)
    local parts = {}
    while true do
        local part, err = socket.recv(fd, PIECE_BYTES)
        if not part then
            return nil, err
        elseif part == "" then
            return table.concat(parts)
        end
        parts[#parts + 1] = part
    end
end

--- Removes a socket that nobody listens on: nginx trips over one that a kill has left.
-- @tparam string path
-- @treturn true|nil
-- @treturn string|nil who is in the way
function _M.clear(path)
    if not stat.lstat(path) then
        return true
    end
    local fd = connect(path, TIMEOUT_S)
    if fd then
        unistd.close(fd)
        return nil, path .. " is in use by another program"
    end
    os.remove(path)
    return true
end

--- Asks the gateway.
-- @tparam string path of the socket
-- @tparam string method
-- @tparam string target path and query
-- @tparam[opt] table body `{type, text}`
-- @tparam[opt] number timeout_s of each wait, whole seconds
-- @treturn number|nil status
-- @treturn table|string the response's JSON; why there is none, when the first is nil
-- @treturn nil|string the JSON's text
function _M.ask(path, method, target, body, timeout_s)
    local fd, err = connect(path, timeout_s or TIMEOUT_S)
    if not fd then
        return nil, ("cannot reach the gateway at %s: %s"):format(path, err)
    end
    local head = ("%s %s HTTP/1.1\r\nHost: control\r\nConnection: close\r\n"):format(method, target)
    if body then
        head = head .. ("Content-Type: %s\r\nContent-Length: %d\r\n"):format(body.type, #body.text)
    end
    local sent = send_all(fd, head .. "\r\n" .. (body and body.text or ""))
    local text, reason = receive_all(fd)
    unistd.close(fd)
    local status = (text or ""):match("^HTTP/1%.1 (%d%d%d)")
    local content = text and text:match("\r\n\r\n(.*)$")
    local read, value = pcall(cjson.decode, content)
    if not status or not read then
        return nil, "the gateway did not answer: " .. (reason or (sent and "no JSON" or "cut off"))
    end
    return tonumber(status), value, content
end

return _M
