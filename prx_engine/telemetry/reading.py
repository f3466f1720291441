"""Files as lines: decompressed, bounded in length, and documents taken apart, in memory that stays flat."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any, Final, NamedTuple, cast

from prx_engine.errors import InvalidInput

LONGEST_LINE: Final = 16 * 1024 * 1024
"""Bytes of a line; of a longer one no more than is needed to refuse it is read."""

LONGEST_VALUE: Final = 64 * 1024 * 1024
"""Characters of one value of a document, which has to be in memory as a whole."""

_LOOKED_AT: Final = 10
"""Lines that decide whether a file is one of lines or a document."""

_BLOCK: Final = 1024 * 1024
_STEP: Final = 512
"""Bytes of Zstandard that are decompressed at once: 4 of them may stand for 128 KiB."""

_BYTE_ORDER_MARK: Final = codecs.BOM_UTF8
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP: Final = b"\x1f\x8b"
_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
_SQLITE: Final = b"SQLite format 3\0"


class Line(NamedTuple):
    """A line, or a value of a document.

    Attributes:
        number: of the line on which it begins, from 1.
        content: without the line's end.
        cut: whether it is too long and only its beginning is here.
    """

    number: int
    content: bytes
    cut: bool = False


def kind_of(opening: bytes) -> str:
    """Return what a file is by its first bytes: plain, gzip, zstandard or sqlite."""
    for magic, kind in ((_GZIP, "gzip"), (_ZSTANDARD, "zstandard"), (_SQLITE, "sqlite")):
        if opening.startswith(magic):
            return kind
    return "plain"


def decompressed(file: IO[bytes]) -> IO[bytes]:
    """Return the contents of a file that is at its beginning and may be compressed."""
    kind = kind_of(_peek(file))
    if kind == "gzip":
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    if kind == "zstandard":
        return io.BufferedReader(_Zstandard(file), _BLOCK)
    return file


class _Zstandard(io.RawIOBase):
    """Decompresses frame after frame; unlike the library's own reader it notices a file that was cut off."""

    def __init__(self, file: IO[bytes]) -> None:
        import zstandard  # only such files need it

        self._decompressor = zstandard.ZstdDecompressor()
        self._error = zstandard.ZstdError
        self._file = file
        self._frame = self._decompressor.decompressobj()
        self._begun = False
        self._input = memoryview(b"")
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            if self._frame.eof:
                self._frame, self._begun = self._decompressor.decompressobj(), False
            self._input = self._input or memoryview(self._file.read(_BLOCK // 8))
            if not self._input:
                if self._begun:
                    raise EOFError("the file ends in the middle of a frame")
                return 0
            part = self._input[:_STEP]
            self._begun = True
            try:
                self._ready = memoryview(self._frame.decompress(part))
            except self._error as error:
                raise EOFError(str(error)) from None
            # What is left of the part belongs to the next frame.
            self._input = self._input[len(part) - len(self._frame.unused_data) :]
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


def is_sqlite(file: IO[bytes]) -> bool:
    """Tell whether a file that is at its beginning is a database of SQLite."""
    return kind_of(_peek(file)) == "sqlite"


def lines_of(file: IO[bytes]) -> Iterator[Line]:
    """Return the lines of a file, or the values of the JSON document that it is.

    Raises:
        InvalidInput: if it is text in another encoding, or a damaged or an oversized document.
        EOFError, zlib.error, gzip.BadGzipFile: if it is compressed and damaged, behind the lines before that.
    """
    head, damage = _head(file)
    if damage is not None and not head:
        raise damage
    if head and head[0].startswith(_UTF_16):
        raise InvalidInput("text in UTF-16; save it as UTF-8")
    if is_document([part.removeprefix(_BYTE_ORDER_MARK) for part in head]):
        if damage is not None:
            raise damage
        return _values(b"".join(head).removeprefix(_BYTE_ORDER_MARK), file)
    return numbered(_beginnings(chain(head, _rest(file, damage))))


def _head(file: IO[bytes]) -> tuple[list[bytes], Exception | None]:
    """Return the first lines of a file, and the damage that ended them too early."""
    head: list[bytes] = []
    try:
        while len(head) < _LOOKED_AT and (part := file.readline(LONGEST_LINE + 1)):
            head.append(part)
            if len(part) > _BLOCK:
                break
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        return head, error
    return head, None


def _rest(file: IO[bytes], damage: Exception | None) -> Iterator[bytes]:
    if damage is not None:
        raise damage
    while part := file.readline(LONGEST_LINE + 1):
        yield part


def is_document(head: list[bytes]) -> bool:
    """Tell a document from lines: it begins with what is no value yet, and no whole object follows alone."""
    if not head or head[0][:1] == b"[":
        return bool(head)
    return head[0][:1] == b"{" and not any(map(_is_object, head))


def numbered(lines: Iterable[bytes], first: int = 1) -> Iterator[Line]:
    """Return lines with their numbers, blank ones left out."""
    for number, line in enumerate(lines, first):
        content = line.strip()
        if number == 1:
            content = content.removeprefix(_BYTE_ORDER_MARK)
        if content:
            yield Line(number, content, cut=len(line) > LONGEST_LINE + 1)


def _beginnings(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Return the first part of each line; a part that is full goes on in the next one."""
    inside = False
    for part in parts:
        full = len(part) > LONGEST_LINE and not part.endswith(b"\n")
        if not inside:
            yield part + b"\n" if full else part
        inside = full


def _peek(file: IO[bytes]) -> bytes:
    if isinstance(file, io.BufferedReader):
        return file.peek(len(_SQLITE))[: len(_SQLITE)]
    if not file.seekable():
        return b""
    opening = file.read(len(_SQLITE))
    file.seek(0)
    return opening


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _values(head: bytes, file: IO[bytes]) -> Iterator[Line]:
    """Return the values of a document: the elements of a list, or what stands one after the other."""
    document = _Document(head, file)
    listed = document.character() == "["
    if listed:
        document.skip()
    while document.character() not in ("]", ""):
        yield document.value()
        if listed and document.character() == ",":
            document.skip()
    if listed and document.character() == "":
        raise InvalidInput("a JSON document that ends too early")


class _Document:
    """Reads JSON values from a file; only the present value is in memory."""

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._scanner = json.JSONDecoder()
        self._text = self._decoded(head)
        self._at = 0
        self._line = 1

    def character(self) -> str:
        """Return the next character that is not blank; the empty text at the end."""
        while True:
            while self._at < len(self._text):
                if not self._text[self._at].isspace():
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def skip(self) -> None:
        """Pass over one character."""
        self._at += 1

    def value(self) -> Line:
        """Return the next value.

        Raises:
            InvalidInput: if there is none.
        """
        self.character()
        self._drop()
        while True:
            try:
                _, end = self._scanner.raw_decode(self._text)
                # A number at the end of what has been read might go on.
                complete = end < len(self._text) or not self._more()
            except RecursionError:
                raise InvalidInput("a JSON document that is nested too deeply") from None
            except ValueError as error:
                if len(self._text) > LONGEST_VALUE:
                    raise InvalidInput(
                        f"a JSON value of more than {LONGEST_VALUE // _BLOCK} MiB; write one value a line"
                    ) from None
                if not self._more():
                    raise InvalidInput(f"a JSON document that is damaged: {error}") from None
                continue
            if complete:
                self._at = end
                return Line(self._line, self._text[:end].encode("utf-8", "surrogatepass"))

    def _drop(self) -> None:
        self._line += self._text.count("\n", 0, self._at)
        self._text, self._at = self._text[self._at :], 0

    def _more(self) -> bool:
        """Read as much again as there is, so that reading a long value stays linear."""
        block = self._file.read(max(_BLOCK, len(self._text)))
        self._text += self._decoded(block)
        return bool(block)

    def _decoded(self, block: bytes) -> str:
        try:
            return self._decoder.decode(block)
        except UnicodeDecodeError:
            raise InvalidInput("a JSON document that is not UTF-8") from None
