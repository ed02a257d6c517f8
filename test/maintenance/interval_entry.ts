import type { Pool } from '../../src/journal/database.ts';

/** What the ledger says of an interval and its current manifest. */
interface IntervalEntry {
  readonly status: string;
  readonly rows: number;
  readonly kept_files: number;
  readonly earlier_files: number;
  /** Rows and sum of hashes. */
  readonly source: RowSum;
  readonly bucket: RowSum;
}

/** A fingerprint's total. */
interface RowSum {
  readonly rows: number;
  readonly sum: string;
}

/** Reads the entry of an interval in the ledger; null if it has none. */
export async function readIntervalEntry(
  pool: Pool,
  batchExportId: string,
  { start }: { readonly start: string },
): Promise<IntervalEntry | null> {
  const { rows } = await pool.query<IntervalEntry>(
    `select status, rows::int, kept_files, earlier_files, source_fingerprint - 'hash' as source,
       bucket_fingerprint - 'hash' as bucket
     from exportd.intervals where batch_export_id = $1 and data_interval_start = $2`,
    [batchExportId, start],
  );
  return rows[0] ?? null;
}

/** The total of a fingerprint of rows with these ids, as PostgreSQL computes it. */
export async function sumOfIds(
  pool: Pool,
  ids: readonly string[],
  hash: 'uuid_hash_extended(id::uuid, 0)' | `hashtextextended(id collate "C", 0)`,
): Promise<RowSum> {
  const { rows } = await pool.query<RowSum>(
    `select count(*)::int as rows, mod(mod(coalesce(sum(${hash}), 0), 2::numeric ^ 64) + 2::numeric ^ 64,
       2::numeric ^ 64)::numeric(20)::text as sum
     from unnest($1::text[]) as row (id)`,
    [ids],
  );
  return rows[0] ?? { rows: 0, sum: '0' };
}
