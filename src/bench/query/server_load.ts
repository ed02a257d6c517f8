import { setTimeout as delay } from 'node:timers/promises';
import type { Report } from '../../local_stack/report.ts';
import type { BenchAccount } from '../bench_account.ts';
import { exportdEnvironment } from '../exportd_environment.ts';
import { memoryOf, resetPeakMemory } from '../process_usage.ts';
import { withExportd } from '../schedule/with_exportd.ts';
import type { ScratchStack } from '../scratch_stack.ts';
import { rounded } from '../statistics.ts';
import { measureTurns, recordTurns } from './longest_turn.ts';
import type { ServerLoadResult } from './result.ts';

const pollMs = 5;
const concurrency = 4;

/** Accepted queries that cost a server the most: in compiling, in rows, in folding and in the size of the response. */
const heavyQueries: readonly { readonly name: string; readonly query: object }[] = [
  { name: 'trivial', query: { kind: 'DialectQuery', query: 'select 1' } },
  { name: '10,000 whole events', query: { kind: 'DialectQuery', query: 'select * from events limit 10000' } },
  {
    name: 'result just below the limit of size',
    query: {
      kind: 'DialectQuery',
      query: "select number, repeat('x', 3000) from numbers(10000) limit 10000",
    },
  },
  {
    name: 'IN of 10,000 values',
    query: {
      kind: 'DialectQuery',
      query: `select count() from events where event in (${Array.from({ length: 10_000 }, (_, n) => `'event ${String(n)}'`).join(', ')})`,
    },
  },
  {
    name: 'trends by hour with 1,000 lines',
    query: {
      kind: 'TrendsQuery',
      series: [{ kind: 'EventsNode', event: null }],
      interval: 'hour',
      dateRange: { date_from: '-7d' },
      breakdownFilter: { breakdown: 'distinct_id', breakdown_type: 'event_metadata', breakdown_limit: 1_000 },
    },
  },
];

/**
 * Sends the heaviest accepted queries, four at a time, and measures the memory of the server and how long it takes to
 * respond to a request that needs nothing: as long as its event loop is busy.
 */
export async function measureServerLoad(
  {
    stack,
    account,
    signal,
  }: { readonly stack: ScratchStack; readonly account: BenchAccount; readonly signal: AbortSignal },
  report: Report,
): Promise<readonly ServerLoadResult[]> {
  const { baseUrl, environment } = await exportdEnvironment(stack, 'load');
  const folder = stack.folder.path;
  const settings = {
    EXPORTD_QUERIES_PER_HOUR: '1000000',
    EXPORTD_QUERY_TIMEOUT: '10m',
    ...recordTurns(folder),
  };
  const send = async (query: object): Promise<{ status: number; bytes: number }> => {
    const response = await fetch(`${baseUrl}/api/projects/${String(account.teamId)}/query/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query, refresh: 'force_blocking' }),
      signal,
    });
    return { status: response.status, bytes: (await response.arrayBuffer()).byteLength };
  };
  return withExportd(
    { stack, baseUrl, environment, profileFolder: undefined },
    settings,
    async ({ server }) => {
      const results: ServerLoadResult[] = [];
      for (const { name, query } of heavyQueries) {
        resetPeakMemory(server.pid);
        const startedAt = performance.now();
        const longestTurn = measureTurns(folder, server.pid);
        const done = new AbortController();
        const silence = longestResponse(`${baseUrl}/healthz`, AbortSignal.any([signal, done.signal]));
        const responses = await Promise.all(Array.from({ length: concurrency }, () => send(query)));
        done.abort();
        const [response] = responses;
        results.push({
          name,
          status: response?.status ?? 0,
          response_bytes: response?.bytes ?? 0,
          ms: rounded(performance.now() - startedAt),
          longest_silence_ms: rounded(await silence),
          longest_turn_ms: rounded(longestTurn()),
          peak_memory_bytes: memoryOf(server.pid)?.peak ?? null,
        });
        report(`${name}: ${JSON.stringify(results.at(-1))}`);
      }
      return results;
    },
  );
}

/** The longest response time of a request that is sent again and again until the signal is aborted. */
async function longestResponse(url: string, signal: AbortSignal): Promise<number> {
  let longest = 0;
  while (!signal.aborted) {
    const sentAt = performance.now();
    await (await fetch(url)).arrayBuffer();
    longest = Math.max(longest, performance.now() - sentAt);
    await delay(pollMs);
  }
  return longest;
}
