
/*
 * Names whose values are secrets (ngx_sluice_redact.h).  There is one list in
 * a process; names are never taken out, so nothing that looks at it can be
 * left with less than it began with.
 */


#include "ngx_sluice_redact.h"

#include <stdatomic.h>


/* names in all, and a table that is never more than half full */

#define NGX_SLUICE_NAMES_MAX     1024
#define NGX_SLUICE_NAMES_SLOTS   2048


#define ngx_sluice_redact_bit(c)  ((uint32_t) 1 << ((c) & 31))


static ngx_str_t *ngx_sluice_redact_slot(u_char *name, size_t length);
static void ngx_sluice_redact_default_names(void);
static ngx_uint_t ngx_sluice_redact_is_published(
    ngx_sluice_secrets_t *secrets, const u_char *name, size_t length);
static ngx_uint_t ngx_sluice_redact_has(u_char *name, size_t length)
    __attribute__((noinline));
static void ngx_sluice_redact_learn(void);
static u_char ngx_sluice_redact_fold(u_char c);


ngx_sluice_secrets_t  *ngx_sluice_secrets;

static ngx_str_t   ngx_sluice_names[NGX_SLUICE_NAMES_SLOTS];
static ngx_uint_t  ngx_sluice_names_count;
static ngx_uint_t  ngx_sluice_names_begun;

/* of each length, a bit for each letter that a name begins with */

static uint32_t    ngx_sluice_names_first[NGX_SLUICE_NAME_MAX + 1];

/* bytes of those in shared memory that are in the list */

static uint32_t    ngx_sluice_names_learnt;

/* more names than the list holds: everything is a secret */

static ngx_uint_t  ngx_sluice_names_full;


/* what always is a secret: "apikey" is what most call a key */

static const char  *ngx_sluice_default_names[] = {
    "apikey",
    "authorization",
    "cookie",
    "kong-admin-token",
    "proxy-authorization",
    "set-cookie",
    NULL
};


/* before the first name is added, or looked for */

static void
ngx_sluice_redact_default_names(void)
{
    const char  **name;

    if (ngx_sluice_names_begun) {
        return;
    }

    ngx_sluice_names_begun = 1;

    for (name = ngx_sluice_default_names; *name; name++) {
        (void) sluice_redact_add((u_char *) *name, ngx_strlen(*name));
    }
}


/* the case of letters does not matter, nor '-' against '_', '.' and '~' */

static u_char
ngx_sluice_redact_fold(u_char c)
{
    return c == '_' || c == '.' || c == '~' ? '-' : ngx_tolower(c);
}


/* the slot that has the folded name, or where it belongs */

static ngx_str_t *
ngx_sluice_redact_slot(u_char *name, size_t length)
{
    ngx_str_t   *slot;
    ngx_uint_t   i;

    /* ends: half of the slots are free */

    for (i = ngx_hash_key(name, length); /* void */ ; i++) {

        slot = &ngx_sluice_names[i % NGX_SLUICE_NAMES_SLOTS];

        if (slot->data == NULL
            || (slot->len == length
                && ngx_memcmp(slot->data, name, length) == 0))
        {
            return slot;
        }
    }
}


/* NGX_OK, NGX_ERROR: no memory or too many, everything is redacted then */

int
sluice_redact_add(const u_char *name, size_t length)
{
    size_t      i;
    u_char     *copy;
    ngx_str_t  *slot;

    ngx_sluice_redact_default_names();

    if (length == 0 || length > NGX_SLUICE_NAME_MAX) {
        goto full;
    }

    copy = ngx_alloc(length, ngx_cycle->log);
    if (copy == NULL) {
        goto full;
    }

    for (i = 0; i < length; i++) {
        copy[i] = ngx_sluice_redact_fold(name[i]);
    }

    slot = ngx_sluice_redact_slot(copy, length);

    if (slot->data) {
        ngx_free(copy);
        return NGX_OK;
    }

    if (ngx_sluice_names_count == NGX_SLUICE_NAMES_MAX) {
        ngx_free(copy);
        goto full;
    }

    ngx_sluice_names_count++;

    slot->len = length;
    slot->data = copy;

    ngx_sluice_names_first[length] |= ngx_sluice_redact_bit(copy[0]);

    return NGX_OK;

full:

    ngx_sluice_names_full = 1;

    return NGX_ERROR;
}


/*
 * Has all workers know a name; in the control worker, or in a thread of it.
 * NGX_OK; NGX_ERROR: no room, all redact everything then.
 */

int
sluice_redact_publish(const u_char *name, size_t length)
{
    size_t                 i;
    u_char                *p;
    uint32_t               used;
    ngx_sluice_secrets_t  *secrets;

    secrets = ngx_sluice_secrets;
    if (secrets == NULL) {
        return NGX_ERROR;
    }

    used = atomic_load_explicit(&secrets->used, memory_order_relaxed);

    if (ngx_sluice_redact_is_published(secrets, name, length)) {
        return NGX_OK;
    }

    if (length == 0
        || length > NGX_SLUICE_NAME_MAX
        || used > NGX_SLUICE_SECRETS_SIZE
        || NGX_SLUICE_SECRETS_SIZE - used < 1 + length)
    {
        atomic_store_explicit(&secrets->used, NGX_SLUICE_SECRETS_SIZE + 1,
                              memory_order_release);
        return NGX_ERROR;
    }

    p = secrets->names + used;
    *p++ = (u_char) length;

    for (i = 0; i < length; i++) {
        *p++ = ngx_sluice_redact_fold(name[i]);
    }

    atomic_store_explicit(&secrets->used, used + 1 + (uint32_t) length,
                          memory_order_release);

    return NGX_OK;
}


static ngx_uint_t
ngx_sluice_redact_is_published(ngx_sluice_secrets_t *secrets,
    const u_char *name, size_t length)
{
    size_t    i;
    u_char   *p, *last;
    uint32_t  used;

    used = atomic_load_explicit(&secrets->used, memory_order_relaxed);
    if (used > NGX_SLUICE_SECRETS_SIZE) {
        return 0;
    }

    last = secrets->names + used;

    for (p = secrets->names; p < last; p += 1 + *p) {

        if (*p != length || (size_t) (last - p) <= length) {
            continue;
        }

        for (i = 0; i < length; i++) {
            if (p[1 + i] != ngx_sluice_redact_fold(name[i])) {
                break;
            }
        }

        if (i == length) {
            return 1;
        }
    }

    return 0;
}


ngx_uint_t
ngx_sluice_redact_is_secret(u_char *name, size_t length)
{
    ngx_sluice_redact_default_names();
    ngx_sluice_redact_learn();

    if (ngx_sluice_names_full) {
        return 1;
    }

    /* most names are told apart from all secrets here */

    if (length == 0
        || length > NGX_SLUICE_NAME_MAX
        || (ngx_sluice_names_first[length]
            & ngx_sluice_redact_bit(ngx_sluice_redact_fold(name[0])))
           == 0)
    {
        return 0;
    }

    return ngx_sluice_redact_has(name, length);
}


static ngx_uint_t
ngx_sluice_redact_has(u_char *name, size_t length)
{
    size_t  i;
    u_char  folded[NGX_SLUICE_NAME_MAX];

    for (i = 0; i < length; i++) {
        folded[i] = ngx_sluice_redact_fold(name[i]);
    }

    return ngx_sluice_redact_slot(folded, length)->data != NULL;
}


/*
 * What others have published since.  Not in the master: it serves nobody, and
 * takes no sizes from memory that workers write.
 */

static void
ngx_sluice_redact_learn(void)
{
    u_char                *p;
    uint32_t               used;
    ngx_sluice_secrets_t  *secrets;

    secrets = ngx_sluice_secrets;

    if (secrets == NULL || ngx_process == NGX_PROCESS_MASTER) {
        return;
    }

    used = atomic_load_explicit(&secrets->used, memory_order_acquire);

    if (used > NGX_SLUICE_SECRETS_SIZE) {
        ngx_sluice_names_full = 1;
        return;
    }

    while (ngx_sluice_names_learnt < used) {

        p = secrets->names + ngx_sluice_names_learnt;
        ngx_sluice_names_learnt += 1 + *p;

        if (ngx_sluice_names_learnt > used) {
            ngx_sluice_names_full = 1;
            return;
        }

        (void) sluice_redact_add(p + 1, *p);
    }
}


int
sluice_redact_is_secret(const u_char *name, size_t length)
{
    return (int) ngx_sluice_redact_is_secret((u_char *) name, length);
}
