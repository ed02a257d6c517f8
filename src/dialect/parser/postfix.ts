import type { Cast, Element, Expression, Field, Index, Member, NumberLiteral, Slice } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { numberLiteral } from './literals.ts';
import { anyName } from './names.ts';
import { star } from './stars.ts';
import { typeName } from './type_names.ts';

const expectedProperty = 'a property name after the dot';

/** Maximum number of names in a path; no table has more. */
const maxPathLength = 64;

/** Applies any number of postfixes: `.name`, `.1`, `.*`, `[1]`, `[1:2]`, `?.name` and `::type`. */
export function postfixes(cursor: Cursor, value: Expression): Expression {
  let object = value;
  for (;;) {
    const next = postfix(cursor, object);
    if (next === undefined) return object;
    object = next;
  }
}

function postfix(cursor: Cursor, object: Expression): Expression | undefined {
  if (cursor.acceptSymbol('.')) return afterDot(cursor, object);
  if (cursor.acceptSymbol('?.')) {
    if (cursor.acceptSymbol('[')) return indexOrSlice(cursor, object, true);
    return cursor.node<Member>(object.start, {
      kind: 'member',
      object,
      name: anyName(cursor, expectedProperty),
      nullish: true,
    });
  }
  if (cursor.acceptSymbol('[')) return indexOrSlice(cursor, object, false);
  if (cursor.acceptSymbol('::'))
    return cursor.node<Cast>(object.start, {
      kind: 'cast',
      operand: object,
      type: typeName(cursor),
      safe: false,
    });
  return undefined;
}

function afterDot(cursor: Cursor, object: Expression): Expression {
  if (cursor.peekKind('number')) {
    const position: NumberLiteral = numberLiteral(cursor);
    return cursor.node<Element>(object.start, { kind: 'element', object, position });
  }
  if (cursor.peekSymbol('*') && object.kind === 'field') return star(cursor, object.start, object.path);
  const name = anyName(cursor, expectedProperty);
  if (cursor.peekSymbol('('))
    throw cursor.error(
      'A function name cannot contain a dot.',
      { start: object.start, end: name.end },
      `Write ${name.text}(…).`,
    );
  if (object.kind === 'field' && object.path.length === maxPathLength)
    throw cursor.error(`A name may have at most ${maxPathLength} parts.`, name);
  if (object.kind === 'field')
    return cursor.node<Field>(object.start, { kind: 'field', path: [...object.path, name] });
  return cursor.node<Member>(object.start, { kind: 'member', object, name, nullish: false });
}

/** An index or a slice, after its opening bracket. */
function indexOrSlice(cursor: Cursor, object: Expression, nullish: boolean): Expression {
  const from = cursor.peekSymbol(':') ? null : cursor.grammar.expression(cursor);
  if (!nullish && cursor.acceptSymbol(':')) {
    const to = cursor.peekSymbol(']') ? null : cursor.grammar.expression(cursor);
    cursor.expectSymbol(']');
    return cursor.node<Slice>(object.start, { kind: 'slice', object, from, to });
  }
  cursor.expectSymbol(']', '`]` after this index');
  if (from === null) throw cursor.error('Missing index.');
  return cursor.node<Index>(object.start, { kind: 'index', object, index: from, nullish });
}
