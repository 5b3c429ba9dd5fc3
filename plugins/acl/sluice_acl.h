
/*
 * The plugin acl: what its files share.
 */


#ifndef SLUICE_ACL_H_INCLUDED
#define SLUICE_ACL_H_INCLUDED


#include "decision.h"


/* Flags of a configuration, as the plugin's pack() writes them. */

#define SLUICE_ACL_DENY           0x01
#define SLUICE_ACL_HIDE           0x02
#define SLUICE_ACL_AUTHENTICATED  0x04    /* groups count before his own */


typedef struct {
    uint32_t               flags;
    sluice_packed_list_t   groups;
    sluice_core_text_t    *sorted;       /* the same, in the order of bytes */
} sluice_acl_t;


extern const sluice_decision_plugin_t  sluice_acl;


#endif /* SLUICE_ACL_H_INCLUDED */
