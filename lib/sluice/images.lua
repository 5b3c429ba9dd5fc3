--- What a worker has mapped of what is live, and the block of the control worker
-- (module/gateway/image/ngx_sluice_images.h).
--
-- Functions are called as in C: `images.C.sluice_images_match(...)`; ngx_sluice_abi.h
-- lists them. What they find points into files that are mapped: it is good until nginx's event loop
-- is returned to, so copy it before anything yields.
-- @module sluice.images
-- @usage
-- local match = ffi.new("sluice_images_match_t")
-- local rc = C.sluice_images_match(base.get_request(), path, #path, match)

local abi = require("sluice.abi")
local core = require("sluice.core")
local ffi = require("ffi")

local _M = {}

local is_nginx = abi.declare([[
typedef enum {
    SLUICE_CONTROL_STOPPED = 0,
    SLUICE_CONTROL_STARTING,
    SLUICE_CONTROL_WAITING,
    SLUICE_CONTROL_BUILDING,
    SLUICE_CONTROL_LIVE,
    SLUICE_CONTROL_READ_ONLY
} sluice_control_state_e;
typedef struct {
    uint64_t started_at;
    uint64_t heartbeat;
    uint64_t revision;
    uint64_t failures;
    uint32_t pid;
    uint32_t state;
    uint32_t starts;
    uint32_t deaths;
    uint64_t recent_deaths[8];
    uint32_t seats[8];
    char error[256];
} sluice_control_t;
typedef struct {
    uint64_t revision;
    uint64_t epoch;
    uint32_t slot;
    uint32_t generation;
    uint32_t service;
    int32_t prefix;
    int32_t reason;
    uint32_t zero;
    sluice_core_found_t route;
} sluice_images_match_t;
int sluice_images_open(const char *folder, size_t length);
int sluice_images_refresh(void);
const sluice_core_view_t *sluice_images_view(void);
uint64_t sluice_images_epoch(void);
sluice_core_page_t *sluice_images_page(void);
int sluice_images_match(void *r, const char *path, size_t length,
    sluice_images_match_t *match);
int sluice_images_by_slot(int kind, uint32_t slot, sluice_core_found_t *found);
int sluice_images_by_id(int kind, const uint8_t *id, sluice_core_found_t *found);
int sluice_images_by_key(int kind, const char *key, size_t length, sluice_core_found_t *found);
int sluice_images_credential(const char *kind, size_t kind_length, const char *key,
    size_t length, sluice_core_found_t *found);
sluice_control_t *sluice_control_block(void);
int sluice_control_accept(void);
int sluice_control_deaths(uint32_t ms);
]])

--- The functions and constants; outside nginx the constants alone.
_M.C = core.C

--- Where is published what is live.
-- @treturn cdata|nil sluice_core_page_t; nil outside nginx, and without `sluice_control on`
-- @phases any but init
function _M.page()
    local page = is_nginx and ffi.C.sluice_images_page() or nil
    return page ~= nil and page or nil
end

return _M
