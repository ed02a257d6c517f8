import type { StoredDecision } from '../domain/difference.ts';
import type { DataInterval } from '../domain/intervals.ts';
import type { Connection, Pool } from '../journal/database.ts';

/** The interval of an export. */
interface IntervalOfExport extends DataInterval {
  readonly batch_export_id: string;
}

/** SQL: the ledger's row of the interval of a relation with its columns. */
export const ledgerRowOf = (relation: string): string => `exportd.intervals ledger
  where ledger.batch_export_id = ${relation}.batch_export_id
    and ledger.data_interval_start = ${relation}.data_interval_start
    and ledger.data_interval_end = ${relation}.data_interval_end`;

/** Reads what was decided about the files of an interval; null if nothing holds of them. */
export async function readDecision(
  database: Pool | Connection,
  { batch_export_id, start, end }: IntervalOfExport,
): Promise<StoredDecision | null> {
  const { rows } = await database.query<{ decision: StoredDecision | null }>(
    `select decision from exportd.intervals
     where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3`,
    [batch_export_id, start, end],
  );
  return rows[0]?.decision ?? null;
}
