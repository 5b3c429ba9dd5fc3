"""What C declares for Lua, and what Lua was written against (lib/sluice/ffi/abi.lua)."""

import subprocess
from pathlib import Path

import pytest

from nginx import Nginx
from processes import ran
from sluice import ROOT

HEADER = """
/* outside: int sluice_outside(void); */
/* FFI */

#define SLUICE_MAX  (2 + 1)     /* an enumerator */
#define sluice_twice(n)                                                       \\
    (2 * (n))

/* A comment that goes
   over "two" lines; */ typedef struct {
    int  number[SLUICE_MAX];    /* of them */
    /* FFI: the rest is C's */
    _Atomic int  hidden;
} sluice_numbers_t;

/* FFI end */
int sluice_behind(void);
"""
TEXT = "\n".join(
    [
        "enum { SLUICE_MAX = (2 + 1) };",
        "typedef struct {",
        "int number[SLUICE_MAX];",
        "} sluice_numbers_t;",
    ]
)


def generated(folder: Path, header: str) -> subprocess.CompletedProcess[str]:
    """The source that is made of one header."""
    room = folder / "module" / "lib" / "numbers"
    room.mkdir(parents=True)
    (room / "numbers.h").write_text(header)
    awk = ["awk", "-f", str(ROOT / "module" / "declarations.awk"), str(room / "numbers.h")]
    return subprocess.run(awk, capture_output=True, text=True, check=False)


def test_other_prototypes_have_another_hash(tmp_path: Path) -> None:
    prototype = "int sluice_count(const char *name,\n    int length);\n"
    whole = HEADER.replace("/* FFI end */", prototype + "/* FFI end */")
    sources = [
        whole,
        whole.replace("int length);", "size_t length);"),
        whole.replace("int length);", "int length, int more);"),
        whole.replace("int sluice_count", "double sluice_count"),
    ]
    hashes = []
    for i, source in enumerate(sources):
        made = generated(tmp_path / str(i), source).stdout
        hashes.append(made.partition('{ "lib/numbers", ')[2].partition("u,")[0])
    assert all(hashes)
    assert len(set(hashes)) == 4


def test_a_header_becomes_a_text(tmp_path: Path) -> None:
    (tmp_path / "made.c").write_text(
        generated(tmp_path, HEADER).stdout
        + "\n#include <stdio.h>\nint main(void) { uint32_t hash; fputs(sluice_declarations("
        '"lib/numbers", &hash), stdout); return sluice_declarations("lib/none", &hash) != NULL; }\n'
    )
    compiler = ["gcc", "-Wall", "-Wextra", "-Werror", "made.c", "-o", "made"]
    subprocess.run(compiler, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "made"], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == TEXT


@pytest.mark.parametrize(
    ("written", "instead", "said"),
    [
        ("#define SLUICE_MAX  ", "#ifdef SLUICE_MAX", "5: only #define may be between FFI and"),
        ("(2 + 1)  ", "", "5: only a number in one line can be an enumerator"),
        ("(2 + 1)  ", '"three"', "5: only a number in one line can be an enumerator"),
        ("(2 + 1) ", "\\\n", "5: only a number in one line can be an enumerator"),
        ("\n/* FFI */", "\n /* FFI */", "3: no mark is written so"),
        ("\n/* FFI */", "\n/*FFI*/", "3: no mark is written so"),
        ("\n/* FFI */", "\n/* FFI */\n/* FFI */", "4: FFI within FFI"),
        ("/* FFI end */", "/* FFI end */ ", "16: no mark is written so"),
        ("/* FFI end */", "", "17: FFI without an end"),
        ("int sluice_behind(void);", "/* FFI end */", "17: an end without FFI"),
        ("    /* FFI: the rest", "    int  a; /* FFI: the rest", "12: no mark is written so"),
        ("} sluice_numbers_t", "    } sluice_numbers_t", "16: FFI ends within a struct"),
        ("} sluice", "    } sluice_t;\nint sluice_lost(void);\n} sluice", "15: the brace before"),
    ],
)
def test_what_would_be_missing_or_wrong_in_lua_ends_the_build(
    tmp_path: Path, written: str, instead: str, said: str
) -> None:
    header = HEADER.replace(written, instead)
    assert header != HEADER
    made = generated(tmp_path, header)
    assert made.returncode == 1
    assert f"numbers.h:{said}" in made.stderr


def test_other_declarations_have_another_hash(tmp_path: Path) -> None:
    sources = [
        HEADER,
        HEADER.replace("/* of them */", "").replace("int  number", "int      number"),
        HEADER.replace("int  number", "long number"),
        HEADER.replace("(2 + 1)", "(2 + 2)"),
    ]
    hashes = []
    for i, source in enumerate(sources):
        made = generated(tmp_path / str(i), source).stdout
        hashes.append(made.partition('{ "lib/numbers", ')[2].partition("u,")[0])
    assert all(hashes)
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_the_module_of_another_version_is_refused_by_the_folder_that_differs() -> None:
    http = """
        init_by_lua_block {
            local hashes = require("sluice.ffi.hashes")
            local abi, said = require("sluice.ffi.abi"), {}
            hashes["lib/redact"] = hashes["lib/redact"] + 1
            hashes["lib/unknown"] = 1
            for _, room in ipairs({ "lib/redact", "lib/unknown", "lib/var", "lib/var" }) do
                local ok, err = pcall(abi.declare, room)
                said[#said + 1] = ok and tostring(err) or err
            end
            package.loaded.said = table.concat(said, "\\n")
        }
        server {
            listen 127.0.0.1:@port@;
            location / { content_by_lua_block { ngx.say(package.loaded.said) } }
        }
    """
    with Nginx(http, workers=1) as server:
        *errors, first, second = server.text("/").strip().split("\n")
    assert (first, second) == ("true", "true")
    assert errors == [
        f"the Sluice module in nginx is of another version than its Lua files ({room}); "
        "run: make build, then restart nginx"
        for room in ("lib/redact", "lib/unknown")
    ]


def test_an_older_library_of_the_core_is_refused() -> None:
    code = """
        local hashes = require("sluice.ffi.hashes")
        hashes["core/image"] = hashes["core/image"] + 1
        print(select(2, pcall(require, "sluice.ffi.core")))
    """
    said = ran(
        ["luajit", "-e", code], cwd=ROOT, env={"LUA_PATH": "lib/?.lua;lib/?/init.lua"}, check=True
    )
    assert said.stdout.strip() == (
        "build/core/libsluice_core.so is of another version than its Lua files (core/image); "
        "run: make build"
    )
