
/*
 * Preloaded: each sync of a file takes so much longer (SLOW_SYNC_US, in
 * microseconds).
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>


typedef int (*slow_sync_pt)(int fd);


static useconds_t  slow_sync_us;


/* When it is loaded: nginx's workers do not keep the environment. */

__attribute__((constructor))
static void
slow_sync_read(void)
{
    const char  *wanted;

    wanted = getenv("SLOW_SYNC_US");
    slow_sync_us = wanted ? (useconds_t) atoi(wanted) : 0;
}


static int
slow_sync(int fd, const char *name)
{
    slow_sync_pt  real;

    (void) usleep(slow_sync_us);

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
