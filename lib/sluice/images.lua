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
    uint64_t failed_at;
    uint32_t pid;
    uint32_t state;
    uint32_t starts;
    uint32_t deaths;
    uint32_t crashes;
    uint32_t checked;
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
int sluice_control_watch(const char *folder, void *semaphore, int (*post)(void *, int));
]])

--- The functions and constants; outside nginx the constants alone.
_M.C = core.C

local C = core.C

--- Where is published what is live.
-- @treturn cdata|nil sluice_core_page_t; nil outside nginx, and without `sluice_control on`
-- @phases any but init
function _M.page()
    local page = is_nginx and ffi.C.sluice_images_page() or nil
    return page ~= nil and page or nil
end

-- So long after a worker could not map what is live, one cannot: it tries again each second.
local FAILED_MS = 2000

local WHY = {
    checking = "a worker has died by a signal: what is live is being checked",
    damaged = "a worker cannot map what is live, and answers 503",
}

--- Whether what is live may be damaged, as far as the block tells.
-- @tparam cdata block sluice_control_t
-- @tparam number now_ms since 1970
-- @treturn string|nil "damaged": a worker cannot map it; "checking": a worker has died by a signal,
-- and the files were not checked since; nil: nothing is known
-- @treturn nil|string a sentence
-- @phases any
function _M.damage(block, now_ms)
    local word
    if block.failed_at ~= 0 and now_ms - tonumber(block.failed_at) < FAILED_MS then
        word = "damaged"
    elseif block.crashes ~= block.checked then
        word = "checking"
    end
    return word, word and WHY[word]
end

--- How many workers were started after one that died by a signal.
-- @treturn number 0 without `sluice_control on`
-- @phases any but init
function _M.crashes()
    local block = C.sluice_control_block()
    return block ~= nil and block.crashes or 0
end

--- Whether the files were checked after that many crashes.
-- @tparam number crashes of `crashes`
-- @treturn boolean
-- @phases any but init
function _M.are_checked(crashes)
    local block = C.sluice_control_block()
    return block == nil or block.checked == crashes
end

--- Notes that they are sound; of the control worker.
-- @tparam number crashes of `crashes`, before the check began
-- @phases timer
function _M.note_checked(crashes)
    local block = C.sluice_control_block()
    if block ~= nil then
        block.checked = crashes
    end
end

return _M
