/*
 * Between a program and the disk, by LD_PRELOAD: notes what is written to the
 * files of a folder, ends the program at a step, or lets steps fail.
 *
 *   SHIM_FOLDER  the folder; steps elsewhere are not seen
 *   SHIM_TRACE   a file that gets every step, for the simulation of power cuts
 *   SHIM_STOP    the step (from 1) at which the program is killed
 *   SHIM_TEAR    1: half of a write is done before
 *   SHIM_FAIL    the step from which on steps fail
 *   SHIM_FAILS   how many fail
 *   SHIM_ERRNO   how
 *
 * A step is a write, a truncation, a sync, a creation, an unlink, a rename.
 * What SQLite keeps in -shm is made anew after a crash, and is not seen.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int trace = -1;
static long step, stop_at, fail_at, fails;
static int fail_errno, tear;
static const char *folder;

void store_mark(const char *text);

static void *
real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static long
number(const char *name)
{
    const char *text = getenv(name);

    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void
start(void)
{
    int (*open_file)(const char *, int, ...) = real("open");
    const char *path = getenv("SHIM_TRACE");

    folder = getenv("SHIM_FOLDER");
    stop_at = number("SHIM_STOP");
    fail_at = number("SHIM_FAIL");
    fails = number("SHIM_FAILS");
    fail_errno = (int) number("SHIM_ERRNO");
    tear = (int) number("SHIM_TEAR");
    if (path) {
        trace = open_file(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                          0600);
    }
}

static int
is_seen(const char *path)
{
    size_t n = strlen(path);

    return folder && strncmp(path, folder, strlen(folder)) == 0
           && (n < 4 || strcmp(path + n - 4, "-shm") != 0);
}

static int
path_of(int fd, char *path)
{
    char link[64];
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) {
        return 0;
    }
    path[n] = '\0';
    return is_seen(path);
}

static void
note(char op, const char *path, uint64_t offset, const void *data, uint64_t n)
{
    ssize_t (*put)(int, const void *, size_t) = real("write");
    struct {
        uint64_t op, path, offset, data;
    } head = { (uint64_t) op, strlen(path), offset, n };

    if (trace < 0) {
        return;
    }
    if (put(trace, &head, sizeof(head)) < 0 || put(trace, path, head.path) < 0
        || (data && n && put(trace, data, n) < 0))
    {
        abort();
    }
}

/* Before a step: 0, or what it is to fail with. */
static int
begin(int fd, const void *data, size_t n, off_t at)
{
    ssize_t (*put)(int, const void *, size_t, off_t) = real("pwrite");

    step++;
    if (step == stop_at) {
        if (tear && data && put(fd, data, n / 2, at) < 0) {
            abort();
        }
        kill(getpid(), SIGKILL);
    }
    return fail_at && step >= fail_at && step < fail_at + fails ? fail_errno
                                                                : 0;
}

void
store_mark(const char *text)
{
    note('M', text, 0, NULL, 0);
}

static ssize_t
write_at(int fd, const void *data, size_t n, off_t at)
{
    ssize_t (*put)(int, const void *, size_t, off_t) = real("pwrite");
    char path[PATH_MAX];
    int err;

    if (!path_of(fd, path)) {
        return put(fd, data, n, at);
    }
    err = begin(fd, data, n, at);
    if (err) {
        errno = err;
        return -1;
    }
    note('W', path, (uint64_t) at, data, n);
    return put(fd, data, n, at);
}

ssize_t
pwrite(int fd, const void *data, size_t n, off_t at)
{
    return write_at(fd, data, n, at);
}

ssize_t
pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    return write_at(fd, data, n, at);
}

ssize_t
write(int fd, const void *data, size_t n)
{
    ssize_t (*put)(int, const void *, size_t) = real("write");
    char path[PATH_MAX];
    int err;

    if (!path_of(fd, path)) {
        return put(fd, data, n);
    }
    err = begin(fd, data, n, lseek(fd, 0, SEEK_CUR));
    if (err) {
        errno = err;
        return -1;
    }
    note('W', path, (uint64_t) lseek(fd, 0, SEEK_CUR), data, n);
    return put(fd, data, n);
}

static int
truncate_to(int fd, off_t length)
{
    int (*cut)(int, off_t) = real("ftruncate");
    char path[PATH_MAX];
    int err;

    if (!path_of(fd, path)) {
        return cut(fd, length);
    }
    err = begin(fd, NULL, 0, 0);
    if (err) {
        errno = err;
        return -1;
    }
    note('T', path, (uint64_t) length, NULL, 0);
    return cut(fd, length);
}

int
ftruncate(int fd, off_t length)
{
    return truncate_to(fd, length);
}

int
ftruncate64(int fd, off64_t length)
{
    return truncate_to(fd, length);
}

static int
sync_file(int fd, const char *how)
{
    int (*sync_it)(int) = real(how);
    char path[PATH_MAX];
    int err, done;

    if (!path_of(fd, path)) {
        return sync_it(fd);
    }
    err = begin(fd, NULL, 0, 0);
    if (err) {
        errno = err;
        return -1;
    }
    done = sync_it(fd);
    note('S', path, 0, NULL, 0);
    return done;
}

int
fsync(int fd)
{
    return sync_file(fd, "fsync");
}

int
fdatasync(int fd)
{
    return sync_file(fd, "fdatasync");
}

static int
open_at(const char *how, const char *path, int flags, mode_t mode)
{
    int (*open_file)(const char *, int, ...) = real(how);
    int is_new, fd;

    is_new = (flags & O_CREAT) && is_seen(path) && access(path, F_OK) != 0;
    if (is_new) {
        int err = begin(-1, NULL, 0, 0);

        if (err) {
            errno = err;
            return -1;
        }
    }
    fd = open_file(path, flags, mode);
    if (is_new && fd >= 0) {
        note('C', path, 0, NULL, 0);
    }
    return fd;
}

#define OPEN(name)                                                            \
    int name(const char *path, int flags, ...)                                \
    {                                                                         \
        va_list args;                                                         \
        mode_t mode;                                                          \
                                                                              \
        va_start(args, flags);                                                \
        mode = (flags & O_CREAT) ? va_arg(args, mode_t) : 0;                  \
        va_end(args);                                                         \
        return open_at(#name, path, flags, mode);                             \
    }

OPEN(open)
OPEN(open64)

int
unlink(const char *path)
{
    int (*drop)(const char *) = real("unlink");

    if (is_seen(path) && access(path, F_OK) == 0) {
        int err = begin(-1, NULL, 0, 0);

        if (err) {
            errno = err;
            return -1;
        }
        note('U', path, 0, NULL, 0);
    }
    return drop(path);
}

int
rename(const char *from, const char *to)
{
    int (*move)(const char *, const char *) = real("rename");

    if (is_seen(from)) {
        int err = begin(-1, NULL, 0, 0);

        if (err) {
            errno = err;
            return -1;
        }
        note('R', from, 0, to, strlen(to));
    }
    return move(from, to);
}
