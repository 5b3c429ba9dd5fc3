
/*
 * Long on purpose: the whole contract in one place.
 *
 * The core: what a request needs to know of the configuration, as bytes that
 * all processes map, and the match on them.  Plain C11 on Linux, no nginx
 * headers: tests, fuzzers, the command line and nginx build the same files.
 *
 *
 * SYNOPSIS
 *
 *     the writer, once:
 *         size = sluice_core_image_bound(entities, count);
 *         sluice_core_image_build(&identity, entities, count, buffer, size,
 *                                 &used);
 *         sluice_core_file_write(path, buffer, used, 1);
 *     a reader:
 *         sluice_core_file_open(path, uid, SLUICE_CORE_CHECK, &view.base);
 *         sluice_core_match(&view, &request, regexes, &match);
 *         service = sluice_core_by_slot(&view, SLUICE_CORE_SERVICE,
 *                                       match.service);
 *
 *
 * AN ENTITY
 *
 * has a head that is the same for all kinds and up to nine fields, which
 * one table in kinds.c describes: a number, a reference (a slot), a text, a
 * list of texts, conditions on headers.  The builder takes an array of
 * sluice_core_entity_t, which point at the caller's memory; a row of SQLite
 * or a Lua table fills one without a copy.  A new field is a row there.
 *
 * A slot is a small number that names an entity of a kind while it lives; the
 * store gives it out, and gives it to another one with a new generation.  All
 * references are slots: a changed service touches no route.
 *
 * Of routes that are otherwise equal the older created_at wins, then the
 * smaller sequence, then the smaller slot.
 *
 *
 * AN IMAGE
 *
 * is a file that never changes once it has its name:
 *
 *     +--------+--------------+---------+-------+-------+-------+--------+
 *     | header | records,     | entries | rooms | lines | slots | bodies |
 *     |        | lists, texts |         |       |       |       |        |
 *     +--------+--------------+---------+-------+-------+-------+--------+
 *
 * References are offsets from its start, counted in 8 bytes, in 32 bits: no
 * pointers, at most 32 GB.  layout.h has the structures, with their sizes.
 *
 *     record   96 bytes: the head (60) and its fields, each 4 bytes
 *     entry    64 bytes: all that a match needs of one pair of a host and a
 *              path of a route; 96 + 64 are the 160 bytes of a plain route.
 *              It stands behind the route's texts, or with others of its key
 *     line     64 bytes: eight items {tag, reference} of a hash table.  One
 *              finds entries by host and path, and rooms by host: what each
 *              request asks for.  The other finds consumers by id and name,
 *              certificates by id, credentials by digest, upstreams, names
 *              and SNIs by name, children (targets, plugin bindings,
 *              memberships) by their owner, entities of plugins by id and
 *              digests
 *     slots    of each kind, the record's reference
 *     bodies   the entities' own texts
 *
 * The same entities in any order, the same identity: the same bytes.
 *
 *
 * THE MATCH
 *
 * has the semantics of docs/router.md.  An entry's key is its host and the
 * head of its path: of a prefix the first 255 bytes, of a regular expression
 * the text that it must begin with.  Entries of one key are neighbours in the
 * order of precedence; one alone stands behind its route's record and texts,
 * so that all of them are fetched at once.  A request asks for the keys of
 *
 *     its host, each wildcard's length in use, no host
 *         x the lengths of paths that are in use there
 *
 * where "there" is all exact hosts together, while they use few lengths, else
 * the host's room.  The lines of up to 16 keys are prefetched before the first
 * is looked at, then their entries and what stands before these; what cannot
 * win is not looked at.
 *
 * A regular expression is compiled by each process at its first use and kept
 * in a bounded cache (sluice_core_regexes_t), found by its own text: so it
 * outlives images, is shared by routes and plugins, and can never be
 * another's.  Those of all routes and plugins fit into it
 * (SLUICE_CORE_REGEXES_BYTES, whoever builds sees to that).
 *
 * A match may spend 3.5 ms, 2.5 of them on compiling and running regular
 * expressions, and 100,000 of their steps (budget.h).  One that is left no
 * more, or cannot be compiled, counts as one that matches; and if no other
 * route wins over that one, the answer is SLUICE_CORE_LIMIT (_PATTERN,
 * _MEMORY) with the route: refuse the request.  So it is where candidates take
 * all of the time.  It is never "no match", which could mean a route with less
 * protection.
 *
 *
 * WHO MAY BE TRUSTED
 *
 * sluice_core_check() takes any bytes.  What it has passed, every verb here
 * can read without leaving the image or looping for ever, whoever made it.
 * That it also says what its entities say follows from the checksum where
 * the writer is ours; for certainty decode it and build it again: the bytes
 * are the same.  A file that another process truncates or changes while it is
 * mapped is beyond what can be checked: live files belong to one user, mode
 * 0600, and are replaced, never written (sluice_core_file_write).
 *
 *
 * LIMITS
 *
 * An image has at most 2^24 slots of a kind and 2^35 bytes; a text 2^20 bytes;
 * a body 2^24; a list 2^16 - 1 items; a host 255 bytes.  A look-up asks for at
 * most 255 lengths of paths in each of at most 512 rooms, and follows a key
 * over at most 8 lines.
 *
 *
 * COSTS
 *
 * docs/core.md has what was measured.  A match allocates nothing, save when a
 * regular expression is compiled; a key costs one line, a candidate its
 * entry and one or two lines of text.
 *
 *
 * SOURCES
 *
 * Buckets of a cache line with tags: A. Kirsch, M. Mitzenmacher, U. Wieder,
 * "Hash-Based Techniques for High-Speed Packet Processing", 2010.  A prefix
 * by the hash of each length in use: M. Waldvogel et al., "Scalable High
 * Speed IP Routing Lookups", 1997.  Folded multiplication: wyhash.  Images
 * that are mapped as they are: D. J. Bernstein's cdb.
 */


#ifndef SLUICE_CORE_H_INCLUDED
#define SLUICE_CORE_H_INCLUDED


#include <stddef.h>
#include <stdint.h>
#include <string.h>


/*
 * Of images, deltas and the page.  Grows with each change, and with each of
 * the memory that the page stands in: who has another page leaves files of
 * another layout alone.
 */

#define SLUICE_CORE_LAYOUT       11

/* FFI */

#define SLUICE_CORE_FIELDS       9
#define SLUICE_CORE_SLOTS_MAX    (1u << 24)
#define SLUICE_CORE_TEXT_MAX     (1u << 20)
#define SLUICE_CORE_LIST_MAX     65535
#define SLUICE_CORE_BODY_MAX     (1u << 24)
#define SLUICE_CORE_HOST_MAX     255

/* FFI end */


#define SLUICE_CORE_NOBODY       0xffffffffu  /* a slot that is none */
#define SLUICE_CORE_DIGEST       32           /* bytes */

/* Steps of all regular expressions of a match before it is given up. */
#define SLUICE_CORE_STEPS        100000

/* Bytes of a regular expression. */
#define SLUICE_CORE_PATTERN_MAX  4096

/* Groups that a regular expression may have. */
#define SLUICE_CORE_GROUPS_MAX   99

/* Lines of one header that are looked at; the caller has refused more. */
#define SLUICE_CORE_LINES_MAX    32


/* FFI */

/* Every verb that can fail returns one of these. */

typedef enum {
    SLUICE_CORE_OK = 0,
    SLUICE_CORE_NONE = -1,      /* no route; no such key */
    SLUICE_CORE_FULL = -2,      /* the buffer, or the delta, is too small */
    SLUICE_CORE_BAD = -3,       /* not an image, or a damaged one */
    SLUICE_CORE_VERSION = -4,   /* of another layout */
    SLUICE_CORE_LIMIT = -5,     /* a pattern took too long: refuse */
    SLUICE_CORE_PATTERN = -6,   /* a pattern does not compile: refuse */
    SLUICE_CORE_MEMORY = -7,    /* none left: refuse */
    SLUICE_CORE_REPEAT = -8,    /* two entities in one slot */
    SLUICE_CORE_LARGE = -9,     /* over one of the limits above */
    SLUICE_CORE_CROWDED = -10,  /* keys that no table keeps apart */
    SLUICE_CORE_FOREIGN = -11,  /* another user's file, or others may write */
    SLUICE_CORE_SYSTEM = -12,   /* errno says it */
    SLUICE_CORE_STALE = -13,    /* the delta has gone on: read again */
    SLUICE_CORE_TRAVERSAL = -14,  /* a path leaves its service's: refuse */
    SLUICE_CORE_AGAIN = -15     /* compiled so far: ask again, soon */
} sluice_core_rc_e;


typedef enum {
    SLUICE_CORE_SERVICE = 0,
    SLUICE_CORE_UPSTREAM,
    SLUICE_CORE_CONSUMER,
    SLUICE_CORE_ROUTE,
    SLUICE_CORE_TARGET,
    SLUICE_CORE_CREDENTIAL,
    SLUICE_CORE_PLUGIN,
    SLUICE_CORE_NAME,
    SLUICE_CORE_GROUP,
    SLUICE_CORE_MEMBERSHIP,
    SLUICE_CORE_CERTIFICATE,
    SLUICE_CORE_CA_CERTIFICATE,
    SLUICE_CORE_SNI,
    SLUICE_CORE_LABEL,
    SLUICE_CORE_ENTITY,
    SLUICE_CORE_KINDS
} sluice_core_kind_e;


/* The fields of each kind; kinds.c says what they hold. */

enum {
    SLUICE_CORE_ROUTE_SERVICE = 0,      /* slot */
    SLUICE_CORE_ROUTE_FLAGS,            /* number: the caller's */
    SLUICE_CORE_ROUTE_NAME,             /* text */
    SLUICE_CORE_ROUTE_HOSTS,            /* lists of texts, as configured */
    SLUICE_CORE_ROUTE_PATHS,
    SLUICE_CORE_ROUTE_METHODS,
    SLUICE_CORE_ROUTE_HEADERS,          /* headers */
    SLUICE_CORE_ROUTE_PRIORITY,         /* number, signed: regex_priority */
    SLUICE_CORE_ROUTE_SNIS              /* list of texts, in lower case */
};

enum {
    SLUICE_CORE_SERVICE_FLAGS = 0,      /* number: the caller's */
    SLUICE_CORE_SERVICE_NAME,           /* text */
    SLUICE_CORE_SERVICE_HOST,           /* text */
    SLUICE_CORE_SERVICE_PATH,           /* text */
    SLUICE_CORE_SERVICE_PORT,           /* number: port << 16 | retries */
    SLUICE_CORE_SERVICE_CONNECT_MS,     /* numbers */
    SLUICE_CORE_SERVICE_WRITE_MS,
    SLUICE_CORE_SERVICE_READ_MS,
    SLUICE_CORE_SERVICE_TLS             /* text: the caller's */
};

enum {
    SLUICE_CORE_UPSTREAM_NAME = 0,      /* text, a key */
    SLUICE_CORE_UPSTREAM_HOST_HEADER,   /* text */
    SLUICE_CORE_UPSTREAM_SLOTS,         /* number */
    SLUICE_CORE_UPSTREAM_FLAGS,         /* number: the caller's */
    SLUICE_CORE_UPSTREAM_CERTIFICATE    /* slot: the client's */
};

enum {
    SLUICE_CORE_TARGET_UPSTREAM = 0,    /* slot: its owner */
    SLUICE_CORE_TARGET_TARGET,          /* text: host:port */
    SLUICE_CORE_TARGET_WEIGHT           /* number */
};

enum {
    SLUICE_CORE_CONSUMER_USERNAME = 0,  /* text, a key */
    SLUICE_CORE_CONSUMER_CUSTOM_ID      /* text */
};

enum {
    SLUICE_CORE_CREDENTIAL_CONSUMER = 0,    /* slot */
    SLUICE_CORE_CREDENTIAL_DIGEST,          /* text, a key: 32 bytes, keyed */
    SLUICE_CORE_CREDENTIAL_EXPIRES,         /* number: seconds since 1970;
                                               0: never */
    SLUICE_CORE_CREDENTIAL_PACKED,          /* text: what its plugin reads */
    SLUICE_CORE_CREDENTIAL_KEYS,            /* list of keys: more digests */
    SLUICE_CORE_CREDENTIAL_OF               /* number: of which kind */
};

/*
 * SLUICE_CORE_ENTITY, any other of a plugin's own, has the same fields, of
 * which the digest and what is packed are not given, nor has it to have a
 * consumer.  Both are found by their kind's number and id.
 */

enum {
    SLUICE_CORE_PLUGIN_CONSUMER = 0,    /* slots; the first that is given */
    SLUICE_CORE_PLUGIN_GROUP,           /*   owns the binding, else */
    SLUICE_CORE_PLUGIN_ROUTE,           /*   it is global */
    SLUICE_CORE_PLUGIN_SERVICE,
    SLUICE_CORE_PLUGIN_NAME,            /* text */
    SLUICE_CORE_PLUGIN_FLAGS,           /* number: the caller's */
    SLUICE_CORE_PLUGIN_PACKED,          /* text: what a native plugin reads */
    SLUICE_CORE_PLUGIN_UNITS,           /* number: what its patterns take, in
                                           units of the caller's */
    SLUICE_CORE_PLUGIN_PATTERNS         /* list of texts: "~" and a pattern
                                           that is anchored, "*" and one that
                                           is found anywhere */
};

enum {
    SLUICE_CORE_NAME_HOST = 0,          /* text, a key */
    SLUICE_CORE_NAME_ADDRESSES          /* list of texts; none: it has none */
};

enum {
    SLUICE_CORE_GROUP_NAME = 0          /* text: of a group of consumers */
};

enum {
    SLUICE_CORE_MEMBERSHIP_CONSUMER = 0,    /* slot: its owner */
    SLUICE_CORE_MEMBERSHIP_GROUP            /* slot */
};

/* PEM, or a reference to a vault, which its reader looks up. */

enum {
    SLUICE_CORE_CERTIFICATE_CERT = 0,   /* texts */
    SLUICE_CORE_CERTIFICATE_KEY,
    SLUICE_CORE_CERTIFICATE_CERT_ALT,
    SLUICE_CORE_CERTIFICATE_KEY_ALT
};

enum {
    SLUICE_CORE_CA_CERTIFICATE_CERT = 0 /* text */
};

enum {
    SLUICE_CORE_SNI_CERTIFICATE = 0,    /* slot */
    SLUICE_CORE_SNI_NAME                /* text, a key: in lower case */
};

/* What a plugin's kind of entities says of a consumer: a group's name. */

enum {
    SLUICE_CORE_LABEL_CONSUMER = 0,     /* slot: its owner */
    SLUICE_CORE_LABEL_KIND,             /* text */
    SLUICE_CORE_LABEL_NAME              /* text */
};


/* Bytes; data is NULL for a text that is not given. */

typedef struct {
    const char   *data;
    uint32_t      length;
} sluice_core_text_t;


/* A condition on a header: one of the values; "~*" begins a pattern. */

typedef struct {
    sluice_core_text_t         name;
    const sluice_core_text_t  *values;
    uint32_t                   count;
} sluice_core_header_t;


/*
 * A field of an entity.  A number or a slot: number.  A text: data and count
 * bytes.  A list, headers: data is an array of count sluice_core_text_t or
 * sluice_core_header_t.  data NULL, count 0: not given.
 */

typedef struct {
    const void   *data;
    uint32_t      count;
    uint32_t      number;
} sluice_core_value_t;


/*
 * What the builder takes.  The body is the entity's own text (JSON), which the
 * core only keeps; the bodies of an image stand together at its end, where no
 * match meets them.
 */

typedef struct {
    uint8_t              id[16];
    uint64_t             revision;       /* of its last change */
    int64_t              created_at;
    uint64_t             sequence;
    uint32_t             slot;
    uint32_t             generation;
    const char          *body;
    uint32_t             body_length;
    uint16_t             zero;
    uint8_t              kind;
    uint8_t              gone;           /* in a change: it is deleted */
    sluice_core_value_t  fields[SLUICE_CORE_FIELDS];
} sluice_core_entity_t;


/* Which configuration: the store, and its revision. */

typedef struct {
    uint8_t              store[16];
    uint64_t             revision;
} sluice_core_identity_t;


/* What stands in an image or a delta; see layout.h. */

typedef struct sluice_core_record_s   sluice_core_record_t;
typedef struct sluice_core_delta_s    sluice_core_delta_t;
typedef struct sluice_core_regexes_s  sluice_core_regexes_t;


/* Mapped bytes that references count from. */

typedef struct {
    const uint8_t   *base;
    uint64_t         size;
} sluice_core_space_t;


/*
 * What a request sees: an image and, unless its base is NULL, a delta, whose
 * changes behind the revision do not exist for it.
 */

typedef struct {
    sluice_core_space_t   base;
    sluice_core_space_t   delta;
    uint64_t              revision;
} sluice_core_view_t;


/* A record, and the bytes that its references count from. */

typedef struct {
    const sluice_core_record_t  *record;       /* NULL: there is none */
    sluice_core_space_t          space;
} sluice_core_found_t;


/*
 * Reads the index-th line of a header of the request, the name being in lower
 * case with dashes: 1, or 0 when there are no more.
 */
typedef int (*sluice_core_header_pt)(void *data, const char *name,
    uint32_t length, uint32_t index, sluice_core_text_t *value);


/*
 * What the match looks at; what needs says no to may be left out.  Either
 * headers, the lines in their order and with names in lower case, as pairs of
 * texts (name, value), or header, which is asked instead.
 */

typedef struct {
    sluice_core_text_t           method;
    sluice_core_text_t           host;     /* lower case, IPv6 in brackets */
    sluice_core_text_t           path;     /* normalised */
    const sluice_core_text_t    *headers;
    uint32_t                     headers_count;
    int32_t                      port;     /* -1: none */
    sluice_core_header_pt        header;
    void                        *data;
    sluice_core_text_t           sni;      /* lower case; empty: none */
    int                          is_tls;   /* else routes' snis are met */
} sluice_core_request_t;


typedef struct {
    sluice_core_found_t          route;
    sluice_core_text_t           pattern;  /* of the regular expression */
    uint64_t                     revision; /* of the route */
    uint32_t                     slot;
    uint32_t                     generation;
    uint32_t                     service;  /* slot */
    int32_t                      prefix;   /* bytes; -1: it has no paths */
    int32_t                      reason;   /* PCRE's code of a refusal */
    uint32_t                     zero;
} sluice_core_match_t;


/* What of a request the routes look at. */

#define SLUICE_CORE_NEEDS_HOST     0x01
#define SLUICE_CORE_NEEDS_PORT     0x02
#define SLUICE_CORE_NEEDS_METHOD   0x04
#define SLUICE_CORE_NEEDS_HEADERS  0x08
#define SLUICE_CORE_NEEDS_SNI      0x10


/* building */

/* Bytes that are enough for an image of these. */
uint64_t sluice_core_image_bound(const sluice_core_entity_t *entities,
    size_t count);

/*
 * Builds an image of count entities (none gone, in any order) into size bytes
 * at buffer, of which used are the image.  Needs scratch memory of about 130
 * bytes for each pair of a host and a path.  SLUICE_CORE_OK, _FULL, _REPEAT,
 * _LARGE, _CROWDED, _MEMORY.
 */
int sluice_core_image_build(const sluice_core_identity_t *identity,
    const sluice_core_entity_t *entities, size_t count, void *buffer,
    uint64_t size, uint64_t *used);


/* opening */

/*
 * Is this the header of an image of this layout and this size?  The rest is
 * not looked at.  SLUICE_CORE_OK, _BAD, _VERSION.
 */
int sluice_core_check_header(const void *image, uint64_t size);

/*
 * Everything: header, checksum, each record, list, text, entry, item.  Reads
 * each byte about twice.  SLUICE_CORE_OK, _BAD, _VERSION.
 */
int sluice_core_check(const void *image, uint64_t size);

/*
 * Writes bytes under a name, whole or not at all: a temporary file beside it,
 * mode 0600, then a rename; with sync both reach the disk before it returns.
 * What had the name stays as it was until then.  Without sync, for a file in
 * memory, it asks for huge pages.  SLUICE_CORE_OK, _SYSTEM.
 */
int sluice_core_file_write(const char *path, const void *data, uint64_t size,
    int sync);

/*
 * An image that is built and written as a file while the caller does something
 * else.  It is not on the disk when it is there.
 */

typedef struct {
    sluice_core_identity_t       identity;
    const sluice_core_entity_t  *entities;
    size_t                       count;
    const char                  *path;
    uint64_t                     size;      /* of the image, at the end */
    uint64_t                     thread;
    int                          is_begun;
    int                          rc;
    int                          error;     /* errno */
} sluice_core_work_t;

/*
 * What work points at has to stay as it is until sluice_core_work_end(), which
 * has to follow.  Needs the image's bytes once, and its scratch memory.
 */
void sluice_core_work_begin(sluice_core_work_t *work);

/*
 * Waits for the file; where there was no thread, makes it.  The codes of
 * sluice_core_image_build() and sluice_core_file_write(), with their errno.
 */
int sluice_core_work_end(sluice_core_work_t *work);

#define SLUICE_CORE_HEADER_ONLY    0
#define SLUICE_CORE_CHECK          1

/*
 * Maps an image read-only.  Follows no link, takes a plain file only, of this
 * owner, that nobody else may read or write.  SLUICE_CORE_OK, _BAD, _VERSION,
 * _FOREIGN, _SYSTEM.
 */
int sluice_core_file_open(const char *path, uint32_t uid, int check,
    sluice_core_space_t *space);

void sluice_core_file_close(sluice_core_space_t *space);

/*
 * When a file was changed last, in nanoseconds, as the kernel notes it: who
 * writes into a file cannot choose it.  0: it cannot be asked.
 */
uint64_t sluice_core_file_changed(const char *path);

/* Of an image that has been checked. */
void sluice_core_identity(const sluice_core_space_t *space,
    sluice_core_identity_t *identity);


/* reading */

/* SLUICE_CORE_NEEDS_* of the routes that the view may have. */
uint32_t sluice_core_needs(const sluice_core_view_t *view);

/*
 * The route of a request.  SLUICE_CORE_OK: match says which; SLUICE_CORE_NONE;
 * _LIMIT, _PATTERN, _MEMORY: refuse the request, since nobody knows whether it
 * is the route's that match names, or which route's, if it names none.
 * SLUICE_CORE_AGAIN: time went into compiling, and what is compiled stays: let
 * others have their turn, and ask again; after SLUICE_CORE_TURNS refuse it.
 */
#define SLUICE_CORE_TURNS  3000
int sluice_core_match(const sluice_core_view_t *view,
    const sluice_core_request_t *request, sluice_core_regexes_t *regexes,
    sluice_core_match_t *match);

/* One hash look-up each; record is NULL where there is none. */
sluice_core_found_t sluice_core_by_slot(const sluice_core_view_t *view,
    int kind, uint32_t slot);
sluice_core_found_t sluice_core_by_id(const sluice_core_view_t *view, int kind,
    const uint8_t *id);                 /* of consumers and certificates */
sluice_core_found_t sluice_core_by_key(const sluice_core_view_t *view,
    int kind, const void *data, uint32_t length);

/* A credential or an entity, of those with this number of their kind. */
sluice_core_found_t sluice_core_of_kind(const sluice_core_view_t *view,
    int kind, uint32_t of, const uint8_t *id);

/*
 * Slots of the children of an entity, ascending: targets of an upstream,
 * memberships of a consumer, plugins of a consumer, group, route, service, or
 * (kind SLUICE_CORE_KINDS, slot 0) of all.  Their number; slots points into
 * the view.
 */
uint32_t sluice_core_children(const sluice_core_view_t *view, int child,
    int kind, uint32_t slot, const uint32_t **slots);

/*
 * Whether an entity has children of a kind, in this view; an earlier one, of
 * other files, may have found it.
 */

int sluice_core_has_children(const sluice_core_view_t *view, int child,
    const sluice_core_found_t *found);

/*
 * Slots of a kind that hold something, in no order; slots has room for max.
 * Their number, also where that is more.  Costs a look at each slot of the
 * image and at each change of the delta.
 */
uint32_t sluice_core_slots(const sluice_core_view_t *view, int kind,
    uint32_t *slots, uint32_t max);

/* Fields of a record; data is NULL for a text that is not given. */
uint32_t sluice_core_number(const sluice_core_found_t *found, int field);
sluice_core_text_t sluice_core_text(const sluice_core_found_t *found,
    int field);
uint32_t sluice_core_list(const sluice_core_found_t *found, int field);
sluice_core_text_t sluice_core_list_item(const sluice_core_found_t *found,
    int field, uint32_t index);

/* The entity's own text; data is NULL where it has none. */
sluice_core_text_t sluice_core_body(const sluice_core_found_t *found);

/*
 * The head of a record, as plain values, and its body.  The fields of head
 * are not written.
 */
void sluice_core_head(const sluice_core_found_t *found,
    sluice_core_entity_t *head);


/* regular expressions */

/*
 * A cache of compiled patterns that takes so many bytes at most, and the last
 * pattern whatever it takes; of one process, one thread.  NULL: no memory.
 */
sluice_core_regexes_t *sluice_core_regexes_create(uint64_t limit);
void sluice_core_regexes_destroy(sluice_core_regexes_t *regexes);

/*
 * From now on little is compiled in a turn of the event loop, whose clock, in
 * ms, stands still while one lasts.  A match that needs more has its answer
 * _AGAIN.
 */
void sluice_core_regexes_bound(sluice_core_regexes_t *regexes,
    const volatile uintptr_t *clock);

/*
 * Whether this turn has time to compile left.  Who was told _AGAIN has no need
 * to ask before.
 */
int sluice_core_regexes_has_time(sluice_core_regexes_t *regexes);

/* How far what follows has come. */

typedef struct {
    uint32_t              slot;      /* of routes, then of plugins */
    uint32_t              item;      /* pattern of a plugin */
} sluice_core_warm_t;

/*
 * Compiles, as far as this turn has time, what routes and plugins of the
 * view's image have; at is where to go on, zeroed at first.  SLUICE_CORE_OK:
 * that was the last; _AGAIN, in another turn; _FULL: there is no room for
 * more.
 */
int sluice_core_warm(const sluice_core_view_t *view,
    sluice_core_regexes_t *regexes, sluice_core_warm_t *at);

/*
 * The same of one plugin that a request is to run, with what requests of this
 * turn may compile: from its pattern item on.  SLUICE_CORE_OK: all are there,
 * or cannot be compiled; _AGAIN, in another turn.
 */
int sluice_core_prepare(const sluice_core_found_t *plugin,
    sluice_core_regexes_t *regexes, uint32_t *item);

/* How many are compiled, and were in all. */
uint32_t sluice_core_regexes_count(const sluice_core_regexes_t *regexes,
    uint64_t *compiled);

/*
 * Bytes that a cache takes for a pattern, but for machine code; 0: it does not
 * compile.
 */
uint64_t sluice_core_regex_bytes(const char *pattern, uint32_t length,
    int is_path);

/*
 * All patterns of routes and plugins that are live at once may take so many:
 * each of them stays compiled in a cache twice as large, beside machine code
 * and what was live before.
 */
#define SLUICE_CORE_REGEXES_BYTES  (64 << 20)

/*
 * Does this pattern compile (of a path: anchored; of a header: caseless)?
 * SLUICE_CORE_OK, or SLUICE_CORE_PATTERN with the reason in message.
 */
int sluice_core_regex_check(const char *pattern, uint32_t length,
    int is_path, char *message, size_t size);

/*
 * Runs a pattern on a subject as the match does.  is_first: as the first of a
 * request; else behind those of the calls before, with what they have left.
 * SLUICE_CORE_OK, _NONE; or _LIMIT, _PATTERN, _MEMORY with a reason.  Compiles
 * what is not there, also where the turn has no time for it: it takes that
 * from those that follow.
 */
int sluice_core_regex_try(sluice_core_regexes_t *regexes, const char *pattern,
    uint32_t length, int is_path, const char *subject, uint32_t subject_length,
    int is_first, int *reason);

/* Reasons of a refusal that are not PCRE's. */

#define SLUICE_CORE_BY_GROUPS       (-1000)
#define SLUICE_CORE_BY_SIZE         (-1001)
#define SLUICE_CORE_BY_LENGTH       (-1002)
#define SLUICE_CORE_BY_TIME         (-1003)
#define SLUICE_CORE_BY_ROUTES       (-1004)
#define SLUICE_CORE_BY_PROPERTIES   (-1005)
#define SLUICE_CORE_BY_COMPILING    (-1006)
#define SLUICE_CORE_BY_LOOKBEHIND   (-1007)

/* What a reason is in words, PCRE's for its own. */
void sluice_core_reason(int reason, char *message, size_t size);


/* The word for a code: "ok", "none", "full" ...; never changed. */
const char *sluice_core_word(int rc);

/* FFI end */


/* Writes a text; where it ends. */

static inline char *
sluice_core_copy(char *out, const sluice_core_text_t *text)
{
    if (text->length) {
        memcpy(out, text->data, text->length);
    }

    return out + text->length;
}


#endif /* SLUICE_CORE_H_INCLUDED */
