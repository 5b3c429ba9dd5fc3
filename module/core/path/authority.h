
/*
 * The authority of a request: host, and a port if there is one (RFC 3986,
 * 3.2.2; RFC 9110, 7.2).
 */


#ifndef SLUICE_AUTHORITY_H_INCLUDED
#define SLUICE_AUTHORITY_H_INCLUDED


#include "core.h"


/*
 * Its port, without leading zeros; of length 0: it has none.  0: it is no
 * authority, or the port is above 65535; else 1.
 */
int sluice_authority_port(const sluice_core_text_t *authority,
    sluice_core_text_t *port);


#endif /* SLUICE_AUTHORITY_H_INCLUDED */
