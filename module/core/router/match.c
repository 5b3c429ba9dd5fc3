
/*
 * The match: the route of a request, in an image and the delta on it.
 */


#include "chain.h"
#include "pattern.h"
#include "search.h"


static void core_say(const sluice_core_search_t *s,
    sluice_core_match_t *match);
static void core_search_base(sluice_core_search_t *s);
static void core_search_wildcards(sluice_core_search_t *s, int kind,
    uint32_t ref);
static void core_search_rooms(sluice_core_search_t *s, uint64_t hash);
static void core_search_lengths(sluice_core_search_t *s, uint64_t host,
    const sluice_core_lengths_t *lengths);
static void core_flush(sluice_core_search_t *s);
static void core_prefetch(const sluice_core_entry_t *entry);
static void core_try_key(sluice_core_search_t *s,
    const sluice_core_entry_t *entry);
static void core_search_delta(sluice_core_search_t *s);
static void core_search_delta_host(sluice_core_search_t *s, int kind,
    const char *data, uint32_t length);
static void core_search_delta_lengths(sluice_core_search_t *s, int kind,
    uint64_t host);


int
sluice_core_match(const sluice_core_view_t *view,
    const sluice_core_request_t *request, sluice_core_regexes_t *regexes,
    sluice_core_match_t *match)
{
    sluice_core_text_t    path;
    sluice_core_search_t  s;

    s.view = view;
    s.request = request;
    s.regexes = regexes;
    s.best = NULL;
    s.space = NULL;
    s.end = 0;
    s.gave_up = SLUICE_CORE_OK;
    s.reason = 0;
    s.is_over = 0;
    s.name = NULL;
    s.keys_count = 0;

    sluice_core_budget_begin(&s.budget);
    sluice_core_regexes_begin(regexes);

    if (request->method.length == 0
        || sluice_core_method_bit(request->method.data,
                                  request->method.length, &s.method)
           != SLUICE_CORE_OK)
    {
        s.method = 0;
    }

    path = request->path;
    sluice_core_heads(&s.heads, path.data ? path.data : "", path.length);

    core_search_base(&s);

    /* meanwhile the lines come */

    if (view->delta.base) {
        core_search_delta(&s);
    }

    core_flush(&s);

    memset(match, 0, sizeof(sluice_core_match_t));

    if (s.is_over) {
        s.gave_up = SLUICE_CORE_LIMIT;
        s.reason = SLUICE_CORE_BY_ROUTES;
    }

    if (s.best) {
        core_say(&s, match);
    }

    match->reason = s.reason;

    if (s.gave_up == SLUICE_CORE_LIMIT
        && sluice_core_budget_is_cold(&s.budget))
    {
        return SLUICE_CORE_AGAIN;
    }

    if (s.gave_up == SLUICE_CORE_OK && s.best == NULL) {
        return SLUICE_CORE_NONE;
    }

    return s.gave_up;
}


/* What the best is. */

static void
core_say(const sluice_core_search_t *s, sluice_core_match_t *match)
{
    const sluice_core_regex_t   *regex;
    const sluice_core_chars_t   *chars;
    const sluice_core_record_t  *route;

    route = sluice_core_at(s->space, s->best->route);

    match->route.record = route;
    match->route.space = *s->space;
    match->revision = route->revision;
    match->slot = route->slot;
    match->generation = route->generation;
    match->service = route->fields[SLUICE_CORE_ROUTE_SERVICE];

    if (s->best->regex) {
        regex = sluice_core_at(s->space, s->best->regex);
        chars = sluice_core_chars(s->space, regex->text);
        match->pattern.data = chars->data + regex->skip;
        match->pattern.length = chars->length - regex->skip;
        match->prefix = (int32_t) s->end;

    } else if (s->best->flags & SLUICE_CORE_HAS_PATH) {
        match->prefix = (int32_t) sluice_core_chars(s->space,
                                                    s->best->path)->length;

    } else {
        match->prefix = -1;
    }
}


/*
 * The rooms of the image: lengths of the exact hosts, wildcards, no host.
 * Keys of the last batch are not looked at yet.
 */

static void
core_search_base(sluice_core_search_t *s)
{
    uint32_t                      i;
    uint64_t                      hash;
    const sluice_core_text_t     *host;
    const sluice_core_image_t    *image;
    const sluice_core_lengths_t  *lengths;

    image = sluice_core_header(&s->view->base);
    host = &s->request->host;

    if (host->data) {
        hash = sluice_core_hash(SLUICE_CORE_HASH_HOST + SLUICE_CORE_EXACT,
                                host->data, host->length);
        sluice_core_chain_prefetch(s->view, hash);

        if (image->paths[SLUICE_CORE_EXACT]) {
            lengths = sluice_core_at(&s->view->base,
                                     image->paths[SLUICE_CORE_EXACT]);
            core_search_lengths(s, hash, lengths);

        } else {
            core_search_rooms(s, hash);
        }

        for (i = SLUICE_CORE_TAIL; i <= SLUICE_CORE_HEAD; i++) {
            core_search_wildcards(s, (int) i,
                                  i == SLUICE_CORE_TAIL ? image->tails
                                                        : image->heads);
        }
    }

    hash = sluice_core_hash(SLUICE_CORE_HASH_HOST + SLUICE_CORE_ANY, "", 0);
    lengths = sluice_core_at(&s->view->base, image->paths[SLUICE_CORE_ANY]);

    core_search_lengths(s, hash, lengths);
}


/* The star stands for at least one byte.  ref: lengths of hosts in use */

static void
core_search_wildcards(sluice_core_search_t *s, int kind, uint32_t ref)
{
    uint32_t                      i, length;
    uint64_t                      hash;
    const char                   *data;
    const sluice_core_text_t     *host;
    const sluice_core_lengths_t  *lengths;

    host = &s->request->host;
    lengths = sluice_core_at(&s->view->base, ref);

    for (i = 0; i < lengths->count; i++) {

        if ((s->best && s->best->score > lengths->lengths[i].best)
            || sluice_core_search_ends(s, 1))
        {
            break;
        }

        length = lengths->lengths[i].length;

        if (length >= host->length) {
            continue;
        }

        data = host->data + (kind == SLUICE_CORE_TAIL
                             ? host->length - length : 0);
        hash = sluice_core_hash(SLUICE_CORE_HASH_HOST + (uint64_t) kind, data,
                                length);
        core_search_rooms(s, hash);
    }
}


/* All items that could be the host's: too many lengths do no harm. */

static void
core_search_rooms(sluice_core_search_t *s, uint64_t hash)
{
    uint32_t            ref;
    sluice_core_walk_t  walk;

    sluice_core_walk(&walk, &s->view->base, hash, SLUICE_CORE_TO_ROOM);

    while ((ref = sluice_core_walk_next(&walk)) != 0 && !s->is_over) {
        core_search_lengths(s, hash, sluice_core_at(&s->view->base, ref));
    }
}


/* Collects the keys of a host, and prefetches their lines and heads. */

static void
core_search_lengths(sluice_core_search_t *s, uint64_t host,
    const sluice_core_lengths_t *lengths)
{
    uint32_t              i, length;
    sluice_core_asked_t  *key;

    for (i = 0; i < lengths->count; i++) {

        if ((s->best && s->best->score > lengths->lengths[i].best)
            || sluice_core_search_ends(s, 1))
        {
            break;
        }

        length = lengths->lengths[i].length;

        if (length > s->request->path.length) {
            continue;
        }

        if (s->keys_count == SLUICE_CORE_BATCH) {
            core_flush(s);
        }

        key = &s->keys[s->keys_count++];
        key->hash = sluice_core_hash_key(host, &s->heads, length);
        key->best = lengths->lengths[i].best;

        sluice_core_walk(&key->walk, &s->view->base, key->hash,
                         SLUICE_CORE_TO_ENTRY);
        sluice_core_prefetch(&key->walk.lines[key->walk.line]);
        sluice_core_chain_prefetch(s->view, key->hash);
    }
}


/* Looks at the lines, prefetches what they lead to, and looks at that. */

static void
core_flush(sluice_core_search_t *s)
{
    uint32_t                    i, ref;
    sluice_core_asked_t        *key;
    const sluice_core_space_t  *base;

    base = &s->view->base;

    for (i = 0; i < s->keys_count; i++) {
        key = &s->keys[i];
        key->entry = NULL;

        ref = sluice_core_walk_next(&key->walk);

        if (ref) {
            key->entry = sluice_core_at(base, ref);
            core_prefetch(key->entry);
        }
    }

    for (i = 0; i < s->keys_count; i++) {
        key = &s->keys[i];

        while (key->entry) {

            if (s->is_over || (s->best && s->best->score > key->best)) {
                break;
            }

            core_try_key(s, key->entry);

            ref = sluice_core_walk_next(&key->walk);
            key->entry = ref ? sluice_core_at(base, ref) : NULL;
        }
    }

    s->keys_count = 0;
}


/*
 * An entry, and what the builder has put before it: the record of its route
 * and most texts of that.
 */

static void
core_prefetch(const sluice_core_entry_t *entry)
{
    const uint8_t  *end;

    end = (const uint8_t *) &entry[1] - 1;

    sluice_core_prefetch(end);
    sluice_core_prefetch(end - 1 * SLUICE_CORE_LINE);
    sluice_core_prefetch(end - 2 * SLUICE_CORE_LINE);
    sluice_core_prefetch(end - 3 * SLUICE_CORE_LINE);
    sluice_core_prefetch(end - 4 * SLUICE_CORE_LINE);
}


/* The entries of a key are in the order of precedence. */

static void
core_try_key(sluice_core_search_t *s, const sluice_core_entry_t *entry)
{
    const sluice_core_space_t  *base;

    base = &s->view->base;

    for ( ;; ) {

        if (s->best && !sluice_core_precedes(base, entry, s->space, s->best)) {
            return;
        }

        if (sluice_core_try(s, base, entry) || s->is_over
            || (entry->flags & SLUICE_CORE_LAST))
        {
            return;
        }

        entry++;
    }
}


static void
core_search_delta(sluice_core_search_t *s)
{
    int                        kind;
    uint32_t                   i, n;
    uint64_t                   bits;
    sluice_core_delta_t       *delta;
    const sluice_core_text_t  *host;

    delta = (sluice_core_delta_t *) (uintptr_t) s->view->delta.base;
    host = &s->request->host;

    core_search_delta_lengths(s, SLUICE_CORE_ANY,
                              sluice_core_hash(SLUICE_CORE_HASH_HOST
                                               + SLUICE_CORE_ANY, "", 0));
    if (host->data == NULL) {
        return;
    }

    core_search_delta_host(s, SLUICE_CORE_EXACT, host->data, host->length);

    for (kind = SLUICE_CORE_TAIL; kind <= SLUICE_CORE_HEAD; kind++) {

        for (i = 0; i < SLUICE_CORE_BITS; i++) {
            bits = atomic_load_explicit(&delta->hosts[kind][i],
                                        memory_order_acquire);

            for ( /* void */ ; bits; bits &= bits - 1) {
                n = i * 64 + (uint32_t) __builtin_ctzll(bits);

                if (n < host->length && !s->is_over) {
                    core_search_delta_host(s, kind,
                                           kind == SLUICE_CORE_TAIL
                                           ? host->data + host->length - n
                                           : host->data, n);
                }
            }
        }
    }
}


static void
core_search_delta_host(sluice_core_search_t *s, int kind, const char *data,
    uint32_t length)
{
    uint64_t             hash;
    sluice_core_chain_t  chain;

    hash = sluice_core_hash(SLUICE_CORE_HASH_HOST + (uint64_t) kind, data,
                            length);
    sluice_core_chain(&chain, s->view, hash, SLUICE_CORE_TO_ROOM);

    if (sluice_core_chain_next(&chain)) {
        core_search_delta_lengths(s, kind, hash);
    }
}


static void
core_search_delta_lengths(sluice_core_search_t *s, int kind, uint64_t host)
{
    uint32_t                    i, n, ref;
    uint64_t                    bits;
    sluice_core_chain_t         chain;
    sluice_core_delta_t        *delta;
    const sluice_core_entry_t  *entry;
    const sluice_core_space_t  *space;

    space = &s->view->delta;
    delta = (sluice_core_delta_t *) (uintptr_t) space->base;

    for (i = 0; i < SLUICE_CORE_BITS; i++) {
        bits = atomic_load_explicit(&delta->paths[kind][i],
                                    memory_order_acquire);

        for ( /* void */ ; bits; bits &= bits - 1) {
            n = i * 64 + (uint32_t) __builtin_ctzll(bits);

            if (n > s->request->path.length
                || sluice_core_search_ends(s, 1))
            {
                return;
            }

            sluice_core_chain(&chain, s->view,
                              sluice_core_hash_key(host, &s->heads, n),
                              SLUICE_CORE_TO_ENTRY);

            while ((ref = sluice_core_chain_next(&chain)) != 0) {
                entry = sluice_core_at(space, ref);

                if (sluice_core_search_ends(s, 1)) {
                    return;
                }

                if (s->best == NULL
                    || sluice_core_precedes(space, entry, s->space, s->best))
                {
                    (void) sluice_core_try(s, space, entry);
                }
            }
        }
    }
}
