
/*
 * Preloaded: writes down, in the file that SYNC_ORDER names, what is asked to
 * be on the disk and what gets another name, in the order of these calls.
 */


#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>


static int  order = -1;


__attribute__((constructor)) static void
order_open(void)
{
    const char  *path;

    path = getenv("SYNC_ORDER");

    /* open for workers, too, who are another user */

    if (path) {
        order = open(path, O_WRONLY|O_CREAT|O_APPEND, 0600);
    }
}


int
fsync(int fd)
{
    int      rc;
    char     link[64], path[PATH_MAX];
    int    (*next)(int);
    ssize_t  n;

    *(void **) &next = dlsym(RTLD_NEXT, "fsync");
    rc = next(fd);

    (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path));

    if (rc == 0 && n > 0) {
        (void) dprintf(order, "fsync %.*s\n", (int) n, path);
    }

    return rc;
}


int
fdatasync(int fd)
{
    return fsync(fd);
}


int
rename(const char *old, const char *new)
{
    int    rc;
    int  (*next)(const char *, const char *);

    *(void **) &next = dlsym(RTLD_NEXT, "rename");
    rc = next(old, new);

    if (rc == 0) {
        (void) dprintf(order, "rename %s\n", new);
    }

    return rc;
}
