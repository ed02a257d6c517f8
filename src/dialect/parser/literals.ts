import type {
  ArrayItems,
  BooleanLiteral,
  Dictionary,
  DictionaryEntry,
  Expression,
  NullLiteral,
  NumberLiteral,
  Placeholder,
  StringLiteral,
  Template,
  TimeLiteral,
} from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { item } from './names.ts';

export function numberLiteral(cursor: Cursor): NumberLiteral {
  const token = cursor.advance();
  return cursor.node<NumberLiteral>(token.start, { kind: 'number', text: token.text.toLowerCase() });
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
