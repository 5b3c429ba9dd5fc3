--- Talks to a running gateway through its control socket: one request, one response, and one
-- deadline over both.
--
-- The socket is the admin listener's, in a directory that only its owner may enter.

local author = require("cli.instance.author")
local cjson = require("cjson")
local errno = require("posix.errno")
local http_response = require("sluice.http_response")
local process = require("cli.instance.process")
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

-- Of a response: the longest is a page of entities.
local MAX_BODY_BYTES = 1024 * 1024 * 1024

-- Gives a socket what is left of the time, for what it does next.
local function set_timeout(fd, option, deadline)
    local left = deadline - process.now_s()
    if left <= 0 then
        return nil, "timeout"
    end
    -- 0 would be no timeout.
    local microseconds = math.max(1, math.floor(left * 1e6))
    local whole = math.floor(microseconds / 1e6)
    return socket.setsockopt(fd, socket.SOL_SOCKET, option, whole, microseconds % 1e6)
end

local function connect(path, deadline)
    local fd, err = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    if not fd then
        return nil, err
    end
    set_timeout(fd, socket.SO_SNDTIMEO, deadline)
    local connected, reason = socket.connect(fd, { family = socket.AF_UNIX, path = path })
    if not connected then
        unistd.close(fd)
        return nil, reason
    end
    return fd
end

local function send_all(fd, text, deadline)
    local at = 1
    while at <= #text do
        local sent, err = set_timeout(fd, socket.SO_SNDTIMEO, deadline)
        if sent then
            sent, err = socket.send(fd, text:sub(at, at + PIECE_BYTES - 1))
        end
        if not sent then
            return nil, err
        end
        at = at + sent
    end
    return true
end

-- Reads the response.
-- @treturn number|nil status
-- @treturn string its body; why there is none, when the first is nil
-- @treturn number|nil revision that it names
local function receive(fd, deadline)
    local response = http_response.new(function(max_bytes)
        local part, err, number = set_timeout(fd, socket.SO_RCVTIMEO, deadline)
        if part then
            part, err, number = socket.recv(fd, max_bytes)
        end
        if part == "" then
            return nil, "closed"
        end
        return part, number == errno.EAGAIN and "timeout" or err
    end)
    local head, err = response:read_head()
    if not head then
        return nil, err
    end
    local parts = {}
    local done
    done, err = response:read_body(head, MAX_BODY_BYTES, function(part)
        parts[#parts + 1] = part
    end)
    if not done then
        return nil, err
    end
    return head.status, table.concat(parts), tonumber(head.headers["sluice-revision"])
end

--- Removes a socket that nobody listens on: nginx trips over one that a kill has left.
-- @tparam string path
-- @treturn true|nil
-- @treturn string|nil who is in the way
function _M.clear(path)
    if not stat.lstat(path) then
        return true
    end
    local fd = connect(path, process.now_s() + TIMEOUT_S)
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
-- @tparam[opt] table body `{type, text}`, and `file` where it was read (cli.instance.author)
-- @tparam[opt] number timeout_s for all of it, the response included
-- @treturn number|nil status
-- @treturn table|string the response's JSON; why there is none, when the first is nil
-- @treturn nil|string the JSON's text
-- @treturn nil|number the revision of what was answered
function _M.ask(path, method, target, body, timeout_s)
    local deadline = process.now_s() + (timeout_s or TIMEOUT_S)
    local fd, err = connect(path, deadline)
    if not fd then
        return nil, ("cannot reach the gateway at %s: %s"):format(path, err)
    end
    local first = "%s %s HTTP/1.1\r\nHost: control\r\nConnection: close\r\nSluice-User: %s\r\n"
    local head = first:format(method, target, author.user())
    if body and body.file then
        head = ("%sSluice-Source: %s\r\n"):format(head, author.source(body.file))
    end
    if body then
        head = head .. ("Content-Type: %s\r\nContent-Length: %d\r\n"):format(body.type, #body.text)
    end
    -- A gateway that refuses has answered before it has read all.
    send_all(fd, head .. "\r\n" .. (body and body.text or ""), deadline)
    local status, text, revision = receive(fd, deadline)
    unistd.close(fd)
    if not status then
        return nil, "the gateway did not answer: " .. text
    end
    local read, value = pcall(cjson.decode, text)
    if not read then
        return nil, "invalid response from the gateway: not JSON"
    end
    return status, value, text, revision
end

return _M
