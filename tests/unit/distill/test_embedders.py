"""Vectors: the shipped embedder does the arithmetic it was trained with."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from recollect.distill.embedders import default_embedder
from recollect.distill.vectors import quantised, restored

TEXTS = [
    "The login crashes when the token has expired.", "getUserById in src/auth/login.py:123456 v1.2.3",
    "don't won't it's the user's O'Reilly's",
    "", "đăng nhập thất bại", "naïve café l'été", "____x __init__ a_b.c-d'e", "zzqxv unknownword",
]  # fmt: skip


def test_vectors_have_length_one_and_similar_texts_are_near() -> None:
    rows = default_embedder().vectors([*TEXTS, "Signing in fails because the session ran out.", "Bananas are yellow."])
    lengths = np.linalg.norm(rows, axis=1)
    assert np.allclose(lengths[lengths > 0], 1, atol=1e-5)
    assert lengths[3] == 0
    assert rows[0] @ rows[-2] > rows[0] @ rows[-1]


def test_the_arithmetic_is_that_of_the_reference() -> None:
    path = Path(os.environ.get("RECOLLECT_DATA") or "nowhere") / "embedder" / "embed.py"
    if not path.exists():
        pytest.skip("RECOLLECT_DATA has no embedder/embed.py to compare with")
    specification = importlib.util.spec_from_file_location("reference", path)
    assert specification is not None
    assert specification.loader is not None
    reference = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(reference)
    expected = reference.Embedder(path.parent / "static256").embed(TEXTS)
    assert np.abs(expected - default_embedder().vectors(TEXTS)).max() < 1e-6


def test_one_byte_a_number_keeps_the_angle() -> None:
    rows = default_embedder().vectors(TEXTS)
    back = restored(quantised(rows), rows.shape[1])
    assert np.abs(back - rows).max() < 0.01
    assert np.abs(back @ back.T - rows @ rows.T).max() < 0.02


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    embedder = default_embedder()
    assert embedder.rarity("the") < embedder.rarity("function") < embedder.rarity("kubernetes")
