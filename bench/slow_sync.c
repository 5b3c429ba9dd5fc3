
/*
 * Preloaded: each sync of a file takes so much longer (SLOW_SYNC_US, in
 * microseconds).
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>


typedef int (*slow_sync_pt)(int fd);


static int
slow_sync(int fd, const char *name)
{
    const char    *wanted;
    slow_sync_pt   real;

    wanted = getenv("SLOW_SYNC_US");

    if (wanted) {
        (void) usleep((useconds_t) atoi(wanted));
    }

    real = (slow_sync_pt) dlsym(RTLD_NEXT, name);

    return real(fd);
}


int
fsync(int fd)
{
    return slow_sync(fd, "fsync");
}


int
fdatasync(int fd)
{
    return slow_sync(fd, "fdatasync");
}
