
#include "stepper.h"
#include "support.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>


#define STEPPER_MAX  1000000


static uint64_t  steps[STEPPER_MAX], length;


pid_t
stepper_start(void (*verb)(void))
{
    int    status;
    pid_t  pid;

    pid = fork();
    test_check(pid != -1, "fork: %s", strerror(errno));

    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        verb();
        raise(SIGSTOP);
        _exit(0);
    }

    test_check(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status),
               "status %x", status);

    return pid;
}


void
stepper_end(pid_t pid)
{
    int  status;

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
}


/* Until the next stop: 1, if it is that at the end of the verb. */

static int
on(pid_t pid, enum __ptrace_request how)
{
    int  status;

    test_check(ptrace(how, pid, NULL, NULL) == 0, "ptrace: %s",
               strerror(errno));
    test_check(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status),
               "status %x: the verb failed", status);

    return WSTOPSIG(status) == SIGSTOP;
}


int
stepper_step(pid_t pid)
{
    return on(pid, PTRACE_SINGLESTEP);
}


/* A first child is stepped through the verb. */

static void
learn(pid_t pid)
{
    for (length = 0; length < STEPPER_MAX; length++) {
        steps[length] = (uint64_t) ptrace(PTRACE_PEEKUSER, pid,
                                     offsetof(struct user_regs_struct, rip),
                                     NULL);

        if (stepper_step(pid)) {
            return;
        }
    }

    test_check(0, "more than %u instructions", STEPPER_MAX);
}


/* The others run into a breakpoint at instruction k, at its right visit. */

static void
stop_at(pid_t pid, uint64_t k)
{
    long       code;
    void      *where;
    uint64_t   i, hits;

    where = (void *) steps[k];

    for (i = 1, hits = 0; i < k; i++) {
        hits += (steps[i] == steps[k]);
    }

    if (k == 0) {
        return;
    }

    if (steps[0] == steps[k]) {
        (void) on(pid, PTRACE_SINGLESTEP);
    }

    code = ptrace(PTRACE_PEEKTEXT, pid, where, NULL);

    for ( ;; ) {
        test_check(ptrace(PTRACE_POKETEXT, pid, where,
                          (void *) ((code & ~0xffl) | 0xcc)) == 0,
                   "breakpoint: %s", strerror(errno));

        if (on(pid, PTRACE_CONT)) {
            return;
        }

        /* int3 is done, the instruction that it covers is not */

        ptrace(PTRACE_POKETEXT, pid, where, (void *) code);
        ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rip),
               where);

        if (hits-- == 0) {
            return;
        }

        (void) on(pid, PTRACE_SINGLESTEP);
    }
}


static void
die(const stepper_case_t *c, uint64_t at)
{
    pid_t  pid;

    c->reset();
    pid = stepper_start(c->verb);

    if (at == length) {
        (void) on(pid, PTRACE_CONT);

    } else {
        stop_at(pid, at);
    }

    stepper_end(pid);
    c->after(at == length);
}


void
stepper_run(const stepper_case_t *c, uint64_t limit, uint64_t *state)
{
    pid_t     pid;
    uint64_t  k, deaths;

    c->reset();
    pid = stepper_start(c->verb);
    learn(pid);
    stepper_end(pid);

    deaths = length < limit ? length : limit;

    for (k = 0; k < deaths; k++) {
        die(c, deaths == length ? k : test_below(state, length));
    }

    die(c, length);

    printf("%-24s %7lu instructions, %5lu deaths\n", c->name, length, deaths);
    fflush(stdout);
}
