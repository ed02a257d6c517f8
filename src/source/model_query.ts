import type { FingerprintHash } from '../domain/fingerprint.ts';
import type { ExportedColumn } from './row_selection.ts';

/** Which ends of a key range bound a page. */
export interface PageKeys {
  readonly after: boolean;
  readonly until: boolean;
}

/**
 * The statements that read the selected rows of a model. COPY does not accept parameters, so each statement reads its
 * values from settings of its transaction: those of `parameter`, and `settings`.
 */
export interface ModelQuery {
  readonly columns: readonly ExportedColumn[];
  /** Indexes of the sort key columns. */
  readonly key: { readonly inserted_at: number; readonly id: number };
  /** Settings that each statement needs in addition to its parameters. */
  readonly settings: Readonly<Record<string, string>>;
  /**
   * The rows of the range in key order, bounded by the key parameters as `keys` says. Returns at least `rows` rows if
   * there are as many. Rows that share the last key are included, so that no page ends between equal keys.
   */
  page(rows: number, keys: PageKeys): string;
  /** Returns one row with the column `rows`. */
  count(): string;
  /** The sort keys of the rows of `page`, as `keyColumns`. Null for persons, whose keys change. */
  readonly keys: ((rows: number, keys: PageKeys) => string) | null;
  /** The hash of the rows' ids. */
  readonly hash: FingerprintHash;
  /** Returns a `FingerprintRow` for each bucket that has rows; see fingerprint_query.ts. */
  fingerprint(): string;
  /** Whether the current state of persons decides which rows are selected, so that the same rows may not be selected later. */
  readonly selectsByPerson: boolean;
  /**
   * Returns `inserted_at` and `id`, as strings in key order, of each row whose position is a multiple of the
   * parameter `every`, except the last row of the range.
   */
  splitKeys(): string;
}

/** The parameters of a ModelQuery. All are strings because settings are. */
export interface QueryParameters {
  readonly team_id: string;
  readonly start: string;
  readonly end: string;
  readonly after_inserted_at: string;
  readonly after_id: string;
  readonly until_inserted_at: string;
  readonly until_id: string;
  readonly every: string;
  /** Start and length of the first bucket of a fingerprint. */
  readonly origin: string;
  readonly bucket_ms: string;
}

/** The name of the setting that holds a parameter. */
export const parameterSetting = (name: keyof QueryParameters): string => `exportd.${name}`;

/**
 * A parameter as an SQL expression. `current_setting` is stable, so the planner estimates with its value and uses
 * indexes as with a literal.
 */
export const parameter = (name: keyof QueryParameters, type: string): string =>
  `current_setting('${parameterSetting(name)}')::${type}`;

/**
 * A JSON column for COPY: `json` and `jsonb` unchanged, because a cast between them costs time and fails for some
 * values (`\u0000`). Other types are cast to `json`, which validates them.
 */
export const jsonColumn = (expression: string, type: string | undefined): string =>
  type === 'json' || type === 'jsonb' ? expression : `${expression}::json`;

/** A sort key as the text columns `inserted_at` and `id`. */
export const keyColumns = (insertedAt: string, id: string): string =>
  `to_char(${insertedAt} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as inserted_at, ${id}::text as id`;

/**
 * The statement of `splitKeys` over rows with the columns `inserted_at` and `id`. It numbers the rows in one pass; of
 * rows that share a key, the last one represents all.
 */
export const splitKeysQuery = (rows: string): string => `
  select ${keyColumns('inserted_at', 'id')}
  from (
    select inserted_at, id, row_number() over in_order as position, rank() over in_order as first_position,
      lead(inserted_at) over in_order as next_inserted_at, lead(id) over in_order as next_id
    from (${rows}) as row window in_order as (order by inserted_at, id)
  ) as numbered
  where next_inserted_at is not null and (next_inserted_at, next_id) is distinct from (inserted_at, id)
    and position / ${every} > (first_position - 1) / ${every}
  order by position`;

const every = parameter('every', 'bigint');
