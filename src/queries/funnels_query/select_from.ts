import type { Query, Select } from '../../dialect/ast.ts';
import { buildDerivedTable, withFrom, buildSelect, type TemplateValues } from '../../dialect/ast_builders.ts';

/** What is said of a stage beside its columns. */
export interface SelectFromClauses {
  readonly where?: string | null;
  /** Of the window that columns name as `w`. */
  readonly window?: string;
  /** Everything behind WHERE and WINDOW, such as `group by r._actor`. */
  readonly rest?: string;
  readonly parts?: TemplateValues;
}

/** A SELECT over another one, whose columns it calls `r._name`. */
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

/** Columns that are handed on as they are. */
export const passThrough = (names: readonly string[]): readonly string[] =>
  names.map((name) => `r.${name} as ${name}`);

/** A SELECT whose only WITH stands for another query. */
export const withCte = (select: Select, query: Query): Select => ({
  ...select,
  ctes: select.ctes.map((cte) => (cte.kind === 'query_cte' ? { ...cte, query } : cte)),
});
