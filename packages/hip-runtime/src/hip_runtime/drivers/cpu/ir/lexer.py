"""Tokens of one printed LLVM instruction, type, constant or metadata node, and a cursor over them.

llvmlite's objects have the opcode, the types and the operands of an instruction; flags, predicates, alignments and so
on only exist in its printed form. The lexical rules are those of the LLVM Language Reference, "Identifiers", and of
``llvm/lib/AsmParser/LLLexer.cpp``.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from hip_runtime.errors import UnsupportedError


class TokenKind(Enum):
    """The kind of a token. Its text excludes the sigil and the quotes."""

    WORD = "word"
    NUMBER = "number"
    STRING = "string"
    LOCAL = "%"
    GLOBAL = "@"
    METADATA = "!"
    ATTRIBUTES = "#"
    MARK = "punctuation"
    END = "end"


class Token(NamedTuple):
    """One token."""

    kind: TokenKind
    text: str


_SIGILS = {"%": TokenKind.LOCAL, "@": TokenKind.GLOBAL, "!": TokenKind.METADATA, "#": TokenKind.ATTRIBUTES}
_OPENING = frozenset("([{<")
_CLOSING = frozenset(")]}>")
_END = Token(TokenKind.END, "")
_WORD, _MARK = TokenKind.WORD, TokenKind.MARK  # looking them up in an enumeration takes longer than comparing them
_MARKS = {mark: Token(_MARK, mark) for mark in (*"()[]{}<>,=*:|%@!#", "...")}
"""The only token for each mark."""
_PRINTED_AS_THEY_ARE = frozenset({_WORD, _MARK, TokenKind.NUMBER})

_ONE = r"""[%@!#](?:[a-zA-Z0-9_.$\-]+|"[^"]*")|[()\[\]{}<>,=*:|%@!#]|\.\.\.""" + (
    r"""|0x[a-zA-Z0-9.]*|[0-9+\-](?:[eE][+\-]|[a-zA-Z0-9.])*|[a-zA-Z_.$][a-zA-Z0-9_.$\-]*|"[^"]*\""""
)
"""One token: a name with its sigil, a mark, a number (an integer, a decimal float such as ``-1.5e+01`` or a hexadecimal
one such as ``0xK4000``), a word, or a string."""

_TOKEN_OR_GAP = re.compile(rf"[\s]+|;[^\n]*|({_ONE})")
_TOKEN = re.compile(rf"({_ONE}|\S)\s*")
"""A token, or a character that starts none, with the space behind it."""

_LINES = 1 << 13
"""Lines whose tokens are remembered. A kernel is read several times, for one form after another and for each block
shape, and hardly any line differs; they take some 3 MB."""


def tokenize(text: str) -> list[Token]:
    """The tokens of *text*. Raises `UnsupportedError` for a character that starts none."""
    return list(_tokens(text))


@lru_cache(maxsize=_LINES)
def _tokens(text: str) -> tuple[Token, ...]:
    if ";" in text:  # in a comment, or between quotes
        return tuple(_token(text[start:end]) for start, end in _find_places(text))
    try:
        return tuple(map(_token, _TOKEN.findall(text)))
    except ValueError:
        _find_places(text)
        raise


@lru_cache(maxsize=1 << 14)
def _token(printed: str) -> Token:
    """The token that is *printed*; `ValueError` where that is none."""
    first = printed[0]
    if printed in _MARKS:
        return _MARKS[printed]
    if first in _SIGILS:
        return Token(_SIGILS[first], _unquote(printed[1:]) if printed[1] == '"' else printed[1:])
    if first == '"' and len(printed) > 1:
        return Token(TokenKind.STRING, _unquote(printed))
    if first in "0123456789+-":
        return Token(TokenKind.NUMBER, printed)
    if (first.isascii() and first.isalpha()) or first in "_.$":
        return Token(_WORD, printed)
    raise ValueError(printed)


def _find_places(text: str) -> list[tuple[int, int]]:
    """The start and end of each token of *text*."""
    places: list[tuple[int, int]] = []
    end = 0
    for match in _TOKEN_OR_GAP.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        if match.lastindex:
            places.append(match.span())
    if end != len(text):
        if text[end] == '"' or text[end + 1 : end + 2] == '"':
            raise UnsupportedError(f"a quote is not closed in {text.strip()!r}")
        raise UnsupportedError(f"cannot read {text[end]!r} at character {end} of {text.strip()!r}")
    return places


def _unquote(quoted: str) -> str:
    r"""What is in the quotes of a name or string, in which ``\xx`` is the byte with that hexadecimal number."""
    raw = quoted[1:-1]
    if "\\" not in raw:
        return raw
    first, *pieces = raw.split("\\")
    value = bytearray(first.encode())
    for piece in pieces:
        value += bytes.fromhex(piece[:2]) + piece[2:].encode()
    return value.decode("utf-8", "surrogateescape")


class Cursor:
    """A position in a list of tokens."""

    __slots__ = ("_next", "_places", "_tokens", "text", "token")

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = (*_tokens(text), _END, _END)
        self._places: list[tuple[int, int]] | None = None
        self._next = 0
        self.token = self._tokens[0]
        """The next token, one of kind ``END`` behind the last."""

    @property
    def following(self) -> Token:
        """The token behind the next one."""
        return self._tokens[self._next + 1]

    @property
    def left(self) -> list[Token]:
        """The tokens that were not taken yet."""
        return list(self._tokens[self._next : -2])

    @property
    def place(self) -> int:
        """How many tokens were taken."""
        return self._next

    def text_since(self, place: int) -> str:
        """The text of the tokens consumed since position *place*; at least one was."""
        if self._next - place == 1 and self._tokens[place].kind in _PRINTED_AS_THEY_ARE:
            return self._tokens[place].text
        start, end = self.span_since(place)
        return self.text[start:end]

    def span_since(self, place: int) -> tuple[int, int]:
        """The start and end in the text of the tokens consumed since position *place*."""
        if self._places is None:
            self._places = _find_places(self.text)
        return self._places[place][0], self._places[self._next - 1][1]

    def tokens_since(self, place: int) -> tuple[Token, ...]:
        """The tokens consumed since position *place*."""
        return self._tokens[place : self._next]

    @property
    def previous(self) -> str:
        """Text of the token that was taken last."""
        return self._tokens[self._next - 1].text if self._next else ""

    @property
    def at_end(self) -> bool:
        """Whether all tokens were taken."""
        return self.token is _END

    def take(self, kind: TokenKind | None = None) -> str:
        """Consume the next token, which must be of *kind* if that is given; returns its text."""
        token = self.token
        if token is _END or (kind is not None and token.kind is not kind):
            raise self.error(f"a {(kind or _WORD).value}")
        self._advance()
        return token.text

    def _advance(self) -> None:
        self._next += 1
        self.token = self._tokens[self._next]

    def skip_to(self, kind: TokenKind) -> None:
        """Consume tokens, those in parentheses as a whole, up to one of *kind*."""
        while self.token.kind is not kind:
            if self.is_mark("("):
                self.take_group()
            else:
                self.take()

    def is_word(self, *words: str) -> bool:
        """Whether one of *words* is next."""
        kind, text = self.token
        return kind is _WORD and text in words

    def is_mark(self, mark: str) -> bool:
        """Whether the punctuation *mark* is next."""
        return self.token is _MARKS[mark]

    def accept_word(self, *words: str) -> str | None:
        """Take the next token where it is one of *words*."""
        kind, text = self.token
        if kind is not _WORD or text not in words:
            return None
        self._advance()
        return text

    def accept_mark(self, mark: str) -> bool:
        """Take the next token where it is the punctuation *mark*."""
        if self.token is not _MARKS[mark]:
            return False
        self._advance()
        return True

    def expect_word(self, word: str) -> None:
        """Take *word*."""
        if not self.accept_word(word):
            raise self.error(repr(word))

    def expect_mark(self, mark: str) -> None:
        """Take the punctuation *mark*."""
        if not self.accept_mark(mark):
            raise self.error(repr(mark))

    def take_words(self, words: frozenset[str]) -> tuple[str, ...]:
        """Take tokens as long as they are one of *words*."""
        kind, text = self.token
        if kind is not _WORD or text not in words:
            return ()
        taken = []
        while self.token.kind is _WORD and self.token.text in words:
            taken.append(self.take())
        return tuple(taken)

    def take_group(self) -> list[Token]:
        """Consume the following bracketed tokens, with the brackets."""
        if self.token.kind is not _MARK or self.token.text not in _OPENING:
            raise self.error("'('")
        return self._take_balanced(until_closed=True)

    def take_item(self) -> list[Token]:
        """Consume everything up to a comma or a closing bracket that is not within brackets, or up to the end."""
        return self._take_balanced(until_closed=False)

    def _take_balanced(self, until_closed: bool) -> list[Token]:
        taken: list[Token] = []
        depth = 0
        while not self.at_end:
            token = self.token
            if token.kind is _MARK:
                if depth == 0 and (token.text == "," or token.text in _CLOSING):
                    break
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
            taken.append(token)
            self._advance()
            if until_closed and depth == 0:
                break
        return taken

    def error(self, expected: str) -> UnsupportedError:
        """An error that says what was expected here."""
        found = repr(self.token.text) if not self.at_end else "the end"
        return UnsupportedError(f"cannot read {self.text.strip()!r}: expected {expected}, found {found}")
