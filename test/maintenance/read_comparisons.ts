import type { ComparisonGroup } from '../../src/decisions/comparisons.ts';
import type { Pool } from '../../src/journal/database.ts';

/** What is stored of the comparisons of an interval. */
interface ReadComparison {
  readonly outcome: string | null;
  readonly comparisons: number;
  readonly source_rows: number | null;
  readonly added_rows: number | null;
  readonly next_due_at: string | null;
  readonly early_at: string | null;
  readonly last_compared_at: string | null;
}

/** Reads the comparisons of an export's intervals, or that of a run, oldest interval first. */
export async function readComparisons(
  pool: Pool,
  of: { readonly batch_export_id: string } | { readonly run_id: string },
): Promise<ReadComparison[]> {
  const [[column, id] = []] = Object.entries(of);
  const { rows } = await pool.query<ReadComparison>(
    `select * from exportd.interval_comparisons where ${String(column)} = $1 order by data_interval_start`,
    [id],
  );
  return rows;
}

/** Reads the groups that the intervals of an export are compared in. */
export async function readComparisonGroups(pool: Pool, batchExportId: string): Promise<ComparisonGroup[]> {
  const { rows } = await pool.query<ComparisonGroup>(
    'select distinct team_id, selection_hash from exportd.interval_comparisons where batch_export_id = $1',
    [batchExportId],
  );
  return rows;
}
