import type { Join, Name } from '../../ast.ts';
import { type Column, mappedRelation, type Relation } from '../../resolve/relation.ts';
import type { Statement } from '../../resolve/statement.ts';
import { columnIdentityOf, derive, identityOf, type TypedQuery, type Value } from '../../resolve/value.ts';
import { sql, type Sql } from '../../sql.ts';
import { withNull } from '../../types.ts';
import { type ComparisonOperands, toComparable } from '../expressions/comparisons.ts';
import { columnValue } from '../expressions/field_access.ts';

/** A compiled FROM clause. Read its SQL last, because relations collect the columns that the query uses. */
export interface CompiledFrom {
  readonly relations: readonly Relation[];
  /** USING columns. */
  readonly usingColumns: ReadonlyMap<string, Column>;
  /** What it reads, in the order written. */
  readonly sources: readonly TypedQuery[];
  /** The number of joined tables, including those of inlined subqueries. */
  readonly tableCount: number;
  /** Whether its SQL is a join, which needs parentheses after JOIN. */
  readonly isJoin: boolean;
  readonly sql: () => Sql;
}

/** The names of one side of a join with all columns mapped. */
export function mapColumns(
  { relations, usingColumns }: CompiledFrom,
  map: (column: Column) => Column,
): Pick<CompiledFrom, 'relations' | 'usingColumns'> {
  return {
    relations: relations.map((relation) => mappedRelation(relation, map)),
    usingColumns: new Map([...usingColumns].map(([name, column]) => [name, map(column)])),
  };
}

/** One side of a join, as written after JOIN. */
export const parenthesized = (from: CompiledFrom): Sql => (from.isJoin ? sql`(${from.sql()})` : from.sql());

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
