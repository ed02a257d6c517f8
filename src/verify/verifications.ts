import { bounds } from '../config/bounds.ts';
import type { DataInterval } from '../domain/intervals.ts';
import { inTransaction, type Pool } from '../journal/database.ts';
import type { VerificationReport } from './report.ts';

/** Minutes after which a verification without an outcome counts as failed: its worker or its workflow is gone. */
const maxMinutes = 60;

/** A verification of one interval that a person requested. */
export interface Verification extends DataInterval {
  readonly id: string;
  readonly batch_export_id: string;
  /** Whether all values are compared, not only the presence of rows. */
  readonly deep: boolean;
  readonly status: 'pending' | 'completed' | 'failed';
  readonly report: VerificationReport | null;
  /** Why it failed, for users. */
  readonly error: string | null;
  readonly created_at: string;
  readonly finished_at: string | null;
}

const isUnfinished = `finished_at is null and created_at > clock_timestamp() - interval '${maxMinutes} minutes'`;

const selection = `select id, batch_export_id, data_interval_start as start, data_interval_end as end, deep, report,
    error, created_at, finished_at, case when ${isUnfinished} then 'pending' when report is null then 'failed'
    else 'completed' end as status
  from exportd.verifications`;

/**
 * Stores the request for a verification and returns its id; null while the project has an unfinished one, or the
 * deployment has several. Older verifications of the interval are deleted but the newest ones.
 */
export const requestVerification = (
  pool: Pool,
  {
    batch_export_id,
    team_id,
    user_id,
    deep,
    start,
    end,
  }: DataInterval & {
    readonly batch_export_id: string;
    readonly team_id: number;
    readonly user_id: number;
    readonly deep: boolean;
  },
): Promise<string | null> =>
  inTransaction(pool, async (connection) => {
    // Concurrent requests exceed no limit together.
    await connection.query('lock table exportd.verifications in share row exclusive mode');
    const { rows } = await connection.query<{ id: string }>(
      `with old as (
         delete from exportd.verifications where id in (
           select id from exportd.verifications where batch_export_id = $1 and data_interval_start = $4
           order by created_at desc offset 9))
       insert into exportd.verifications (batch_export_id, team_id, user_id, data_interval_start, data_interval_end, deep)
       select $1, $2::integer, $3, $4, $5, $6
       from (select count(*) as unfinished, count(*) filter (where team_id = $2) as of_project
         from exportd.verifications where ${isUnfinished}) running
       where unfinished < ${bounds.verifications.max} and of_project < ${bounds.verificationsOfProject.max}
       returning id`,
      [batch_export_id, team_id, user_id, start, end, deep],
    );
    return rows[0]?.id ?? null;
  });

/** Reads a verification by its id; undefined if it does not exist. */
export async function findVerification(pool: Pool, id: string): Promise<Verification | undefined> {
  const { rows } = await pool.query<Verification>(`${selection} where id = $1`, [id]);
  return rows[0];
}

/** The newest verifications of an interval, newest first. */
export async function listVerifications(
  pool: Pool,
  batchExportId: string,
  { start, end }: DataInterval,
): Promise<Verification[]> {
  const { rows } = await pool.query<Verification>(
    `${selection} where batch_export_id = $1 and data_interval_start = $2 and data_interval_end = $3
     order by created_at desc limit 10`,
    [batchExportId, start, end],
  );
  return rows;
}

/** Stores the outcome of a verification: its report, or why there is none. */
export async function recordVerification(
  pool: Pool,
  id: string,
  outcome: { readonly report: VerificationReport } | { readonly error: string },
): Promise<void> {
  await pool.query(
    `update exportd.verifications set report = $2, error = $3, finished_at = clock_timestamp()
     where id = $1 and finished_at is null`,
    [
      id,
      'report' in outcome ? JSON.stringify(outcome.report) : null,
      'error' in outcome ? outcome.error : null,
    ],
  );
}

/** Deletes a request whose workflow could not be started. */
export async function withdrawVerification(pool: Pool, id: string): Promise<void> {
  await pool.query('delete from exportd.verifications where id = $1 and finished_at is null', [id]);
}
