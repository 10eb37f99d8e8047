"""Writes a text as the token file that `autohet-run --data` reads.

    python -m autohet.tokenize --bytes in.txt -o out.bin

The only tokenizer here is the one that needs no vocabulary file: each byte is a
token (256 of them). The file is raw numbers without a header, so the reader has
to be told the type: it is printed.
"""

from __future__ import annotations

import argparse
import array
import os
import sys
from typing import Iterable, Iterator, Sequence

# Type codes of `array`; every byte fits in both.
_TYPE_CODES = {"uint8": "B", "uint16": "H"}


def _blocks(paths: Iterable[str], block_bytes: int = 1 << 20) -> Iterator[bytes]:
    for path in paths:
        with open(path, "rb") as text:
            while block := text.read(block_bytes):
                yield block


def tokenize_bytes(paths: Sequence[str], output: str, dtype: str = "uint16") -> int:
    """Writes the bytes of `paths`, one after the other, and returns their number.

    The file appears under its name when it is complete, never before.
    """
    partial = output + ".partial"
    count = 0
    try:
        with open(partial, "wb") as out:
            for block in _blocks(paths):
                tokens = array.array(_TYPE_CODES[dtype], iter(block))
                if sys.byteorder == "big":
                    tokens.byteswap()  # the file is little endian
                out.write(tokens.tobytes())
                count += len(tokens)
        if count == 0:
            raise ValueError("the input is empty: no token to write")
        os.replace(partial, output)
    finally:
        if os.path.exists(partial):
            os.remove(partial)
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m autohet.tokenize", description="Write a text as a token file.")
    parser.add_argument("inputs", nargs="+", metavar="TEXT", help="files, read one after the other")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the token file")
    parser.add_argument("--bytes", action="store_true", required=True, help="one token a byte, vocabulary of 256")
    parser.add_argument("--dtype", choices=sorted(_TYPE_CODES), default="uint16", help="of one token in the file (default: %(default)s)")
    options = parser.parse_args(arguments)
    try:
        count = tokenize_bytes(options.inputs, options.output, options.dtype)
    except (OSError, ValueError) as error:
        print(f"autohet.tokenize: error: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {count} tokens, vocabulary 256, dtype {options.dtype}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
