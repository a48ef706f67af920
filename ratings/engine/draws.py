"""Draws that depend on nothing but a seed and what they are for.

Each draw hashes the seed with its purpose and number (SHA-256), so a schedule is the same on every
platform, at any concurrency and after a restart; there is no shared stream whose state would have to be
carried along.
"""

from __future__ import annotations

import hashlib

import numpy as np

from ratings.engine.arrays import IntArray


def draw(seed: int, purpose: str, *numbers: int) -> int:
    """A uniform integer below 2**64."""
    text = "|".join((str(int(seed)), purpose, *(str(int(number)) for number in numbers)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """A NumPy generator seeded from the same hash, for strategies that sample from a distribution."""
    return np.random.Generator(np.random.PCG64(draw(seed, purpose, *numbers)))


def shuffled(items: list[int], seed: int, purpose: str, *numbers: int) -> list[int]:
    """The items in an order drawn by the seed, whatever order they came in."""
    return sorted(items, key=lambda item: (draw(seed, purpose, *numbers, item), item))


def sub_seed(seed: int, extension: int) -> int:
    """Seed of the n-th extension of a schedule; the seed itself for extension 0."""
    return seed if extension == 0 else draw(seed, "extension", extension) >> 1


def step_seed(seed: int, number: int) -> int:
    """Seed of one step, where each is planned from what the steps before it came to."""
    return draw(seed, "step", number) >> 1


def seat(seed: int, sequence: int) -> bool:
    """Whether the first candidate of a match takes seat A, where it is judged in one order only.

    Parameters
    ----------
    seed : int
    sequence : int
        Number of the match in its tournament.

    Returns
    -------
    bool
        True for ``first`` in seat A; a fair coin over sequence numbers.
    """
    return draw(seed, "seat", sequence) % 2 == 0


def mixed(base: int, numbers: IntArray) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """One pseudo-random 64-bit key per number (SplitMix64 finaliser), for breaking many draws at once."""
    with np.errstate(over="ignore"):
        x = np.uint64(base) + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))
