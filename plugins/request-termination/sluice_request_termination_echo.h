
/*
 * The text of an echo: JSON that grows in the request's memory.  Once there is
 * none, nothing more is written.
 */


#ifndef SLUICE_REQUEST_TERMINATION_ECHO_H_INCLUDED
#define SLUICE_REQUEST_TERMINATION_ECHO_H_INCLUDED


#include "sluice_request_termination.h"


/* The text so far. */

typedef struct {
    const sluice_decision_request_t   *request;
    sluice_request_termination_own_t  *own;
    char                              *text;
    size_t                             length;
    size_t                             size;
    int                                fact;      /* _OK, or why not */
    int                                is_first;  /* of an object's members */
    const char                        *unknown;   /* what is not known */
} sluice_echo_t;


/* A member's name, and an object that is one; NULL: the outermost. */
void sluice_request_echo_name(sluice_echo_t *echo, const char *name);
void sluice_request_echo_open(sluice_echo_t *echo, const char *name);
void sluice_request_echo_close(sluice_echo_t *echo);

void sluice_request_echo_string(sluice_echo_t *echo,
    const sluice_core_text_t *text);
void sluice_request_echo_number(sluice_echo_t *echo, uint32_t number);
void sluice_request_echo_put(sluice_echo_t *echo, const char *text,
    size_t length);


#endif /* SLUICE_REQUEST_TERMINATION_ECHO_H_INCLUDED */
