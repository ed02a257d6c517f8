import { isDeepStrictEqual } from 'node:util';
import { postgresConnection } from '../../queries/query_connection.ts';
import { QueryError } from '../../queries/query_errors.ts';
import type { QueryOutput, QueryContext } from '../../queries/query_kind.ts';
import { queryTransaction } from '../../queries/query_source.ts';
import type { QueryKinds } from '../../queries/registry.ts';
import type { SourceConnections } from '../../source/source_connection.ts';
import type { Skipped } from '../result.ts';
import { statisticsOf, medianOf, rounded } from '../statistics.ts';
import type { InsightResult } from './result.ts';
import type { Insight, InsightRange } from './insight.ts';

/** Dependencies of the query measurements. */
export interface QueryBench {
  readonly source: SourceConnections;
  readonly kinds: QueryKinds;
  readonly context: Omit<QueryContext, 'connection'>;
  readonly range: InsightRange;
  readonly repeat: number;
  readonly signal: AbortSignal;
}

const timeoutMs = 600_000;
const asText = { getTypeParser: () => (text: string) => text };

/** Duration in milliseconds and result of `work`. */
async function timed<Result>(
  work: () => Promise<Result>,
): Promise<{ readonly ms: number; readonly result: Result }> {
  const startedAt = performance.now();
  const result = await work();
  return { ms: performance.now() - startedAt, result };
}

/**
 * Alternates between exportd and the hand-written statement, on the same connection with the same settings. A first,
 * untimed execution of each compares their results.
 */
export async function measureInsight(bench: QueryBench, insight: Insight): Promise<InsightResult | Skipped> {
  const { source, kinds, context, range, repeat, signal } = bench;
  const request = insight.query(range);
  const { text, values } = insight.floor(range);
  const settings = queryTransaction(timeoutMs, context.project.team_id);
  const product = (): Promise<QueryOutput> =>
    source.read(settings, signal, ({ connection }) =>
      kinds.parse(request).run({ ...context, connection: postgresConnection(connection) }),
    );
  const floor = () =>
    source.read(settings, signal, async ({ connection }) => {
      const query = { text, values: [...values], rowMode: 'array' as const, types: asText };
      return (await connection.query<(string | null)[]>(query)).rows;
    });

  let output: QueryOutput;
  try {
    output = await product();
  } catch (error) {
    if (error instanceof QueryError) return { skipped: error.message };
    throw error;
  }
  const actual: unknown = JSON.parse(JSON.stringify(insight.actualOf(output)));
  const expected: unknown = JSON.parse(JSON.stringify(insight.expectedOf(await floor(), range)));
  const agrees = isDeepStrictEqual(actual, expected);

  const floors: number[] = [];
  const products: number[] = [];
  for (let number = 0; number < repeat; number += 1) {
    const measureFloor = async () => floors.push((await timed(floor)).ms);
    const measureProduct = async () => products.push((await timed(product)).ms);
    const inOrder = number % 2 === 0 ? [measureFloor, measureProduct] : [measureProduct, measureFloor];
    for (const measure of inOrder) await measure();
  }
  return {
    floor_ms: statisticsOf(floors),
    product_ms: statisticsOf(products),
    ratio: rounded(medianOf(products.map((ms, index) => ms / (floors[index] ?? Number.NaN)))),
    agrees,
    difference: agrees ? null : { floor: jsonPrefix(expected), product: jsonPrefix(actual) },
  };
}

const jsonPrefix = (output: unknown): string => JSON.stringify(output).slice(0, 300);
