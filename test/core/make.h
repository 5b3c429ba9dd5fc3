
/* What the tests of the core share: entities and requests at random. */


#ifndef TEST_CORE_MAKE_H_INCLUDED
#define TEST_CORE_MAKE_H_INCLUDED


#include "layout.h"
#include "support.h"


#define MAKE_SLOTS  24             /* of a kind */


/* Entities by kind and slot; those that are not there are gone. */

typedef struct {
    sluice_core_entity_t    entities[SLUICE_CORE_KINDS][MAKE_SLOTS];
    sluice_core_scratch_t  *scratch;
    uint64_t               *state;
    uint64_t                sequence;
} make_t;


/* A request and what its texts stand in. */

typedef struct {
    sluice_core_request_t   request;
    sluice_core_text_t      headers[8];
    char                    path[400];
} make_request_t;


void make_start(make_t *make, uint64_t *state);
void make_end(make_t *make);

/* Puts a new entity into a slot, alike the gateway's. */
void make_entity(make_t *make, int kind, uint32_t slot, uint64_t revision);

/* Those that are there, in one array, in an order by chance. */
size_t make_list(make_t *make, sluice_core_entity_t *list);

void make_request(uint64_t *state, make_request_t *made);

/* An image of them, in memory that ends where it does; checked. */
uint8_t *make_image(const sluice_core_entity_t *list, size_t count,
    uint64_t revision, uint64_t *size);

/* Memory of this size to the byte, in whole lines from its start. */
void *make_memory(uint64_t size);

/* Reads all that there is: no answer is looked at, but every byte. */
uint64_t make_read(const sluice_core_view_t *view,
    sluice_core_regexes_t *regexes, uint64_t *state, int requests);


#endif /* TEST_CORE_MAKE_H_INCLUDED */
