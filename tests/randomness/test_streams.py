"""Streams: who gets which randomness, and what is refused.

The samplers' refusals are in test_samplers.py, their laws in statistical/test_samplers.py.
"""

import copy
import itertools
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from randomgen import AESCounter

from textveil.errors import ConfigError, RandomnessError
from textveil.randomness import streams
from textveil.randomness.samplers import (
    choose_weighted,
    coordinate_laplace,
    multivariate_laplace,
    von_mises_fisher,
)
from textveil.randomness.streams import SeededRandomness, SystemRandomness


def every_sampler(draws):
    """Ask for one value of each kind; the rows of the answer are the rows of `draws`."""
    mean = np.zeros((draws.size, 5))
    mean[:, 1] = 1.0
    weights = np.tile(np.array([1, 2**50, 2**33, 0, 7]), (draws.size, 300))
    return np.column_stack(
        (
            multivariate_laplace(draws, 60.0, 7),
            draws.uniform(3),
            draws.integers(np.full(draws.size, 3 * 2**61)).astype(float),
            von_mises_fisher(draws, mean, 8.0),
            choose_weighted(draws, weights),
            coordinate_laplace(draws, 0.5, 2),
            draws.beta(0.5, 2.0, 2),
            draws.gamma(3.0),
        )
    )


def run(streams, limit=1000):
    """Draw over a whole call, [n, ...]."""
    rows = [(part, every_sampler(draws)) for part, draws in streams.split_rows(limit)]
    assert [part.start for part, _ in rows] == [0, *(part.stop for part, _ in rows)][: len(rows)]
    return np.concatenate([values for _, values in rows])


def document(values, sizes, index):
    start = sum(sizes[:index])
    return values[start : start + sizes[index]]


# --- the cipher ---


@pytest.mark.parametrize("aesni", [True, False])
def test_the_generator_is_aes_128_in_counter_mode(aesni):
    # FIPS 197, appendix C.1: key 00 01 .. 0f, block 00 11 .. ff.
    key = int.from_bytes(bytes(range(16)), "little")
    counter = int.from_bytes(bytes(range(0, 256, 17)), "little")
    generator = AESCounter(key=key, counter=counter)
    capable = generator.use_aesni
    try:
        if not aesni:
            generator.use_aesni = False
        block = generator.random_raw(2).astype("<u8").tobytes()
    finally:
        generator.use_aesni = capable
    assert block.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


def test_why_documents_differ_in_their_key_and_not_in_their_counter():
    near = AESCounter(key=5, counter=8).random_raw(100)
    assert np.array_equal(
        AESCounter(key=5, counter=7).random_raw(102)[2:], near
    )  # the same values, shifted
    assert not np.isin(AESCounter(key=6, counter=7).random_raw(1000), near).any()


@pytest.fixture
def keys(monkeypatch):
    """Every (key, counter) of a generator made during the test."""
    made = []

    def record(*, key, counter):
        made.append((key, counter))
        return AESCounter(key=key, counter=counter)

    monkeypatch.setattr("randomgen.AESCounter", record)
    return made


def test_a_generator_is_made_at_its_documents_first_draw_and_only_once(keys):
    for part, draws in SystemRandomness().open([2, 0, 3, 9]).split_rows(5):
        if part.start == 0:
            draws.select(np.array([True, False, False, False, False])).normal(2)
            assert len(keys) == 1
        for _ in range(2):
            draws.normal(3)
            draws.select(np.ones(draws.size, dtype=bool)).gamma(2.0)
    assert len(keys) == 3
    assert len({key for key, _ in keys}) == 3
    assert max(counter for _, counter in keys) < 2**127


# --- streams do not repeat ---


@pytest.mark.parametrize("randomness", [SystemRandomness(), SeededRandomness(3)])
def test_documents_and_calls_have_unlike_streams(randomness, keys):
    sizes = [4] * 50
    values = [run(randomness.open(sizes)) for _ in range(4)]
    assert len({key for key, _ in keys}) == 200
    continuous = np.concatenate(values)[:, :7]
    assert np.unique(continuous).size == continuous.size


def test_documents_are_uncorrelated():
    # 780 pairs of 20,000 values: |z| > 6.2 somewhere has probability 4e-7. A shared stream gives z = 141.
    draws = next(SeededRandomness(11).open([20_000] * 40).split_rows(800_000))[1]
    values = draws.normal(1).reshape(40, 20_000)
    z = np.corrcoef(values) * np.sqrt(20_000)
    assert np.abs(z[np.triu_indices(40, 1)]).max() < 6.2


def test_eight_threads_never_share_a_key(keys):
    system, seeded = SystemRandomness(), SeededRandomness(5)
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        for _ in range(200):
            for randomness in (system, seeded):
                next(randomness.open([1]).split_rows(1))[1].uniform(1)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len({key for key, _ in keys}) == 8 * 200 * 2


def test_threads_that_share_one_draws_make_one_generator(keys):
    draws = next(SystemRandomness().open([64]).split_rows(64))[1]
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return draws.uniform(50)

    with ThreadPoolExecutor(8) as pool:
        values = np.concatenate(list(pool.map(work, range(8))))
    assert len(keys) == 1
    assert np.unique(values).size == values.size


# --- what a document's draws depend on ---


def test_chunk_size_does_not_change_the_draws():
    sizes = [3, 0, 7, 1, 12, 5, 0]
    whole = run(SeededRandomness(1).open(sizes))
    for limit in (12, 13, 17, 28):
        assert np.array_equal(run(SeededRandomness(1).open(sizes), limit), whole)


def test_neighbours_do_not_change_a_documents_draws():
    sizes, others = [3, 8, 33, 6], [40, 0, 33, 1, 9]
    alone = document(run(SeededRandomness(1).open(sizes)), sizes, 2)
    among = document(run(SeededRandomness(1).open(others)), others, 2)
    assert np.array_equal(alone, among)


def test_a_neighbours_rejections_do_not_change_a_documents_draws():
    def sample(bounds, kappas):
        draws = next(SeededRandomness(2).open([50, 50]).split_rows(100))[1]
        mean = np.tile([1.0, 0.0], (100, 1))
        return np.column_stack(
            (
                draws.integers(np.repeat(bounds, 50)),
                von_mises_fisher(draws, mean, np.repeat(kappas, 50)),
                draws.uniform(1),
            )
        )[50:]

    # 2^62 + 1 rejects a quarter of the integers, 2^62 none; kappa 0 accepts every proposal in two dimensions.
    calm = sample(np.array([2**62, 2**62 + 1]), np.array([0.0, 40.0]))
    wild = sample(np.array([2**62 + 1, 2**62 + 1]), np.array([900.0, 40.0]))
    assert np.array_equal(calm, wild)


def test_a_long_document_is_cut_from_its_own_start():
    def slices(sizes, limit):
        return [
            (part.start, part.stop) for part, _ in SeededRandomness(1).open(sizes).split_rows(limit)
        ]

    assert slices([2, 2, 11, 3, 0, 1], 4) == [(0, 4), (4, 8), (8, 12), (12, 15), (15, 19)]
    assert slices([11], 4) == [(0, 4), (4, 8), (8, 11)]
    assert slices([], 4) == slices([0, 0], 4) == []
    split = run(SeededRandomness(1).open([2, 11, 3]), 4)
    again = run(SeededRandomness(1).open([4, 11]), 4)
    assert np.array_equal(split[2:13], again[4:15])
    assert np.unique(split[:, :7]).size == split[:, :7].size  # the pieces go on in one stream


def test_rows_of_a_mask_go_on_in_their_documents_streams():
    sizes = [2, 3, 4]
    draws = next(SeededRandomness(1).open(sizes).split_rows(9))[1]
    draws.uniform(2)
    mask = np.array([0, 0, 1, 0, 1, 1, 1, 1, 1], dtype=bool)
    part = draws.select(mask)
    assert part.size == 6
    assert part.select(np.zeros(6, dtype=bool)).normal(4).shape == (0, 4)
    values = part.uniform(1)[:, 0]
    last = draws.uniform(1)[:, 0]
    plain = next(SeededRandomness(1).open(sizes).split_rows(9))[1]
    plain.uniform(2)
    flat = [
        generator.random(size * 2)
        for (generator, _), size in zip(plain._yield_parts(), sizes, strict=True)
    ]
    assert np.array_equal(values, np.concatenate((flat[1][:2], flat[2][:4])))
    assert np.array_equal(last, np.concatenate((flat[0][:2], flat[1][2:5], flat[2][4:8])))


# --- seeds ---


def test_a_seed_replays_the_sequence_of_calls_and_no_call_repeats():
    first, second = SeededRandomness(7), SeededRandomness(7)
    calls = [run(first.open([5, 6])) for _ in range(3)]
    for call in calls:
        assert np.array_equal(run(second.open([5, 6])), call)
    assert np.unique(np.stack(calls)[:, :, :7]).size == 3 * 11 * 7
    assert not np.array_equal(run(SeededRandomness(8).open([5, 6])), calls[0])


def test_who_is_seeded():
    assert SeededRandomness(0).is_seeded
    assert not SystemRandomness().is_seeded


@pytest.mark.parametrize("seed", [True, False, -1, 2**128, 1.0, "1", None, b"1"])
def test_a_seed_is_an_integer_of_128_bits(seed):
    with pytest.raises(ConfigError, match="a seed must be an integer from 0"):
        SeededRandomness(seed)


def test_seeds_at_the_ends_of_the_range():
    assert SeededRandomness(2**128 - 1).open([1]).sizes.tolist() == [1]
    alike: list[Any] = [5, np.int64(5), np.uint8(5)]
    same = [run(SeededRandomness(seed).open([2])) for seed in alike]
    assert np.array_equal(same[0], same[1])
    assert np.array_equal(same[0], same[2])


def test_pickles_of_a_seeded_source_have_streams_of_their_own(keys):
    parent = SeededRandomness(7)
    parent.open([1])
    family = [
        parent,
        *(pickle.loads(pickle.dumps(parent)) for _ in range(3)),
        copy.deepcopy(parent),
    ]
    family += [pickle.loads(pickle.dumps(family[1])), copy.copy(family[1]), SeededRandomness(0)]
    for member in family:
        for _ in range(5):
            next(member.open([1]).split_rows(1))[1].uniform(1)
    assert len({key for key, _ in keys}) == len(family) * 5


def test_parts_of_a_run_have_streams_of_their_own(keys):
    parent = SeededRandomness(0)
    family = [
        parent,
        *(parent.derive_part(number) for number in (0, 1, 2**127, 2**128 - 1)),
        parent.derive_part(1).derive_part(1),
    ]
    family += [pickle.loads(pickle.dumps(parent)) for _ in range(2)] + [
        pickle.loads(pickle.dumps(parent.derive_part(0)))
    ]
    for member in family:
        for _ in range(5):
            next(member.open([1]).split_rows(1))[1].uniform(1)
    assert len({key for key, _ in keys}) == len(family) * 5
    assert np.array_equal(
        run(SeededRandomness(0).derive_part(7).open([4])), run(parent.derive_part(7).open([4]))
    )
    system = SystemRandomness()
    assert system.derive_part(3) is system
    for number in (-1, 2**128):
        with pytest.raises(ConfigError, match="a part's number"):
            parent.derive_part(number)


def test_children_of_a_seeded_source_replay():
    def grandchild():
        return pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(SeededRandomness(7)))))

    assert np.array_equal(run(grandchild().open([4])), run(grandchild().open([4])))


def test_path_and_call_number_are_not_confused(keys):
    parent = SeededRandomness(1)
    children = [pickle.loads(pickle.dumps(parent)) for _ in range(4)]
    grandchildren = [pickle.loads(pickle.dumps(child)) for child in children for _ in range(4)]
    for member in (parent, *children, *grandchildren):
        for _ in range(6):
            next(member.open([1]).split_rows(1))[1].uniform(1)
    assert len({key for key, _ in keys}) == len(keys) == 21 * 6


# --- entropy of the operating system ---


def recorded(monkeypatch, tape):
    """Replace the operating system's entropy by a recording and forget the calls made so far."""
    position = iter(range(0, len(tape), 32))

    def read(n):
        start = next(position)
        return tape[start : start + n]

    monkeypatch.setattr(streams, "read_entropy", read)
    monkeypatch.setattr(streams, "_process", streams._CallLog())


def test_every_draw_comes_from_the_operating_systems_entropy(monkeypatch):
    tape, other = bytes(range(96)), bytes(range(1, 97))
    values: list[list[np.ndarray]] = []
    for recording in (tape, tape, other):
        recorded(monkeypatch, recording)
        np.random.seed(len(values))  # what other generators hold must not matter
        values.append([run(SystemRandomness().open([5, 0, 9])) for _ in range(3)])
    assert np.array_equal(values[0], values[1])
    continuous = np.concatenate(values[0] + values[2])[:, :7]
    assert np.unique(continuous).size == continuous.size


def test_one_bit_of_entropy_changes_every_draw(monkeypatch):
    continuous = []
    for byte in (0, 1, 128):
        recorded(monkeypatch, bytes([byte]) + bytes(31))
        continuous.append(run(SystemRandomness().open([5, 5]))[:, :7])
    assert np.unique(continuous).size == 3 * 70


def test_each_call_reads_a_fresh_nonce_of_32_bytes(monkeypatch):
    asked = []

    def read(n):
        asked.append(n)
        return os.urandom(n)

    monkeypatch.setattr(streams, "read_entropy", read)
    for _ in range(3):
        run(SystemRandomness().open([2, 3]))
    assert asked == [32, 32, 32]


def test_stuck_entropy_is_refused(monkeypatch):
    monkeypatch.setattr(streams, "read_entropy", lambda n: bytes(n))
    monkeypatch.setattr(streams, "_process", streams._CallLog())
    SystemRandomness().open([1])
    for _ in range(2):
        with pytest.raises(RandomnessError, match="same nonce"):
            SystemRandomness().open([1])


def test_a_returning_nonce_does_not_return_a_key(monkeypatch, keys):
    cycle = itertools.cycle((bytes(32), bytes(31) + b"\1"))
    monkeypatch.setattr(streams, "read_entropy", lambda n: next(cycle))
    for _ in range(6):
        next(SystemRandomness().open([1]).split_rows(1))[1].uniform(1)
    assert len({key for key, _ in keys}) == 6


def test_missing_entropy_is_refused(monkeypatch):
    def broken(n):
        raise OSError("no such device: canary")

    monkeypatch.setattr(streams, "read_entropy", broken)
    with pytest.raises(RandomnessError, match="provides no entropy") as caught:
        SystemRandomness().open([1])
    assert "canary" not in str(caught.value)
    monkeypatch.setattr(streams, "read_entropy", lambda n: b"short")
    with pytest.raises(RandomnessError, match="must have 32 bytes"):
        SystemRandomness().open([1])


# --- processes ---

FORK = """
import os, pickle
import numpy
from textveil.randomness import streams as rng
from textveil.errors import RandomnessError
from textveil.randomness import SeededRandomness, SystemRandomness

system, seeded = SystemRandomness(), SeededRandomness(1)
opened, begun, drawn = system.open([3]), system.open([3, 3]).split_rows(3), next(system.open([3]).split_rows(3))[1]
next(begun)
drawn.uniform(1)
rng._process.lock.acquire()  # as if another thread were inside a call
seeded._lock.acquire()

def attempt(action):
    try:
        return float(action())
    except RandomnessError as error:
        return type(error).__name__ + ": " + str(error)

def first(source):
    return next(source.open([3]).split_rows(3))[1].uniform(1)[0, 0]

def uses():
    return [attempt(lambda: first(system)), attempt(lambda: first(seeded)), attempt(lambda: opened.split_rows(3)),
            attempt(lambda: next(begun)), attempt(lambda: drawn.uniform(1)[0, 0]),
            attempt(lambda: drawn.select(numpy.ones(3, dtype=bool)).normal(1)[0, 0]),
            attempt(lambda: len(pickle.dumps(seeded)))]

reader, writer = os.pipe()
values = []
for child in range(2):
    pid = os.fork()
    if pid == 0:
        os.write(writer, pickle.dumps(uses() + [first(SeededRandomness(1))]))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    values.append(pickle.loads(os.read(reader, 100_000)))
rng._process.lock.release()
seeded._lock.release()
assert rng._generation == 0
parent = [first(system), first(seeded), drawn.uniform(1)[0, 0], next(begun)[1].uniform(1)[0, 0]]
for fresh, *refused, again in values:
    assert isinstance(fresh, float), fresh
    for message in refused:
        assert isinstance(message, str) and "cannot be used after a fork" in message, refused
    assert again == first(SeededRandomness(1))
assert len({values[0][0], values[1][0], *parent}) == 6
print("checked")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_are_detected_and_the_system_source_survives_them():
    environment = {**os.environ, "PYTHONPATH": str(Path(streams.__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", FORK],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "checked\n"


def test_the_system_source_pickles():
    assert pickle.loads(pickle.dumps(SystemRandomness())) == SystemRandomness()


# --- keys stay inside ---


def test_streams_and_draws_neither_pickle_nor_copy():
    streams = SystemRandomness().open([2])
    draws = next(streams.split_rows(2))[1]
    for holder in (streams, draws):
        for carry in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(RandomnessError, match="cannot be pickled or copied"):
                carry(holder)


def test_no_representation_shows_a_key_or_a_seed():
    seeded = SeededRandomness(2**77 + 1)
    streams = SystemRandomness().open([2, 3])
    draws = next(streams.split_rows(9))[1]
    draws.uniform(1)
    assert repr(SystemRandomness()) == "SystemRandomness()"
    assert repr(seeded) == "SeededRandomness(seed=<hidden>, path=(), calls=0)"
    assert repr(streams) == "Streams(2 documents, 5 rows)"
    assert repr(draws) == "Draws(5 rows of 2 documents)"


# --- integers ---


class Prescribed:
    """Stands in for a document's stream: its raw 64-bit values are given."""

    def __init__(self, *values):
        self.values = list(values)
        self.bit_generator = self

    def get_generator(self):
        return self

    def random_raw(self, n):
        taken, self.values = self.values[:n], self.values[n:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize(
    ("high", "kept", "redrawn"),
    [
        (3, [0, 2**64 - 2], [2**64 - 1]),
        (2**32 - 1, [2**64 - 2], [2**64 - 1]),
        (2**62, [2**64 - 1, 2**62], []),
        (1, [2**64 - 1, 0], []),
        (3 * 2**61, [0, 3 * 2**62 - 1], [3 * 2**62, 2**64 - 1]),
        (2**63 - 1, [2**64 - 3], [2**64 - 2, 2**64 - 1]),
    ],
)
def test_integers_keep_exactly_the_whole_runs_of_remainders(high, kept, redrawn):
    stream: Any = Prescribed(*redrawn, *kept, *[1] * len(redrawn))
    values = streams.Draws([stream], [0, len(redrawn) + len(kept)], streams._generation).integers(
        np.full(len(redrawn) + len(kept), high)
    )
    assert values.tolist() == [1 % high] * len(redrawn) + [value % high for value in kept]
    assert stream.values == []


# --- what is refused ---


def test_streams_serve_one_pass():
    streams = SystemRandomness().open([2, 3])
    streams.split_rows(2)
    with pytest.raises(RandomnessError, match="only once"):
        streams.split_rows(2)


def test_sizes_cannot_be_changed_from_outside():
    sizes = np.array([2, 3])
    streams = SystemRandomness().open(sizes)
    sizes[0] = 100
    assert streams.sizes.tolist() == [2, 3]
    with pytest.raises(ValueError, match="read-only"):
        streams.sizes[0] = 1


@pytest.mark.parametrize("sizes", [[-1], [1.5], [[1, 2]], 3, ["2"], [True]])
def test_sizes_are_counts(sizes):
    for randomness in (SystemRandomness(), SeededRandomness(1)):
        with pytest.raises(ConfigError, match="sizes must be a list of integers"):
            randomness.open(sizes)


def test_limits_start_at_one():
    with pytest.raises(ConfigError, match="limit must be 1 row or more"):
        SystemRandomness().open([1]).split_rows(0)


@pytest.fixture
def three():
    return next(SeededRandomness(1).open([1, 2]).split_rows(3))[1]


def test_values_fit_the_rows(three):
    for high in (np.zeros(3, dtype=np.int64), np.ones(3), np.ones(2, dtype=np.int64)):
        with pytest.raises(ConfigError, match="high must be 3 int64"):
            three.integers(high)
    for mask in (np.ones(3, dtype=np.int64), np.ones(2, dtype=bool)):
        with pytest.raises(ConfigError, match="mask must be 3 booleans"):
            three.select(mask)
    none = three.select(np.zeros(3, dtype=bool))
    assert none.integers(np.zeros(0, dtype=np.int64)).shape == (0,)
