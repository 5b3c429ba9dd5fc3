
/*
 * A build on its way: image.c takes the entities, index.c and table.c make
 * what finds them; build.c collects.
 */


#ifndef SLUICE_CORE_BUILD_H_INCLUDED
#define SLUICE_CORE_BUILD_H_INCLUDED


#include "layout.h"


/* An entry before it has its place. */

typedef struct {
    uint64_t             hash;     /* of the key */
    uint64_t             host;     /* of the host alone */
    uint32_t             beside;   /* room for it beside its route */
    uint32_t             zero;
    sluice_core_entry_t  entry;
} sluice_core_draft_t;


/* An item before it has its line. */

typedef struct {
    uint64_t             hash;
    uint32_t             ref;
    uint32_t             to;
} sluice_core_pending_t;


/* A draft's place while they are sorted, by a hash and what decides then. */

typedef struct {
    uint64_t             hash;
    uint32_t             index;
    uint32_t             zero;
} sluice_core_place_t;


typedef struct {
    void                *data;
    size_t               size;     /* of one */
    size_t               count;
    size_t               room;
} sluice_core_array_t;


typedef struct {
    sluice_core_arena_t  arena;
    sluice_core_space_t  space;
    sluice_core_array_t  drafts;   /* sluice_core_draft_t */
    sluice_core_array_t  items;    /* sluice_core_pending_t */
    sluice_core_array_t  children; /* image.c's */
    sluice_core_place_t *order;    /* of drafts */
    uint32_t             needs;
} sluice_core_build_t;


#define sluice_core_compare(a, b)  (((a) > (b)) - ((a) < (b)))


/* build.c: NULL, SLUICE_CORE_MEMORY: there is none left */

void *sluice_core_push(sluice_core_array_t *array);
int sluice_core_note_item(sluice_core_build_t *b, uint64_t hash, uint32_t ref,
    uint32_t to);

/* index.c */

int sluice_core_index_entries(sluice_core_build_t *b,
    sluice_core_image_t *image);
int sluice_core_index_rooms(sluice_core_build_t *b,
    sluice_core_image_t *image);
int sluice_core_index_slots(sluice_core_build_t *b, sluice_core_image_t *image,
    const sluice_core_entity_t **entities, size_t count, const uint32_t *refs);

/* table.c */

int sluice_core_index_lines(sluice_core_build_t *b,
    sluice_core_image_t *image);


#endif /* SLUICE_CORE_BUILD_H_INCLUDED */
