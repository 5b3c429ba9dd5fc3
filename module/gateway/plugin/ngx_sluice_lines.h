
/*
 * Log entries of one target on their way through the control worker: lines,
 * gathered out of the spool, so that all that follows is paid once for many.
 * For Lua each line ends with a comma: who makes an array of them touches
 * none alone.  The reader's thread alone gathers (ngx_sluice_reader.h).
 */


#ifndef NGX_SLUICE_LINES_H_INCLUDED
#define NGX_SLUICE_LINES_H_INCLUDED


#include "ngx_http_sluice_plugin.h"
#include "spool.h"


/* malloc()ed; who has them frees them, and may link them. */

struct ngx_sluice_lines_s {
    ngx_sluice_lines_t        *next;
    ngx_http_sluice_plugin_t  *plugin;
    ngx_uint_t                 count;      /* of lines; each has its end */
    size_t                     size;       /* of all this */
    size_t                     target;     /* bytes; behind them the lines */
    size_t                     length;
    u_char                     data[];
};


#define ngx_sluice_lines_text(lines)  ((lines)->data + (lines)->target)


/*
 * Takes an entry.  Lines that are full go to their plugin's deliver(), or to
 * Lua (ngx_sluice_handover.h).
 */
void ngx_sluice_lines_add(const sluice_spool_t *spool,
    const sluice_spool_found_t *found);

/* So do all others. */
void ngx_sluice_lines_flush(void);


#endif /* NGX_SLUICE_LINES_H_INCLUDED */
