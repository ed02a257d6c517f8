import { encodeBuckets, type Fingerprint, type FingerprintHash } from '../domain/fingerprint.ts';
import type { SortKey } from '../domain/sort_key.ts';
import type { ExportedColumn } from './row_selection.ts';
import type { RowRange } from './source.ts';

/** Which ends of a key range bound a page. */
export interface PageKeys {
  readonly after: boolean;
  /** Whether the upper key bounds the page, and whether its rows belong to it. */
  readonly until: boolean | 'exclusive';
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
  /**
   * Rows of the key `after` in the order of their hash, which is a bigint after the other columns: those from the hash
   * `after_hash` on, without the first `after_copies`; with `beforeHash`, those before the hash `before_hash`.
   */
  pageOfKey(rows: number, bounds: { readonly beforeHash: boolean }): string;
  /**
   * Reads the rows of one time by their ids. Absent if the order of `page` is that of an index, so that a page costs what
   * its rows cost, however many have the same time.
   */
  readonly ofTime?: {
    /** The ids of the rows of the time and after the id of `after`, in order, as the column `id`. Reads all rows of that time. */
    ids(until: PageKeys['until']): string;
    /** The rows of that time with the ids of the parameter `ids`, in key order. */
    page(): string;
  };
  /** Returns one row with the column `rows`. */
  count(): string;
  /** The sort keys of the rows of `page`, as `keyColumns`; of persons with the column `version` of a `RowKey`. */
  keys(rows: number, keys: PageKeys): string;
  /** The hash of the rows' ids. */
  readonly hash: FingerprintHash;
  /**
   * Returns a `FingerprintRow` for each bucket that has rows.
   * @param of whether the hashes are of ids with their times and versions, which the rows of events never change
   */
  fingerprint(of: { readonly ofStates: boolean }): string;
  /** Whether the current state of persons decides which rows are selected, so that the same rows may not be selected later. */
  readonly selectsByPerson: boolean;
  /**
   * Returns `inserted_at` and `id`, as strings in key order, of each row whose position is a multiple of the
   * parameter `every`, except the last row of the range.
   */
  splitKeys(): string;
}

/** The parameters of a ModelQuery. All are strings because settings are. */
interface QueryParameters {
  readonly team_id: string;
  readonly start: string;
  readonly end: string;
  readonly after_inserted_at: string;
  readonly after_id: string;
  readonly until_inserted_at: string;
  readonly until_id: string;
  readonly after_hash: string;
  readonly after_copies: string;
  readonly before_hash: string;
  /** A JSON array. */
  readonly ids: string;
  readonly every: string;
  /** Start and length of the first bucket of a fingerprint. */
  readonly origin: string;
  readonly bucket_ms: string;
}

/** The name of the setting that holds a parameter. */
const parameterSetting = (name: keyof QueryParameters): string => `exportd.${name}`;

/**
 * A parameter as an SQL expression. `current_setting` is stable, so the planner estimates with its value and uses
 * indexes as with a literal.
 */
export const parameter = (name: keyof QueryParameters, type: string): string =>
  `current_setting('${parameterSetting(name)}')::${type}`;

/** The settings of a statement: the range, its selection and the keys that bound it. */
export function statementSettings(
  query: Pick<ModelQuery, 'settings'>,
  { team_id, interval }: RowRange,
  more: Partial<Record<'after' | 'until', SortKey | null>> & {
    readonly beforeHash?: string | undefined;
    readonly ids?: readonly string[];
    readonly every?: number;
    readonly buckets?: { readonly origin: string; readonly width_ms: number };
  } = {},
): Record<string, string> {
  const { after, until, beforeHash, ids, every, buckets } = more;
  const values: Partial<QueryParameters> = {
    team_id: String(team_id),
    start: interval.start,
    end: interval.end,
    ...(after && { after_inserted_at: after.inserted_at, after_id: after.id }),
    ...(after?.within && {
      after_hash: after.within.row_hash,
      after_copies: String(after.within.copies),
    }),
    ...(beforeHash !== undefined && { before_hash: beforeHash }),
    ...(until && { until_inserted_at: until.inserted_at, until_id: until.id }),
    ...(ids && { ids: JSON.stringify(ids) }),
    ...(every !== undefined && { every: String(every) }),
    ...(buckets && { origin: buckets.origin, bucket_ms: String(buckets.width_ms) }),
  };
  const settings: [string, string][] = Object.entries(values).map(([name, value]) => [
    parameterSetting(name as keyof QueryParameters),
    value,
  ]);
  return { ...Object.fromEntries(settings), ...query.settings };
}

/** More rows than a range has: the row with an id may be the last one. */
export const everyRow = 2_147_483_647;

/**
 * A JSON column for COPY: `json` and `jsonb` unchanged, because a cast between them costs time and fails for some
 * values (`\u0000`). Other types are cast to `json`, which validates them.
 */
export const jsonColumn = (expression: string, type: string | undefined): string =>
  type === 'json' || type === 'jsonb' ? expression : `${expression}::json`;

/** The statement of `pageOfKey`, as parts. */
interface RowsOfKey {
  readonly selected: string;
  readonly from: string;
  readonly where: string;
  /** All that the source stores of a row, as values of any type. Only the first may be null or look like a null. */
  readonly values: readonly string[];
}

/**
 * Rows of one key in the order of a hash over all their values. No other order is the same in each statement, whatever
 * relation or view the rows come from. Rows of equal hash are equal, so it does not matter which of them come first.
 * Each page computes the hashes of all rows of the key.
 */
export const pageOfKeyQuery = (
  { selected, from, where, values }: RowsOfKey,
  rows: number,
  beforeHash: boolean,
): string => {
  const hash = values.reduce(
    (seed, value) => `hashtextextended(coalesce((${value})::text, '') collate "C", ${seed})`,
    '0',
  );
  // OFFSET keeps the hash from being computed again for each condition.
  return `select ${selected}, hashed.row_hash
    ${from} cross join lateral (select ${hash} as row_hash offset 0) as hashed
    ${where} and hashed.row_hash >= ${parameter('after_hash', 'bigint')}
    ${beforeHash ? `and hashed.row_hash < ${parameter('before_hash', 'bigint')}` : ''}
    order by hashed.row_hash offset ${parameter('after_copies', 'bigint')} fetch first ${rows} rows only`;
};

/** Settings of `pageOfKey`: the rows of a page are sorted in memory. */
export const pageOfKeySettings: Readonly<Record<string, string>> = { enable_sort: 'on', work_mem: '32MB' };

/** The columns of a row as values of `pageOfKey`. Their text must not depend on the session, as that of a time does. */
export const storedValues = (
  columns: readonly Pick<ExportedColumn, 'name' | 'type'>[],
  alias: string,
): string[] => {
  const small = columns
    .filter(({ type }) => type !== 'json')
    .map(({ name, type }) =>
      type === 'timestamp' ? `extract(epoch from ${alias}."${name}"::timestamptz)` : `${alias}."${name}"`,
    );
  const json = columns.filter(({ type }) => type === 'json').map(({ name }) => `${alias}."${name}"`);
  return [`row(${small.join(', ')})`, ...json];
};

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

/** The source computes another hash than exportd, so that its fingerprints and those of files cannot be compared. */
export class FingerprintHashDiffers extends Error {
  override readonly name = 'FingerprintHashDiffers';
}

/** A known value of each hash. */
const knownHashes: Readonly<Record<FingerprintHash, { readonly sql: string; readonly value: string }>> = {
  'uuid_hash_extended/0': {
    sql: `uuid_hash_extended('018f3d9c-5a7b-7c21-9e4d-0123456789ab'::uuid, 0)`,
    value: '-2441515694648303869',
  },
  'hashtextextended/0': {
    sql: `hashtextextended('a distinct id of 27 letters' collate "C", 0)`,
    value: '1237062266297986927',
  },
};

/**
 * Settings of the statements. Scans of the index alone need no order of the table's pages, so no bitmap. Sorting would put
 * all rows on disk: the planner expects about as many groups as rows.
 */
export const fingerprintSettings: Readonly<Record<FingerprintHash, Readonly<Record<string, string>>>> = {
  'uuid_hash_extended/0': { enable_bitmapscan: 'off' },
  'hashtextextended/0': { enable_sort: 'off' },
};

/** The rows of a fingerprint statement, in any order; one row with nulls if the interval has no rows. */
export interface FingerprintRow {
  readonly known: string;
  readonly index: number | null;
  readonly rows: string | null;
  readonly sum: string | null;
}

/** A range of insertion time as SQL expressions; `end` is exclusive. */
export interface TimeBounds {
  readonly start: string;
  readonly end: string;
}

const [start, end] = [parameter('start', 'timestamptz'), parameter('end', 'timestamptz')];
const origin = parameter('origin', 'timestamptz');
const width = parameter('bucket_ms', 'bigint');

/** The number of the bucket that contains an instant, or whose start it is. */
const bucketAt = (time: string): string => `extract(epoch from ${time} - ${origin}) * 1000 / ${width}`;

/**
 * Counts rows and adds up the hashes of their ids by bucket, each bucket with its own scan of the index on the insertion
 * time. That takes half the time of grouping the rows, because no row's bucket is computed.
 * @param rowsWithin `from` and `where` of the rows within bounds
 */
export const fingerprintByScans = (
  hash: FingerprintHash,
  id: string,
  rowsWithin: (bounds: TimeBounds) => string,
): string => {
  const startOf = (index: string) => `${origin} + (${index} * ${width}) * interval '1 millisecond'`;
  // OFFSET keeps the bounds from being computed again for each partition. EXISTS makes an empty interval cheap.
  return withKnownHash(
    hash,
    `select index, counted.rows, counted.sum
     from (
       select index, greatest(${start}, ${startOf('index')}) as start, least(${end}, ${startOf('(index + 1)')}) as end
       from generate_series(floor(${bucketAt(start)})::bigint, ceil(${bucketAt(end)})::bigint - 1) as index offset 0
     ) as bounds,
     lateral (select count(*) as rows, sum(${hashOf(hash, id)}) as sum ${rowsWithin({ start: 'bounds.start', end: 'bounds.end' })}) as counted
     where counted.rows > 0 and (select exists (select ${rowsWithin({ start, end })}))`,
  );
};

/**
 * Counts rows and adds up the hashes of their ids by bucket, in one pass over all rows.
 * @param rows a select of `inserted_at` and `id`
 * @param seed of the hashes, as SQL
 */
export const fingerprintByGroups = (hash: FingerprintHash, rows: string, seed = '0'): string =>
  withKnownHash(
    hash,
    `select (${bucketAt('start')})::bigint as index, rows, sum from (
       select date_bin((select ${width} * interval '1 millisecond'), inserted_at, (select ${origin})) as start,
         count(*) as rows, sum(${hashOf(hash, 'id', seed)}) as sum
       from (${rows}) as row group by 1) as grouped`,
  );

const hashOf = (hash: FingerprintHash, id: string, seed = '0'): string =>
  hash === 'uuid_hash_extended/0'
    ? `uuid_hash_extended(${id}, ${seed})`
    : `hashtextextended(${utf8Bytes(id)}, ${seed})`;

/**
 * SQL: a text whose bytes are those that the given one has in UTF-8, as files have it. PostgreSQL hashes the bytes of its own
 * encoding; one of single bytes takes any others as text.
 */
export const utf8Bytes = (text: string): string =>
  `(case getdatabaseencoding() when 'UTF8' then ${text} when 'SQL_ASCII' then ${text}
    else convert_from(convert_to(${text}, 'UTF8'), getdatabaseencoding()) end) collate "C"`;

/** Adds a known value of the hash to the rows: a pooler may connect each transaction to another server. */
const withKnownHash = (hash: FingerprintHash, buckets: string): string => `
  select known.hash as known, bucket.index::int as index, bucket.rows, bucket.sum
  from (select ${knownHashes[hash].sql} as hash) as known left join (${buckets}) as bucket on true`;

/**
 * Converts the result of a fingerprint statement.
 * @throws FingerprintHashDiffers
 */
export function fingerprintOf(
  rows: readonly FingerprintRow[],
  { hash, width_ms }: Pick<Fingerprint, 'hash' | 'width_ms'>,
): Fingerprint {
  const [first] = rows;
  if (first?.known !== knownHashes[hash].value)
    throw new FingerprintHashDiffers(
      `The source computes ${hash} differently: ${knownHashes[hash].sql} is ${first?.known}, expected ${knownHashes[hash].value}. exportd needs PostgreSQL on a little-endian processor.`,
    );
  const buckets = rows.flatMap(({ index, rows: count, sum }) =>
    index === null ? [] : [{ index, rows: Number(count), sum: sum ?? '0' }],
  );
  return { hash, width_ms, encoded_buckets: encodeBuckets(buckets) };
}
