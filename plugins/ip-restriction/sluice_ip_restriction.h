
/*
 * The plugin ip-restriction: what its files share.
 */


#ifndef SLUICE_IP_RESTRICTION_H_INCLUDED
#define SLUICE_IP_RESTRICTION_H_INCLUDED


#include "decision.h"


#define SLUICE_IP_RESTRICTION_IPV4  4        /* bytes of an address */
#define SLUICE_IP_RESTRICTION_IPV6  16


/* Ranges, as plugins/ip-restriction/tree.lua writes them. */

typedef struct {
    sluice_core_text_t   ipv4;
    sluice_core_text_t   ipv6;
} sluice_ip_restriction_list_t;


typedef struct {
    uint32_t                       status;
    uint32_t                       is_allow_given;
    sluice_core_text_t             message;  /* data NULL: of the address */
    sluice_ip_restriction_list_t   allow;
    sluice_ip_restriction_list_t   deny;
} sluice_ip_restriction_t;


extern const sluice_decision_plugin_t  sluice_ip_restriction;


/*
 * sluice_ip_restriction_tree.c; whether an address of so many bytes is in one
 * of the ranges.  At most two steps for each byte, however many ranges there
 * are.  Any bytes are safe.
 */
int sluice_ip_restriction_has(const sluice_core_text_t *tree,
    const unsigned char *address, uint32_t size);


#endif /* SLUICE_IP_RESTRICTION_H_INCLUDED */
