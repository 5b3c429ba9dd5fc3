
/*
 * What stands in an image; see core.h for what it means.  Private to the
 * core's files and to tests.
 *
 * A reference is an offset from the image's (or the delta's) start, counted in
 * 8 bytes; 0 is none.
 */


#ifndef SLUICE_CORE_LAYOUT_H_INCLUDED
#define SLUICE_CORE_LAYOUT_H_INCLUDED


#ifndef _GNU_SOURCE
#define _GNU_SOURCE           /* qsort_r(), O_CLOEXEC; include this first */
#endif

#include <stdatomic.h>
#include <string.h>

#include "core.h"


#define SLUICE_CORE_MAGIC      0x4547414d49434c53ull      /* "SLCIMAGE" */
#define SLUICE_CORE_LINE       64
#define SLUICE_CORE_ITEMS      8             /* of a line */
#define SLUICE_CORE_PROBES     8             /* lines that a key may need */
#define SLUICE_CORE_KEY_MAX    255           /* bytes of a path in a key */
#define SLUICE_CORE_DIRECT     8             /* lengths, else by rooms */
#define SLUICE_CORE_SIZE_MAX   (1ull << 35)


/* How an entry's host is compared. */

typedef enum {
    SLUICE_CORE_ANY = 0,        /* the route has no hosts */
    SLUICE_CORE_EXACT,
    SLUICE_CORE_TAIL,           /* "*.x" */
    SLUICE_CORE_HEAD,           /* "x.*" */
    SLUICE_CORE_HOSTS
} sluice_core_host_e;


/* What an item leads to: the low bits of its tag. */

typedef enum {
    SLUICE_CORE_TO_ENTRY = 0,   /* the best of its key */
    SLUICE_CORE_TO_ROOM,        /* lengths */
    SLUICE_CORE_TO_RECORD,
    SLUICE_CORE_TO_CHILDREN,
    SLUICE_CORE_TO_SLOT         /* a record by its slot; only in a delta */
} sluice_core_to_e;

#define SLUICE_CORE_TO_MASK    3u

/* Requests look for entries and rooms: no more is in the lines of those. */

#define SLUICE_CORE_TABLES     2

#define sluice_core_table(to)  ((to) > SLUICE_CORE_TO_ROOM)


typedef struct {
    uint32_t  tag;
    uint32_t  ref;                         /* 0: no item, nor any behind */
} sluice_core_item_t;


typedef struct {
    sluice_core_item_t  items[SLUICE_CORE_ITEMS];
} sluice_core_line_t;


/* A text is followed by its bytes and a NUL. */

typedef struct {
    uint32_t  length;
    char      data[4];
} sluice_core_chars_t;


/* A list: references to texts, or to regular expressions. */

typedef struct {
    uint32_t  count;
    uint32_t  items[1];
} sluice_core_list_t;


/* Slots of children, ascending, and whose they are. */

typedef struct {
    uint32_t  child;                       /* kind */
    uint32_t  kind;
    uint32_t  slot;
    uint32_t  count;
    uint32_t  slots[2];
} sluice_core_children_t;


/* Conditions on headers, by their names: all of them have to hold. */

typedef struct {
    uint32_t  name;                        /* lower case, with dashes */
    uint32_t  values;                      /* list of texts in lower case */
    uint32_t  patterns;                    /* list of regular expressions */
    uint32_t  zero;
} sluice_core_condition_t;

typedef struct {
    uint32_t                 count;
    uint32_t                 zero;
    sluice_core_condition_t  conditions[1];
} sluice_core_conditions_t;


/* A regular expression: what follows skip bytes of a text. */

typedef struct {
    uint32_t  text;
    uint16_t  skip;
    uint16_t  is_path;                     /* anchored; else caseless */
} sluice_core_regex_t;


/* Lengths in use, those that can win over more come first. */

typedef struct {
    uint64_t  best;                        /* score of its best */
    uint32_t  length;
    uint32_t  zero;
} sluice_core_length_t;

typedef struct {
    uint32_t              count;
    uint32_t              zero;
    sluice_core_length_t  lengths[1];
} sluice_core_lengths_t;


struct sluice_core_record_s {
    uint8_t   id[16];
    uint64_t  revision;
    int64_t   created_at;
    uint64_t  sequence;
    uint32_t  body;                        /* bytes, without a NUL */
    uint32_t  body_length;
    uint16_t  is_owner;                    /* in an image: children have it */
    uint8_t   kind;
    uint8_t   gone;                        /* only in a delta */
    uint32_t  slot;
    uint32_t  generation;
    uint32_t  fields[SLUICE_CORE_FIELDS];  /* as kinds.c says */
};


/*
 * The precedence as one number, the greatest wins.  From the top: number of
 * kinds of conditions, only plain hosts, number of headers, the path's place
 * (regular expressions by their priority, below them prefixes by length), an
 * explicit port.  48 bits.
 */

#define SLUICE_CORE_LENGTH_MAX     ((1ull << 19) - 1)
#define SLUICE_CORE_PRIORITY_MAX   ((1ll << 31) - 1)
#define SLUICE_CORE_REGEX_BASE     (1ull << 33)
#define SLUICE_CORE_HEADERS_MAX    255
#define SLUICE_CORE_PATH_BIT       1
#define SLUICE_CORE_HEADERS_BIT    (SLUICE_CORE_PATH_BIT + 34)
#define SLUICE_CORE_PLAIN_BIT      (SLUICE_CORE_HEADERS_BIT + 8)
#define SLUICE_CORE_WEIGHT_BIT     (SLUICE_CORE_PLAIN_BIT + 1)

#define SLUICE_CORE_HAS_PORT       0x01
#define SLUICE_CORE_HAS_PATH       0x02
#define SLUICE_CORE_LAST           0x04    /* of its key */

#define SLUICE_CORE_OTHER_METHOD   0x80000000u


typedef struct {
    uint64_t  score;
    uint32_t  host;                        /* text; lower case, no star */
    uint32_t  path;                        /* text: prefix, or head */
    uint32_t  route;                       /* record */
    uint32_t  slot;                        /* the route's */
    uint32_t  headers;                     /* conditions */
    uint32_t  regex;
    uint32_t  methods;                     /* bits; 0: any */
    uint32_t  snis;                        /* list */
    uint16_t  port;
    uint16_t  order;                       /* of the path in its route */
    uint8_t   host_kind;
    uint8_t   key_length;                  /* bytes of path in the key */
    uint8_t   flags;
    uint8_t   zero;
    uint64_t  zero2[2];
} sluice_core_entry_t;


typedef struct {
    uint64_t  offset;                      /* bytes */
    uint64_t  count;
} sluice_core_section_t;


typedef struct {
    uint64_t               magic;
    uint64_t               checksum;       /* of all that follows it */
    uint32_t               layout;
    uint32_t               needs;
    uint64_t               size;
    uint8_t                store[16];
    uint64_t               revision;
    uint64_t               arena_end;      /* it follows the header */
    sluice_core_section_t  entries;
    sluice_core_section_t  rooms;          /* count: bytes */
    sluice_core_section_t  lines[SLUICE_CORE_TABLES];
    sluice_core_section_t  slots[SLUICE_CORE_KINDS];
    uint32_t               paths[SLUICE_CORE_HOSTS];  /* lengths; EXACT: 0 is
                                                         by rooms */
    uint32_t               tails;          /* lengths of hosts */
    uint32_t               heads;
    sluice_core_section_t  bodies;         /* count: bytes */
    uint64_t               zero[5];
} sluice_core_image_t;


/*
 * A delta: its header, heads of chains, nodes and what they lead to.  A node
 * never changes once it is linked, and leads to older ones only, which stand
 * before it.
 */

#define SLUICE_CORE_DELTA_MAGIC  0x41544c4544434c53ull    /* "SLCDELTA" */
#define SLUICE_CORE_BITS         4           /* words of 256 bits */
#define SLUICE_CORE_SEEN         512         /* words of 2^15 bits */
#define SLUICE_CORE_SEALS        4

typedef struct {
    uint64_t  hash;
    uint64_t  revision;
    uint32_t  next;                        /* an older node */
    uint32_t  ref;
    uint32_t  to;
    uint32_t  bucket;
} sluice_core_node_t;


/* Of all that is linked up to an end: what a check compares it with. */

typedef struct {
    _Atomic uint64_t  used;                    /* that end, in bytes */
    _Atomic uint64_t  nodes;                   /* their number */
    _Atomic uint64_t  sum;                     /* of the arena's words */
    uint64_t          zero;
} sluice_core_seal_t;


struct sluice_core_delta_s {
    uint64_t          magic;
    uint32_t          layout;
    uint32_t          zero;
    uint64_t          size;
    uint8_t           store[16];
    uint64_t          since;               /* revision of its image */
    uint64_t          buckets;             /* a power of two; they follow */
    uint64_t          arena;               /* where the nodes begin, bytes */

    /* only ever grow: bits are set before what needs them is linked */

    _Alignas(SLUICE_CORE_LINE)
    _Atomic uint64_t  used;                /* end of what is linked, bytes */
    _Atomic uint64_t  needs;
    _Atomic uint64_t  paths[SLUICE_CORE_HOSTS][SLUICE_CORE_BITS];
    _Atomic uint64_t  hosts[SLUICE_CORE_HOSTS][SLUICE_CORE_BITS];
    _Atomic uint64_t  dependents;          /* see sluice_core_dependents() */
    uint64_t          zero2[5];

    /* of the upper 15 bits of hashes: those of which there is a node, but for
       nodes of ids and keys, which requests do not look for */

    _Atomic uint64_t  seen[SLUICE_CORE_SEEN];

    /* a transaction writes the next one; they are counted from 0, which is
       that of an empty delta */

    _Alignas(SLUICE_CORE_LINE)
    _Atomic uint64_t    sealed;
    uint64_t            zero3[7];
    sluice_core_seal_t  seals[SLUICE_CORE_SEALS];
};


_Static_assert(sizeof(void *) == 8, "64-bit only");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little endian");
_Static_assert(sizeof(sluice_core_text_t) == 16, "text");
_Static_assert(sizeof(sluice_core_header_t) == 32, "header");
_Static_assert(sizeof(sluice_core_value_t) == 16, "value");
_Static_assert(sizeof(sluice_core_entity_t) == 208, "entity");
_Static_assert(sizeof(sluice_core_item_t) == 8, "item");
_Static_assert(sizeof(sluice_core_line_t) == SLUICE_CORE_LINE, "line");
_Static_assert(sizeof(sluice_core_condition_t) == 16, "condition");
_Static_assert(sizeof(sluice_core_regex_t) == 8, "regex");
_Static_assert(sizeof(sluice_core_length_t) == 16, "length");
_Static_assert(sizeof(sluice_core_record_t) == 96, "record");
_Static_assert(sizeof(sluice_core_entry_t) == SLUICE_CORE_LINE, "entry");
_Static_assert(offsetof(sluice_core_image_t, checksum) == 8, "checksum");
_Static_assert(sizeof(sluice_core_image_t) == 448, "image");
_Static_assert(sizeof(sluice_core_node_t) == 32, "node");
_Static_assert(sizeof(sluice_core_delta_t)
               == 384 + 8 * SLUICE_CORE_SEEN + 64
                  + SLUICE_CORE_SEALS * sizeof(sluice_core_seal_t), "delta");
_Static_assert(SLUICE_CORE_WEIGHT_BIT + 4 <= 48, "precedence");
_Static_assert(SLUICE_CORE_BITS * 64 > SLUICE_CORE_KEY_MAX
               && SLUICE_CORE_BITS * 64 > SLUICE_CORE_HOST_MAX, "lengths");


/* What the fields of each kind hold; kinds.c. */

typedef enum {
    SLUICE_CORE_UNUSED = 0,
    SLUICE_CORE_NUMBER,
    SLUICE_CORE_SLOT,
    SLUICE_CORE_OWNER,                     /* a slot: it lists this one */
    SLUICE_CORE_TEXT,
    SLUICE_CORE_KEY,                       /* a text: finds this one */
    SLUICE_CORE_LIST,
    SLUICE_CORE_KEYS,                      /* a list: each finds this one */
    SLUICE_CORE_HEADERS
} sluice_core_field_e;

typedef struct {
    uint8_t  types[SLUICE_CORE_FIELDS];
    uint8_t  refers[SLUICE_CORE_FIELDS];   /* kind; of slots and owners */
    uint8_t  owned;                        /* without an owner, by all */
    uint8_t  by_id;
    uint8_t  has_dependents;               /* it is read after a match beside
                                              the route, or compiled */
} sluice_core_schema_t;

extern const sluice_core_schema_t  sluice_core_schemas[SLUICE_CORE_KINDS];

/* The field that names a record's owner, or one of these. */

#define SLUICE_CORE_OWNED_BY_ALL  (-1)
#define SLUICE_CORE_NO_OWNER      (-2)

int sluice_core_owner(const sluice_core_record_t *record);


/* Bytes that are being filled, from used on; shared by image and delta. */

typedef struct {
    uint8_t   *base;
    uint64_t   size;
    uint64_t   used;
} sluice_core_arena_t;


/* A hint: the address may be any, so what it is made of needs no check. */

#ifndef sluice_core_prefetch
#define sluice_core_prefetch(p)   __builtin_prefetch(p)
#endif

#define sluice_core_align(n, a)   (((n) + ((a) - 1)) & ~(uint64_t) ((a) - 1))

#define sluice_core_at(space, ref)                                            \
    ((const void *) ((space)->base + (uint64_t) (ref) * 8))


static inline char
sluice_core_lower(char c)
{
    return (c >= 'A' && c <= 'Z') ? (char) (c | 0x20) : c;
}


static inline const sluice_core_chars_t *
sluice_core_chars(const sluice_core_space_t *space, uint32_t ref)
{
    return sluice_core_at(space, ref);
}


static inline const sluice_core_list_t *
sluice_core_refs(const sluice_core_space_t *space, uint32_t ref)
{
    return sluice_core_at(space, ref);
}


static inline const sluice_core_image_t *
sluice_core_header(const sluice_core_space_t *space)
{
    return (const sluice_core_image_t *) space->base;
}


/* encode.c: what is built goes one after the other into an arena */

void *sluice_core_take(sluice_core_arena_t *arena, uint64_t size,
    uint64_t align, uint32_t *ref);
int sluice_core_put_text(sluice_core_arena_t *arena, const void *data,
    uint32_t length, uint32_t *ref);
int sluice_core_put_entity(sluice_core_arena_t *arena,
    const sluice_core_entity_t *entity, uint32_t *ref);
int sluice_core_put_body(sluice_core_arena_t *arena,
    const sluice_core_entity_t *entity, uint32_t record);
uint64_t sluice_core_bound_entity(const sluice_core_entity_t *entity);

/* decode.c: and back */

typedef struct sluice_core_scratch_s  sluice_core_scratch_t;

void *sluice_core_scratch_take(sluice_core_scratch_t **scratch, size_t size);
void sluice_core_scratch_free(sluice_core_scratch_t *scratch);
int sluice_core_decode(const sluice_core_found_t *found,
    sluice_core_entity_t *entity, sluice_core_scratch_t **scratch);

/* entries.c: a route's record to its entries */

typedef int (*sluice_core_entry_pt)(void *data,
    const sluice_core_entry_t *entry);

int sluice_core_entries(sluice_core_arena_t *arena, uint32_t route,
    uint32_t *needs, sluice_core_entry_pt emit, void *data);

/* head.c: head has room for length bytes; how many it is */

uint32_t sluice_core_literal_head(const char *pattern, uint32_t length,
    char *head);

/* key.c: keys, and who comes first */

uint64_t sluice_core_hash_host(const sluice_core_space_t *space,
    const sluice_core_entry_t *entry);
uint64_t sluice_core_hash_entry(const sluice_core_space_t *space,
    const sluice_core_entry_t *entry, uint64_t host);
uint64_t sluice_core_hash_children(uint32_t child, uint32_t kind,
    uint32_t slot);
int sluice_core_same_key(const sluice_core_space_t *space,
    const sluice_core_entry_t *a, const sluice_core_entry_t *b);
int sluice_core_precedes(const sluice_core_space_t *space,
    const sluice_core_entry_t *entry, const sluice_core_space_t *other_space,
    const sluice_core_entry_t *other);
int sluice_core_method_bit(const char *data, uint32_t length, uint32_t *bit);

/* check.c */

uint64_t sluice_core_checksum(const void *image, uint64_t size);

/* read.c: base and delta */

/* data is NULL where the reference is 0 */
sluice_core_text_t sluice_core_text_at(const sluice_core_space_t *space,
    uint32_t ref);
int sluice_core_is_alive(const sluice_core_view_t *view,
    const sluice_core_found_t *found);

/* The n-th key that a field of a record has: 1, or 0 where it has no more. */

int sluice_core_key(const sluice_core_found_t *found, int field, uint32_t n,
    sluice_core_text_t *key);

/* A look-up in an image: next gives references until it gives 0. */

typedef struct {
    const sluice_core_line_t  *lines;
    uint64_t                   count;
    uint64_t                   line;
    uint32_t                   tag;
    uint32_t                   probe;      /* lines looked at */
    uint32_t                   item;       /* in the line */
} sluice_core_walk_t;

void sluice_core_walk(sluice_core_walk_t *walk,
    const sluice_core_space_t *space, uint64_t hash, uint32_t to);
uint32_t sluice_core_walk_next(sluice_core_walk_t *walk);

/* children.c; space: where they are */

const sluice_core_children_t *sluice_core_find_children(
    const sluice_core_view_t *view, uint32_t child, uint32_t kind,
    uint32_t slot, sluice_core_space_t *space);

/* live.c: rc is SLUICE_CORE_REPEAT, or _MEMORY */

int sluice_core_has_repeats(const sluice_core_entity_t *changes, size_t count,
    int *rc);

#endif /* SLUICE_CORE_LAYOUT_H_INCLUDED */
