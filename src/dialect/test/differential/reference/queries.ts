import type { Query, SetOperation } from '../../../ast.ts';
import { convertValue } from './conversions.ts';
import type { ReferenceWorld } from './scope.ts';
import { selectRows } from './select.ts';
import { commonType, type ReferenceType } from './types.ts';
import { identityOf, unsupported, type Value } from './values.ts';

/** The rows of a query. */
export interface ReferenceResult {
  readonly columns: readonly { readonly name: string; readonly type: ReferenceType }[];
  readonly rows: readonly (readonly Value[])[];
  /** Whether ORDER BY does not tell a row from the one before it. */
  readonly ties: readonly boolean[];
}

/** Evaluates a query. @throws UnsupportedQueryError, AmbiguousResultError or RangeError */
export function rowsOfQuery(
  query: Query,
  world: ReferenceWorld,
  ctes: ReadonlyMap<string, Query> = new Map(),
): ReferenceResult {
  const result = query.kind === 'select' ? selectRows(query, world, ctes) : setOperation(query, world, ctes);
  return result.columns.some(({ type }) => type.kind === 'interval')
    ? unsupported('A column of intervals.')
    : result;
}

type Rows = readonly (readonly Value[])[];

function setOperation(
  { operator, operands, orderBy, limit }: SetOperation,
  world: ReferenceWorld,
  ctes: ReadonlyMap<string, Query>,
): ReferenceResult {
  if (orderBy.length > 0 || limit !== null) return unsupported('ORDER BY of a set operation.');
  const results = operands.map((operand) => rowsOfQuery(operand, world, ctes));
  const [first = unsupported('No operands.'), ...others] = results;
  const columns = first.columns.map(({ name, type }, index) => ({
    name,
    type: others.reduce(
      (shared, other) =>
        commonType(shared, other.columns[index]?.type ?? unsupported('Fewer columns.')) ??
        unsupported('Columns of several types.'),
      type,
    ),
  }));
  const converted = results.map((result) => {
    if (result.columns.length !== columns.length) return unsupported('More columns.');
    return result.rows.map((row) =>
      row.map((value, index) =>
        convertValue(
          value,
          result.columns[index]?.type ?? unsupported('A row without a column.'),
          columns[index]?.type ?? unsupported('A row without a column.'),
          world.timezone,
        ),
      ),
    );
  });
  const [start = [], ...rest] = converted;
  const rows = rest.reduce<Rows>((left, right) => combined(operator, left, right), start);
  return { columns, rows, ties: rows.map(() => true) };
}

function combined(operator: SetOperation['operator'], left: Rows, right: Rows): Rows {
  switch (operator) {
    case 'union all':
      return [...left, ...right];
    case 'union distinct':
      return distinct([...left, ...right]);
    case 'intersect all':
      return common(left, right, true);
    case 'except all':
      return common(left, right, false);
    case 'intersect distinct':
      return distinct(common(distinct(left), right, true));
    case 'except distinct':
      return distinct(left).filter((row) => !right.some((other) => identityOf(other) === identityOf(row)));
  }
}

const distinct = (rows: Rows): Rows => [...new Map(rows.map((row) => [identityOf(row), row])).values()];

/** The rows that have a partner on the other side, or those that have none. */
function common(left: Rows, right: Rows, isCommon: boolean): Rows {
  const counts = new Map<string, number>();
  for (const row of right) counts.set(identityOf(row), (counts.get(identityOf(row)) ?? 0) + 1);
  return left.filter((row) => {
    const count = counts.get(identityOf(row)) ?? 0;
    counts.set(identityOf(row), count - 1);
    return count > 0 === isCommon;
  });
}
