import type { NamedType, NumberLiteral, StringLiteral, TypeName } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { anyName } from './names.ts';

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
  if (token.kind === 'number') {
    cursor.advance();
    return cursor.node<NumberLiteral>(token.start, { kind: 'number', text: token.text.toLowerCase() });
  }
  if (token.kind === 'string') {
    cursor.advance();
    return cursor.node<StringLiteral>(token.start, { kind: 'string', value: token.text });
  }
  const following = cursor.peek(1);
  if (following.kind !== 'word' && following.kind !== 'quoted_name') return typeName(cursor);
  const name = anyName(cursor, expectedType);
  return cursor.node<NamedType>(token.start, { kind: 'named_type', name, type: typeName(cursor) });
}
