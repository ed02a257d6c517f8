import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from '../../journal/database.ts';
import { createApiClient } from '../../local_stack/demo/api_client.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import type { BenchAccount } from '../bench_account.ts';
import { createExport } from '../schedule/create_exports.ts';
import type { ScratchStack } from '../scratch_stack.ts';

/** Dependencies of the isolation measurements. */
export interface IsolationBench {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  readonly baseUrl: string;
  /** The server of the silent buckets. */
  readonly silentEndpoint: string;
  readonly signal: AbortSignal;
}

const hourMs = 3_600_000;
const pollMs = 50;

/**
 * Exports hours one after another with a new export.
 * @returns the seconds of each, from the request of its backfill to the event that completes its run
 * @throws LaunchError when a run does not complete
 */
export async function exportHours(
  { stack, pool, baseUrl, signal }: IsolationBench,
  { teamId, apiKey }: BenchAccount,
  hours: { readonly start: number; readonly count: number },
): Promise<number[]> {
  const api = createApiClient(baseUrl, teamId, apiKey);
  const name = `healthy/${String(hours.start)}`;
  const id = await createExport(stack, api, { name, interval: 'hour', paused: true });
  const seconds: number[] = [];
  for (let hour = 0; hour < hours.count; hour += 1) {
    const start = new Date(hours.start + hour * hourMs).toISOString();
    const commandAt = Date.now();
    await api.request('POST', `${id}/backfill/`, {
      start_at: start,
      end_at: new Date(Date.parse(start) + hourMs).toISOString(),
    });
    seconds.push(((await waitUntilCompleted(pool, id, start, signal)) - commandAt) / 1_000);
  }
  await api.request('DELETE', `${id}/`);
  return seconds;
}

async function waitUntilCompleted(
  pool: Pool,
  id: string,
  start: string,
  signal: AbortSignal,
): Promise<number> {
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await pool.query<{ status: string; finished_at: string | null }>(
      'select status, finished_at from exportd.batch_export_runs where batch_export_id = $1 and data_interval_start = $2',
      [id, start],
    );
    const [run] = rows;
    if (run?.finished_at) {
      if (run.status !== 'Completed') throw new LaunchError(`A run of the healthy export is ${run.status}.`);
      return Date.parse(run.finished_at);
    }
    await delay(pollMs);
  }
}
