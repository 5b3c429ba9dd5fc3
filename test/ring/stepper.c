
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


uint64_t  stepper_length;

static uint64_t  steps[STEPPER_MAX];


pid_t
stepper_start(void (*prepare)(void), void (*verb)(void))
{
    int    status;
    pid_t  pid;

    pid = test_fork();

    if (pid == 0) {
        if (prepare) {
            prepare();
        }

        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        verb();
        raise(SIGSTOP);
        _exit(0);
    }

    test_check(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)
               && WSTOPSIG(status) == SIGSTOP, "status %x", status);

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
    test_check(WSTOPSIG(status) == SIGSTOP || WSTOPSIG(status) == SIGTRAP,
               "signal %d", WSTOPSIG(status));

    return WSTOPSIG(status) == SIGSTOP;
}


int
stepper_step(pid_t pid)
{
    return on(pid, PTRACE_SINGLESTEP);
}


int
stepper_continue(pid_t pid)
{
    return on(pid, PTRACE_CONT);
}


void
stepper_learn(pid_t pid)
{
    for (stepper_length = 0; stepper_length < STEPPER_MAX; stepper_length++) {
        steps[stepper_length] = (uint64_t) ptrace(PTRACE_PEEKUSER, pid,
                                     offsetof(struct user_regs_struct, rip),
                                     NULL);

        if (stepper_step(pid)) {
            return;
        }
    }

    test_check(0, "more than %u instructions", STEPPER_MAX);
}


/* By a breakpoint at instruction k, at its right visit. */

int
stepper_to(pid_t pid, uint64_t k)
{
    long       code;
    void      *where;
    uint64_t   i, hits;

    where = (void *) steps[k];

    for (i = 1, hits = 0; i < k; i++) {
        hits += (steps[i] == steps[k]);
    }

    if (k == 0) {
        return 0;
    }

    if (steps[0] == steps[k] && stepper_step(pid)) {
        return 1;
    }

    code = ptrace(PTRACE_PEEKTEXT, pid, where, NULL);

    for ( ;; ) {
        test_check(ptrace(PTRACE_POKETEXT, pid, where,
                          (void *) ((code & ~0xffl) | 0xcc)) == 0,
                   "breakpoint: %s", strerror(errno));

        if (stepper_continue(pid)) {
            return 1;
        }

        /* int3 is done, the instruction that it covers is not */

        ptrace(PTRACE_POKETEXT, pid, where, (void *) code);
        ptrace(PTRACE_POKEUSER, pid, offsetof(struct user_regs_struct, rip),
               where);

        if (hits-- == 0) {
            return 0;
        }

        if (stepper_step(pid)) {
            return 1;
        }
    }
}


static void
die(const stepper_case_t *c, uint64_t at)
{
    int    whole;
    pid_t  pid;

    c->reset();
    pid = stepper_start(NULL, c->verb);

    whole = at == stepper_length ? stepper_continue(pid)
                                 : stepper_to(pid, at);

    stepper_end(pid);
    c->after(whole);
}


void
stepper_run(const stepper_case_t *c, uint64_t limit, uint64_t *state)
{
    pid_t     pid;
    uint64_t  k, deaths;

    c->reset();
    pid = stepper_start(NULL, c->verb);
    stepper_learn(pid);
    stepper_end(pid);

    deaths = stepper_length < limit ? stepper_length : limit;

    for (k = 0; k < deaths; k++) {
        die(c, deaths == stepper_length
               ? k : test_below(state, stepper_length));
    }

    die(c, stepper_length);

    printf("%-24s %7lu instructions, %5lu deaths\n", c->name,
           stepper_length, deaths);
    fflush(stdout);
}
