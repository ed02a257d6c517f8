import type { Query, Select } from '../../dialect/ast.ts';
import { derived, reading, selectOf, type TemplateParts } from '../../dialect/build.ts';

/** What is said of a stage beside its columns. */
export interface StageClauses {
  readonly where?: string | null;
  /** Of the window that columns name as `w`. */
  readonly window?: string;
  /** Everything behind WHERE and WINDOW, such as `group by r._actor`. */
  readonly rest?: string;
  readonly parts?: TemplateParts;
}

/** A SELECT over another one, whose columns it calls `r._name`. */
export function stage(inner: Query, columns: readonly string[], clauses: StageClauses = {}): Select {
  const { where = null, window, rest = '', parts = {} } = clauses;
  const text = [
    `select ${columns.join(', ')} from r`,
    where === null ? '' : ` where ${where}`,
    rest === '' ? '' : ` ${rest}`,
    window === undefined ? '' : ` window w as (${window})`,
  ].join('');
  return reading(selectOf(text, parts), derived(inner, 'r'));
}

/** Columns that are handed on as they are. */
export const handedOn = (names: readonly string[]): readonly string[] =>
  names.map((name) => `r.${name} as ${name}`);

/** A SELECT whose only WITH stands for another query. */
export const withNamed = (select: Select, query: Query): Select => ({
  ...select,
  ctes: select.ctes.map((cte) => (cte.kind === 'query_cte' ? { ...cte, query } : cte)),
});
