/*
 * Preloaded into `perf record`: each overflow of its clock also sends SIGPROF
 * to the thread that is profiled.  LuaJIT's profiler answers that signal with
 * the Lua stack at its next bytecode (sampler.lua), so every stack of kernel
 * and C frames gets the Lua stack of the same moment.
 *
 * It is the kernel's own facility, perf_event_open(2), "Overflow handling":
 * O_ASYNC on the event's file.  perf does not offer it, hence this.
 *
 * The thread is named by PERFSIG_TID.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define PERFSIG_MAX_FD  1024

static bool  perfsig_armed[PERFSIG_MAX_FD];


static void
perfsig_arm(int fd, const struct perf_event_attr *attr, pid_t tid)
{
    struct f_owner_ex   owner;
    const char         *wanted;

    wanted = getenv("PERFSIG_TID");

    if (wanted == NULL || atoi(wanted) != tid || fd < 0
        || fd >= PERFSIG_MAX_FD
        || attr->type != PERF_TYPE_SOFTWARE
        || attr->config != PERF_COUNT_SW_CPU_CLOCK
        || !(attr->sample_type & PERF_SAMPLE_CALLCHAIN))
    {
        return;
    }

    owner.type = F_OWNER_TID;
    owner.pid = tid;

    if (fcntl(fd, F_SETOWN_EX, &owner) == -1
        || fcntl(fd, F_SETSIG, SIGPROF) == -1
        || fcntl(fd, F_SETFL, O_ASYNC) == -1)
    {
        abort();
    }

    perfsig_armed[fd] = true;
}


/* perf has no wrapper of libc for this one, so it comes through here. */

long
syscall(long number, ...)
{
    int      i;
    long     arg[6], result;
    va_list  args;

    static long (*real)(long, ...);

    if (real == NULL) {
        real = (long (*)(long, ...)) dlsym(RTLD_NEXT, "syscall");
    }

    va_start(args, number);

    for (i = 0; i < 6; i++) {
        arg[i] = va_arg(args, long);
    }

    va_end(args);

    result = real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);

    if (number == SYS_perf_event_open) {
        perfsig_arm((int) result, (const struct perf_event_attr *) arg[0],
                    (pid_t) arg[1]);
    }

    return result;
}


/* perf sets O_NONBLOCK alone later on, which would undo O_ASYNC. */

int
fcntl64(int fd, int command, ...)
{
    long     arg;
    va_list  args;

    static int (*real)(int, int, ...);

    if (real == NULL) {
        real = (int (*)(int, int, ...)) dlsym(RTLD_NEXT, "fcntl64");
    }

    va_start(args, command);
    arg = va_arg(args, long);
    va_end(args);

    if (command == F_SETFL && fd >= 0 && fd < PERFSIG_MAX_FD
        && perfsig_armed[fd])
    {
        arg |= O_ASYNC;
    }

    return real(fd, command, arg);
}
