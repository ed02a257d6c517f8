import type { Expression, From, Query, Select } from '@exportd/dialect/ast';
import {
  buildExpression,
  buildField,
  buildJoin,
  buildTable,
  combineConditions,
} from '@exportd/dialect/ast_builders';
import { nullValue, otherValue } from './breakdown.ts';
import { valueColumns } from './line_keys.ts';
import { buildNamedSelect } from './named_select.ts';

/**
 * The values with a separate line: those with the largest totals, ties in byte order; events without any value come
 * last.
 * @param results of all values: columns of values and `result`
 * @param total of a value, over its results
 */
export function topValues(results: From, count: number, limit: number, total: Expression): Select {
  const columns = valueColumns(count);
  const missing = combineConditions(
    'and',
    columns.map((name) =>
      buildExpression('{value} = {missing}', { value: buildField(name), missing: { value: nullValue } }),
    ),
  );
  return buildNamedSelect(Object.fromEntries(columns.map((name) => [topValueName(name), buildField(name)])), {
    from: results,
    groupBy: columns,
    orderBy: [
      { by: buildExpression('{missing} ? 1 : 0', { missing: missing ?? buildExpression('true') }) },
      { by: total, descending: true },
      ...columns.map((name) => ({ by: buildField(name) })),
    ],
    limit,
  });
}

/** The column names of the top values. */
export const topValueColumns = (count: number): readonly string[] => valueColumns(count).map(topValueName);

const topValueName = (column: string): string => column.replace('breakdown', 'kept');

/**
 * Joins rows to the top values: all rows, with null if their value is not among them (`left`), or only rows whose value
 * is (`inner`).
 */
export function joinTopValues(
  type: 'left' | 'inner',
  rows: string,
  topValuesName: string,
  count: number,
): From {
  const columns = valueColumns(count);
  const condition = combineConditions(
    'and',
    columns.map((name) =>
      buildExpression('{own} = {top}', { own: buildField(name), top: buildField(topValueName(name)) }),
    ),
  );
  return buildJoin(type, buildTable(rows), buildTable(topValuesName), condition ?? buildExpression('true'));
}

/** The condition that a row joined to the top values matches none. */
export const isOutsideTopValues = (): Expression =>
  buildExpression('isNull({first})', { first: buildField(topValueName(valueColumns(1)[0] ?? '')) });

/** The values of events, with those outside of the top values replaced by the value for all others. */
export function withOtherValue(values: readonly Expression[], topValuesQuery: Query): readonly Expression[] {
  const isTopValue = isOneOfValues(values, topValuesQuery);
  return values.map((value) =>
    buildExpression('{isTopValue} ? {value} : {other}', { isTopValue, value, other: { value: otherValue } }),
  );
}

/** The condition that an event's values are among the rows of a query. */
export function isOneOfValues(values: readonly Expression[], topValuesQuery: Query): Expression {
  const [first, ...more] = values;
  const row: Expression = { kind: 'tuple', items: values, start: 0, end: 0 };
  return {
    kind: 'comparison',
    operator: 'in',
    left: first !== undefined && more.length === 0 ? first : row,
    right: { kind: 'subquery', query: topValuesQuery, start: 0, end: 0 },
    start: 0,
    end: 0,
  };
}
