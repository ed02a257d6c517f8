import type { Query, Select } from '../../dialect/ast.ts';
import { buildDerivedTable, withFrom, buildSelect, type TemplateValues } from '../../dialect/ast_builders.ts';

/** Clauses besides the columns. */
export interface SelectFromClauses {
  readonly where?: string | null;
  /** The window `w`. */
  readonly window?: string;
  /** Everything after WHERE, such as `group by r._actor`. */
  readonly rest?: string;
  readonly parts?: TemplateValues;
}

/** Builds a SELECT over a subquery named `r`. */
export function selectFrom(
  inner: Query,
  columns: readonly string[],
  clauses: SelectFromClauses = {},
): Select {
  const { where = null, window, rest = '', parts = {} } = clauses;
  const text = [
    `select ${columns.join(', ')} from r`,
    where === null ? '' : ` where ${where}`,
    rest === '' ? '' : ` ${rest}`,
    window === undefined ? '' : ` window w as (${window})`,
  ].join('');
  return withFrom(buildSelect(text, parts), buildDerivedTable(inner, 'r'));
}

/** Columns of the subquery, unchanged. */
export const passThrough = (names: readonly string[]): readonly string[] =>
  names.map((name) => `r.${name} as ${name}`);

/** Replaces the query of a SELECT's only CTE. */
export const withCte = (select: Select, query: Query): Select => ({
  ...select,
  ctes: select.ctes.map((cte) => (cte.kind === 'query_cte' ? { ...cte, query } : cte)),
});
