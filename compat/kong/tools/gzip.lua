--- Gzip, by the system's zlib: `kong.tools.gzip`.
-- @module kong.tools.gzip

local buffer = require("string.buffer")
local ffi = require("ffi")
local yield = require("kong.tools.yield").yield

local min = math.min

-- Under names of our own: another library may declare zlib's in its way.
ffi.cdef([[
typedef struct {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *(*zalloc)(void *opaque, unsigned items, unsigned size);
    void (*zfree)(void *opaque, void *address);
    void *opaque;
    int data_type;
    unsigned long adler;
    unsigned long reserved;
} sluice_zlib_stream_t;
const char *sluice_z_zlibVersion(void) __asm__("zlibVersion");
int sluice_z_deflateInit2(sluice_zlib_stream_t *stream, int level, int method, int bits, int memory,
    int strategy, const char *version, int size) __asm__("deflateInit2_");
int sluice_z_deflate(sluice_zlib_stream_t *stream, int flush) __asm__("deflate");
int sluice_z_deflateEnd(sluice_zlib_stream_t *stream) __asm__("deflateEnd");
int sluice_z_inflateInit2(sluice_zlib_stream_t *stream, int bits, const char *version, int size)
    __asm__("inflateInit2_");
int sluice_z_inflate(sluice_zlib_stream_t *stream, int flush) __asm__("inflate");
int sluice_z_inflateEnd(sluice_zlib_stream_t *stream) __asm__("inflateEnd");
]])

local NO_FLUSH, FINISH = 0, 4
local OK, STREAM_END, BUFFER_ERROR = 0, 1, -5
local DEFAULT_LEVEL, DEFLATED, DEFAULT_MEMORY = -1, 8, 8
local WINDOW_BITS = 15
-- Added to the bits of the window: gzip; when inflating also zlib's own format.
local GZIP, ANY = 16, 32

local CHUNK = 65536
-- What inflates to more is an attack, or a mistake.
local MAX_BYTES = 64 * 1024 * 1024

local _M = {}

local zlib

local function library()
    zlib = zlib or ffi.load("libz.so.1")
    return zlib
end

local FAILURES = {
    [2] = "a dictionary is needed",
    [-2] = "stream error",
    [-3] = "data error",
    [-4] = "no memory",
    [-5] = "the data end too early",
}

-- Runs `step` over all of a text, a chunk at a time. Yields between chunks where it can.
local function run(text, stream, step)
    local chunk, out = ffi.new("uint8_t[?]", CHUNK), buffer.new()
    local at = 0
    local rc
    repeat
        if stream.avail_in == 0 and at < #text then
            local size = min(CHUNK, #text - at)
            stream.next_in = ffi.cast("const uint8_t *", text) + at
            stream.avail_in = size
            at = at + size
        end
        stream.next_out, stream.avail_out = chunk, CHUNK
        rc = step(at == #text)
        if rc ~= OK and rc ~= STREAM_END and rc ~= BUFFER_ERROR then
            return nil, FAILURES[rc] or "error " .. rc
        end
        local made = CHUNK - stream.avail_out
        out:putcdata(chunk, made)
        if #out > MAX_BYTES then
            return nil, "more than 64 MiB"
        elseif made == 0 and rc == BUFFER_ERROR then
            return nil, FAILURES[BUFFER_ERROR]
        end
        yield()
    until rc == STREAM_END
    return out:get()
end

local function with_stream(init, finish, work)
    local stream = ffi.new("sluice_zlib_stream_t")
    local rc = init(stream, library().sluice_z_zlibVersion(), ffi.sizeof(stream))
    if rc ~= OK then
        return nil, FAILURES[rc] or "error " .. rc
    end
    local ok, made, err = pcall(work, stream)
    finish(stream)
    if not ok then
        error(made, 0)
    end
    return made, err
end

--- Compresses. Yields where the phase allows it, after each 64 KiB.
-- @tparam string text
-- @treturn string|nil
-- @treturn string|nil error
-- @phases any
function _M.deflate_gzip(text)
    local z = library()
    return with_stream(
        function(stream, version, size)
            local bits = WINDOW_BITS + GZIP
            return z.sluice_z_deflateInit2(
                stream,
                DEFAULT_LEVEL,
                DEFLATED,
                bits,
                DEFAULT_MEMORY,
                0,
                version,
                size
            )
        end,
        z.sluice_z_deflateEnd,
        function(stream)
            return run(text, stream, function(is_last)
                return z.sluice_z_deflate(stream, is_last and FINISH or NO_FLUSH)
            end)
        end
    )
end

--- Decompresses, up to 64 MiB. Yields as `deflate_gzip`.
-- @tparam string text gzip, or zlib's own format
-- @treturn string|nil
-- @treturn string|nil error
-- @phases any
function _M.inflate_gzip(text)
    local z = library()
    return with_stream(
        function(stream, version, size)
            return z.sluice_z_inflateInit2(stream, WINDOW_BITS + ANY, version, size)
        end,
        z.sluice_z_inflateEnd,
        function(stream)
            return run(text, stream, function()
                return z.sluice_z_inflate(stream, NO_FLUSH)
            end)
        end
    )
end

return _M
