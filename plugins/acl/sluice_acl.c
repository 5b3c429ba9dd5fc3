
/*
 * What the plugin acl decides: whether a consumer is in groups that may pass,
 * or groups that another plugin has authenticated (docs/plugins/acl.md).
 */


#include "sluice_acl.h"

#include <stdlib.h>


/* What of a request's groups counts. */

typedef struct {
    sluice_core_text_t  header;          /* their names, one after another */
    size_t              size;            /* of its memory */
    uint32_t            count;
    uint32_t            is_listed;       /* one is among the configured ones */
    uint32_t            are_authenticated;
} sluice_acl_groups_t;


/* What a plugin has authenticated. */

typedef struct {
    sluice_packed_list_t   names;
} sluice_acl_authenticated_t;


static int sluice_acl_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory);
static int sluice_acl_decide(void *data,
    const sluice_decision_request_t *request,
    sluice_decision_result_t *result);
static int sluice_acl_find(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, int has_credential,
    sluice_acl_groups_t *groups);
static int sluice_acl_read_authenticated(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, sluice_acl_groups_t *groups);
static int sluice_acl_read(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, sluice_acl_groups_t *groups);
static int sluice_acl_add(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, sluice_acl_groups_t *groups,
    const sluice_core_text_t *name);
static int sluice_acl_append(const sluice_decision_request_t *request,
    sluice_acl_groups_t *groups, const sluice_core_text_t *name);
static int sluice_acl_is_listed(const sluice_acl_t *conf,
    const sluice_core_text_t *name);
static int sluice_acl_compare(const void *one, const void *two);


static const sluice_packed_field_t  sluice_acl_fields[] = {
    sluice_packed_field(NUMBER, sluice_acl_t, flags),
    sluice_packed_field(LIST, sluice_acl_t, groups),
    sluice_packed_end
};

static const sluice_packed_field_t  sluice_acl_authenticated[] = {
    sluice_packed_field(LIST, sluice_acl_authenticated_t, names),
    sluice_packed_end
};


const sluice_decision_plugin_t  sluice_acl = {
    "acl",
    sizeof(sluice_acl_t),
    sluice_acl_fields,
    sluice_acl_ready,
    sluice_acl_decide,
    NULL
};


static sluice_header_t  sluice_acl_header =
    sluice_header_name("X-Consumer-Groups", "x-consumer-groups", 0);

static sluice_header_t  sluice_acl_header_authenticated =
    sluice_header_name("X-Authenticated-Groups", "x-authenticated-groups", 0);

static const sluice_core_text_t  sluice_acl_kind = { "acls", 4 };


static int
sluice_acl_ready(void *data, const sluice_decision_source_t *source,
    const sluice_packed_memory_t *memory)
{
    sluice_acl_t  *conf = data;

    (void) source;

    conf->sorted = memory->allocate(memory->data,
                                    (conf->groups.count + (size_t) 1)
                                    * sizeof(sluice_core_text_t));
    if (conf->sorted == NULL) {
        return SLUICE_CORE_MEMORY;
    }

    if (conf->groups.count) {
        memcpy(conf->sorted, conf->groups.texts,
               conf->groups.count * sizeof(sluice_core_text_t));
        qsort(conf->sorted, conf->groups.count, sizeof(sluice_core_text_t),
              sluice_acl_compare);
    }

    return SLUICE_CORE_OK;
}


static int
sluice_acl_decide(void *data, const sluice_decision_request_t *request,
    sluice_decision_result_t *result)
{
    sluice_acl_t  *conf = data;

    int                   rc, credential;
    sluice_header_t      *header;
    sluice_core_text_t    value;
    sluice_acl_groups_t   groups;

    credential = sluice_decision_fact(request, SLUICE_ASK_CREDENTIAL, &value);

    if (credential != SLUICE_FACT_OK && credential != SLUICE_FACT_NONE) {
        return sluice_decision_without(result, credential, "who asks");
    }

    memset(&groups, 0, sizeof(sluice_acl_groups_t));

    rc = sluice_acl_find(conf, request, credential == SLUICE_FACT_OK, &groups);

    if (rc != SLUICE_FACT_OK && rc != SLUICE_FACT_NONE) {
        return sluice_decision_without(result, rc, "the groups");
    }

    if (rc == SLUICE_FACT_OK
        && (conf->flags & SLUICE_ACL_DENY
            ? !groups.is_listed : groups.is_listed))
    {
        header = groups.are_authenticated ? &sluice_acl_header_authenticated
                                          : &sluice_acl_header;

        if (!(conf->flags & SLUICE_ACL_HIDE)
            && sluice_decision_edit(request, result, SLUICE_DECISION_UP_SET,
                                    header, &groups.header)
               != SLUICE_FACT_OK)
        {
            return SLUICE_DECISION_MEMORY;
        }

        return SLUICE_DECISION_PASS;
    }

    /* nobody, or a consumer without any group */

    if (groups.count == 0
        && !groups.are_authenticated
        && credential == SLUICE_FACT_NONE)
    {
        return sluice_decision_respond(result, 401, "Unauthorized");
    }

    return sluice_decision_respond(result, 403,
                                   "You cannot consume this service");
}


/*
 * Authenticated groups are those of somebody who is no consumer, or has no
 * credential of one.  SLUICE_FACT_NONE: nobody is known.
 */

static int
sluice_acl_find(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, int has_credential,
    sluice_acl_groups_t *groups)
{
    int                 rc, consumer;
    sluice_core_text_t  value;

    consumer = sluice_decision_fact(request, SLUICE_ASK_CONSUMER, &value);

    if (consumer != SLUICE_FACT_OK && consumer != SLUICE_FACT_NONE) {
        return consumer;
    }

    if (consumer == SLUICE_FACT_NONE
        || !has_credential
        || (conf->flags & SLUICE_ACL_AUTHENTICATED))
    {
        rc = sluice_acl_read_authenticated(conf, request, groups);

        if (rc != SLUICE_FACT_NONE) {
            return rc;
        }
    }

    return consumer == SLUICE_FACT_OK
           ? sluice_acl_read(conf, request, groups) : SLUICE_FACT_NONE;
}


static int
sluice_acl_read_authenticated(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, sluice_acl_groups_t *groups)
{
    int                          rc;
    uint32_t                     i;
    sluice_core_text_t           packed;
    sluice_packed_memory_t       memory;
    sluice_acl_authenticated_t   authenticated;

    rc = sluice_decision_fact(request, SLUICE_ASK_AUTHENTICATED_GROUPS,
                              &packed);

    if (rc != SLUICE_FACT_OK) {
        return rc;
    }

    memory.allocate = request->calls->allocate;
    memory.data = request->data;

    if (sluice_packed_read(sluice_acl_authenticated, &packed, &memory,
                           &authenticated)
        != SLUICE_CORE_OK)
    {
        return SLUICE_FACT_MEMORY;
    }

    groups->are_authenticated = 1;

    for (i = 0; i < authenticated.names.count; i++) {
        rc = sluice_acl_add(conf, request, groups,
                            &authenticated.names.texts[i]);

        if (rc != SLUICE_FACT_OK) {
            return rc;
        }
    }

    return SLUICE_FACT_OK;
}


static int
sluice_acl_read(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, sluice_acl_groups_t *groups)
{
    int                 rc;
    uint32_t            next;
    sluice_core_text_t  name;

    next = 0;

    while ((rc = request->calls->label(request->data, &sluice_acl_kind, &next,
                                       &name))
           == SLUICE_FACT_OK)
    {
        rc = sluice_acl_add(conf, request, groups, &name);

        if (rc != SLUICE_FACT_OK) {
            return rc;
        }
    }

    return rc == SLUICE_FACT_NONE ? SLUICE_FACT_OK : rc;
}


static int
sluice_acl_add(const sluice_acl_t *conf,
    const sluice_decision_request_t *request, sluice_acl_groups_t *groups,
    const sluice_core_text_t *name)
{
    groups->count++;

    if (!groups->is_listed) {
        groups->is_listed = sluice_acl_is_listed(conf, name);
    }

    return conf->flags & SLUICE_ACL_HIDE
           ? SLUICE_FACT_OK : sluice_acl_append(request, groups, name);
}


/* The memory doubles: a consumer may be in many groups. */

static int
sluice_acl_append(const sluice_decision_request_t *request,
    sluice_acl_groups_t *groups, const sluice_core_text_t *name)
{
    char      c, *p;
    size_t    need;
    uint32_t  i;

    need = groups->header.length + (size_t) 2 + name->length;

    if (need > UINT32_MAX / 2) {
        return SLUICE_FACT_MEMORY;
    }

    if (need > groups->size) {
        groups->size = 2 * need;

        p = sluice_decision_allocate(request, groups->size);
        if (p == NULL) {
            return SLUICE_FACT_MEMORY;
        }

        if (groups->header.length) {
            memcpy(p, groups->header.data, groups->header.length);
        }

        groups->header.data = p;
    }

    p = (char *) groups->header.data + groups->header.length;

    if (groups->header.length) {
        *p++ = ',';
        *p++ = ' ';
    }

    /* a name is any text, and a header no place for control characters */

    for (i = 0; i < name->length; i++) {
        c = name->data[i];
        *p++ = (unsigned char) c < 0x20 || c == 0x7f ? '?' : c;
    }

    groups->header.length = (uint32_t) (p - groups->header.data);

    return SLUICE_FACT_OK;
}


static int
sluice_acl_is_listed(const sluice_acl_t *conf, const sluice_core_text_t *name)
{
    return bsearch(name, conf->sorted, conf->groups.count,
                   sizeof(sluice_core_text_t), sluice_acl_compare)
           != NULL;
}


static int
sluice_acl_compare(const void *one, const void *two)
{
    const sluice_core_text_t  *a = one, *b = two;

    int       order;
    uint32_t  least;

    least = a->length < b->length ? a->length : b->length;
    order = least ? memcmp(a->data, b->data, least) : 0;

    if (order) {
        return order;
    }

    return a->length < b->length ? -1 : a->length > b->length;
}
