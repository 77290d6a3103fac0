"""Tokens of one printed LLVM instruction, type, constant or metadata node, and a cursor over them.

llvmlite's objects have the opcode, the types and the operands of an instruction; flags, predicates, alignments and so
on only exist in its printed form. The lexical rules are those of the LLVM Language Reference, "Identifiers", and of
``llvm/lib/AsmParser/LLLexer.cpp``.
"""

from __future__ import annotations

import re
from enum import Enum
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

_TOKEN = re.compile(
    r"""[\s]+ | ;[^\n]*
    | (?P<name> [%@!\#] (?: [a-zA-Z0-9_.$\-]+ | "[^"]*" ) )
    | (?P<mark> [()\[\]{}<>,=*:|%@!\#] | \.\.\. )
    | (?P<number> 0x[a-zA-Z0-9.]* | [0-9+\-] (?: [eE][+\-] | [a-zA-Z0-9.] )* )
    | (?P<word> [a-zA-Z_.$] [a-zA-Z0-9_.$\-]* )
    | (?P<string> "[^"]*" )""",
    re.VERBOSE,
)
"""One token, or what may stand between two. Integers, decimal floats such as ``-1.5e+01`` and hexadecimal ones such as
``0xK4000`` are numbers."""

_PLAIN = {"mark": TokenKind.MARK, "number": TokenKind.NUMBER, "word": TokenKind.WORD}


def tokenize(text: str) -> list[Token]:
    """The tokens of *text*. Raises `UnsupportedError` for a character that starts none."""
    return _take_apart(text)[0]


def _take_apart(text: str) -> tuple[list[Token], list[tuple[int, int]]]:
    """The tokens of *text*, and the start and end of each."""
    tokens: list[Token] = []
    places: list[tuple[int, int]] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if match.start() != end:
            break
        end = match.end()
        group = match.lastgroup
        if group is None:
            continue
        found = match[0]
        if group == "name":
            name = found[1:] if found[1] != '"' else _unquote(found[1:])
            tokens.append(Token(_SIGILS[found[0]], name))
        elif group == "string":
            tokens.append(Token(TokenKind.STRING, _unquote(found)))
        else:
            tokens.append(Token(_PLAIN[group], found))
        places.append(match.span())
    if end != len(text):
        if text[end] == '"' or text[end + 1 : end + 2] == '"':
            raise UnsupportedError(f"a quote is not closed in {text.strip()!r}")
        raise UnsupportedError(f"cannot read {text[end]!r} at character {end} of {text.strip()!r}")
    return tokens, places


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

    def __init__(self, text: str) -> None:
        self.text = text
        tokens, self._places = _take_apart(text)
        self._tokens = [*tokens, _END, _END]
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
    def left(self) -> list[Token]:
        """The tokens that were not taken yet."""
        return self._tokens[self._next : -2]

    @property
    def place(self) -> int:
        """How many tokens were taken."""
        return self._next

    def text_since(self, place: int) -> str:
        """The text of the tokens consumed since position *place*; at least one was."""
        start, end = self.span_since(place)
        return self.text[start:end]

    def span_since(self, place: int) -> tuple[int, int]:
        """The start and end in the text of the tokens consumed since position *place*."""
        return self._places[place][0], self._places[self._next - 1][1]

    def tokens_since(self, place: int) -> list[Token]:
        """The tokens consumed since position *place*."""
        return self._tokens[place : self._next]

    @property
    def previous(self) -> str:
        """Text of the token that was taken last."""
        return self._tokens[self._next - 1].text if self._next else ""

    @property
    def at_end(self) -> bool:
        """Whether all tokens were taken."""
        return self._tokens[self._next] is _END

    def take(self, kind: TokenKind | None = None) -> str:
        """Consume the next token, which must be of *kind* if that is given; returns its text."""
        token = self.token
        if token.kind is TokenKind.END or (kind is not None and token.kind is not kind):
            raise self.error(f"a {(kind or TokenKind.WORD).value}")
        self._next += 1
        return token.text

    def skip_to(self, kind: TokenKind) -> None:
        """Consume tokens, those in parentheses as a whole, up to one of *kind*."""
        while self.token.kind is not kind:
            if self.is_mark("("):
                self.take_group()
            else:
                self.take()

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
        """Consume the following bracketed tokens, with the brackets."""
        if self.token.kind is not TokenKind.MARK or self.token.text not in _OPENING:
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
