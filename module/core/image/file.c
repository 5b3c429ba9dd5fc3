
/*
 * Images and deltas as files: written whole or not at all, mapped read-only.
 */


#include "layout.h"
#include "delta.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


#define CORE_WRITE_MAX  (1ull << 30)       /* bytes a write */
#define CORE_HUGE       (2ull << 20)       /* of pages that are, on x86-64 */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE   25                 /* Linux 6.1; older ones refuse */
#endif


typedef int (*core_check_pt)(const void *data, uint64_t size);


static int core_open(const char *path, uint32_t uid, core_check_pt check,
    sluice_core_space_t *space);
static int core_write_all(int fd, const uint8_t *data, uint64_t size);
static void core_join_pages(int fd, const void *data, uint64_t size);
static void *core_map(int fd, uint64_t size);
static int core_sync_folder(const char *path);


int
sluice_core_file_write(const char *path, const void *data, uint64_t size,
    int sync)
{
    int   fd, n, err;
    char  temporary[PATH_MAX];

    n = snprintf(temporary, sizeof(temporary), "%s.%d.new", path,
                 (int) getpid());

    if (n < 0 || (size_t) n >= sizeof(temporary)) {
        errno = ENAMETOOLONG;
        return SLUICE_CORE_SYSTEM;
    }

    /* what a process of that number left behind when it died */

    if (unlink(temporary) == -1 && errno != ENOENT) {
        return SLUICE_CORE_SYSTEM;
    }

    fd = open(temporary, O_RDWR|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600);
    if (fd == -1) {
        return SLUICE_CORE_SYSTEM;
    }

    if (core_write_all(fd, data, size) != SLUICE_CORE_OK
        || (sync && fsync(fd) == -1))
    {
        err = errno;
        (void) close(fd);
        goto failed;
    }

    if (!sync) {
        core_join_pages(fd, data, size);
    }

    if (close(fd) == -1 || rename(temporary, path) == -1) {
        err = errno;
        goto failed;
    }

    return sync ? core_sync_folder(path) : SLUICE_CORE_OK;

failed:

    (void) unlink(temporary);
    errno = err;

    return SLUICE_CORE_SYSTEM;
}


static int
core_write_all(int fd, const uint8_t *data, uint64_t size)
{
    ssize_t  n;

    while (size) {
        n = write(fd, data, size < CORE_WRITE_MAX ? size : CORE_WRITE_MAX);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n <= 0) {
            errno = n ? errno : ENOSPC;
            return SLUICE_CORE_SYSTEM;
        }

        data += n;
        size -= (uint64_t) n;
    }

    return SLUICE_CORE_OK;
}


/*
 * Joins the pages of a file in memory to huge ones, up to the bodies, which
 * matches do not read: they read a dozen places at random, and would wait for
 * page tables, too.  A hint: other file systems and older kernels refuse.
 */

static void
core_join_pages(int fd, const void *data, uint64_t size)
{
    int                         err;
    void                       *p;
    const sluice_core_image_t  *image = data;

    if (size >= sizeof(sluice_core_image_t)
        && image->magic == SLUICE_CORE_MAGIC
        && image->bodies.offset < size)
    {
        size = image->bodies.offset;
    }

    size = size / CORE_HUGE * CORE_HUGE;

    if (size == 0) {
        return;
    }

    err = errno;
    p = core_map(fd, size);

    if (p != MAP_FAILED) {
        (void) madvise(p, size, MADV_COLLAPSE);
        (void) munmap(p, size);
    }

    errno = err;
}


/* Where huge pages of the file can be mapped as such. */

static void *
core_map(int fd, uint64_t size)
{
    void      *p;
    uint8_t   *room;
    uint64_t   page, pages, before;

    if (size < CORE_HUGE) {
        return mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    }

    page = (uint64_t) sysconf(_SC_PAGESIZE);
    pages = (size + page - 1) / page * page;

    room = mmap(NULL, pages + CORE_HUGE, PROT_NONE,
                MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }

    before = -(uintptr_t) room % CORE_HUGE;
    p = mmap(room + before, size, PROT_READ, MAP_SHARED|MAP_FIXED, fd, 0);

    if (p == MAP_FAILED) {
        (void) munmap(room, pages + CORE_HUGE);
        return MAP_FAILED;
    }

    if (before) {
        (void) munmap(room, before);
    }

    (void) munmap(room + before + pages, CORE_HUGE - before);

    return p;
}


/* So that the new name survives a cut of power. */

static int
core_sync_folder(const char *path)
{
    int          fd, rc, err;
    char         folder[PATH_MAX];
    const char  *slash;

    slash = strrchr(path, '/');

    if (slash == NULL) {
        (void) strcpy(folder, ".");

    } else {
        (void) snprintf(folder, sizeof(folder), "%.*s",
                        slash == path ? 1 : (int) (slash - path), path);
    }

    fd = open(folder, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (fd == -1) {
        return SLUICE_CORE_SYSTEM;
    }

    rc = fsync(fd) == 0 ? SLUICE_CORE_OK : SLUICE_CORE_SYSTEM;
    err = errno;
    (void) close(fd);
    errno = err;

    return rc;
}


int
sluice_core_file_open(const char *path, uint32_t uid, int check,
    sluice_core_space_t *space)
{
    return core_open(path, uid, check == SLUICE_CORE_CHECK
                                ? sluice_core_check
                                : sluice_core_check_header, space);
}


int
sluice_core_delta_open(const char *path, uint32_t uid, int check,
    sluice_core_space_t *space)
{
    return core_open(path, uid, check == SLUICE_CORE_CHECK
                                ? sluice_core_delta_check
                                : sluice_core_delta_check_header, space);
}


static int
core_open(const char *path, uint32_t uid, core_check_pt check,
    sluice_core_space_t *space)
{
    int           fd, rc, err;
    void         *p;
    struct stat   st;

    space->base = NULL;
    space->size = 0;

    /* O_NONBLOCK: a fifo does not hold us */

    fd = open(path, O_RDONLY|O_NOFOLLOW|O_CLOEXEC|O_NONBLOCK);
    if (fd == -1) {
        return SLUICE_CORE_SYSTEM;
    }

    if (fstat(fd, &st) == -1) {
        rc = SLUICE_CORE_SYSTEM;
        goto done;
    }

    if (!S_ISREG(st.st_mode) || st.st_uid != uid || (st.st_mode & 077)) {
        rc = SLUICE_CORE_FOREIGN;
        goto done;
    }

    if (st.st_size == 0) {
        rc = SLUICE_CORE_BAD;
        goto done;
    }

    p = core_map(fd, (uint64_t) st.st_size);
    if (p == MAP_FAILED) {
        rc = SLUICE_CORE_SYSTEM;
        goto done;
    }

    /* of no use in a core dump, and it holds digests of credentials */

    (void) madvise(p, (size_t) st.st_size, MADV_DONTDUMP);

    rc = check(p, (uint64_t) st.st_size);

    if (rc == SLUICE_CORE_OK) {
        space->base = p;
        space->size = (uint64_t) st.st_size;

    } else {
        (void) munmap(p, (size_t) st.st_size);
    }

done:

    err = errno;
    (void) close(fd);
    errno = err;

    return rc;
}


void
sluice_core_file_close(sluice_core_space_t *space)
{
    if (space->base) {
        (void) munmap((void *) (uintptr_t) space->base, space->size);
    }

    space->base = NULL;
    space->size = 0;
}


uint64_t
sluice_core_file_changed(const char *path)
{
    struct stat  st;

    if (lstat(path, &st) == -1) {
        return 0;
    }

    return (uint64_t) st.st_ctim.tv_sec * 1000000000
           + (uint64_t) st.st_ctim.tv_nsec;
}
