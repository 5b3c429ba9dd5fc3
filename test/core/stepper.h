
/*
 * Death at every instruction: a child is killed before the first machine
 * instruction of a verb, before the second, the third ...  x86-64 only; the
 * way of stepping is that of test/ring/step.c.
 */


#ifndef TEST_CORE_STEPPER_H_INCLUDED
#define TEST_CORE_STEPPER_H_INCLUDED


#include <stdint.h>
#include <sys/types.h>


typedef struct {
    const char  *name;
    void       (*reset)(void);             /* as before the verb */
    void       (*verb)(void);              /* in the child */
    void       (*after)(int whole);        /* in the parent */
} stepper_case_t;


/* Verbs longer than limit are sampled at random instructions. */
void stepper_run(const stepper_case_t *c, uint64_t limit, uint64_t *state);

/* A child that stops before its verb. */
pid_t stepper_start(void (*verb)(void));

/* One instruction: 1, it was the last of the verb. */
int stepper_step(pid_t pid);

/* Ends a child, wherever it is. */
void stepper_end(pid_t pid);


#endif /* TEST_CORE_STEPPER_H_INCLUDED */
