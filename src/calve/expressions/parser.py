"""The parser: one method for each rule of the grammar.

Two properties of Maestro's parser affect which error users see, and are kept: it has always read one token more than it
examines, so that a bad character is reported rather than a wrong word just before it; and it converts a number or a
string as soon as it reads it.
"""

from dataclasses import dataclass, field

from calve.errors import ExpressionInvalid
from calve.expressions.java import parse_double, parse_long
from calve.expressions.tokens import Reader, Token, TokenKind, unquote
from calve.expressions.tree import (
    Assignment,
    AssignmentOperator,
    Block,
    Break,
    Call,
    Chain,
    Continue,
    Declaration,
    Declarator,
    Evaluate,
    Expression,
    Field,
    For,
    If,
    Index,
    Literal,
    Name,
    NewArray,
    NewFilledArray,
    NewObject,
    Operand,
    Operator,
    Position,
    Prefix,
    Primary,
    Return,
    Sign,
    Signed,
    Statement,
    Suffix,
    Ternary,
    Throw,
    Tree,
    While,
)

_PRIMITIVES = frozenset({"boolean", "int", "long", "float", "double"})
_SIGNS = {"-": Sign.MINUS, "+": Sign.PLUS, "!": Sign.NOT}
_ASSIGNING = frozenset(AssignmentOperator)
_VALUE_STARTS = frozenset({"new", "true", "false", "null", "(", "-", "+", "!"})
_CONSTANTS = {"true": True, "false": False, "null": None}
_RANKS: dict[str, int] = {
    "||": 0,
    "&&": 1,
    "==": 2,
    "!=": 2,
    "<": 3,
    ">": 3,
    "<=": 3,
    ">=": 3,
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
    "%": 5,
}
_OBJECT_SIZE = 32


@dataclass(slots=True)
class _OpenChain:
    """Operators of one rank whose last operand is still to come."""

    rank: int
    first: Operand
    operator: Operator
    at: Position
    rest: list[tuple[Operator, Operand, Position]] = field(default_factory=list)

    def extend(self, operand: Operand, operator: Operator, at: Position) -> None:
        self.rest.append((self.operator, operand, self.at))
        self.operator, self.at = operator, at

    def close(self, operand: Operand) -> Chain:
        return Chain(self.first, (*self.rest, (self.operator, operand, self.at)))


class _Expressions(Reader):
    """The rules of expressions."""

    def expression(self) -> Expression:
        self.enter()
        at = self.position()
        found = self._assignment()
        if isinstance(found, Assignment):
            body: Operand | Ternary | Assignment = found
        else:
            body = self._operators(found)
            if self.take_if("?"):
                then = self.expression()
                self.expect(":")
                body = Ternary(body, then, self.expression())
        self.leave()
        return Expression(body, at)

    def assignment_or_primary(self) -> Assignment | Primary:
        found = self._assignment()
        if isinstance(found, Assignment):
            return found
        if found is not None:
            return self._suffixed(found.prefix, list(found.suffixes))
        operand = self._operand()
        if isinstance(operand, Primary):
            return operand
        raise self.wrong("an assignment or a call")

    def _assignment(self) -> Assignment | Primary | None:
        """Read an assignment; if only ``name[…]`` was read and no assignment follows, return that as a value."""
        if not self.shows_name():
            return None
        at = self.position()
        if self._shows_assigning(1):
            return Assignment(self.take().image, None, self._assigning(), self.expression(), at)
        if not self.shows("[", 1) or not self._starts_value(2):
            return None
        name = self.take().image
        index = self._index()
        if self._shows_assigning(0):
            return Assignment(name, index.index, self._assigning(), self.expression(), at)
        return Primary(Name(name, at), (index,))

    def _shows_assigning(self, offset: int) -> bool:
        token = self.peek(offset)
        return token.kind is TokenKind.SYMBOL and token.image in _ASSIGNING

    def _assigning(self) -> AssignmentOperator:
        return AssignmentOperator(self.take().image)

    def _operators(self, begun: Primary | None) -> Operand:
        """Read operands and the operators between them, without a recursive call for each rank of operators."""
        chains: list[_OpenChain] = []
        operand = self._operand() if begun is None else self._suffixed(begun.prefix, list(begun.suffixes))
        while True:
            token = self.peek()
            rank = _RANKS.get(token.image, -1) if token.kind is TokenKind.SYMBOL else -1
            while chains and chains[-1].rank > rank:
                operand = chains.pop().close(operand)
            if rank < 0:
                return operand
            at = self.position()
            operator = Operator(self.take().image)
            if chains and chains[-1].rank == rank:
                chains[-1].extend(operand, operator, at)
            else:
                chains.append(_OpenChain(rank, operand, operator, at))
            operand = self._operand()

    def _operand(self) -> Operand:
        """Read signs, a value and its suffixes; nested brackets call this recursively, so their depth is limited."""
        signs: list[Sign] = []
        while (token := self.peek()).kind is TokenKind.SYMBOL and token.image in _SIGNS:
            signs.append(_SIGNS[self.take().image])
        if self.take_if("("):
            inner = self.expression()
            self.expect(")")
            operand = self._suffixed(inner, [])
        else:
            operand = self._suffixed(self._prefix(), [])
        return Signed(tuple(signs), operand) if signs else operand

    def _suffixed(self, prefix: Prefix, suffixes: list[Suffix]) -> Primary:
        while True:
            if self.shows("[") and self._starts_value(1):
                suffixes.append(self._index())
            elif self.shows(".") and self.shows_name(1):
                suffixes.append(self._member())
            else:
                return Primary(prefix, tuple(suffixes))

    def _starts_value(self, offset: int) -> bool:
        token = self.peek(offset)
        if token.kind in {TokenKind.SYMBOL, TokenKind.KEYWORD}:
            return token.image in _VALUE_STARTS
        return token.kind is not TokenKind.END

    def _index(self) -> Index:
        at = self.position()
        self.expect("[")
        index = self.expression()
        self.expect("]")
        return Index(index, at)

    def _member(self) -> Field | Call:
        self.expect(".")
        at = self.position()
        name = self.expect_name().image
        self.memory += _OBJECT_SIZE + 2 * len(name)
        return Call(name, self._arguments(), at) if self.shows("(") else Field(name, at)

    def _prefix(self) -> Prefix:
        token = self.peek()
        match token.kind:
            case TokenKind.NAME:
                at = self.position()
                return Name(self.take().image, at)
            case TokenKind.INTEGER | TokenKind.FLOAT | TokenKind.STRING:
                return self._literal()
            case TokenKind.KEYWORD if token.image in _CONSTANTS:
                return self._literal()
            case TokenKind.KEYWORD if token.image == "new":
                return self._allocation()
            case _:
                raise self.wrong("a value")

    def _literal(self) -> Literal:
        at = self.position()
        token = self.take()
        value = _constant(token)
        if value is not None:
            self.memory += _OBJECT_SIZE + (2 * len(value) if isinstance(value, str) else 0)
        self.literals += 1
        return Literal(value, token.image, self.literals - 1, at)

    def _allocation(self) -> NewArray | NewFilledArray | NewObject:
        at = self.position()
        self.expect("new")
        if self.peek().image in _PRIMITIVES:
            type_name = self.take().image
        else:
            type_name = self.expect_name().image
            if self.shows("("):
                return NewObject(type_name, self._arguments(), at)
        self.expect("[")
        if not self.take_if("]"):
            length = self.expression()
            self.expect("]")
            return NewArray(type_name, length, at)
        return NewFilledArray(type_name, self._elements(), at)

    def _elements(self) -> tuple[Expression, ...]:
        self.expect("{")
        elements: list[Expression] = []
        if not self.shows("}") and not self.shows(","):
            elements.append(self.expression())
            while self.shows(",") and not self.shows("}", 1):
                self.take()
                elements.append(self.expression())
        self.take_if(",")
        self.expect("}")
        return tuple(elements)

    def _arguments(self) -> tuple[Expression, ...]:
        self.expect("(")
        arguments: list[Expression] = []
        if not self.shows(")"):
            arguments.append(self.expression())
            while self.take_if(","):
                arguments.append(self.expression())
        self.expect(")")
        return tuple(arguments)


class _Statements(_Expressions):
    """The rules of statements."""

    def tree(self) -> Tree:
        imports = 0
        while self.shows("import"):
            self._import()
            imports += 1
        statements: list[Statement] = []
        while self.peek().kind is not TokenKind.END:
            statements.append(self._block_statement())
        return Tree(imports, tuple(statements), self.literals, self.memory)

    def _import(self) -> None:
        self.expect("import")
        self.take_if("static")
        self.expect_name()
        while self.shows("."):
            self.take()
            if self.take_if("*"):
                break
            self.expect_name()
        self.expect(";")

    def _block_statement(self) -> Statement:
        if not self._shows_declaration():
            return self._statement()
        declaration = self._declaration()
        self.expect(";")
        return declaration

    def _shows_declaration(self) -> bool:
        if not self.shows_name() and self.peek().image not in _PRIMITIVES:
            return False
        if self.shows("[", 1):
            return self.shows("]", 2) and self.shows_name(3)
        return self.shows_name(1)

    def _declaration(self) -> Declaration:
        at = self.position()
        type_name = self.take().image
        is_array = self.take_if("[")
        if is_array:
            self.expect("]")
        declarators = [self._declarator()]
        while self.take_if(","):
            declarators.append(self._declarator())
        return Declaration(type_name, is_array, tuple(declarators), at)

    def _declarator(self) -> Declarator:
        at = self.position()
        name = self.expect_name().image
        return Declarator(name, self.expression() if self.take_if("=") else None, at)

    def _statement(self) -> Statement:
        self.enter()
        statement = self._one_statement()
        self.leave()
        return statement

    def _one_statement(self) -> Statement:
        token = self.peek()
        at = self.position()
        match token.image if token.kind in {TokenKind.KEYWORD, TokenKind.SYMBOL} else None:
            case "{":
                return self._block(at)
            case "if":
                return self._if(at)
            case "while":
                return While(self._condition("while"), self._statement(), at)
            case "for":
                return self._for(at)
            case "break":
                self.take()
                self.expect(";")
                return Break(at)
            case "continue":
                self.take()
                self.expect(";")
                return Continue(at)
            case "return":
                return Return(self._word_and_expression(), at)
            case "throw":
                return Throw(self._word_and_expression(), at)
            case _:
                expression = self.expression()
                self.expect(";")
                return Evaluate(expression)

    def _block(self, at: Position) -> Block:
        self.expect("{")
        statements: list[Statement] = []
        while not self.take_if("}"):
            statements.append(self._block_statement())
        return Block(tuple(statements), at)

    def _condition(self, word: str) -> Expression:
        self.expect(word)
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        return condition

    def _if(self, at: Position) -> If:
        branches = [(self._condition("if"), self._statement())]
        while self.take_if("else"):
            if not self.shows("if"):
                return If(tuple(branches), self._statement(), at)
            branches.append((self._condition("if"), self._statement()))
        return If(tuple(branches), None, at)

    def _for(self, at: Position) -> For:
        self.expect("for")
        self.expect("(")
        start: Declaration | Assignment | Primary | None = None
        if not self.shows(";"):
            start = self._declaration() if self._shows_declaration() else self.assignment_or_primary()
        self.expect(";")
        condition = None if self.shows(";") else self.expression()
        self.expect(";")
        update = None if self.shows(")") else self.assignment_or_primary()
        self.expect(")")
        return For(start, condition, update, self._statement(), at)

    def _word_and_expression(self) -> Expression:
        self.take()
        expression = self.expression()
        self.expect(";")
        return expression


def _constant(token: Token) -> int | float | str | bool | None:
    """Return the value of a literal.

    Raises:
        ExpressionInvalid: it is a hexadecimal number, a number beyond 64 bits, or has an octal escape.
    """
    match token.kind:
        case TokenKind.INTEGER:
            value = parse_long(token.image.rstrip("lL"))
            if value is None:
                raise ExpressionInvalid(
                    f'For input string: "{token.image}"',
                    kind="NumberFormatException",
                    line=token.line,
                    column=token.column,
                )
            return value
        case TokenKind.FLOAT:
            return parse_double(token.image)
        case TokenKind.STRING:
            return unquote(token.image, token.line, token.column)
        case _:
            return _CONSTANTS[token.image]


def parse_tree(source: str) -> Tree:
    """Return the tree of a program, given in UTF-16 units.

    Raises:
        ExpressionInvalid: the source is not a valid program.
    """
    return _Statements(source).tree()
