"""The module with ASan, UBSan and LSan, for an nginx and a cjson built without them."""

import os
import subprocess
from pathlib import Path

from nginx import Nginx, built
from sluice import ROOT

MODULE = built("module-asan")


def runtime(name: str) -> str:
    """The path of a sanitizer's library."""
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def environment(folder: Path) -> dict[str, str]:
    """That of an nginx with the module, which is built if it has to be; `folder` gets a file."""
    subprocess.run([ROOT / "scripts" / "build-module", "asan"], check=True, timeout=300)
    suppressions = folder / "suppressions"
    # What nginx and a cjson without sanitizers keep to the end.
    suppressions.write_text("leak:ngx_alloc\nleak:strbuf_init\n")
    return os.environ | {
        "LD_PRELOAD": f"{runtime('libasan.so')}:{runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=1",
        "LSAN_OPTIONS": f"suppressions={suppressions}",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }


def check_nothing_to_report(nginx: Nginx, ended: int) -> None:
    """Stops nginx: so many of its processes have ended, none with a report or a leak."""
    nginx.stop()
    log = nginx.error_log()
    assert "Sanitizer" not in log
    assert "runtime error" not in log
    assert log.count("exited with code") == log.count("exited with code 0") == ended
