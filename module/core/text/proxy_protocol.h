
/*
 * Headers of the PROXY protocol, by which a load balancer of layer 4 says
 * whose connection it passes on.  Versions 1 and 2 of HAProxy's
 * doc/proxy-protocol.txt.
 */


#ifndef SLUICE_PROXY_PROTOCOL_H_INCLUDED
#define SLUICE_PROXY_PROTOCOL_H_INCLUDED


#include <stddef.h>
#include <stdint.h>


#define SLUICE_PROXY_PROTOCOL_MOST  4096      /* bytes of a header */
#define SLUICE_PROXY_PROTOCOL_TEXT  46        /* of an address, with a NUL */


/* In place of a length. */

typedef enum {
    SLUICE_PROXY_PROTOCOL_MORE = 0,           /* it is right so far */
    SLUICE_PROXY_PROTOCOL_MISSING = -1,       /* something else begins here */
    SLUICE_PROXY_PROTOCOL_MALFORMED = -2,
    SLUICE_PROXY_PROTOCOL_OVERSIZED = -3
} sluice_proxy_protocol_e;


typedef struct {
    /* 0: the connection's own are right (UNKNOWN, LOCAL, other families) */
    int       has_addresses;

    char      client[SLUICE_PROXY_PROTOCOL_TEXT];
    char      server[SLUICE_PROXY_PROTOCOL_TEXT];
    uint16_t  client_port;
    uint16_t  server_port;

    size_t    most;                           /* of MORE: bytes of a whole */
} sluice_proxy_protocol_t;


/*
 * Reads what has come of a connection.  Returns the bytes of the header, or
 * one of the words above.  TLVs are passed over.
 */
int sluice_proxy_protocol_read(sluice_proxy_protocol_t *found,
    const uint8_t *data, size_t size);


#endif /* SLUICE_PROXY_PROTOCOL_H_INCLUDED */
