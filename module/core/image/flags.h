
/*
 * What the flags of records say (SLUICE_CORE_ROUTE_FLAGS and the like).  The
 * core keeps them for whoever writes them, gateway/image/records.lua.
 */


#ifndef SLUICE_FLAGS_H_INCLUDED
#define SLUICE_FLAGS_H_INCLUDED


/* FFI */

/* Of a route: those of gateway/image/flags.lua. */

#define SLUICE_ROUTE_STRIP_PATH       0x01
#define SLUICE_ROUTE_PRESERVE_HOST    0x02
#define SLUICE_ROUTE_STREAM_REQUEST   0x04
#define SLUICE_ROUTE_STREAM_RESPONSE  0x08
#define SLUICE_ROUTE_HTTPS_ONLY       0x10
#define SLUICE_ROUTE_PATH_V1          0x20
#define SLUICE_ROUTE_REDIRECT         0x100
#define SLUICE_ROUTE_PATTERNS         0x1000

#define SLUICE_SERVICE_HTTPS          0x01
#define SLUICE_SERVICE_VERIFY         0x02
#define SLUICE_SERVICE_DEPTH          0x100

/*
 * A plugin's that is no configuration: consumers, or groups, have some.
 * OF_LUA: and some of these have phases in Lua.
 */

#define SLUICE_PLUGIN_OF_CONSUMERS    0x01
#define SLUICE_PLUGIN_OF_GROUPS       0x02
#define SLUICE_PLUGIN_OF_LUA          0x04

#define SLUICE_PLUGIN_OF              0x07

/* A configuration's phases in Lua, times this; 0: all that its plugin has. */

#define SLUICE_PLUGIN_LUA             0x100

/* FFI end */


#endif /* SLUICE_FLAGS_H_INCLUDED */
