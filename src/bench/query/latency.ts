import { setTimeout as delay } from 'node:timers/promises';
import type { Report } from '../../local_stack/report.ts';
import type { Pool } from '../../journal/database.ts';
import { createBenchAccount, type BenchAccount } from '../bench_account.ts';
import { exportdEnvironment } from '../exportd_environment.ts';
import { withExportd } from '../schedule/with_exportd.ts';
import type { ScratchStack } from '../scratch_stack.ts';
import { rounded } from '../statistics.ts';
import type { LatencyResult, Percentiles } from './result.ts';

/** What the latency is measured on. */
export interface LatencyBench {
  readonly stack: ScratchStack;
  readonly pool: Pool;
  /** The project with the events, whose queries are heavy. */
  readonly heavy: BenchAccount;
  readonly signal: AbortSignal;
}

const heavyClients = 50;
const measuredRequests = 40;
/** Requests that only start connections and threads. */
const warmUpRequests = 5;
const pollMs = 5;

/** Reads the properties of every event. */
const heavyQuery = 'select event, sum(length(toString(properties))) from events group by event';
/** What PostgreSQL's statement of that query alone contains. */
const heavyStatement = '%octet_length(%';
const trivialQuery = 'select 1';

/**
 * Measures requests with `select 1` of one project over HTTP, alone and while fifty clients of another project send one
 * heavy query after the other, and how long the statements of those clients run after they have disconnected.
 */
export async function measureLatency(
  { stack, pool, heavy, signal }: LatencyBench,
  report: Report,
): Promise<LatencyResult> {
  const { baseUrl, environment } = await exportdEnvironment(stack, 'latency');
  const trivial = await createBenchAccount(pool, 'Trivial');
  const post = (account: BenchAccount, query: string, ending: AbortSignal): Promise<Response> =>
    fetch(`${baseUrl}/api/projects/${String(account.teamId)}/query/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: { kind: 'DialectQuery', query }, refresh: 'force_blocking' }),
      signal: ending,
    });
  const measure = async (): Promise<Percentiles> => {
    const all: number[] = [];
    for (let sent = 0; sent < warmUpRequests + measuredRequests; sent += 1) {
      const startedAt = performance.now();
      const response = await post(trivial, trivialQuery, signal);
      await response.arrayBuffer();
      if (response.status !== 200)
        throw new Error(`The trivial query failed with status ${String(response.status)}.`);
      if (sent >= warmUpRequests) all.push(performance.now() - startedAt);
    }
    return percentilesOf(all);
  };
  const countHeavyStatements = async (): Promise<number> => {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*) as count from pg_stat_activity
       where datname = current_database() and backend_type = 'client backend' and state = 'active'
         and pid <> pg_backend_pid() and query like $1`,
      [heavyStatement],
    );
    return rows[0]?.count ?? 0;
  };
  const settings = { EXPORTD_QUERIES_PER_HOUR: '1000000', EXPORTD_QUERY_TIMEOUT: '10m' };
  return withExportd({ stack, baseUrl, environment, profileFolder: undefined }, settings, async () => {
    const alone = await measure();
    report(`Trivial query alone: ${alone.median.toFixed(1)} ms`);
    const disconnect = new AbortController();
    const ending = AbortSignal.any([disconnect.signal, signal]);
    const statuses = new Map<number, number>();
    const sendHeavy = async (): Promise<void> => {
      while (!ending.aborted) {
        const { status } = await post(heavy, heavyQuery, ending);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    const clients = Array.from({ length: heavyClients }, () => sendHeavy().catch(() => undefined));
    while ((await countHeavyStatements()) === 0) await delay(pollMs, undefined, { signal });
    const beside = await measure();
    const running = await countHeavyStatements();
    report(`Beside ${String(heavyClients)} heavy queries: ${beside.median.toFixed(1)} ms`);
    const disconnectedAt = performance.now();
    disconnect.abort();
    await Promise.all(clients);
    while ((await countHeavyStatements()) > 0) await delay(pollMs, undefined, { signal });
    return {
      heavy_clients: heavyClients,
      heavy_statements: running,
      heavy_statuses: Object.fromEntries(statuses),
      alone_ms: alone,
      beside_ms: beside,
      cancelled_after_ms: rounded(performance.now() - disconnectedAt),
    };
  });
}

function percentilesOf(all: readonly number[]): Percentiles {
  const sorted = all.toSorted((one, other) => one - other);
  const at = (part: number): number => rounded(sorted[Math.ceil(part * sorted.length) - 1] ?? NaN);
  return { median: at(0.5), p95: at(0.95), maximum: at(1) };
}
