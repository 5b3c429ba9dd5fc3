"""Checkouts of revisions, each in a folder of its own that is gone afterwards.

They are exported, not `git worktree`s: a run that is killed leaves nothing in
the repository. Uncommitted changes are in none of them.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import sides


class RevisionError(Exception):
    """A revision that there is not, or that does not build; the message has what was printed."""


def resolve(name: str) -> str:
    """The full number of a commit named in any way that git knows."""
    return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


# Where changes go, in a clone and in the repository itself.
MAIN = ("origin/main", "main")


def base() -> str | None:
    """What HEAD is based on: where it left main, or on main its parent; None if that is missing."""
    head = resolve("HEAD")
    for main in MAIN:
        with contextlib.suppress(RevisionError):
            found = _git("merge-base", head, main)
            if found != head:
                return found
    with contextlib.suppress(RevisionError):
        return resolve("HEAD~1")
    return None


def alone() -> str:
    """Why there is nothing that HEAD is based on."""
    if _git("rev-parse", "--is-shallow-repository") == "true":
        return "this clone is shallow: git fetch --unshallow"
    return "this is the first commit"


def differ(old: str, new: str, folders: Sequence[str]) -> bool:
    """Whether two commits differ in some of these folders."""
    return _git("diff", "--name-only", old, new, "--", *folders) != ""


def trailers(old: str, new: str, key: str) -> list[str]:
    """What the messages of the commits between two say in their last lines under a key."""
    form = f"%(trailers:key={key},valueonly,unfold)"
    return [line for line in _git("log", f"--format={form}", f"{old}..{new}").split("\n") if line]


def described(revision: str) -> str:
    """Short number and first line of a commit."""
    return _git("log", "-1", "--format=%h %s", revision)


def changed() -> bool:
    """Whether the checkout has changes that are not committed."""
    return _git("status", "--porcelain", "--untracked-files=no") != ""


@contextlib.contextmanager
def exported(revision: str) -> Iterator[Path]:
    """A checkout of a revision, with its module built."""
    with tempfile.TemporaryDirectory(prefix="sluice-tree-") as name:
        tree = Path(name)
        tree.chmod(0o755)  # workers of a master run by root are somebody else
        archive = tree / "archive.tar"
        _git("archive", "--output", str(archive), resolve(revision))
        subprocess.run(["tar", "-xf", archive, "-C", tree], check=True)
        archive.unlink()
        build(tree)
        yield tree


def build(tree: Path) -> None:
    """Builds the module of a checkout; takes ours if that is made of the same sources."""
    script = tree / "scripts" / "build-module"
    if not script.exists():  # from before there was a module
        return
    ours = sides.ROOT / "build" / "module"
    if ours.exists():
        # The script compares all that it would be built from, and builds if anything differs.
        (tree / "build" / "module").mkdir(parents=True)
        for part in ("ngx_sluice_module.so", "built_from", "nginx_version"):
            if (ours / part).exists():
                shutil.copy2(ours / part, tree / "build" / "module")
    done = subprocess.run([script], capture_output=True, text=True)
    if done.returncode != 0:
        raise RevisionError(f"{tree.name} does not build: {(done.stderr or done.stdout).strip()}")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=sides.ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip() or "no such revision"
        raise RevisionError(f"git {' '.join(arguments)}: {said}")
    return done.stdout.strip()
