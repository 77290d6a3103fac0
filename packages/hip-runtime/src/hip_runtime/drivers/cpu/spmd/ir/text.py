"""Tokens of one printed LLVM instruction, type, constant or metadata node, and a cursor over them.

llvmlite's objects tell the opcode, the types and the operands of an instruction; flags, predicates, alignments and the
like stand only in its printed form. The lexical rules are those of the LLVM Language Reference, "Identifiers", and of
``llvm/lib/AsmParser/LLLexer.cpp``.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from hip_runtime.errors import UnsupportedError


class TokenKind(Enum):
    """What a token is. Its text is without the sigil and the quotes."""

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
_MARKS = frozenset("()[]{}<>,=*:|")
_OPENING = frozenset("([{<")
_CLOSING = frozenset(")]}>")
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$-")
_END = Token(TokenKind.END, "")


def tokenize(text: str) -> list[Token]:
    """The tokens of *text*; `UnsupportedError` for a character that starts none."""
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        letter = text[place]
        if letter.isspace():
            place += 1
        elif letter == ";":  # a comment, up to the end of the line
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        elif letter in _SIGILS and place + 1 < len(text) and (text[place + 1] == '"' or text[place + 1] in _NAME):
            name, place = _read_name(text, place + 1)
            tokens.append(Token(_SIGILS[letter], name))
        elif letter == '"':
            value, place = _read_quoted(text, place)
            tokens.append(Token(TokenKind.STRING, value))
        elif letter.isdigit() or letter in "+-":
            end = _end_of_number(text, place)
            tokens.append(Token(TokenKind.NUMBER, text[place:end]))
            place = end
        elif text.startswith("...", place):
            tokens.append(Token(TokenKind.MARK, "..."))
            place += 3
        elif letter in _NAME:
            word, place = _read_name(text, place)
            tokens.append(Token(TokenKind.WORD, word))
        elif letter in _MARKS or letter in _SIGILS:
            tokens.append(Token(TokenKind.MARK, letter))
            place += 1
        else:
            raise UnsupportedError(f"cannot read {letter!r} at character {place} of {text.strip()!r}")
    return tokens


def _read_name(text: str, place: int) -> tuple[str, int]:
    if text[place] == '"':
        return _read_quoted(text, place)
    end = place
    while end < len(text) and text[end] in _NAME:
        end += 1
    return text[place:end], end


def _read_quoted(text: str, place: int) -> tuple[str, int]:
    r"""A name or string in quotes, in which ``\xx`` is the byte with that hexadecimal number."""
    end = text.find('"', place + 1)
    if end < 0:
        raise UnsupportedError(f"a quote is not closed in {text.strip()!r}")
    raw = text[place + 1 : end]
    if "\\" not in raw:
        return raw, end + 1
    first, *pieces = raw.split("\\")
    value = bytearray(first.encode())
    for piece in pieces:
        value += bytes.fromhex(piece[:2]) + piece[2:].encode()
    return value.decode("utf-8", "surrogateescape"), end + 1


def _end_of_number(text: str, place: int) -> int:
    """Integers, decimal floats such as ``-1.5e+01``, and hexadecimal floats such as ``0xK4000``."""
    end = place + 1
    while end < len(text):
        exponent_sign = text[end] in "+-" and text[end - 1] in "eE" and text[place : place + 2] != "0x"
        if not (text[end].isalnum() or text[end] == "." or exponent_sign):
            break
        end += 1
    return end


class Cursor:
    """A position in a list of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = [*tokenize(text), _END, _END]
        self._next = 0

    @property
    def token(self) -> Token:
        """The next token, one of kind ``END`` behind the last."""
        return self._tokens[self._next]

    @property
    def following(self) -> Token:
        """The token behind the next one."""
        return self._tokens[self._next + 1]

    @property
    def previous(self) -> str:
        """Text of the token that was taken last."""
        return self._tokens[self._next - 1].text if self._next else ""

    @property
    def at_end(self) -> bool:
        """Whether all tokens were taken."""
        return self._tokens[self._next] is _END

    def take(self, kind: TokenKind | None = None) -> str:
        """The text of the next token, which must be of *kind* where that is given; go on behind it."""
        token = self.token
        if token.kind is TokenKind.END or (kind is not None and token.kind is not kind):
            raise self.error(f"a {(kind or TokenKind.WORD).value}")
        self._next += 1
        return token.text

    def is_word(self, *words: str) -> bool:
        """Whether one of *words* is next."""
        return self.token.kind is TokenKind.WORD and self.token.text in words

    def is_mark(self, mark: str) -> bool:
        """Whether the punctuation *mark* is next."""
        return self.token.kind is TokenKind.MARK and self.token.text == mark

    def accept_word(self, *words: str) -> str | None:
        """Take the next token where it is one of *words*."""
        return self.take() if self.is_word(*words) else None

    def accept_mark(self, mark: str) -> bool:
        """Take the next token where it is the punctuation *mark*."""
        if self.is_mark(mark):
            self._next += 1
            return True
        return False

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
        taken = []
        while self.token.kind is TokenKind.WORD and self.token.text in words:
            taken.append(self.take())
        return tuple(taken)

    def take_group(self) -> list[Token]:
        """Take what stands in the parentheses that open next, with them."""
        if not self.is_mark("("):
            raise self.error("'('")
        return self._take_balanced(until_closed=True)

    def take_item(self) -> list[Token]:
        """Take everything up to a comma or a closing bracket that is not inside of brackets, or up to the end."""
        return self._take_balanced(until_closed=False)

    def _take_balanced(self, until_closed: bool) -> list[Token]:
        taken: list[Token] = []
        depth = 0
        while not self.at_end:
            token = self.token
            if token.kind is TokenKind.MARK:
                if depth == 0 and (token.text == "," or token.text in _CLOSING):
                    break
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
            taken.append(token)
            self._next += 1
            if until_closed and depth == 0:
                break
        return taken

    def error(self, expected: str) -> UnsupportedError:
        """An error that says what was expected here."""
        found = repr(self.token.text) if not self.at_end else "the end"
        return UnsupportedError(f"cannot read {self.text.strip()!r}: expected {expected}, found {found}")
