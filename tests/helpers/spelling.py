"""N-grams of characters one by one, as the reference defines them."""

from zlib import crc32

from seqtrain.sequences.vocabulary import BUCKETS


def buckets_of(word: str, shortest: int, longest: int) -> list[int]:
    """Return the buckets of the n-grams of "<word>", by size."""
    marked = f"<{word}>" if word else ""
    return [
        crc32(marked[start : start + size].encode("utf-8", "surrogatepass")) % BUCKETS
        for size in range(shortest, longest + 1)
        for start in range(len(marked) - size + 1)
    ]
