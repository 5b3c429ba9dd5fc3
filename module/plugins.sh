#!/bin/sh
# What there is in C of plugins. Each is a folder of the given ones; a folder that has no plugin's
# name, or stands deeper, is somebody's copy.
#
#     plugins.sh files PATTERN FOLDER...    lists files, such as "*.c"
#     plugins.sh table FOLDER...            writes the table of native plugins, as nginx's configure
#                                           writes that of its modules: of each with C,
#                                           ngx_http_sluice_plugin_<its name, with _ for ->
set -eu
export LC_ALL=C

verb=$1
shift

files() {
    pattern=$1
    shift
    find "$@" -mindepth 2 -maxdepth 2 -type f -name "$pattern" |
        sed -n '\,/[a-z][a-z0-9-]*/[^/]*$,p' | sort
}

if [ "$verb" = files ]; then
    files "$@"
    exit
fi

folders=$(files '*.c' "$@" | sed 's,/[^/]*$,,' | uniq)
names=$(printf '%s\n' "$folders" | sed 's,.*/,,' | sort)
twice=$(printf '%s\n' "$names" | uniq -d | xargs)
[ -z "$twice" ] || {
    echo "plugins: two folders of plugins have one of the same name: $twice" >&2
    exit 1
}

cat <<C

/* Generated from the folders of plugins (module/plugins.sh). */


#include "ngx_http_sluice_plugin.h"


C
for name in $names; do
    symbol=ngx_http_sluice_plugin_$(printf '%s' "$name" | tr - _)
    echo "extern ngx_http_sluice_plugin_t  $symbol;"
done
printf '\n\nngx_http_sluice_plugin_t  *ngx_http_sluice_plugins[] = {\n'
for name in $names; do
    echo "    &ngx_http_sluice_plugin_$(printf '%s' "$name" | tr - _),"
done
printf '    NULL\n};\n'
