import type { Expression, From, Join, Query, Select } from '../../dialect/ast.ts';
import { expressionOf, fieldOf, joined, selectOf, tableNamed } from '../../dialect/build.ts';
import { nullValue, otherValue } from './breakdown_marks.ts';
import { selecting } from './selects.ts';
import { resultColumn, valueColumns } from './value_columns.ts';

const rankedName = (column: string): string => column.replace('breakdown', 'kept');

/** The columns of values that are kept. */
export const keptColumns = (count: number): readonly string[] => valueColumns(count).map(rankedName);

/**
 * The values that have a line of their own: those with the largest totals, equal ones in the order of their bytes;
 * events without any value come last.
 * @param results of all values: columns of values and `result`
 * @param total of a value, over its results
 */
export function keptValues(results: From, count: number, limit: number, total: Expression): Select {
  const columns = valueColumns(count);
  const missing = joined(
    'and',
    columns.map((name) =>
      expressionOf('{value} = {missing}', { value: fieldOf(name), missing: { value: nullValue } }),
    ),
  );
  return selecting(Object.fromEntries(columns.map((name) => [rankedName(name), fieldOf(name)])), {
    from: results,
    groupBy: columns,
    orderBy: [
      { by: expressionOf('{missing} ? 1 : 0', { missing: missing ?? expressionOf('true') }) },
      { by: total, descending: true },
      ...columns.map((name) => ({ by: fieldOf(name) })),
    ],
    limit,
  });
}

/** What results are summed up to. */
export const sumOfResults = expressionOf(`sum(ifNull(${resultColumn}, 0))`);

/**
 * Rows beside the values that are kept: all of them, with null where a row's value is not among those (`left`), or only
 * rows whose value is (`inner`).
 */
export function besideKept(type: 'left' | 'inner', rows: string, kept: string, count: number): From {
  const columns = valueColumns(count);
  const condition = joined(
    'and',
    columns.map((name) =>
      expressionOf('{own} = {kept}', { own: fieldOf(name), kept: fieldOf(rankedName(name)) }),
    ),
  );
  const { from } = selectOf('select 1 from a left join b on true');
  if (from?.kind !== 'join' || from.constraint?.kind !== 'on' || condition === null)
    throw new Error('No join.');
  const join: Join = {
    ...from,
    type,
    left: tableNamed(rows),
    right: tableNamed(kept),
    constraint: { ...from.constraint, condition },
  };
  return join;
}

/** That a row beside the values that are kept has none of them. */
export const isNotKept = (): Expression =>
  expressionOf('isNull({first})', { first: fieldOf(rankedName(valueColumns(1)[0] ?? '')) });

/** The same for events themselves: values that are not among those of another query are all one. */
export function foldedEvents(values: readonly Expression[], kept: Query): readonly Expression[] {
  const isKept = isAmong(values, kept);
  return values.map((value) =>
    expressionOf('{isKept} ? {value} : {other}', { isKept, value, other: { value: otherValue } }),
  );
}

/** Whether an event's values are among the rows of another query. */
export function isAmong(values: readonly Expression[], kept: Query): Expression {
  const [first, ...more] = values;
  const row: Expression = { kind: 'tuple', items: values, start: 0, end: 0 };
  return {
    kind: 'comparison',
    operator: 'in',
    left: first !== undefined && more.length === 0 ? first : row,
    right: { kind: 'subquery', query: kept, start: 0, end: 0 },
    start: 0,
    end: 0,
  };
}
