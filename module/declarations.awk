# Makes a C file of what headers declare for Lua: of each folder ("room") that has marked lines a
# text for LuaJIT's ffi.cdef, and sluice_declarations(), which finds it.
#
#     awk -f module/declarations.awk $(find module -name '*.h' | LC_ALL=C sort) \
#         plugins=1 $(sh module/plugins.sh files '*.h' plugins) >declarations.c
#
# A room is called by its last two folders ("core/image"); behind `plugins=1` by "plugins" and its
# last one, wherever that is.
#
# A header marks its lines:
#
#     /* FFI */
#     #define SLUICE_MAX  8                       an enumerator in Lua
#     #define sluice_twice(n)  (2 * (n))          C's alone
#     typedef struct {
#         int  number[SLUICE_MAX];
#         /* FFI: the rest is C's */              up to the closing brace
#     } sluice_numbers_t;
#     /* FFI end */
#
# Marks stand at the beginning of a line, and alone, but for blanks before "the rest is C's". Where
# one cannot be what it is, the build ends: else what it marks would be missing without a word.
#
# lib/sluice/ffi/abi.lua takes the texts, if their hashes are those that lib/sluice/ffi/hashes.lua
# or the plugin's own Lua has: so Lua never meets the module of another version.

function fail(what) {
    print FILENAME ":" FNR ": " what >"/dev/stderr"
    failed = 1
    exit 1
}

function room_of(path,    parts, n) {
    n = split(path, parts, "/")
    return (plugins ? "plugins" : parts[n - 2]) "/" parts[n - 1]
}

# Modulo a prime, so that a double holds all of it.
function add_to_hash(text,    i) {
    for (i = 1; i <= length(text); i++) {
        hash = (hash * 31 + code[substr(text, i, 1)]) % 4294967291
    }
}

function end_room() {
    if (room == "") {
        return
    }
    print ";\n"
    rooms = rooms sprintf("    { \"%s\", %.0fu, text_%d },\n", room, hash, count++)
    room = ""
}

function put(line) {
    gsub(/[ \t]+/, " ", line)
    sub(/^ /, "", line)
    sub(/ $/, "", line)
    if (line == "") {
        return
    }
    if (room != room_of(FILENAME)) {
        end_room()
        room = room_of(FILENAME)
        hash = 0
        printf "static const char  text_%d[] =", count
    }
    add_to_hash(line)
    gsub(/["\\]/, "\\\\&", line)
    printf "\n    \"%s\\n\"", line
}

BEGIN {
    for (i = 1; i < 128; i++) {
        code[sprintf("%c", i)] = i
    }
    print "\n/* Made by module/declarations.awk. */\n\n\n#include <stdint.h>\n#include <string.h>\n\n"
}

FNR == 1 && inside {
    fail("the file before has FFI without an end")
}

$0 == "/* FFI */" {
    if (inside) {
        fail("FFI within FFI")
    }
    inside = 1
    next
}

$0 == "/* FFI end */" {
    if (!inside) {
        fail("an end without FFI")
    } else if (skipping || in_comment || is_macro) {
        fail("FFI ends within a struct, a comment or a macro")
    }
    inside = 0
    next
}

inside && /^ *\/\* FFI: the rest is C's \*\/$/ {
    if (skipping) {
        fail("the rest is C's already")
    }
    skipping = 1
    next
}

/\/\* *FFI/ {
    fail("no mark is written so: " $0)
}

!inside {
    next
}

skipping && /^}/ {
    skipping = 0
}

skipping {
    if (/^[A-Za-z_]/) {
        fail("the brace before, of a struct, is not at the beginning of its line")
    }
    next
}

{
    line = $0
    if (is_macro) {
        is_macro = line ~ /\\$/
        next
    }
    if (line ~ /^#define +[A-Za-z_0-9]+\(/) {
        is_macro = line ~ /\\$/
        next
    }
    # Comments; one may go over lines.
    if (in_comment) {
        if (!match(line, /\*\//)) {
            next
        }
        line = substr(line, RSTART + 2)
        in_comment = 0
    }
    while (match(line, /\/\*/)) {
        begin = RSTART
        rest = substr(line, begin + 2)
        if (match(rest, /\*\//)) {
            line = substr(line, 1, begin - 1) " " substr(rest, RSTART + 2)
        } else {
            line = substr(line, 1, begin - 1)
            in_comment = 1
        }
    }
    if (line ~ /^#define /) {
        name = $2
        sub(/^#define +[A-Za-z_0-9]+/, "", line)
        if (line ~ /^[ \t]*$/ || line ~ /["\\]/) {
            fail("only a number in one line can be an enumerator")
        }
        line = "enum { " name " =" line " };"
    } else if (line ~ /^#/) {
        fail("only #define may be between FFI and its end")
    }
    put(line)
}

END {
    if (!failed && inside) {
        fail("FFI without an end")
    }
    if (failed) {
        exit 1
    }
    end_room()
    print "\nstatic const struct {\n    const char  *room;\n    uint32_t     hash;"
    print "    const char  *text;\n} rooms[] = {\n" rooms "};\n\n"
    print "/* What a room declares, and its hash; NULL: nothing. */\n"
    print "const char *sluice_declarations(const char *room, uint32_t *hash);\n\n"
    print "const char *\nsluice_declarations(const char *room, uint32_t *hash)\n{\n    size_t  i;\n"
    print "    for (i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {"
    print "        if (strcmp(rooms[i].room, room) == 0) {"
    print "            *hash = rooms[i].hash;\n            return rooms[i].text;\n        }\n    }\n"
    print "    return NULL;\n}"
}
