--- Hands a request's first peer to nginx (module/nginx/ngx_http_sluice_peer.c).
-- @module gateway.proxy.peer

local abi = require("sluice.abi")
local base = require("resty.core.base")

local ffi = require("ffi")

local C = ffi.C
local get_request = base.get_request

abi.declare([[
typedef struct {
    uint64_t       sockaddr[4];
    uint32_t       socklen;
    uint32_t       length;
    unsigned char  text[64];
} sluice_peer_t;

typedef struct {
    uint32_t  connect;
    uint32_t  send;
    uint32_t  read;
} sluice_peer_timeouts_t;

int sluice_peer_parse(void *r, const char *text, size_t length, sluice_peer_t *peer);
int sluice_peer_use(void *r, const sluice_peer_t *peer, uint32_t tries,
    const sluice_peer_timeouts_t *timeouts);
]])

local OK = 0

local _M = {}

--- The address of a peer as nginx uses it, made when a worker first needs it. From then on the
-- peer's name is what nginx calls it, in $upstream_addr for one: `[::1]:80`, not `[0::1]:80`.
-- @tparam table peer of gateway.proxy.rotation
-- @treturn cdata|nil `sluice_peer_t`; nil: it has none, or there is no memory
-- @phases access, balancer
function _M.address(peer)
    local address = peer.address
    if not address then
        address = ffi.new("sluice_peer_t")
        if C.sluice_peer_parse(get_request(), peer.name, #peer.name, address) ~= OK then
            return nil
        end
        peer.address = address
        peer.name = ffi.string(address.text, address.length)
    end
    return address
end

local function parse_timeouts(destination)
    local timeouts = ffi.new(
        "sluice_peer_timeouts_t",
        destination.connect_timeout or 0,
        destination.write_timeout or 0,
        destination.read_timeout or 0
    )
    destination.timeouts = timeouts
    return timeouts
end

--- Says where the request goes first, how often it may be tried, and how long each try may take.
-- Does not yield.
-- @tparam table peer of gateway.proxy.rotation
-- @tparam table destination of gateway.proxy.plan
-- @treturn boolean false: the peer's address is none, or there is no memory
-- @phases access
function _M.use(peer, destination)
    local address = _M.address(peer)
    if not address then
        return false
    end
    local timeouts = destination.timeouts or parse_timeouts(destination)
    return C.sluice_peer_use(get_request(), address, destination.retries + 1, timeouts) == OK
end

return _M
