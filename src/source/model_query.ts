import type { ExportedColumn } from './source.ts';

/** Which end of a stretch of key order a page is bound by. */
export interface PageKeys {
  readonly after: boolean;
  readonly until: boolean;
}

/**
 * How the selected rows of a model are read. COPY takes no parameters, so every statement takes its values from the
 * settings of its transaction: those of `parameter`, and `settings`.
 */
export interface ModelQuery {
  readonly columns: readonly ExportedColumn[];
  /** Positions of the sort key among the columns. */
  readonly key: { readonly inserted_at: number; readonly id: number };
  /** What every statement needs to be set besides its parameters. */
  readonly settings: Readonly<Record<string, string>>;
  /**
   * The rows of the range in key order, between the keys of the parameters as far as the page is bound by them. At
   * least `rows` of them when there are so many: rows that share the last key come along, so that no page is cut
   * between equal keys.
   */
  page(rows: number, keys: PageKeys): string;
  /** One row with the column `rows`. */
  count(): string;
  /**
   * `inserted_at` and `id`, as texts of a sort key and in key order, of each row of the range whose position is a
   * multiple of the parameter `every`; not of the last one, behind which nothing is left.
   */
  splitKeys(): string;
}

/** The values a ModelQuery reads; text, since that is what a setting holds. */
export interface QueryParameters {
  readonly team_id: string;
  readonly start: string;
  readonly end: string;
  readonly after_inserted_at: string;
  readonly after_id: string;
  readonly until_inserted_at: string;
  readonly until_id: string;
  readonly every: string;
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

/**
 * The statement of `cuts` over rows with the columns `inserted_at` and `id`: numbered in one pass over their order, the
 * last of those that share a key stands for all of them.
 */
export const splitKeysQuery = (rows: string): string => `
  select to_char(inserted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as inserted_at, id::text as id
  from (
    select inserted_at, id, row_number() over in_order as position, rank() over in_order as first_position,
      lead(inserted_at) over in_order as next_inserted_at, lead(id) over in_order as next_id
    from (${rows}) as row window in_order as (order by inserted_at, id)
  ) as numbered
  where next_inserted_at is not null and (next_inserted_at, next_id) is distinct from (inserted_at, id)
    and position / ${every} > (first_position - 1) / ${every}
  order by position`;

const every = parameter('every', 'bigint');
