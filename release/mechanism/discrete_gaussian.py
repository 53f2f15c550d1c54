"""Exact samples of the discrete Gaussian, from the operating system's randomness, unseeded.

N_Z(0, sigma^2) gives the integer z a probability proportional to exp(-z^2 / (2 sigma^2)). It is the
noise of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020). Noise
in floating point would break the guarantee, because the low bits of a sum reveal the summands. Here
every decision compares uniformly random integers with integers.

Samples are drawn by Karney's algorithm D ("Sampling exactly from the normal distribution", 2016,
section 5), on whole arrays: pick k >= 0 with probability proportional to exp(-k^2 / 2), then a
fraction x in [0, 1), and keep (k + x) sigma with probability exp(-x (2 k + x) / 2). Events of
probability exp(-gamma) come from the alternating series of Forsyth and von Neumann, as in Canonne
et al., algorithm 1: if A_i is true with probability gamma / i, the first i at which A_i is false is
odd with probability exp(-gamma).
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

LARGEST_SIGMA: Final = 2**56
FURTHEST: Final = 60
"""Draws beyond 60 sigma, which have a probability below 1e-780, are drawn again, so that no product
overflows 64 bits."""
_BLOCK: Final = 1 << 16

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


def discrete_gaussian(size: int, sigma: int | Fraction) -> Integers:
    """Draw from N_Z(0, sigma^2).

    Guarantee:
        The draws are independent and their distribution is exact (up to the truncation at 60
        sigma), provided that the operating system's random bytes are uniform. Nothing that could
        reproduce them is kept, and a forked process draws its own. (docs/privacy/proofs.md,
        statement 8.)

    Args:
        size: the number of draws.
        sigma: standard deviation parameter, above 0 and at most 2^56.

    Returns:
        int64 (size,).

    Raises:
        ValueError: sigma is out of range.
    """
    if not 0 < sigma <= LARGEST_SIGMA:
        raise ValueError(f"sigma is {sigma}: it must be above 0 and at most 2^56")
    numerator, denominator = Fraction(sigma).as_integer_ratio()
    if max(numerator, denominator * FURTHEST) > LARGEST_SIGMA:
        raise ValueError(f"sigma is {sigma}: its numerator or denominator is too large")
    drawn = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        candidates = _candidates(min(_BLOCK, 2 * (size - filled) + 64), numerator, denominator)
        taken = candidates[: size - filled]
        drawn[filled : filled + len(taken)] = taken
        filled += len(taken)
    return drawn


def _candidates(tries: int, numerator: int, denominator: int) -> Integers:
    """One round of the algorithm: about half of the `tries` give a draw.

    sigma is numerator / denominator. A candidate is k sigma + x sigma = start + step, where start
    is the smallest integer that is not below k sigma; x = fraction / numerator.
    """
    k = _half_normal_integers(tries)
    start = -(-k * numerator // denominator)
    step = _uniform_below(-(-numerator // denominator), len(k))
    fraction = (start + step) * denominator - k * numerator
    negative = _random_words(len(k), np.uint8) >= 128
    # x must be below 1, and zero must not count both as +0 and as -0.
    possible = (fraction < numerator) & ~(negative & (start + step == 0))
    k, fraction = k[possible], fraction[possible]
    magnitude, negative = (start + step)[possible], negative[possible]
    kept = _accept(k, fraction, numerator)
    signed: Integers = np.where(negative, -magnitude, magnitude)
    return signed[kept]


def _half_normal_integers(tries: int) -> Integers:
    """Integers k >= 0 with probability proportional to exp(-k^2 / 2).

    A geometric k has probability proportional to exp(-k / 2). It is kept with probability exp(-k (k
    - 1) / 2), the probability of k (k - 1) events of probability exp(-1/2).
    """
    k = np.zeros(tries, dtype=np.int64)
    growing = np.arange(tries)
    while growing.size:
        growing = growing[_exp_minus_half(growing.size)]
        k[growing] += 1
    k = k[k < FURTHEST]
    needed = k * (k - 1)
    alive = np.ones(len(k), dtype=np.bool_)
    waiting = np.flatnonzero(needed)
    while waiting.size:
        success = _exp_minus_half(waiting.size)
        alive[waiting[~success]] = False
        needed[waiting] -= 1
        waiting = waiting[success & (needed[waiting] > 0)]
    return k[alive]


def _accept(k: Integers, fraction: Integers, numerator: int) -> Booleans:
    """True with probability exp(-x (2 k + x) / 2), where x = fraction / numerator.

    These are k + 1 events of probability exp(-gamma), gamma = x (2 k + x) / (2 k + 2) <= 1.
    """
    accepted = np.ones(len(k), dtype=np.bool_)
    waiting = np.arange(len(k))
    done = 0
    while waiting.size:
        success = _exp_minus_gamma(k[waiting], fraction[waiting], numerator)
        accepted[waiting[~success]] = False
        done += 1
        waiting = waiting[success & (k[waiting] + 1 > done)]
    return accepted


def _exp_minus_half(size: int) -> Booleans:
    """True with probability exp(-1/2), independently `size` times."""
    result = np.empty(size, dtype=np.bool_)
    going = np.arange(size)
    i = 1
    while going.size:
        event = _small_below(np.full(going.size, 2 * i, dtype=np.int64)) == 0
        result[going[~event]] = i % 2 == 1
        going = going[event]
        i += 1
    return result


def _exp_minus_gamma(k: Integers, fraction: Integers, numerator: int) -> Booleans:
    """True with probability exp(-gamma), with gamma as in `_accept`.

    gamma / i is the probability that three independent things happen: a number below i is 0;
    x is larger than a uniform fraction; and, with u below 2 k + 2, either u < 2 k, or u = 2 k and
    x is larger than another uniform fraction.
    """
    result = np.empty(len(k), dtype=np.bool_)
    going = np.arange(len(k))
    i = 1
    while going.size:
        bound = 2 * k[going]
        ticket = _small_below((bound + 2) * i)
        # The ticket is uniform below i (2 k + 2): u = ticket // i, and ticket % i is 0 with
        # probability 1/i.
        u = ticket // i
        event = (ticket % i == 0) & (u <= bound)
        event[event] = _uniform_below(numerator, int(event.sum())) < fraction[going[event]]
        narrow = event & (u == bound)
        event[narrow] = _uniform_below(numerator, int(narrow.sum())) < fraction[going[narrow]]
        result[going[~event]] = i % 2 == 1
        going = going[event]
        i += 1
    return result


def _small_below(bound: Integers) -> Integers:
    """Uniform integers from 0 to bound - 1, for each bound below 2^16; biased words are redrawn."""
    fair = 65536 - 65536 % bound
    words = _random_words(len(bound), np.uint16).astype(np.int64)
    wrong = np.flatnonzero(words >= fair)
    while wrong.size:
        words[wrong] = _random_words(wrong.size, np.uint16)
        wrong = wrong[words[wrong] >= fair[wrong]]
    return words % bound


def _uniform_below(bound: int, size: int) -> Integers:
    """Uniform integers from 0 to bound - 1, for one bound of at most 2^63."""
    shift = np.uint64(64 - max((bound - 1).bit_length(), 1))
    numbers = _random_words(size, np.uint64) >> shift
    wrong = np.flatnonzero(numbers >= bound)
    while wrong.size:
        numbers[wrong] = _random_words(wrong.size, np.uint64) >> shift
        wrong = wrong[numbers[wrong] >= bound]
    return numbers.astype(np.int64)


def _random_words(size: int, kind: type[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    """Uniform words from the operating system: the only source of randomness here."""
    return np.frombuffer(bytearray(os.urandom(size * np.dtype(kind).itemsize)), dtype=kind)
