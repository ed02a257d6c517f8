import type {
  Alias,
  ArrayItems,
  BooleanLiteral,
  Dictionary,
  DictionaryEntry,
  Expression,
  Name,
  NamedType,
  NullLiteral,
  NumberLiteral,
  Placeholder,
  Star,
  StringLiteral,
  Template,
  TimeLiteral,
  TypeName,
} from '../ast.ts';
import { commonNameKeywords, keywordsRequiringAs, reservedWords } from '../query_text.ts';
import type { Cursor } from './cursor.ts';

/** A name where only a name is possible, after AS or a dot. Every word is one. */
export function anyName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind !== 'word' && token.kind !== 'quoted_name') throw cursor.unexpected(expected, []);
  return readName(cursor);
}

/** A name that is not a reserved word, or is quoted. */
export function plainName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind === 'word' && reservedWords.has(token.upper))
    throw cursor.error(
      `Expected ${expected}, found the keyword \`${token.text}\`.`,
      token,
      commonNameKeywords.has(token.upper)
        ? `Write a name that is also a keyword in backticks: \`${token.text}\`.`
        : null,
    );
  return anyName(cursor, expected);
}

/** Reads the next token as a name. */
export function readName(cursor: Cursor): Name {
  const token = cursor.advance();
  if (token.kind === 'quoted_name' && token.text === '') throw cursor.error('A name cannot be empty.', token);
  return cursor.node<Name>(token.start, { kind: 'name', text: token.text });
}

/** `AS name`, a bare name that cannot be a keyword, or null. */
export function optionalAlias(cursor: Cursor, expected: string): Name | null {
  if (cursor.acceptKeywords('AS')) return aliasName(cursor, expected);
  const { token } = cursor;
  const isBare =
    token.kind === 'quoted_name' || (token.kind === 'word' && !keywordsRequiringAs.has(token.upper));
  if (!isBare) return null;
  const name = readName(cursor);
  cursor.recordBareAlias();
  return name;
}

/** The name after AS, which may be a string: `AS 'my column'`. */
function aliasName(cursor: Cursor, expected: string): Name {
  const { token } = cursor;
  if (token.kind !== 'string') return anyName(cursor, expected);
  if (token.text === '') throw cursor.error('A name cannot be empty.', token);
  cursor.advance();
  return cursor.node<Name>(token.start, { kind: 'name', text: token.text });
}

/** `*` with its EXCLUDE and REPLACE lists. `table` is the path before it. */
export function star(cursor: Cursor, start: number, table: readonly Name[]): Star {
  cursor.expectSymbol('*');
  const exclude = peekExclude(cursor) ? excluded(cursor) : [];
  const replace = cursor.peekKeywords('REPLACE') && cursor.peekSymbol('(', 1) ? replaced(cursor) : [];
  return cursor.node<Star>(start, { kind: 'star', table, exclude, replace });
}

/** EXCEPT may also be a set operator. */
function peekExclude(cursor: Cursor): boolean {
  if (!cursor.peekSymbol('(', 1)) return false;
  if (cursor.peekKeywords('EXCLUDE')) return true;
  const inner = cursor.peek(2);
  const isQuery =
    inner.kind === 'word' ? inner.upper === 'SELECT' || inner.upper === 'WITH' : inner.kind !== 'quoted_name';
  return cursor.peekKeywords('EXCEPT') && !isQuery;
}

function excluded(cursor: Cursor): readonly Name[] {
  cursor.advance();
  return cursor.parenthesized(() =>
    cursor.list(
      () => plainName(cursor, 'the name of a column to exclude'),
      () => cursor.peekSymbol(')'),
    ),
  );
}

function replaced(cursor: Cursor): readonly Alias[] {
  cursor.advance();
  return cursor.parenthesized(() =>
    cursor.list(() => {
      const expression = cursor.grammar.expression(cursor);
      cursor.expectKeywords('AS');
      const name = aliasName(cursor, 'the name of the column to replace');
      return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
    }),
  );
}

const expectedAlias = 'an alias after AS';

/** An expression with an optional alias: `x AS y`. */
export function item(cursor: Cursor): Expression {
  const expression = cursor.grammar.expression(cursor);
  return aliasOf(cursor, expression) ?? expression;
}

/** An item of SELECT, a call or COLUMNS, which may be a star. */
export function itemOrStar(cursor: Cursor): Expression | Star {
  return cursor.peekSymbol('*') ? star(cursor, cursor.token.start, []) : item(cursor);
}

/** The alias after an expression, if AS comes next. */
export function aliasOf(cursor: Cursor, expression: Expression): Alias | undefined {
  if (!cursor.acceptKeywords('AS')) return undefined;
  const name = aliasName(cursor, expectedAlias);
  return cursor.node<Alias>(expression.start, { kind: 'alias', expression, name });
}

const expectedType = 'the name of a type, such as String, Int64, Float64, DateTime or Array(String)';

/** The type of a cast. `Int64[]` is read as `Array(Int64)`. */
export function typeName(cursor: Cursor): TypeName {
  return cursor.nested(() => {
    const { start } = cursor.token;
    const name = anyName(cursor, expectedType);
    let type: TypeName = cursor.node<TypeName>(start, {
      kind: 'type',
      name,
      arguments: typeArguments(cursor),
    });
    while (cursor.peekSymbol('[') && cursor.peekSymbol(']', 1)) {
      cursor.advance();
      cursor.advance();
      const array = { kind: 'name', text: 'Array', start, end: cursor.previousEnd } as const;
      type = cursor.node<TypeName>(start, { kind: 'type', name: array, arguments: [type] });
    }
    return type;
  });
}

function typeArguments(cursor: Cursor): TypeName['arguments'] {
  if (!cursor.peekSymbol('(')) return [];
  return cursor.parenthesized(() =>
    cursor.list(
      () => typeArgument(cursor),
      () => cursor.peekSymbol(')'),
    ),
  );
}

function typeArgument(cursor: Cursor): TypeName | NamedType | NumberLiteral | StringLiteral {
  const { token } = cursor;
  if (token.kind === 'number') return numberLiteral(cursor);
  if (token.kind === 'string') {
    cursor.advance();
    return cursor.node<StringLiteral>(token.start, { kind: 'string', value: token.text });
  }
  const following = cursor.peek(1);
  if (following.kind !== 'word' && following.kind !== 'quoted_name') return typeName(cursor);
  const name = anyName(cursor, expectedType);
  return cursor.node<NamedType>(token.start, { kind: 'named_type', name, type: typeName(cursor) });
}

/** A number. Underscores may separate its digits: `1_000` is 1000. */
export function numberLiteral(cursor: Cursor): NumberLiteral {
  const token = cursor.advance();
  const text = token.text.toLowerCase().replaceAll('_', '');
  return cursor.node<NumberLiteral>(token.start, { kind: 'number', text });
}

export function stringLiteral(cursor: Cursor): StringLiteral {
  const token = cursor.advance();
  return cursor.node<StringLiteral>(token.start, { kind: 'string', value: token.text });
}

/** NULL, TRUE, FALSE, INF or NAN; undefined for any other word. */
export function keywordLiteral(cursor: Cursor): Expression | undefined {
  const { start } = cursor.token;
  if (cursor.acceptKeywords('NULL')) return cursor.node<NullLiteral>(start, { kind: 'null' });
  if (cursor.acceptKeywords('TRUE'))
    return cursor.node<BooleanLiteral>(start, { kind: 'boolean', value: true });
  if (cursor.acceptKeywords('FALSE'))
    return cursor.node<BooleanLiteral>(start, { kind: 'boolean', value: false });
  if (cursor.acceptKeywords('INF') || cursor.acceptKeywords('INFINITY'))
    return cursor.node<NumberLiteral>(start, { kind: 'number', text: 'inf' });
  if (cursor.acceptKeywords('NAN')) return cursor.node<NumberLiteral>(start, { kind: 'number', text: 'nan' });
  return undefined;
}

/** DATE '…' and TIMESTAMP '…'. Without a string these words are names. */
export function timeLiteral(cursor: Cursor): TimeLiteral | undefined {
  const { start } = cursor.token;
  const type = cursor.peekKeywords('DATE')
    ? 'date'
    : cursor.peekKeywords('TIMESTAMP')
      ? 'timestamp'
      : undefined;
  if (type === undefined || cursor.peek(1).kind !== 'string') return undefined;
  cursor.advance();
  const { text } = cursor.advance();
  return cursor.node<TimeLiteral>(start, { kind: 'time', type, text });
}

/** `f'text {expression} text'`. */
export function template(cursor: Cursor): Template {
  const { start } = cursor.advance();
  const parts: Expression[] = [];
  for (;;) {
    const token = cursor.advance();
    if (token.kind === 'template_text') addText(cursor, parts, token.text, token.start);
    else if (token.kind === 'template_end') break;
    else {
      const expression = cursor.grammar.expression(cursor);
      cursor.expectSymbol('}', '`}` after the expression in this template string');
      if (expression.kind === 'string') addText(cursor, parts, expression.value, expression.start);
      else parts.push(expression);
    }
  }
  return cursor.node<Template>(start, { kind: 'template', parts });
}

/** Appends text to a preceding string, so that no two strings are adjacent. */
function addText(cursor: Cursor, parts: Expression[], text: string, start: number): void {
  if (text === '') return;
  const last = parts.at(-1);
  if (last?.kind !== 'string') {
    parts.push(cursor.node<StringLiteral>(start, { kind: 'string', value: text }));
    return;
  }
  parts.pop();
  parts.push(cursor.node<StringLiteral>(last.start, { kind: 'string', value: last.value + text }));
}

/** `[a, b]` or `ARRAY[a, b]`. */
export function array(cursor: Cursor): ArrayItems {
  const { start } = cursor.token;
  cursor.acceptKeywords('ARRAY');
  cursor.expectSymbol('[');
  const ends = (): boolean => cursor.peekSymbol(']');
  const items = ends() ? [] : cursor.list(() => item(cursor), ends);
  cursor.expectSymbol(']', '`,` or `]` in this array');
  return cursor.node<ArrayItems>(start, { kind: 'array', items });
}

/** `{name}` is a placeholder; `{}` and `{key: value}` are dictionaries. */
export function braces(cursor: Cursor): Placeholder | Dictionary {
  const { start } = cursor.advance();
  if (cursor.acceptSymbol('}')) return cursor.node<Dictionary>(start, { kind: 'dictionary', entries: [] });
  const first = cursor.grammar.expression(cursor);
  if (cursor.acceptSymbol('}'))
    return cursor.node<Placeholder>(start, { kind: 'placeholder', expression: first });
  const entries = [entry(cursor, first)];
  while (cursor.acceptSymbol(',')) {
    if (cursor.peekSymbol('}')) break;
    entries.push(entry(cursor, cursor.grammar.expression(cursor)));
  }
  cursor.expectSymbol('}', '`,` or `}` in this dictionary');
  return cursor.node<Dictionary>(start, { kind: 'dictionary', entries });
}

function entry(cursor: Cursor, key: Expression): DictionaryEntry {
  cursor.expectSymbol(':', '`}` after a placeholder or `:` after a key');
  return cursor.node<DictionaryEntry>(key.start, {
    kind: 'entry',
    key,
    value: cursor.grammar.expression(cursor),
  });
}
