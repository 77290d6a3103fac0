"""Bytes and bits: digits, checksums, hash tables and integers that are divided."""

from __future__ import annotations

import numpy as np
from numba import hip, uint32

from benchmarks.user_kernels.definition import Arrays, UserKernel, blocks, kernel, peer

THREADS = 256


def random_bytes(*shape: int) -> np.ndarray:
    """Bytes of all values."""
    return np.random.default_rng(sum(shape)).integers(0, 256, shape).astype(np.uint8)


@hip.jit
def to_hex(data, text):
    i = hip.grid(1)
    if i < data.size:
        high, low = data[i] >> 4, data[i] & 15
        text[2 * i] = high + 48 if high < 10 else high + 87
        text[2 * i + 1] = low + 48 if low < 10 else low + 87


@peer
def to_hex_by_loop(data, text):
    digits = np.empty(16, np.uint8)
    for i in range(16):
        digits[i] = i + 48 if i < 10 else i + 87
    for i in range(data.size):
        text[2 * i] = digits[data[i] >> 4]
        text[2 * i + 1] = digits[data[i] & 15]


@kernel("bytes-to-hex")
def HEX(quick: bool) -> UserKernel:
    """two hexadecimal digits for each byte"""
    data = random_bytes(2000 if quick else 400_000)
    return UserKernel(
        {"data": data, "text": np.zeros(2 * data.size, np.uint8)},
        ("text",),
        lambda on: to_hex[blocks(data.size, THREADS), THREADS](on.data, on.text),
        lambda on: to_hex_by_loop(on.data, on.text),
        expected=lambda on: {"text": np.frombuffer(on.data.tobytes().hex().encode(), np.uint8)},
    )


def crc_table() -> np.ndarray:
    """What eight steps make of each byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


@hip.jit
def crc32(records, table, sums):
    i = hip.grid(1)
    if i < records.shape[0]:
        crc = uint32(0xFFFFFFFF)
        for j in range(records.shape[1]):
            crc = table[(crc ^ records[i, j]) & 0xFF] ^ (crc >> uint32(8))
        sums[i] = crc ^ uint32(0xFFFFFFFF)


@peer
def crc32_by_loop(records, table, sums):
    for i in range(records.shape[0]):
        crc = uint32(0xFFFFFFFF)
        for j in range(records.shape[1]):
            crc = table[(crc ^ records[i, j]) & uint32(0xFF)] ^ (crc >> uint32(8))
        sums[i] = crc ^ uint32(0xFFFFFFFF)


def crc_by_zlib(on: Arrays) -> dict[str, np.ndarray]:
    """Checksums of rows."""
    import zlib

    return {"sums": np.array([zlib.crc32(record.tobytes()) for record in on.records], np.uint32)}


@kernel("crc32")
def CRC(quick: bool) -> UserKernel:
    """checksums of records of 64 bytes, by a table"""
    count = 100 if quick else 8000
    return UserKernel(
        {"records": random_bytes(count, 64), "table": crc_table(), "sums": np.zeros(count, np.uint32)},
        ("sums",),
        lambda on: crc32[blocks(count, THREADS), THREADS](on.records, on.table, on.sums),
        lambda on: crc32_by_loop(on.records, on.table, on.sums),
        expected=crc_by_zlib,
    )


@hip.jit
def fnv(records, hashes):
    i = hip.grid(1)
    if i < records.shape[0]:
        h = uint32(2166136261)
        for j in range(records.shape[1]):
            h = uint32(h ^ records[i, j]) * uint32(16777619)
        hashes[i] = h


@peer
def fnv_by_loop(records, hashes):
    for i in range(records.shape[0]):
        h = uint32(2166136261)
        for j in range(records.shape[1]):
            h = uint32(uint32(h ^ records[i, j]) * uint32(16777619))
        hashes[i] = h


@kernel("fnv-1a")
def FNV(quick: bool) -> UserKernel:
    """hashes of records of 32 bytes"""
    count = 100 if quick else 20_000
    return UserKernel(
        {"records": random_bytes(count, 32), "hashes": np.zeros(count, np.uint32)},
        ("hashes",),
        lambda on: fnv[blocks(count, THREADS), THREADS](on.records, on.hashes),
        lambda on: fnv_by_loop(on.records, on.hashes),
    )


@hip.jit
def murmur(keys, buckets, count):
    i = hip.grid(1)
    if i < keys.size:
        h = keys[i]
        h = uint32((h ^ (h >> uint32(16))) * uint32(0x85EBCA6B))
        h = uint32((h ^ (h >> uint32(13))) * uint32(0xC2B2AE35))
        buckets[i] = uint32(h ^ (h >> uint32(16))) % count


@peer
def murmur_by_loop(keys, buckets, count):
    for i in range(keys.size):
        h = keys[i]
        h = uint32(h ^ (h >> uint32(16)))
        h = uint32(h * uint32(0x85EBCA6B))
        h = uint32(h ^ (h >> uint32(13)))
        h = uint32(h * uint32(0xC2B2AE35))
        h = uint32(h ^ (h >> uint32(16)))
        buckets[i] = h % count


@kernel("murmur-buckets", opencl=True)
def MURMUR(quick: bool) -> UserKernel:
    """buckets of keys: Murmur's last steps, and a remainder by an argument"""
    size = 2000 if quick else 150_000
    keys = np.random.default_rng(121).integers(0, 2**32, size).astype(np.uint32)
    count = np.uint32(1009)

    def buckets(on: Arrays) -> dict[str, np.ndarray]:
        h = on.keys.copy()
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
        return {"buckets": (h ^ (h >> np.uint32(16))) % count}

    return UserKernel(
        {"keys": keys, "buckets": np.zeros(size, np.uint32)},
        ("buckets",),
        lambda on: murmur[blocks(size, THREADS), THREADS](on.keys, on.buckets, count),
        lambda on: murmur_by_loop(on.keys, on.buckets, count),
        expected=buckets,
    )


@hip.jit
def split_index(numbers, width, height, sums):
    i = hip.grid(1)
    if i < numbers.size:
        value = numbers[i]
        x = value % width
        y = value // width % height
        z = value // (width * height)
        sums[i] = x + 3 * y + 5 * z


@peer
def split_index_by_loop(numbers, width, height, sums):
    for i in range(numbers.size):
        row, x = divmod(numbers[i], width)
        z, y = divmod(row, height)
        sums[i] = x + 3 * y + 5 * z


@kernel("divide-by-arguments")
def SPLIT(quick: bool) -> UserKernel:
    """numbers of 64 bits taken apart by quotients and remainders of arguments"""
    size = 2000 if quick else 100_000
    numbers = np.random.default_rng(122).integers(0, 10**9, size)
    return UserKernel(
        {"numbers": numbers, "sums": np.zeros(size, np.int64)},
        ("sums",),
        lambda on: split_index[blocks(size, THREADS), THREADS](on.numbers, 117, 93, on.sums),
        lambda on: split_index_by_loop(on.numbers, 117, 93, on.sums),
    )


@hip.jit
def collatz(steps):
    i = hip.grid(1)
    if i < steps.size:
        n, count = i + 1, 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            count += 1
        steps[i] = count


@peer
def collatz_by_loop(steps):
    for i in range(steps.size):
        n, count = i + 1, 0
        while n != 1:
            n = 3 * n + 1 if n & 1 else n >> 1
            count += 1
        steps[i] = count


@kernel("collatz")
def COLLATZ(quick: bool) -> UserKernel:
    """how many of Collatz' steps lead to one"""
    size = 300 if quick else 10_000
    return UserKernel(
        {"steps": np.zeros(size, np.int32) - 1},
        ("steps",),
        lambda on: collatz[blocks(size, THREADS), THREADS](on.steps),
        lambda on: collatz_by_loop(on.steps),
    )


@hip.jit
def least_divisors(numbers, divisors):
    i = hip.grid(1)
    if i < numbers.size:
        number = numbers[i]
        divisor = 2
        while divisor * divisor <= number:
            if number % divisor == 0:
                divisors[i] = divisor
                return
            divisor += 1
        divisors[i] = number


@peer
def least_divisors_by_loop(numbers, divisors):
    for i in range(numbers.size):
        number, divisor, found = numbers[i], 2, numbers[i]
        while divisor * divisor <= number:
            if number % divisor == 0:
                found = divisor
                break
            divisor += 1
        divisors[i] = found


@kernel("least-divisors")
def DIVISORS(quick: bool) -> UserKernel:
    """the least divisor of numbers up to 100,000, by trial: most have a small one, and primes take 300 divisions"""
    size = 300 if quick else 20_000
    numbers = np.random.default_rng(129).integers(2, 100_000, size)
    return UserKernel(
        {"numbers": numbers, "divisors": np.zeros(size, np.int64)},
        ("divisors",),
        lambda on: least_divisors[blocks(size, THREADS), THREADS](on.numbers, on.divisors),
        lambda on: least_divisors_by_loop(on.numbers, on.divisors),
    )


@hip.jit
def probe(keys, table, places):
    i = hip.grid(1)
    if i < keys.size:
        key = keys[i]
        last = table.size - 1
        place = (key * 2654435761) & last
        while table[place] != key and table[place] != -1:
            place = (place + 1) & last
        places[i] = place if table[place] == key else -1


@peer
def probe_by_loop(keys, table, places):
    last = table.size - 1
    for i in range(keys.size):
        place = (keys[i] * 2654435761) & last
        while table[place] != keys[i] and table[place] != -1:
            place = (place + 1) & last
        places[i] = place if table[place] == keys[i] else -1


@kernel("hash-probes")
def PROBES(quick: bool) -> UserKernel:
    """where keys of int64 are in an open hash table that is 0.8 full, half of which it does not have"""
    size, room = (300, 1 << 9) if quick else (20_000, 1 << 16)
    rng = np.random.default_rng(130)
    held = rng.choice(1 << 30, int(room * 0.8), replace=False)
    table = np.full(room, -1)
    for key in held.tolist():
        place = (key * 2654435761) % room
        while table[place] != -1:
            place = (place + 1) % room
        table[place] = key
    keys = np.where(rng.random(size) < 0.5, rng.choice(held, size), rng.integers(1 << 30, 1 << 31, size))
    return UserKernel(
        {"keys": keys, "table": table, "places": np.zeros(size, np.int64)},
        ("places",),
        lambda on: probe[blocks(size, THREADS), THREADS](on.keys, on.table, on.places),
        lambda on: probe_by_loop(on.keys, on.table, on.places),
    )


@hip.jit
def sieve(composite, root):
    number = hip.grid(1) + 2
    if number <= root:
        for multiple in range(number * number, composite.size, number):
            composite[multiple] = 1


@peer
def sieve_by_loop(composite, root):
    for number in range(2, root + 1):
        if composite[number] == 0:
            for multiple in range(number * number, composite.size, number):
                composite[multiple] = 1


@peer
def sieve_as_kernel(composite, root):
    for number in range(2, root + 1):
        for multiple in range(number * number, composite.size, number):
            composite[multiple] = 1


@kernel("sieve", translated=True)
def SIEVE(quick: bool) -> UserKernel:
    """composite numbers, a thread marks all multiples of its number; the peer leaves out those of composite ones"""
    size = 2000 if quick else 200_000
    root = int(size**0.5)
    return UserKernel(
        {"composite": np.zeros(size, np.uint8)},
        ("composite",),
        lambda on: sieve[blocks(root, 64), 64](on.composite, root),
        lambda on: sieve_by_loop(on.composite, root),
        translated=lambda on: sieve_as_kernel(on.composite, root),
        restored=("composite",),
    )


@hip.jit
def divisors(left, right, common):
    i = hip.grid(1)
    if i < left.size:
        a, b = left[i], right[i]
        while b != 0:
            a, b = b, a % b
        common[i] = a


@peer
def divisors_by_loop(left, right, common):
    for i in range(left.size):
        a, b = left[i], right[i]
        while b != 0:
            a, b = b, a % b
        common[i] = a


@kernel("gcd")
def GCD(quick: bool) -> UserKernel:
    """greatest common divisors of int32"""
    size = 2000 if quick else 20_000
    left, right = np.random.default_rng(123).integers(1, 10**6, (2, size)).astype(np.int32)
    return UserKernel(
        {"left": left, "right": right, "common": np.zeros(size, np.int32)},
        ("common",),
        lambda on: divisors[blocks(size, THREADS), THREADS](on.left, on.right, on.common),
        lambda on: divisors_by_loop(on.left, on.right, on.common),
        expected=lambda on: {"common": np.gcd(on.left, on.right)},
    )
