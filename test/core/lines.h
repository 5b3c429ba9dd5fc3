
/* What the core is compiled with, where match_lines.c counts. */


#ifndef TEST_CORE_LINES_H_INCLUDED
#define TEST_CORE_LINES_H_INCLUDED


#define sluice_core_prefetch(p)  lines_prefetch(p)

void lines_prefetch(const void *address);


#endif /* TEST_CORE_LINES_H_INCLUDED */
