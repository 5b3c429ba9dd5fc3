"""A strict reader of Prometheus' text format 0.0.4 and of OpenMetrics 1.0.

Written from the grammars: what a tolerant parser would pass over is an error here. Of Kong's
metrics, `kong_`, two customs are not asked for where they are not a rule of the format.
"""

import dataclasses
import math
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(
    rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\+Inf|-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
)
META = re.compile(rf"# (HELP|TYPE|UNIT) ({NAME}) (.+)")
PAIR = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Labels = tuple[tuple[str, str], ...]


class Malformed(AssertionError):
    """The text breaks a rule of its format."""


@dataclasses.dataclass
class Family:
    """Metrics of one name."""

    name: str
    type: str = ""
    help: str = ""
    unit: str = ""
    samples: dict[tuple[str, Labels], float] = dataclasses.field(default_factory=dict)


def _unescape(text: str) -> str:
    return re.sub(r"\\.", lambda found: ESCAPES[found.group()], text)


def _suffixes(family: Family, is_open: bool) -> list[str]:
    if family.type == "histogram":
        return ["_bucket", "_sum", "_count"]
    return ["_total"] if family.type == "counter" and is_open else [""]


def _check_histogram(family: Family, is_kongs: bool) -> None:
    series: dict[Labels, list[tuple[float, float]]] = {}
    for (name, labels), value in family.samples.items():
        if name.endswith("_bucket"):
            rest = tuple(pair for pair in labels if pair[0] != "le")
            bound = dict(labels)["le"]
            if bound != "+Inf" and "." not in bound and not is_kongs:
                raise Malformed(f"{family.name}: le {bound!r} is not canonical")
            series.setdefault(rest, []).append((float(bound.replace("+Inf", "inf")), value))
    for rest, buckets in series.items():
        if buckets != sorted(buckets) or sorted(v for _, v in buckets) != [v for _, v in buckets]:
            raise Malformed(f"{family.name}: buckets do not rise")
        if buckets[-1][0] != math.inf:
            raise Malformed(f"{family.name}: no +Inf")
        if family.samples.get((family.name + "_count", rest)) != buckets[-1][1]:
            raise Malformed(f"{family.name}: _count is not that of +Inf")
        if (family.name + "_sum", rest) not in family.samples:
            raise Malformed(f"{family.name}: no _sum")


def _check(family: Family, is_open: bool) -> None:
    if not family.type or not family.help:
        raise Malformed(f"{family.name}: no TYPE or no HELP")
    is_kongs = family.name.startswith("kong_") and not is_open
    if family.type == "counter" and family.name.endswith("_total") == is_open and not is_kongs:
        raise Malformed(f"{family.name}: the name of a counter")
    if family.unit and not family.name.endswith("_" + family.unit):
        raise Malformed(f"{family.name}: does not end with its unit")
    if family.type in ("counter", "histogram") and any(v < 0 for v in family.samples.values()):
        raise Malformed(f"{family.name}: a negative count")
    if family.type == "histogram":
        _check_histogram(family, is_kongs)


def parse(text: str, is_open: bool) -> dict[str, Family]:
    """Families by name; raises Malformed."""
    if not text.endswith("\n") or "\r" in text:
        raise Malformed("lines end with \\n, the last one too")
    lines = text[:-1].split("\n")
    if is_open and lines.pop() != "# EOF":
        raise Malformed("the end is '# EOF'")
    if "# EOF" in lines:
        raise Malformed("an end in the middle")
    families: dict[str, Family] = {}
    family = Family("")
    for line in lines:
        if line.startswith("#"):
            found = META.fullmatch(line)
            if not found or (found[1] == "UNIT" and not is_open):
                raise Malformed(line)
            word, name, value = found.groups()
            if name != family.name:
                if name in families:
                    raise Malformed(f"{name} is in two places")
                family = families[name] = Family(name)
            if family.samples or getattr(family, word.lower()):
                raise Malformed(f"{line}: twice, or behind samples")
            setattr(family, word.lower(), value)
            continue
        found = SAMPLE.fullmatch(line)
        if not found:
            raise Malformed(line)
        name, labels, value = found.groups()
        pairs = tuple((key, _unescape(text)) for key, text in PAIR.findall(labels or ""))
        if name not in [family.name + suffix for suffix in _suffixes(family, is_open)]:
            raise Malformed(f"{line}: not of {family.name}")
        if len({key for key, _ in pairs}) != len(pairs) or (name, pairs) in family.samples:
            raise Malformed(f"{line}: twice")
        family.samples[name, pairs] = float(value.replace("+Inf", "inf"))
    for one in families.values():
        _check(one, is_open)
    return families
