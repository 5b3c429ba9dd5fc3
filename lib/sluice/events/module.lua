--- The C module's functions, through FFI.
--
-- The module's shared object exports them, and nginx loads modules so that `ffi.C` finds what
-- they export. The declarations mirror ngx_sluice_abi.h and ring.h.
-- @module sluice.events.module

local abi = require("sluice.abi")
local ffi = require("ffi")

local C = ffi.C

local _M = {}

_M.OK = 0
_M.QUEUED = 1
_M.NONE = -1
_M.FULL = -2
_M.BUSY = -3
_M.REPEAT = -4
_M.OVERRUN = -5
_M.BAD = -6
_M.NOSLOT = -9

_M.WORKER = 1
_M.UNIQUE = 2

_M.MORE = 1
_M.REDELIVER = 2

_M.NAME_MAX = 4096

-- What a slot counts, in the order of its words.
_M.counters = {
    "published",
    "published_bytes",
    "repeats",
    "found_full",
    "found_busy",
    "wakeups_sent",
    "read",
    "read_bytes",
    "overruns",
    "missed",
    "claimed",
    "sleeps",
    "delivered",
    "callback_errors",
    "queued",
    "refused",
    "dropped",
    "queue_depth",
    "queue_bytes",
}

local is_there, missing = abi.declare([[
typedef struct {
    const uint8_t *payload;
    const char *source;
    const char *event;
    uint64_t seq;
    uint64_t end_;
    uint64_t sent_ms;
    uint32_t name_low;
    uint32_t name_high;
    uint32_t length;
    uint32_t message;
    uint32_t piece;
    uint32_t epoch;
    uint32_t entry;
    uint16_t source_length;
    uint16_t event_length;
    uint16_t sender;
    uint16_t worker;
    uint8_t kind;
    uint8_t flags;
} sluice_ring_frame_t;

typedef struct {
    uint64_t count[24];
    uint64_t lag;
    uint64_t lag_bytes;
    uint32_t pid;
    uint32_t epoch;
    uint32_t generation;
    uint16_t worker;
    uint8_t state;
    uint8_t asleep;
} sluice_ring_slot_stats_t;

typedef struct {
    uint64_t size;
    uint64_t used;
    uint64_t tail;
    uint64_t seq;
    uint32_t attached;
    uint32_t detached;
    uint32_t slots;
    uint32_t top;
    uint32_t frame_limit;
    uint32_t stall_ms;
    uint32_t generation;
    uint32_t zero;
} sluice_ring_stats_t;

typedef struct {
    double delivered;
    double failed;
    double dropped;
    uint32_t generation;
    uint32_t workers;
    sluice_ring_frame_t frames[64];
} sluice_events_t;

const char *sluice_events_word(int rc);
double sluice_events_clock(void);
sluice_events_t *sluice_events_open(int vm);
void sluice_events_limit(sluice_events_t *ev, double count, double bytes);
int sluice_events_attach(sluice_events_t *ev, void *semaphore, void *spare,
    int (*post)(void *, int), int (*count)(void *), double *missed);
void sluice_events_detach(sluice_events_t *ev);
uint64_t sluice_events_name_hash(sluice_events_t *ev, const char *source, size_t source_length,
    const char *event, size_t event_length);
int sluice_events_publish(sluice_events_t *ev, uint64_t name_hash, const char *source,
    size_t source_length, const char *event, size_t event_length, const uint8_t *payload,
    size_t length);
int sluice_events_publish_to(sluice_events_t *ev, int kind, uint32_t worker, const char *key,
    size_t key_length, uint32_t timeout_ms, int flags, const char *source, size_t source_length,
    const char *event, size_t event_length, const uint8_t *payload, size_t length);
int sluice_events_next(sluice_events_t *ev);
int sluice_events_intact(sluice_events_t *ev);
int sluice_events_rejoin(sluice_events_t *ev, double *missed);
int sluice_events_claim(sluice_events_t *ev, const sluice_ring_frame_t *frame);
void sluice_events_done(sluice_events_t *ev, const sluice_ring_frame_t *frame);
void sluice_events_pause(sluice_events_t *ev);
void sluice_events_stats(sluice_events_t *ev, sluice_ring_stats_t *stats);
int sluice_events_slot_stats(sluice_events_t *ev, uint32_t slot,
    sluice_ring_slot_stats_t *stats);
double sluice_events_enter(void *request, void *semaphore, int (*post)(void *, int));
void sluice_events_leave(double serial);
int sluice_events_has_ended(double serial);
void sluice_events_leave_all(void);
]])

--- Looks whether this nginx has the module.
-- @treturn true|nil
-- @treturn string|nil what is missing, for people
-- @phases all
function _M.load()
    return is_there, missing
end

--- The word for a return code: documented, never changed.
-- @tparam number rc
-- @treturn string
function _M.word(rc)
    return ffi.string(C.sluice_events_word(rc))
end

return _M
