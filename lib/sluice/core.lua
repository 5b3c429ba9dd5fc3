--- The core (module/core): images, deltas and what stands in them, by FFI.
--
-- In nginx the module has it, and what is declared here is compared with the module's own. Outside,
-- a library of the same sources is loaded (sluice.built). What the structs and functions promise
-- stands in module/core/image/core.h and module/core/image/delta.h.
--
-- A found record points into a mapped file, so that it is good only as long as its view is: copy
-- what has to live longer. Nothing here yields or allocates but Lua's own strings and tables.
-- @module sluice.core
-- @usage
-- local core = require("sluice.core")
-- local C = core.C
-- if C.sluice_core_published(page, published) == C.SLUICE_CORE_OK then ... end

local abi = require("sluice.abi")
local built = require("sluice.built")
local ffi = require("ffi")

local _M = {}

--- What is declared, in the words of the headers.
_M.declarations = [[
typedef enum {
    SLUICE_CORE_OK = 0,
    SLUICE_CORE_NONE = -1,
    SLUICE_CORE_FULL = -2,
    SLUICE_CORE_BAD = -3,
    SLUICE_CORE_VERSION = -4,
    SLUICE_CORE_LIMIT = -5,
    SLUICE_CORE_PATTERN = -6,
    SLUICE_CORE_MEMORY = -7,
    SLUICE_CORE_REPEAT = -8,
    SLUICE_CORE_LARGE = -9,
    SLUICE_CORE_CROWDED = -10,
    SLUICE_CORE_FOREIGN = -11,
    SLUICE_CORE_SYSTEM = -12,
    SLUICE_CORE_STALE = -13,
    SLUICE_CORE_CLIMB = -14,
    SLUICE_CORE_AGAIN = -15
} sluice_core_rc_e;
typedef enum {
    SLUICE_CORE_SERVICE = 0,
    SLUICE_CORE_UPSTREAM,
    SLUICE_CORE_CONSUMER,
    SLUICE_CORE_ROUTE,
    SLUICE_CORE_TARGET,
    SLUICE_CORE_CREDENTIAL,
    SLUICE_CORE_PLUGIN,
    SLUICE_CORE_NAME,
    SLUICE_CORE_GROUP,
    SLUICE_CORE_MEMBERSHIP,
    SLUICE_CORE_CERTIFICATE,
    SLUICE_CORE_CA_CERTIFICATE,
    SLUICE_CORE_SNI,
    SLUICE_CORE_KINDS
} sluice_core_kind_e;
enum {
    SLUICE_CORE_ROUTE_SERVICE = 0,
    SLUICE_CORE_ROUTE_FLAGS,
    SLUICE_CORE_ROUTE_NAME,
    SLUICE_CORE_ROUTE_HOSTS,
    SLUICE_CORE_ROUTE_PATHS,
    SLUICE_CORE_ROUTE_METHODS,
    SLUICE_CORE_ROUTE_HEADERS,
    SLUICE_CORE_ROUTE_PRIORITY,
    SLUICE_CORE_ROUTE_SNIS
};
enum {
    SLUICE_CORE_SERVICE_FLAGS = 0,
    SLUICE_CORE_SERVICE_NAME,
    SLUICE_CORE_SERVICE_HOST,
    SLUICE_CORE_SERVICE_PATH,
    SLUICE_CORE_SERVICE_PORT,
    SLUICE_CORE_SERVICE_CONNECT_MS,
    SLUICE_CORE_SERVICE_WRITE_MS,
    SLUICE_CORE_SERVICE_READ_MS,
    SLUICE_CORE_SERVICE_TLS
};
enum {
    SLUICE_CORE_UPSTREAM_NAME = 0,
    SLUICE_CORE_UPSTREAM_HOST_HEADER,
    SLUICE_CORE_UPSTREAM_SLOTS,
    SLUICE_CORE_UPSTREAM_FLAGS,
    SLUICE_CORE_UPSTREAM_CERTIFICATE
};
enum {
    SLUICE_CORE_TARGET_UPSTREAM = 0,
    SLUICE_CORE_TARGET_TARGET,
    SLUICE_CORE_TARGET_WEIGHT
};
enum {
    SLUICE_CORE_CONSUMER_USERNAME = 0,
    SLUICE_CORE_CONSUMER_CUSTOM_ID
};
enum {
    SLUICE_CORE_CREDENTIAL_CONSUMER = 0,
    SLUICE_CORE_CREDENTIAL_DIGEST
};
enum {
    SLUICE_CORE_PLUGIN_CONSUMER = 0,
    SLUICE_CORE_PLUGIN_GROUP,
    SLUICE_CORE_PLUGIN_ROUTE,
    SLUICE_CORE_PLUGIN_SERVICE,
    SLUICE_CORE_PLUGIN_NAME,
    SLUICE_CORE_PLUGIN_FLAGS,
    SLUICE_CORE_PLUGIN_PACKED
};
enum {
    SLUICE_CORE_NAME_HOST = 0,
    SLUICE_CORE_NAME_ADDRESSES
};
enum {
    SLUICE_CORE_GROUP_NAME = 0
};
enum {
    SLUICE_CORE_MEMBERSHIP_CONSUMER = 0,
    SLUICE_CORE_MEMBERSHIP_GROUP
};
enum {
    SLUICE_CORE_CERTIFICATE_CERT = 0,
    SLUICE_CORE_CERTIFICATE_KEY,
    SLUICE_CORE_CERTIFICATE_CERT_ALT,
    SLUICE_CORE_CERTIFICATE_KEY_ALT
};
enum {
    SLUICE_CORE_CA_CERTIFICATE_CERT = 0
};
enum {
    SLUICE_CORE_SNI_CERTIFICATE = 0,
    SLUICE_CORE_SNI_NAME
};
typedef struct {
    const char *data;
    uint32_t length;
} sluice_core_text_t;
typedef struct {
    sluice_core_text_t name;
    const sluice_core_text_t *values;
    uint32_t count;
} sluice_core_header_t;
typedef struct {
    const void *data;
    uint32_t count;
    uint32_t number;
} sluice_core_value_t;
typedef struct {
    uint8_t id[16];
    uint64_t revision;
    int64_t created_at;
    uint64_t sequence;
    uint32_t slot;
    uint32_t generation;
    const char *body;
    uint32_t body_length;
    uint16_t zero;
    uint8_t kind;
    uint8_t gone;
    sluice_core_value_t fields[9];
} sluice_core_entity_t;
typedef struct {
    uint8_t store[16];
    uint64_t revision;
} sluice_core_identity_t;
typedef struct sluice_core_record_s sluice_core_record_t;
typedef struct {
    const uint8_t *base;
    uint64_t size;
} sluice_core_space_t;
typedef struct {
    sluice_core_space_t base;
    sluice_core_space_t delta;
    uint64_t revision;
} sluice_core_view_t;
typedef struct {
    const sluice_core_record_t *record;
    sluice_core_space_t space;
} sluice_core_found_t;
uint64_t sluice_core_image_bound(const sluice_core_entity_t *entities,
    size_t count);
int sluice_core_image_build(const sluice_core_identity_t *identity,
    const sluice_core_entity_t *entities, size_t count, void *buffer,
    uint64_t size, uint64_t *used);
int sluice_core_check(const void *image, uint64_t size);
int sluice_core_file_write(const char *path, const void *data, uint64_t size,
    int sync);
typedef struct {
    sluice_core_identity_t identity;
    const sluice_core_entity_t *entities;
    size_t count;
    const char *path;
    uint64_t size;
    uint64_t thread;
    int is_begun;
    int rc;
    int error;
} sluice_core_work_t;
void sluice_core_work_begin(sluice_core_work_t *work);
int sluice_core_work_end(sluice_core_work_t *work);
int sluice_core_file_open(const char *path, uint32_t uid, int check,
    sluice_core_space_t *space);
void sluice_core_file_close(sluice_core_space_t *space);
uint64_t sluice_core_file_changed(const char *path);
void sluice_core_identity(const sluice_core_space_t *space,
    sluice_core_identity_t *identity);
sluice_core_found_t sluice_core_by_slot(const sluice_core_view_t *view,
    int kind, uint32_t slot);
uint32_t sluice_core_children(const sluice_core_view_t *view, int child,
    int kind, uint32_t slot, const uint32_t **slots);
uint32_t sluice_core_number(const sluice_core_found_t *found, int field);
sluice_core_text_t sluice_core_text(const sluice_core_found_t *found,
    int field);
uint32_t sluice_core_list(const sluice_core_found_t *found, int field);
sluice_core_text_t sluice_core_list_item(const sluice_core_found_t *found,
    int field, uint32_t index);
sluice_core_text_t sluice_core_body(const sluice_core_found_t *found);
void sluice_core_head(const sluice_core_found_t *found,
    sluice_core_entity_t *head);
int sluice_core_regex_check(const char *pattern, uint32_t length,
    int is_path, char *message, size_t size);
typedef struct sluice_core_regexes_s sluice_core_regexes_t;
sluice_core_regexes_t *sluice_core_regexes_create(uint64_t limit);
int sluice_core_regex_try(sluice_core_regexes_t *regexes, const char *pattern,
    uint32_t length, int is_path, const char *subject, uint32_t subject_length,
    int is_first, int *reason);
void sluice_core_reason(int reason, char *message, size_t size);
const char *sluice_core_word(int rc);
typedef struct {
    sluice_core_space_t space;
    uint64_t tail;
    uint64_t linked;
    uint64_t dependents;
    uint32_t first;
    uint32_t last;
} sluice_core_writer_t;
typedef struct {
    uint64_t base;
    uint64_t delta;
    uint64_t revision;
} sluice_core_published_t;
typedef struct sluice_core_page_s sluice_core_page_t;
typedef struct {
    sluice_core_entity_t *entities;
    size_t count;
    void *scratch;
} sluice_core_live_t;
int sluice_core_delta_create(const char *path, uint64_t size,
    const sluice_core_identity_t *identity, sluice_core_writer_t *writer);
int sluice_core_delta_open(const char *path, uint32_t uid, int check,
    sluice_core_space_t *space);
int sluice_core_delta_holds(const sluice_core_space_t *delta,
    const sluice_core_identity_t *identity, uint64_t linked);
int sluice_core_delta_stage(sluice_core_writer_t *writer,
    const sluice_core_view_t *view, const sluice_core_entity_t *changes,
    size_t count, uint64_t revision);
void sluice_core_delta_abandon(sluice_core_writer_t *writer);
void sluice_core_delta_link(sluice_core_writer_t *writer);
uint64_t sluice_core_delta_room(const sluice_core_writer_t *writer);
int sluice_core_live(const sluice_core_view_t *view,
    const sluice_core_entity_t *changes, size_t count,
    sluice_core_live_t *live);
void sluice_core_live_free(sluice_core_live_t *live);
size_t sluice_core_page_size(void);
void sluice_core_publish(sluice_core_page_t *page,
    const sluice_core_published_t *published);
int sluice_core_published(const sluice_core_page_t *page,
    sluice_core_published_t *published);
]]

local function load_library()
    local ok, library = pcall(ffi.load, built.core)
    if not ok then
        error(("%s; %s"):format(library, built.remedy), 0)
    end
    return library
end

--- The functions and constants.
_M.C = abi.declare(_M.declarations) and ffi.C or load_library()

local C = _M.C

--- The slot that is none, as a reference holds it.
_M.NOBODY = 0xffffffff

--- The word for a code of the core: "ok", "none", "full" ...
-- @tparam number rc
-- @treturn string
function _M.word(rc)
    return ffi.string(C.sluice_core_word(rc))
end

local message = ffi.new("char[256]")

--- Why a regular expression gave up, in PCRE's words.
-- @tparam number reason of a match, or of `try_pattern`
-- @treturn string
function _M.reason(reason)
    C.sluice_core_reason(reason, message, ffi.sizeof(message))
    return ffi.string(message)
end

--- Whether the match can run a pattern. Takes some tens of microseconds.
-- @tparam string pattern PCRE syntax, at most 4,096 bytes and 99 groups
-- @tparam boolean is_path anchored, as in a path; else without case, as in a header
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check_pattern(pattern, is_path)
    local rc = C.sluice_core_regex_check(
        pattern,
        #pattern,
        is_path and 1 or 0,
        message,
        ffi.sizeof(message)
    )
    if rc ~= C.SLUICE_CORE_OK then
        return nil, ffi.string(message)
    end
    return true
end

-- Bytes of compiled patterns.
local CACHE = 2 ^ 25

-- Made when it is first needed.
local regexes
local reason_of = ffi.new("int[1]")

--- Runs a pattern as the match does. The first of a request may spend 1.25 ms of CPU time and
-- 50,000 steps, each of the next ones half of what is left. Does not yield.
-- @tparam string pattern that `check_pattern` takes
-- @tparam boolean is_path
-- @tparam string subject
-- @tparam[opt=false] boolean is_next it is run behind those of the calls before; else as the first
-- @treturn boolean|nil whether it matches; nil: it gave up
-- @treturn nil|number for `reason`
function _M.try_pattern(pattern, is_path, subject, is_next)
    regexes = regexes or C.sluice_core_regexes_create(CACHE)
    local rc = C.sluice_core_regex_try(
        regexes,
        pattern,
        #pattern,
        is_path and 1 or 0,
        subject,
        #subject,
        is_next and 0 or 1,
        reason_of
    )
    if rc == C.SLUICE_CORE_OK or rc == C.SLUICE_CORE_NONE then
        return rc == C.SLUICE_CORE_OK
    end
    return nil, reason_of[0]
end

local function string_of(text)
    if text.data == nil then
        return nil
    end
    return ffi.string(text.data, text.length)
end

--- A text of a record.
-- @tparam cdata found sluice_core_found_t
-- @tparam number field such as `C.SLUICE_CORE_ROUTE_NAME`
-- @treturn string|nil nil where it is not given
function _M.text(found, field)
    return string_of(C.sluice_core_text(found, field))
end

--- A list of texts of a record.
-- @tparam cdata found
-- @tparam number field
-- @treturn {string,...} empty where it is not given
function _M.list(found, field)
    local list = {}
    for i = 1, C.sluice_core_list(found, field) do
        list[i] = string_of(C.sluice_core_list_item(found, field, i - 1))
    end
    return list
end

--- The entity's own text: its JSON.
-- @tparam cdata found
-- @treturn string|nil
function _M.body(found)
    return string_of(C.sluice_core_body(found))
end

return _M
