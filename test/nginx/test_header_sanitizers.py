"""Headers of refused requests with ASan, UBSan and LSan in nginx."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import test_refused_requests as refused
from test_var_sanitizers import sanitized


def test_refused_requests_leave_nothing_to_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with sanitized(refused.HTTP, refused.INDEX, monkeypatch, tmp_path) as server:
        refused.expect(server)
        for data in (*refused.REFUSED.values(), *refused.mutations(random.Random(8), 40)):
            refused.answer(server, data)
