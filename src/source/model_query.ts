import type { ExportedColumn } from './source.ts';

/**
 * How a model is read. COPY takes no parameters, so every statement takes its values from the settings of its
 * transaction (`parameter`), the count too: one text for both.
 */
export interface ModelQuery {
  readonly columns: readonly ExportedColumn[];
  /** Positions of the sort key among the columns. */
  readonly key: { readonly inserted_at: number; readonly id: number };
  /**
   * The rows of the range in key order, after the key of the parameters when `resumed`. At least `rows` of them when
   * there are so many: rows that share the last key come along, so that no page is cut between equal keys.
   */
  page(options: { rows: number; resumed: boolean }): string;
  /** One row with the column `rows`. */
  count(): string;
}

/** The values a ModelQuery reads; text, since that is what a setting holds. */
export interface QueryParameters {
  readonly team_id: string;
  readonly start: string;
  readonly end: string;
  readonly after_inserted_at: string;
  readonly after_id: string;
}

/** The setting that carries a parameter. */
export const parameterSetting = (name: keyof QueryParameters): string => `exportd.${name}`;

/**
 * A parameter as an SQL expression. It is stable, so the planner estimates with its value and uses the indexes as it
 * would with a literal.
 */
export const parameter = (name: keyof QueryParameters, type: string): string =>
  `current_setting('${parameterSetting(name)}')::${type}`;

/**
 * A JSON column as it leaves the source: `json` and `jsonb` untouched, since a cast from one to the other would refuse
 * values (`\u0000`) or cost time; anything else is checked by the cast.
 */
export const jsonColumn = (expression: string, type: string | undefined): string =>
  type === 'json' || type === 'jsonb' ? expression : `${expression}::json`;
