import { setTimeout as delay } from 'node:timers/promises';
import { createApiClient } from '../../local_stack/demo/api_client.ts';
import { LaunchError } from '../../local_stack/launch_error.ts';
import type { BenchAccount } from '../bench_account.ts';
import { destinationFor } from '../formats.ts';
import type { IsolationBench } from './healthy_export.ts';

/** Exports to silent buckets, each with a backfill. */
export interface SilentExports {
  /** Resolves when all runs have counted their rows and wait for their bucket. @throws LaunchError when one fails */
  allWait(): Promise<void>;
  /** Deletes the exports. @returns the seconds until all their runs have ended */
  delete(): Promise<number>;
}

const hourMs = 3_600_000;
const pollMs = 200;

/** Creates an export for each project, to a bucket of its own on the silent server, and backfills `runs` hours before `end`. */
export async function startSilentExports(
  { stack, pool, baseUrl, silentEndpoint, signal }: IsolationBench,
  owners: readonly BenchAccount[],
  { runs, end }: { readonly runs: number; readonly end: number },
): Promise<SilentExports> {
  const { type, config } = destinationFor('JSONLines+gzip', stack);
  const exports = owners.map(({ teamId, apiKey }) => ({
    api: createApiClient(baseUrl, teamId, apiKey),
    bucket_name: `silent-${String(teamId)}`,
    id: '',
  }));
  for (const one of exports) {
    const created = await one.api.request<{ id: string }>('POST', '', {
      name: one.bucket_name,
      model: 'events',
      interval: 'hour',
      paused: true,
      destination: {
        type,
        config: { ...config, endpoint_url: silentEndpoint, bucket_name: one.bucket_name },
      },
    });
    one.id = created?.id ?? '';
  }
  await Promise.all(
    exports.map(({ api, id }) =>
      api.request('POST', `${id}/backfill/`, {
        start_at: new Date(end - runs * hourMs).toISOString(),
        end_at: new Date(end).toISOString(),
      }),
    ),
  );
  /** Waits until so many of the runs fulfil a condition. A silent bucket must not fail any. */
  const waitFor = async (condition: string, count: number): Promise<void> => {
    for (;;) {
      signal.throwIfAborted();
      const { rows } = await pool.query<{ runs: number; failed: number }>(
        `select count(*) filter (where ${condition}) as runs, count(*) filter (where status like 'Failed%') as failed
         from exportd.batch_export_runs where batch_export_id = any($1)`,
        [exports.map(({ id }) => id)],
      );
      const [found] = rows;
      if (found !== undefined && found.failed > 0)
        throw new LaunchError(`${String(found.failed)} runs of silent buckets have failed.`);
      if (found?.runs === count) return;
      await delay(pollMs);
    }
  };
  return {
    allWait: () => waitFor(`status = 'Starting' and records_total_count is not null`, runs * owners.length),
    delete: async () => {
      const started = performance.now();
      await Promise.all(exports.map(({ api, id }) => api.request('DELETE', `${id}/`)));
      await waitFor(`status in ('Starting', 'Running')`, 0);
      return (performance.now() - started) / 1_000;
    },
  };
}
