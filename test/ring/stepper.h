
/*
 * Death at every instruction: a child is killed before the first machine
 * instruction of a verb, before the second, the third ...  A first child is
 * stepped through the verb to learn its path; for each death a new one runs
 * into a breakpoint, since single steps are slow.  x86-64 only.
 */


#ifndef TEST_RING_STEPPER_H_INCLUDED
#define TEST_RING_STEPPER_H_INCLUDED


#include <stdint.h>
#include <sys/types.h>


extern uint64_t  stepper_length;   /* of the path that was learnt */


typedef struct {
    const char  *name;
    void       (*reset)(void);             /* as before the verb */
    void       (*verb)(void);              /* in the child */
    void       (*after)(int whole);        /* in the parent */
} stepper_case_t;


/* Verbs longer than limit are sampled at random instructions. */
void stepper_run(const stepper_case_t *c, uint64_t limit, uint64_t *state);

/* A child that is prepared, if need be, and stops before its verb. */
pid_t stepper_start(void (*prepare)(void), void (*verb)(void));

/* One instruction, all that are left: 1, it came to the end of the verb. */
int stepper_step(pid_t pid);
int stepper_continue(pid_t pid);

/* Steps a child to the end of its verb, whose path is known from then on. */
void stepper_learn(pid_t pid);

/* Stops a child before instruction k of the path; 1: the verb ended. */
int stepper_to(pid_t pid, uint64_t k);

/* Ends a child, wherever it is. */
void stepper_end(pid_t pid);


#endif /* TEST_RING_STEPPER_H_INCLUDED */
