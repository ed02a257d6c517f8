import type { Join, Name } from '../ast.ts';
import type { Column } from '../resolve/relation.ts';
import type { Statement } from '../resolve/statement.ts';
import { columnIdentityOf, derive, identityOf, type Value } from '../resolve/value.ts';
import { sql } from '../sql.ts';
import { withNull } from '../types.ts';
import { toComparable, type ComparisonOperands } from './comparisons.ts';
import type { CompiledFrom } from './compiled_from.ts';
import { columnValue } from './column_value.ts';

/** A USING column on both sides of a join. @throws DialectError if a side lacks it */
export function usingOperands(
  left: CompiledFrom,
  right: CompiledFrom,
  name: Name,
  statement: Statement,
): ComparisonOperands {
  const [one, other] = [columnOf(left, name), columnOf(right, name)];
  if (one === undefined || other === undefined)
    throw statement.error(`The USING column \`${name.text}\` is not in both tables.`, name);
  return { left: columnValue(one, name), right: columnValue(other, name), node: name };
}

function columnOf({ relations, usingColumns }: CompiledFrom, { text }: Name): Column | undefined {
  const known = usingColumns.get(text);
  if (known !== undefined) return known;
  for (const relation of relations) {
    const relationField = relation.field(text);
    if (relationField?.kind === 'column') return relationField;
  }
  return undefined;
}

/** A value as a column. */
export function asColumn(value: Value): Column {
  const { sql: fragment, type, properties } = value;
  return {
    kind: 'column',
    identity: columnIdentityOf(value) ?? identityOf(value),
    sql: fragment,
    type,
    ...(properties === undefined ? {} : { properties }),
  };
}

/** The unqualified USING column: of the side that always has a row, or for FULL JOIN of either side. */
export function usingColumn(type: Join['type'], sides: ComparisonOperands, statement: Statement): Column {
  if (type !== 'full') return asColumn(type === 'right' ? sides.right : sides.left);
  const both = toComparable(sides, statement);
  const { left, right } = sides;
  return asColumn(
    derive('coalesce', [left, right], withNull(both.type), sql`coalesce(${both.left}, ${both.right})`),
  );
}
