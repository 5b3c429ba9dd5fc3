
/*
 * Keys of entries, which of two wins, and the bits of methods.
 */


#include "layout.h"
#include "hash.h"


/* GET is the first bit. */

static const char *const  methods[] = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE",
    "CONNECT", "PURGE", "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE",
    "LOCK", "UNLOCK"
};


uint64_t
sluice_core_hash_host(const sluice_core_space_t *space,
    const sluice_core_entry_t *entry)
{
    const sluice_core_chars_t  *chars;

    chars = sluice_core_chars(space, entry->host);

    return sluice_core_hash(SLUICE_CORE_HASH_HOST + entry->host_kind,
                            chars->data, entry->host ? chars->length : 0);
}


uint64_t
sluice_core_hash_entry(const sluice_core_space_t *space,
    const sluice_core_entry_t *entry, uint64_t host)
{
    sluice_core_heads_t         heads;
    const sluice_core_chars_t  *chars;

    chars = sluice_core_chars(space, entry->path);
    sluice_core_heads(&heads, chars->data, entry->key_length);

    return sluice_core_hash_key(host, &heads, entry->key_length);
}


uint64_t
sluice_core_hash_children(uint32_t child, uint32_t kind, uint32_t slot)
{
    uint32_t  key[3];

    key[0] = child;
    key[1] = kind;
    key[2] = slot;

    return sluice_core_hash(SLUICE_CORE_HASH_CHILDREN, key, sizeof(key));
}


int
sluice_core_same_key(const sluice_core_space_t *space,
    const sluice_core_entry_t *a, const sluice_core_entry_t *b)
{
    const sluice_core_chars_t  *ca, *cb;

    if (a->host_kind != b->host_kind || a->key_length != b->key_length) {
        return 0;
    }

    if (a->host != b->host) {
        ca = sluice_core_chars(space, a->host);
        cb = sluice_core_chars(space, b->host);

        if (ca->length != cb->length
            || memcmp(ca->data, cb->data, ca->length) != 0)
        {
            return 0;
        }
    }

    return a->path == b->path
           || memcmp(sluice_core_chars(space, a->path)->data,
                     sluice_core_chars(space, b->path)->data,
                     a->key_length) == 0;
}


/* Does entry win over other?  An equal one does not. */

int
sluice_core_precedes(const sluice_core_space_t *space,
    const sluice_core_entry_t *entry, const sluice_core_space_t *other_space,
    const sluice_core_entry_t *other)
{
    const sluice_core_record_t  *a, *b;

    if (entry->score != other->score) {
        return entry->score > other->score;
    }

    a = sluice_core_at(space, entry->route);
    b = sluice_core_at(other_space, other->route);

    if (a->created_at != b->created_at) {
        return a->created_at < b->created_at;
    }

    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence;
    }

    if (a->slot != b->slot) {
        return a->slot < b->slot;
    }

    return entry->order < other->order;
}


/* SLUICE_CORE_NONE: this method has no bit of its own. */

int
sluice_core_method_bit(const char *data, uint32_t length, uint32_t *bit)
{
    uint32_t  i;

    for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {

        if (methods[i][0] == data[0] && strlen(methods[i]) == length
            && memcmp(methods[i], data, length) == 0)
        {
            *bit = 1u << i;
            return SLUICE_CORE_OK;
        }
    }

    return SLUICE_CORE_NONE;
}
