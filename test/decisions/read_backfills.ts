import type { BackfillPlan } from '../../src/domain/backfill.ts';
import type { Pool } from '../../src/journal/database.ts';

/** A backfill as its read model has it. */
interface ReadBackfill {
  readonly id: string;
  readonly kind: BackfillPlan['kind'];
  readonly status: string;
  readonly total_runs: number;
  readonly allow_shrink: boolean;
  readonly finished_at: string | null;
}

/** Reads the backfills of an export in the order of their creation, or one by its id. */
export async function readBackfills(
  pool: Pool,
  of: { readonly batch_export_id: string } | { readonly id: string },
): Promise<ReadBackfill[]> {
  const [[column, id] = []] = Object.entries(of);
  const { rows } = await pool.query<ReadBackfill>(
    `select * from exportd.backfills where ${String(column)} = $1 order by position`,
    [id],
  );
  return rows;
}

/** Reads the backfills in which exportd itself exports intervals of an export again. */
export const readRepairs = async (pool: Pool, batch_export_id: string): Promise<ReadBackfill[]> =>
  (await readBackfills(pool, { batch_export_id })).filter(({ kind }) => kind === 'repair');
