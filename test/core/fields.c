
/*
 * Long on purpose: the reference, the generators and the checks of one fuzz.
 *
 * Fields: random texts, under ASan and UBSan, in memory that ends where a text
 * does and where a verb's bound does, beside the Lua that was there before
 * (fields.lua); and long ones, for the time that they take.
 *
 * For SECONDS seconds, FIELDS_CASES at least.
 */


#include "fields.h"
#include "support.h"
#include "text.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>


#define FIELDS_TEXT    4096           /* bytes of a random text */
#define FIELDS_LONG    (64u << 10)    /* bytes: squared, minutes */
#define FIELDS_LIMIT   1.0            /* seconds of CPU time */
#define FIELDS_NAMES   4
#define FIELDS_CASES   1000           /* at least */


typedef struct {
    char    data[FIELDS_TEXT];
    size_t  length;
} fields_text_t;


static const char *const  form[] = {
    "&", "&", "&", "=", "=", "k", "key", "key=", "&key=", "key=x", "%6bey",
    "%6B%65%79=", "k+y", "%", "%2", "%zz", "%%6b", "%26", "%3d", "%2b", "%00",
    "+", "a=1", "a", "keys", "\xff"
};

static const char *const  json[] = {
    "{", "}", "[", "]", ",", ":", "\"", "\"key\"", "\"key\":", "\"key\":\"x\"",
    "\"k\\u0065y\":", "\"\\u006b\\u0065\\u0079\":\"\\u00e9\\ud83d\\ude00\"",
    "\\", "\\\"", "\\\\", "\\u", "\\ud83d", "\\ude00", "\\u0000", "\\n", "\\/",
    "\\x", " ", "\t", "\r\n", "\v", "1", "-", "+", ".", "0x", "0x1.8p-3", "e",
    "1e5", "1e+", "-.5", "nan", "NaN(a_1)", "nan(", "-inf", "+Infinity",
    "infinit", "true", "false", "null", "nul", "tRUE", "\"a\":1", "[1,\"]\"]",
    "{\"key\":1}", "\xc3\xa9", "\x7f", "\x01", "p3", "x", "k", "_)"
};

static const char *const  multipart[] = {
    "--xx", "\r\n--xx", "\r\n--xx\r\n", "--xx--", "\r\n--xx--", "--xx--\r\n",
    "\r\n", "\r\n\r\n", "\r", "\n", "--", "-", "x", "Content-Disposition:",
    "content-disposition: form-data; ", "\r\nCONTENT-DISPOSITION:; ",
    "name=\"key\"", "; name=key", ";NAME=\"", " name=", "filename=\"key\"",
    "name=\"\"", "\"", ";", " ", "key", "Content-Type: text/plain", "\t", ":",
    "\r\n--xx\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nvalue",
    "\r\n--xx\r\nContent-Disposition: form-data; name=a\r\n\r\n1"
};

static const char *const  types[] = {
    "boundary=xx", "Boundary=\"xx\"", "; boundary=xx; charset=a", "boundary=",
    "boundary=\"\"", "boundary=x", "boundary=\"x", "boundary=;", " ", "\"",
    "x", "boundary= xx", "boundary=-", "boundary=\"--xx\"", "boundary=\"x x\""
};

static const char *const  wanted[] = {
    "key", "a", "", "k y", "k", "x", "=", "\xc3\xa9", "value", "keys"
};

static const struct {
    const char         *type;
    const char *const  *pieces;
    size_t              count;
} kinds[] = {
    { NULL, NULL, 0 },
    { "application/X-www-form-urlencoded;", form, sizeof(form) },
    { "application/json", json, sizeof(json) },
    { "Multipart/Form-data;", multipart, sizeof(multipart) }
};


static lua_State  *lua;
static uint64_t    state, opened, refused, found, several, taken;


static void
fields_add(fields_text_t *text, const char *data, size_t length)
{
    if (length <= sizeof(text->data) - text->length) {
        memcpy(&text->data[text->length], data, length);
        text->length += length;
    }
}


static void
fields_random(fields_text_t *text, const char *const *pieces, size_t count,
    uint64_t most)
{
    char         byte;
    uint64_t     i;
    const char  *piece;

    for (i = test_below(&state, most); i > 0; i--) {
        piece = pieces[test_below(&state, count)];
        fields_add(text, piece, strlen(piece));

        if (test_below(&state, 40) == 0) {
            byte = test_below(&state, 4) ? (char) test_random(&state) : '\0';
            fields_add(text, &byte, 1);
        }
    }
}


static void fields_value(fields_text_t *text, uint64_t depth);


static void
fields_string(fields_text_t *text)
{
    static const char *const  parts[] = {
        "key", "k", "\\u0065", "e", "y", "\\ud83d\\ude00", "\\n", "\\\"", "{",
        "\\\\", ",", ":", "]", "}", "\xc3\xa9", "\\/", "a", "\\u00E9"
    };

    fields_add(text, "\"", 1);

    if (test_below(&state, 3)) {
        fields_add(text, "key", 3);

    } else {
        fields_random(text, parts, sizeof(parts) / sizeof(char *), 4);
    }

    fields_add(text, "\"", 1);
}


static void
fields_members(fields_text_t *text, uint64_t depth, int is_object)
{
    uint64_t                  i;
    static const char *const  blanks[] = { "", "", "", " ", "\n", "\t \r" };

    fields_add(text, is_object ? "{" : "[", 1);

    for (i = test_below(&state, 4); i > 0; i--) {

        fields_random(text, blanks, 6, 3);

        if (is_object) {
            fields_string(text);
            fields_random(text, blanks, 6, 3);
            fields_add(text, ":", 1);
            fields_random(text, blanks, 6, 3);
        }

        fields_value(text, depth);
        fields_random(text, blanks, 6, 3);

        if (i > 1) {
            fields_add(text, ",", 1);
        }
    }

    fields_add(text, is_object ? "}" : "]", 1);
}


static void
fields_value(fields_text_t *text, uint64_t depth)
{
    const char                *scalar;
    static const char *const   scalars[] = {
        "1", "-0", "+1", "007", "0x1F", "-0x.8P+3", "1.", "-.5e-7", "nan",
        "NAN(1_a)", "-inf", "+INFINITY", "Inf", "true", "false", "null"
    };

    if (depth == 0 || test_below(&state, 3)) {

        if (test_below(&state, 2)) {
            fields_string(text);
            return;
        }

        scalar = scalars[test_below(&state, 16)];
        fields_add(text, scalar, strlen(scalar));
        return;
    }

    fields_members(text, depth - 1, test_below(&state, 2) == 0);
}


/* As deep as it may be, or nearly. */

static void
fields_deep(fields_text_t *text)
{
    uint64_t  i, depth;

    depth = SLUICE_FIELDS_DEPTH - 3 + test_below(&state, 6);
    fields_add(text, "{\"key\":", 7);

    for (i = 0; i < depth; i++) {
        fields_add(text, "[", 1);
    }

    for (i = 0; i < depth; i++) {
        fields_add(text, "]", 1);
    }

    fields_add(text, "}", 1);
}


static void
fields_mutate(fields_text_t *text)
{
    uint64_t  i;

    for (i = test_below(&state, 3); i > 0 && text->length; i--) {
        text->data[test_below(&state, text->length)] =
            test_below(&state, 2) ? (char) test_random(&state)
                                  : text->data[test_below(&state,
                                                          text->length)];
    }

    if (text->length && test_below(&state, 4) == 0) {
        text->length = test_below(&state, text->length);
    }
}


static void
fields_make(int kind, fields_text_t *text)
{
    text->length = 0;

    if (kind == SLUICE_FIELDS_JSON && test_below(&state, 4)) {

        if (test_below(&state, 100) == 0) {
            fields_deep(text);

        } else {
            fields_members(text, 4, 1);
        }

        if (test_below(&state, 2)) {
            fields_mutate(text);
        }

        return;
    }

    fields_random(text, kinds[kind].pieces,
                  kinds[kind].count / sizeof(char *), 20);

    if (kind == SLUICE_FIELDS_MULTIPART && test_below(&state, 4)) {
        fields_add(text, "\r\n--xx--", 8);
    }
}


static void
fields_show(const char *what, const sluice_core_text_t *text)
{
    uint32_t  i;

    fprintf(stderr, "%s: \"", what);

    for (i = 0; i < text->length; i++) {
        fprintf(stderr, text->data[i] > ' ' && text->data[i] < 0x7f
                        ? "%c" : "\\x%02x", (uint8_t) text->data[i]);
    }

    fprintf(stderr, "\"\n");
}


static int
fields_same(int index, const char *data, size_t length)
{
    size_t       size;
    const char  *expected;

    expected = lua_tolstring(lua, index, &size);

    return size == length && memcmp(expected, data, length) == 0;
}


/* Does the Lua say so, too?  Leaves it on the stack: count, value, rest. */

static void
fields_ask(int kind, const sluice_core_text_t *text,
    const sluice_core_text_t *type, const sluice_core_text_t *name)
{
    lua_settop(lua, 1);
    lua_pushvalue(lua, 1);
    lua_pushinteger(lua, kind);
    lua_pushlstring(lua, text->data, text->length);
    lua_pushlstring(lua, type->data, type->length);
    lua_pushlstring(lua, name->data, name->length);

    test_check(lua_pcall(lua, 4, 3, 0) == 0, "%s", lua_tostring(lua, -1));
}


static int
fields_agree(const sluice_fields_t *fields, const sluice_fields_name_t *name,
    uint32_t size)
{
    int                  rc, same;
    char                *buffer;
    size_t               length;
    sluice_core_text_t   rest;

    found += (name->count == 1);
    several += (name->count > 1);

    if (lua_tointeger(lua, 2) != name->count
        || (lua_type(lua, 3) == LUA_TSTRING) != (name->is_text != 0))
    {
        return 0;
    }

    if (name->is_text) {
        buffer = malloc(name->value.length ? name->value.length : 1);
        length = sluice_fields_decode(fields, &name->value, buffer);
        same = fields_same(3, buffer, length);
        free(buffer);

        if (!same) {
            return 0;
        }
    }

    buffer = malloc(size ? size : 1);
    rc = sluice_fields_without(fields, name, 1, buffer, &rest);

    same = (rc == SLUICE_CORE_OK)
           ? lua_type(lua, 4) == LUA_TSTRING
             && fields_same(4, rest.data, rest.length)
           : lua_isnil(lua, 4);

    taken += (rc == SLUICE_CORE_OK);
    free(buffer);

    return same;
}


static void
fields_check(int kind, const sluice_core_text_t *text,
    const sluice_core_text_t *type)
{
    int                    rc, same;
    size_t                 i;
    const char            *name;
    sluice_fields_t        fields;
    sluice_fields_name_t   names[FIELDS_NAMES];

    test_check(sluice_fields_kind(type) == kind, "kind");
    rc = sluice_fields_open(&fields, kind, type, text);

    opened += (rc == SLUICE_CORE_OK);
    refused += (rc != SLUICE_CORE_OK);

    for (i = 0; i < FIELDS_NAMES; i++) {
        name = i ? wanted[test_below(&state, sizeof(wanted) / sizeof(char *))]
                 : "key";
        names[i].name = text_own(name, strlen(name));
    }

    if (rc == SLUICE_CORE_OK) {
        sluice_fields_find(&fields, names, FIELDS_NAMES);
    }

    for (i = 0; i < FIELDS_NAMES; i++) {
        fields_ask(kind, text, type, &names[i].name);

        same = (rc == SLUICE_CORE_OK)
               ? !lua_isnil(lua, 2) && fields_agree(&fields, &names[i],
                                                    text->length)
               : lua_isnil(lua, 2);

        if (!same) {
            fields_show("text", text);
            fields_show("type", type);
            fields_show("name", &names[i].name);
            test_check(same, "%s in C, %s in Lua", sluice_core_word(rc),
                       lua_isnil(lua, 2) ? "none" : "ok");
        }

        text_free(&names[i].name);
    }
}


static void
fields_case(int kind)
{
    fields_text_t        text, type;
    sluice_core_text_t   own, own_type;

    fields_make(kind, &text);

    type.length = 0;
    fields_add(&type, kinds[kind].type, strlen(kinds[kind].type));

    if (kind == SLUICE_FIELDS_MULTIPART) {

        if (test_below(&state, 3)) {
            fields_add(&type, "boundary=xx", 11);

        } else {
            fields_random(&type, types, sizeof(types) / sizeof(char *), 4);
        }
    }

    own = text_own(text.data, text.length);
    own_type = text_own(type.data, type.length);

    fields_check(kind, &own, &own_type);

    text_free(&own);
    text_free(&own_type);
}


/* head, then piece over and over, then tail, for all verbs, without a name */

static void
fields_long(int kind, const char *head, const char *piece, const char *tail,
    const char *named)
{
    char                  *text, *buffer;
    size_t                 length;
    clock_t                from;
    double                 spent;
    sluice_fields_t        fields;
    sluice_core_text_t     own, type, rest;
    sluice_fields_name_t   name;

    text = malloc(FIELDS_LONG + 256);
    buffer = malloc(FIELDS_LONG + 256);
    test_check(text != NULL && buffer != NULL, "no memory");
    length = (size_t) sprintf(text, "%s", head);

    while (length < FIELDS_LONG) {
        length += (size_t) sprintf(&text[length], "%s", piece);
    }

    length += (size_t) sprintf(&text[length], "%s", tail);

    own.data = text;
    own.length = (uint32_t) length;
    type.data = named;
    type.length = (uint32_t) strlen(named);
    name.name.data = "none";
    name.name.length = 4;

    from = clock();

    if (sluice_fields_open(&fields, kind, &type, &own) == SLUICE_CORE_OK) {
        sluice_fields_find(&fields, &name, 1);
        (void) sluice_fields_without(&fields, &name, 1, buffer, &rest);
    }

    spent = (double) (clock() - from) / CLOCKS_PER_SEC;
    test_check(spent < FIELDS_LIMIT, "%.1f s for '%s', '%s'", spent, head,
               piece);

    free(buffer);
    free(text);
}


static void
fields_all_long(void)
{
    size_t                    i;
    static const char *const  headers[] = {
        "name=\"", "; name=\"\"", ";name=", ";name= ", "\r", "\r\n", "\r\r\n",
        "\r\n--x", "\r\n--xx", "\r\n--xx\r\n\r\n\r\n", "\r\n\r\n", "a",
        "content-disposition:\r\n", "--xx", "n", "\""
    };

    for (i = 0; i < sizeof(form) / sizeof(char *); i++) {
        fields_long(SLUICE_FIELDS_FORM, "", form[i], "", "");
        fields_long(SLUICE_FIELDS_FORM, "n", form[i], "=none", "");
    }

    for (i = 0; i < sizeof(json) / sizeof(char *); i++) {
        fields_long(SLUICE_FIELDS_JSON, "{", json[i], "}", "");
        fields_long(SLUICE_FIELDS_JSON, "{\"a\":[1", json[i], "]}", "");
        fields_long(SLUICE_FIELDS_JSON, "{\"a\":\"", json[i], "\"}", "");
    }

    fields_long(SLUICE_FIELDS_JSON, "{\"a\":1", ",\"a\":1", "}", "");
    fields_long(SLUICE_FIELDS_JSON, "{\"a\":[1", ",1", "]}", "");

    for (i = 0; i < sizeof(headers) / sizeof(char *); i++) {
        fields_long(SLUICE_FIELDS_MULTIPART, "--xx", headers[i], "\r\n--xx--",
                    "boundary=xx");
        fields_long(SLUICE_FIELDS_MULTIPART, "--xx\r\nContent-Disposition:",
                    headers[i], "\r\n\r\n\r\n--xx--", "boundary=xx");
        fields_long(SLUICE_FIELDS_MULTIPART, "\n", headers[i], "--",
                    "boundary=\"--xx--xx--xx--xx--xx--xx--xx--xx--xx\"");
    }
}


static void
fields_start(const char *oracle)
{
    lua = luaL_newstate();
    test_check(lua != NULL, "no memory");
    luaL_openlibs(lua);

    test_check(luaL_loadfile(lua, "fields.lua") == 0, "%s",
               lua_tostring(lua, -1));
    lua_pushstring(lua, oracle);
    test_check(lua_pcall(lua, 1, 1, 0) == 0, "%s", lua_tostring(lua, -1));
}


int
main(void)
{
    int       kind;
    double    until;
    uint64_t  cases;

    state = test_seed("fields");
    fields_start(FIELDS_ORACLE);
    fields_all_long();

    until = test_now() + (double) test_env("SECONDS", 5);

    for (cases = 0; cases < FIELDS_CASES || test_now() < until; cases++) {
        for (kind = SLUICE_FIELDS_FORM; kind <= SLUICE_FIELDS_MULTIPART;
             kind++)
        {
            fields_case(kind);
        }
    }

    printf("fields: %lu cases, %lu texts cut, %lu refused; %lu names found, "
           "%lu several times, %lu taken out\n", 3 * cases, opened, refused,
           found, several, taken);
    test_check(opened > refused / 4 && refused > opened / 20
               && found > cases / 4 && several > cases / 20
               && taken > found / 2, "cases of no use");

    lua_close(lua);

    return 0;
}
