--- SQLite by FFI: a connection, its prepared statements, rows as arrays.
--
-- What SQLite refuses is thrown as a *failure*, a table `{ code =, errno =, message = }` with the
-- extended result code; the verbs of `gateway.store.database` catch it. Values are always bound.
-- Each call blocks on the disk.
--
-- Declared by hand after https://sqlite.org/c3ref/intro.html; these functions keep their ABI over
-- all of SQLite 3. A destructor is declared as a number: only its two constants are ever passed.
-- @module gateway.store.sqlite

local ffi = require("ffi")

local band = bit.band
local cast = ffi.cast

ffi.cdef([[
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
typedef struct sqlite3_mutex sqlite3_mutex;
typedef struct sqlite3_file sqlite3_file;
typedef struct {
    int version;
    int (*close)(sqlite3_file *file);
    int (*read)(sqlite3_file *file, void *bytes, int size, int64_t offset);
    int (*write)(sqlite3_file *file, const void *bytes, int size, int64_t offset);
    int (*truncate)(sqlite3_file *file, int64_t size);
    int (*sync)(sqlite3_file *file, int flags);
    int (*file_size)(sqlite3_file *file, int64_t *size);
    int (*lock)(sqlite3_file *file, int how);
    int (*unlock)(sqlite3_file *file, int how);
    int (*check_reserved_lock)(sqlite3_file *file, int *out);
    int (*file_control)(sqlite3_file *file, int op, void *value);
    int (*sector_size)(sqlite3_file *file);
    int (*device_characteristics)(sqlite3_file *file);
    /* from here on, version 2 */
    int (*shm_map)(sqlite3_file *file, int number, int size, int is_made, void volatile **out);
} sqlite3_io_methods_t;
struct sqlite3_file {
    const sqlite3_io_methods_t *methods;
};
int sqlite3_libversion_number(void);
int sqlite3_threadsafe(void);
int sqlite3_open_v2(const char *path, sqlite3 **db, int flags, const char *vfs);
int sqlite3_close(sqlite3 *db);
int sqlite3_extended_result_codes(sqlite3 *db, int on);
int sqlite3_busy_timeout(sqlite3 *db, int ms);
int sqlite3_extended_errcode(sqlite3 *db);
int sqlite3_system_errno(sqlite3 *db);
const char *sqlite3_errmsg(sqlite3 *db);
const char *sqlite3_errstr(int code);
int sqlite3_get_autocommit(sqlite3 *db);
int sqlite3_db_readonly(sqlite3 *db, const char *name);
int sqlite3_db_config(sqlite3 *db, int op, ...);
int sqlite3_file_control(sqlite3 *db, const char *name, int op, void *value);
int sqlite3_db_status(sqlite3 *db, int op, int *current, int *highest, int reset);
sqlite3_mutex *sqlite3_db_mutex(sqlite3 *db);
void sqlite3_mutex_enter(sqlite3_mutex *mutex);
void sqlite3_mutex_leave(sqlite3_mutex *mutex);
int sqlite3_prepare_v3(sqlite3 *db, const char *sql, int length, unsigned flags,
    sqlite3_stmt **statement, const char **tail);
sqlite3_stmt *sqlite3_next_stmt(sqlite3 *db, sqlite3_stmt *after);
int sqlite3_bind_null(sqlite3_stmt *statement, int at);
int sqlite3_bind_double(sqlite3_stmt *statement, int at, double value);
int sqlite3_bind_int64(sqlite3_stmt *statement, int at, int64_t value);
int sqlite3_bind_text(sqlite3_stmt *statement, int at, const char *text, int length,
    intptr_t destructor);
int sqlite3_bind_blob(sqlite3_stmt *statement, int at, const void *bytes, int length,
    intptr_t destructor);
int sqlite3_step(sqlite3_stmt *statement);
int sqlite3_reset(sqlite3_stmt *statement);
int sqlite3_finalize(sqlite3_stmt *statement);
int sqlite3_column_count(sqlite3_stmt *statement);
int sqlite3_column_type(sqlite3_stmt *statement, int column);
int64_t sqlite3_column_int64(sqlite3_stmt *statement, int column);
double sqlite3_column_double(sqlite3_stmt *statement, int column);
const char *sqlite3_column_text(sqlite3_stmt *statement, int column);
const void *sqlite3_column_blob(sqlite3_stmt *statement, int column);
int sqlite3_column_bytes(sqlite3_stmt *statement, int column);
]])

local OPEN_READONLY = 1
local OPEN_READWRITE = 2
local OPEN_FULLMUTEX = 0x10000
local PREPARE_PERSISTENT = 1
local DBSTATUS_CACHE_WRITE, DBSTATUS_DEFERRED_FKS = 9, 10
local DBCONFIG_NO_CKPT_ON_CLOSE = 1006
local FCNTL_FILE_POINTER = 7
-- The log's index: the bytes of a block, and the word of its head that says the last frame.
local INDEX_BLOCK_BYTES, INDEX_LAST_FRAME = 32768, 4
-- Whether bound bytes stay where they are until the statement has run, or SQLite has to copy them.
local STATIC, TRANSIENT = 0, -1
local chars = ffi.typeof("const char *")
-- types of columns
local INTEGER, FLOAT, NULL = 1, 2, 5
-- `UPDATE ... RETURNING` and `VACUUM INTO` with a bound name
local OLDEST = 3035000

local _M = {
    OK = 0,
    BUSY = 5,
    READONLY = 8,
    IOERR = 10,
    IOERR_SHORT_READ = 522,
    CORRUPT = 11,
    FULL = 13,
    CANTOPEN = 14,
    CONSTRAINT = 19,
    NOTADB = 26,
    ROW = 100,
    DONE = 101,
}
local methods = {}
local mt = { __index = methods }

local library

local function load_library()
    if not library then
        library = ffi.load("libsqlite3.so.0")
        if library.sqlite3_libversion_number() < OLDEST or library.sqlite3_threadsafe() == 0 then
            error("libsqlite3 has to be 3.35 or later, and built for threads", 0)
        end
    end
    return library
end

--- Keeps the library for as long as this Lua VM lives. Where threads' VMs alone have loaded it, it
-- goes with them, and every connection with it.
function _M.keep()
    load_library()
end

--- The basic code of an extended one.
-- @tparam number code
-- @treturn number such as `sqlite.CONSTRAINT`
function _M.basic(code)
    return band(code, 0xff)
end

local function fail(self)
    error({
        code = library.sqlite3_extended_errcode(self.db),
        errno = library.sqlite3_system_errno(self.db),
        message = ffi.string(library.sqlite3_errmsg(self.db)),
    }, 0)
end

local function wrap(db)
    return setmetatable({ db = db, statements = {} }, mt)
end

--- Opens a database that exists.
-- @tparam string path
-- @tparam[opt] boolean read_only
-- @treturn table connection; throws a failure
function _M.open(path, read_only)
    local lib = load_library()
    local out = ffi.new("sqlite3 *[1]")
    local flags = (read_only and OPEN_READONLY or OPEN_READWRITE) + OPEN_FULLMUTEX
    local code = lib.sqlite3_open_v2(path, out, flags, nil)
    if code ~= _M.OK then
        local errno = out[0] ~= nil and lib.sqlite3_system_errno(out[0]) or 0
        lib.sqlite3_close(out[0])
        error({ code = code, errno = errno, message = ffi.string(lib.sqlite3_errstr(code)) }, 0)
    end
    lib.sqlite3_extended_result_codes(out[0], 1)
    -- Who finds damage closes what he has opened, and nothing is to change by that.
    local on, no_answer = ffi.cast("int", 1), ffi.cast("int *", nil)
    lib.sqlite3_db_config(out[0], DBCONFIG_NO_CKPT_ON_CLOSE, on, no_answer)
    return wrap(out[0])
end

--- The connection that another Lua VM of this process has opened.
-- @tparam number address of its `address`
-- @treturn table connection with statements of its own
function _M.attach(address)
    load_library()
    return wrap(ffi.cast("sqlite3 *", ffi.cast("uintptr_t", address)))
end

--- Where the connection is, for `attach`.
-- @treturn number
function methods:address()
    return tonumber(ffi.cast("uintptr_t", self.db))
end

local function prepared(self, sql)
    local statement = self.statements[sql]
    if not statement then
        local out = ffi.new("sqlite3_stmt *[1]")
        local code = library.sqlite3_prepare_v3(self.db, sql, #sql, PREPARE_PERSISTENT, out, nil)
        if code ~= _M.OK then
            fail(self)
        end
        statement, self.statements[sql] = out[0], out[0]
    end
    return statement
end

local function bind(self, statement, values, count, keep)
    for i = 1, count do
        local value = values[i]
        local code
        if value == nil then
            code = library.sqlite3_bind_null(statement, i)
        elseif type(value) == "string" then
            code = library.sqlite3_bind_text(statement, i, value, #value, keep)
        elseif type(value) == "userdata" then
            local bytes, length = value:ref()
            code = library.sqlite3_bind_text(statement, i, bytes, length, keep)
        elseif type(value) == "table" then
            local bytes, length = value.bytes, #value.bytes
            if type(bytes) == "userdata" then
                bytes = bytes:ref()
            end
            code = library.sqlite3_bind_blob(statement, i, bytes, length, keep)
        elseif value % 1 == 0 then
            code = library.sqlite3_bind_int64(statement, i, value)
        else
            code = library.sqlite3_bind_double(statement, i, value)
        end
        if code ~= _M.OK then
            fail(self)
        end
    end
end

local function read_row(statement)
    local row = {}
    for i = 1, library.sqlite3_column_count(statement) do
        local kind = library.sqlite3_column_type(statement, i - 1)
        if kind == INTEGER then
            row[i] = tonumber(library.sqlite3_column_int64(statement, i - 1))
        elseif kind == FLOAT then
            row[i] = library.sqlite3_column_double(statement, i - 1)
        elseif kind ~= NULL then
            local text = library.sqlite3_column_text(statement, i - 1)
            row[i] = ffi.string(text, library.sqlite3_column_bytes(statement, i - 1))
        end
    end
    return row
end

-- What a broken statement says is read before its reset.
local function fail_reset(self, statement)
    local failure = {
        code = library.sqlite3_extended_errcode(self.db),
        errno = library.sqlite3_system_errno(self.db),
        message = ffi.string(library.sqlite3_errmsg(self.db)),
    }
    library.sqlite3_reset(statement)
    error(failure, 0)
end

-- Steps to the end, or to the row behind which nothing is wanted.
local function step(self, statement, rows, is_enough)
    local code = library.sqlite3_step(statement)
    while code == _M.ROW do
        if rows then
            rows[#rows + 1] = read_row(statement)
        end
        if is_enough and is_enough(rows) then
            break
        end
        code = library.sqlite3_step(statement)
    end
    if code ~= _M.ROW and code ~= _M.DONE then
        fail_reset(self, statement)
    end
    library.sqlite3_reset(statement)
end

--- Runs a statement for its effect.
-- @tparam string sql one statement, with `?` for each value
-- @param ... strings or `string.buffer`s, numbers, nil, `{ bytes = string or string.buffer }`
function methods:run(sql, ...)
    self:run_with(sql, { ... }, select("#", ...))
end

--- The same with the values in an array, which the JIT compiles: for statements that are run for
-- each entity.
-- @tparam string sql
-- @tparam table values which nobody changes meanwhile: SQLite copies none of them
-- @tparam number count of values, nil ones among them
function methods:run_with(sql, values, count)
    local statement = prepared(self, sql)
    bind(self, statement, values, count, STATIC)
    step(self, statement)
end

--- All rows of a statement.
-- @treturn {table,...} arrays of values; nil for NULL
function methods:rows(sql, ...)
    return self:rows_until(nil, sql, ...)
end

--- The first rows of a query. Not for statements that write: they would not be run to their end.
-- @tparam function|nil is_enough `(rows)`: whether nothing is wanted behind the last of these
-- @tparam string sql
-- @param ... values
-- @treturn {table,...}
function methods:rows_until(is_enough, sql, ...)
    local statement, rows = prepared(self, sql), {}
    bind(self, statement, { ... }, select("#", ...), TRANSIENT)
    step(self, statement, rows, is_enough)
    return rows
end

local function has_one()
    return true
end

-- The row that a statement stands on; its columns are counted from 0.
local row_methods = {}
local row_mt = { __index = row_methods }

--- An integer; 0 for NULL.
function row_methods:integer(column)
    return tonumber(library.sqlite3_column_int64(self.statement, column))
end

function row_methods:is_null(column)
    return library.sqlite3_column_type(self.statement, column) == NULL
end

--- The bytes of a text or blob, good until the next row.
-- @treturn cdata|nil `const char *`
-- @treturn number
function row_methods:bytes(column)
    local bytes = library.sqlite3_column_blob(self.statement, column)
    if bytes == nil then
        return nil, 0
    end
    return cast(chars, bytes), library.sqlite3_column_bytes(self.statement, column)
end

--- The same as a string.
function row_methods:string(column)
    local bytes, length = self:bytes(column)
    return bytes and ffi.string(bytes, length)
end

--- Visits the rows of a query where they stand: no string is made that nobody asks for.
-- @tparam string sql
-- @tparam function visit `(row)` with `integer`, `is_null`, `bytes`, `string`, each of a column's
-- number from 0; false ends it. The same statement cannot be visited meanwhile.
-- @param ... values
function methods:each(sql, visit, ...)
    local statement = prepared(self, sql)
    bind(self, statement, { ... }, select("#", ...), TRANSIENT)
    local row = setmetatable({ statement = statement }, row_mt)
    local code = library.sqlite3_step(statement)
    while code == _M.ROW do
        local ok, goes_on = pcall(visit, row)
        if not ok then
            library.sqlite3_reset(statement)
            error(goes_on, 0)
        elseif goes_on == false then
            code = _M.DONE
        else
            code = library.sqlite3_step(statement)
        end
    end
    if code ~= _M.DONE then
        fail_reset(self, statement)
    end
    library.sqlite3_reset(statement)
end

--- The first row of a query. Not for statements that write: they would not be run to their end.
-- @treturn table|nil
function methods:row(sql, ...)
    return self:rows_until(has_one, sql, ...)[1]
end

--- Has a transaction begun?
function methods:in_transaction()
    return library.sqlite3_get_autocommit(self.db) == 0
end

--- Was it told to write no more?
function methods:is_query_only()
    return self:row("PRAGMA query_only")[1] == 1
end

--- Did a file that was to be written open for reading only?
function methods:is_read_only()
    return library.sqlite3_db_readonly(self.db, "main") == 1
end

local function status(self, op, resets)
    local current, highest = ffi.new("int[1]"), ffi.new("int[1]")
    library.sqlite3_db_status(self.db, op, current, highest, resets)
    return current[0]
end

--- Do references point nowhere, in the transaction that is open?
function methods:has_broken_references()
    return status(self, DBSTATUS_DEFERRED_FKS, 0) ~= 0
end

--- How many pages were written to the file or its log, since `forget_written`.
-- @treturn number
function methods:written()
    return status(self, DBSTATUS_CACHE_WRITE, 0)
end

--- Counts written pages from 0.
function methods:forget_written()
    status(self, DBSTATUS_CACHE_WRITE, 1)
end

-- SQLite's own descriptor: to close another one would give back its locks.
local function file_of(self)
    local out = ffi.new("sqlite3_file *[1]")
    library.sqlite3_file_control(self.db, "main", FCNTL_FILE_POINTER, out)
    return out[0]
end

--- How many frames of the log are of transactions that were made: one whose commit has failed may
-- have left more behind them. https://sqlite.org/walformat.html#the_wal_index_header
-- @treturn number 0 where there is no log
function methods:log_frames()
    if self:row("PRAGMA journal_mode")[1] ~= "wal" then
        return 0
    end
    -- Begins to read, so that the index is there.
    self:row("SELECT count(*) FROM sqlite_master")
    local file, out = file_of(self), ffi.new("void volatile *[1]")
    if file.methods.shm_map(file, 0, INDEX_BLOCK_BYTES, 0, out) ~= _M.OK or out[0] == nil then
        fail(self)
    end
    return ffi.cast("volatile uint32_t *", out[0])[INDEX_LAST_FRAME]
end

--- The size of the file, without what the log has for it.
-- @treturn number bytes
function methods:file_size()
    local file, size = file_of(self), ffi.new("int64_t[1]")
    if file.methods.file_size(file, size) ~= _M.OK then
        fail(self)
    end
    return tonumber(size[0])
end

--- Reads the file as it is on the disk, without what the log has for it. Behind its end are zeros.
-- @tparam cdata buffer
-- @tparam number size
-- @tparam number offset
function methods:read_file(buffer, size, offset)
    local file = file_of(self)
    local code = file.methods.read(file, buffer, size, offset)
    if code ~= _M.OK and code ~= _M.IOERR_SHORT_READ then
        error({ code = code, errno = 0, message = "the file cannot be read" }, 0)
    end
end

--- How long to wait for a lock of another process.
-- @tparam number ms
function methods:busy_timeout(ms)
    library.sqlite3_busy_timeout(self.db, ms)
end

--- Keeps other threads off the connection until `leave`; may be nested.
function methods:enter()
    library.sqlite3_mutex_enter(library.sqlite3_db_mutex(self.db))
end

--- Lets other threads use the connection.
function methods:leave()
    library.sqlite3_mutex_leave(library.sqlite3_db_mutex(self.db))
end

--- Forgets the statements of this VM, which is about to end.
function methods:forget()
    for _, statement in pairs(self.statements) do
        library.sqlite3_finalize(statement)
    end
    self.statements = {}
end

--- Closes it, with every statement of whichever VM. Nobody may use it at the time.
function methods:close()
    self.statements = {}
    local statement = library.sqlite3_next_stmt(self.db, nil)
    while statement ~= nil do
        library.sqlite3_finalize(statement)
        statement = library.sqlite3_next_stmt(self.db, nil)
    end
    library.sqlite3_close(self.db)
    self.db = nil
end

return _M
