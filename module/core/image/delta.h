
/*
 * Changes: a delta on an image, and how they become visible.
 *
 *
 * SYNOPSIS
 *
 *     the writer (one at a time; whoever holds the role):
 *         sluice_core_delta_create(path, 16 << 20, &identity, &writer);
 *         for each transaction:
 *             sluice_core_delta_stage(&writer, &view, changes, count, n + 1);
 *             commit in the store; if that fails:
 *                 sluice_core_delta_abandon(&writer);
 *             sluice_core_delta_link(&writer);
 *             published.revision = view.revision = n + 1;
 *             sluice_core_publish(page, &published);
 *         when it is full, or old:
 *             sluice_core_live(&view, changes, count, &live);
 *             sluice_core_image_build(&identity, live.entities, live.count,
 *                                     ...);
 *     a reader, for each request:
 *         sluice_core_published(page, &published);
 *         other base or delta than it has mapped: it maps those;
 *         view.revision = published.revision;
 *
 *
 * A DELTA
 *
 * is a file of fixed size, whose space is reserved when it is made, so that a
 * full disk is an error then and no SIGBUS later:
 *
 *     +--------+------------------+--------------------------------------+
 *     | header | heads of chains  | nodes, records, entries, texts ...   |
 *     +--------+------------------+--------------------------------------+
 *
 * A node {hash, revision, next, ref} stands for one key of one change.  It is
 * written into the tail, which nobody can see, and linked by one release
 * store of its chain's head; its next is older and stands before it.  Nothing
 * that can be seen is changed or moved again.  A reader takes the first node
 * of its key whose revision is not behind its own: so a transaction of many
 * entities, which share a revision, is seen whole or not at all.
 *
 *
 * DEATH
 *
 * A writer that dies leaves a tail that nobody sees, or nodes of a revision
 * that is not published, which nobody sees either.  Its successor may not
 * publish that revision with this delta: it makes a new one, from the store.
 *
 *
 * PUBLISHING
 *
 * The page has one sequence number and 16 records {base, delta, revision}.  A
 * writer fills the record that is next and stores the sequence number; a
 * reader takes the record of the number that it has loaded and loads it again:
 * only if 15 were published in between does it have to try again.
 *
 *
 * COSTS
 *
 * Staging and linking are some stores for each key of each change, whatever
 * the number of routes.  A look-up costs a bit for each key that it asks for,
 * of 4 KB that tell by 15 bits of a hash whether there may be a node, and a
 * chain's head where there may be one: with 1,000 routes changed, one look-up
 * in ten.
 * A delta without routes costs a match two words.  A check reads what is used
 * of a delta about twice, and its heads.
 */


#ifndef SLUICE_CORE_DELTA_H_INCLUDED
#define SLUICE_CORE_DELTA_H_INCLUDED


#include "core.h"


#define SLUICE_CORE_DELTA_MIN    (64u << 10)
#define SLUICE_CORE_DELTA_MAX    (1ull << 32)


/* FFI */

typedef struct {
    sluice_core_space_t      space;
    uint64_t                 tail;       /* end of what is staged, bytes */
    uint64_t                 linked;     /* end of what is linked */
    uint64_t                 dependents; /* revision, if staged; else 0 */
    uint32_t                 first;      /* nodes that are staged */
    uint32_t                 last;
} sluice_core_writer_t;


typedef struct {
    uint64_t                 base;       /* names of files, to the caller */
    uint64_t                 delta;
    uint64_t                 revision;
} sluice_core_published_t;


typedef struct sluice_core_page_s  sluice_core_page_t;


/* Entities as the builder takes them; texts point into the view. */

typedef struct {
    sluice_core_entity_t    *entities;
    size_t                   count;
    void                    *scratch;
} sluice_core_live_t;


/*
 * A new file under a name that is not taken yet, for changes to the image with
 * this identity.  SLUICE_CORE_OK, _LARGE, _SYSTEM.
 */
int sluice_core_delta_create(const char *path, uint64_t size,
    const sluice_core_identity_t *identity, sluice_core_writer_t *writer);

/* The same in zeroed memory, aligned to 64 bytes. */
int sluice_core_delta_init(void *memory, uint64_t size,
    const sluice_core_identity_t *identity, sluice_core_writer_t *writer);

/* Maps a delta read-only, as sluice_core_file_open() does an image. */
int sluice_core_delta_open(const char *path, uint32_t uid, int check,
    sluice_core_space_t *space);

/* Is this the header of a delta of this layout and this size? */
int sluice_core_delta_check_header(const void *delta, uint64_t size);

/*
 * Everything that is linked, by any bytes' writer, also while a writer goes
 * on: all nodes of the last transaction and those before it are there, and
 * their bytes as they were written.  What it has passed every verb can read.
 * SLUICE_CORE_OK, _BAD, _VERSION, _MEMORY.
 */
int sluice_core_delta_check(const void *delta, uint64_t size);

/*
 * Is one that is mapped for changes to the image with this identity, with all
 * that its writer has linked up to an end in bytes?  An older copy is not.
 */
int sluice_core_delta_holds(const sluice_core_space_t *delta,
    const sluice_core_identity_t *identity, uint64_t linked);

/*
 * Writes the changes of one transaction into the tail.  view: the image, this
 * delta, the last revision that was published; revision: a greater one.
 * SLUICE_CORE_OK, or nothing is staged: _FULL, _LARGE, _MEMORY, _REPEAT (two
 * changes of one entity), _STALE (the revision, or something is staged).
 */
int sluice_core_delta_stage(sluice_core_writer_t *writer,
    const sluice_core_view_t *view, const sluice_core_entity_t *changes,
    size_t count, uint64_t revision);

void sluice_core_delta_abandon(sluice_core_writer_t *writer);

/* Makes what is staged visible, to whom its revision is published. */
void sluice_core_delta_link(sluice_core_writer_t *writer);

/*
 * The last revision in the view's delta, published or not, that changed what
 * routes depend on: any kind but routes, consumers and credentials.  0: none.
 */
uint64_t sluice_core_dependents(const sluice_core_view_t *view);

/* Bytes that are left. */
uint64_t sluice_core_delta_room(const sluice_core_writer_t *writer);


/*
 * What a view sees, with changes on it: what a full build is made of.  Needs
 * 200 bytes an entity.  SLUICE_CORE_OK, _MEMORY, _REPEAT.
 */
int sluice_core_live(const sluice_core_view_t *view,
    const sluice_core_entity_t *changes, size_t count,
    sluice_core_live_t *live);
void sluice_core_live_free(sluice_core_live_t *live);


/* Bytes of a page: zeroed memory that all map is one; nothing is published. */
size_t sluice_core_page_size(void);

void sluice_core_publish(sluice_core_page_t *page,
    const sluice_core_published_t *published);

/* How often something was published: another number, something new. */
uint64_t sluice_core_sequence(const sluice_core_page_t *page);

/*
 * SLUICE_CORE_OK; _NONE: nothing has been published; _STALE: too much was,
 * while it looked, a hundred times.
 */
int sluice_core_published(const sluice_core_page_t *page,
    sluice_core_published_t *published);

/* FFI end */


#endif /* SLUICE_CORE_DELTA_H_INCLUDED */
