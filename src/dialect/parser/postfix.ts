import type { Cast, Element, Expression, Field, Index, Member, NumberLiteral, Slice } from '../ast.ts';
import type { Cursor } from './cursor.ts';
import { numberLiteral } from './literals.ts';
import { anyName } from './names.ts';
import { star } from './stars.ts';
import { typeName } from './type_names.ts';

const whatMember = 'the name of a property behind the point';

/** Parts of a name with points in it: more than any table has. */
const longestPath = 64;

/** What may follow a value as often as one likes: `.name`, `.1`, `.*`, `[1]`, `[1:2]`, `?.name` and `::type`. */
export function postfixes(cursor: Cursor, value: Expression): Expression {
  let object = value;
  for (;;) {
    const next = postfix(cursor, object);
    if (next === undefined) return object;
    object = next;
  }
}

function postfix(cursor: Cursor, object: Expression): Expression | undefined {
  if (cursor.takeSymbol('.')) return afterPoint(cursor, object);
  if (cursor.takeSymbol('?.')) {
    if (cursor.takeSymbol('[')) return inBrackets(cursor, object, true);
    return cursor.node<Member>(object.start, {
      kind: 'member',
      object,
      name: anyName(cursor, whatMember),
      nullish: true,
    });
  }
  if (cursor.takeSymbol('[')) return inBrackets(cursor, object, false);
  if (cursor.takeSymbol('::'))
    return cursor.node<Cast>(object.start, {
      kind: 'cast',
      operand: object,
      type: typeName(cursor),
      safe: false,
    });
  return undefined;
}

function afterPoint(cursor: Cursor, object: Expression): Expression {
  if (cursor.atKind('number')) {
    const position: NumberLiteral = numberLiteral(cursor);
    return cursor.node<Element>(object.start, { kind: 'element', object, position });
  }
  if (cursor.atSymbol('*') && object.kind === 'field') return star(cursor, object.start, object.path);
  const name = anyName(cursor, whatMember);
  if (cursor.atSymbol('('))
    throw cursor.error(
      'The name of a function has no point in it.',
      { start: object.start, end: name.end },
      `Write ${name.text}(…).`,
    );
  if (object.kind === 'field' && object.path.length === longestPath)
    throw cursor.error(`A name may have at most ${longestPath} parts.`, name);
  if (object.kind === 'field')
    return cursor.node<Field>(object.start, { kind: 'field', path: [...object.path, name] });
  return cursor.node<Member>(object.start, { kind: 'member', object, name, nullish: false });
}

/** An index or a slice, behind its opening bracket. */
function inBrackets(cursor: Cursor, object: Expression, nullish: boolean): Expression {
  const from = cursor.atSymbol(':') ? null : cursor.grammar.expression(cursor);
  if (!nullish && cursor.takeSymbol(':')) {
    const to = cursor.atSymbol(']') ? null : cursor.grammar.expression(cursor);
    cursor.expectSymbol(']');
    return cursor.node<Slice>(object.start, { kind: 'slice', object, from, to });
  }
  cursor.expectSymbol(']', '`]` behind this index');
  if (from === null) throw cursor.error('An index is missing here.');
  return cursor.node<Index>(object.start, { kind: 'index', object, index: from, nullish });
}
