/** A person who asks for whatever a worker or server does for a project, as fast as it answers. */
import { configOf } from '../destination/bucket_requests.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { hourAgo } from '../setup/hours.ts';
import { random } from './random.ts';
import { format, type Tenant } from './tenant.ts';

interface HostilePerson {
  /** The answers by request and status. */
  readonly answered: ReadonlyMap<string, number>;
  /** Stops asking. Resolves when the last requests have ended. */
  stop(): Promise<void>;
}

/** The requests of a person are at most this old when the person leaves. */
const maxPatienceMs = 60_000;

/**
 * Asks without a pause, `requests` at a time.
 * @param prefix of tests and previews
 * @param hours that have rows
 */
export function startHostilePerson(
  tenant: Tenant,
  of: {
    readonly exports: readonly [string, ...string[]];
    readonly bucket: TestBucket;
    readonly prefix: string;
    readonly hours: number;
    readonly requests: number;
  },
): HostilePerson {
  const { hours } = of;
  const answered = new Map<string, number>();
  const stopping = new AbortController();
  const destination = () => ({
    type: 'S3',
    config: configOf(of.bucket, {
      ...format,
      prefix: of.prefix,
      ...random.of([{}, { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' }]),
    }),
  });
  const definition = () => ({ name: 'New', model: 'events', interval: 'hour', destination: destination() });
  const start = (hour: number): string => hourAgo(hour).toISOString();
  const range = () => {
    const hour = 1 + random.below(hours);
    return { start_at: start(hour), end_at: start(Math.max(0, hour - 1 - random.below(4))) };
  };
  const runOf = async (id: string): Promise<string> => {
    const { text } = await tenant.call('GET', `/batch_exports/${id}/runs/?limit=20`);
    const { results = [] } = JSON.parse(text) as { results?: { id: string }[] };
    const [first, ...rest] = results;
    return first ? random.of([first, ...rest]).id : 'none';
  };

  const requests: readonly [Asked, ...Asked[]] = [
    (id) => ['GET', `/batch_exports/${id}/table`],
    (id) => ['GET', `/batch_exports/${id}/table/history?limit=${1 + random.below(100)}`],
    (id) => ['POST', `/batch_exports/${id}/table/check`, {}],
    (id) => ['POST', `/batch_exports/${id}/table/repair`, {}],
    (id) => [
      'POST',
      `/batch_exports/${id}/intervals/${start(1 + random.below(hours))}/verifications`,
      { deep: true },
    ],
    (id) => ['GET', `/batch_exports/${id}/intervals/${start(1 + random.below(hours))}/verifications`],
    () => ['POST', '/batch_exports/test/', { destination: destination() }],
    (id) => ['POST', `/batch_exports/${id}/test/`, {}],
    () => ['POST', '/batch_exports/check', definition()],
    (id) => ['POST', `/batch_exports/${id}/check`, { destination: destination() }],
    () => ['POST', '/batch_exports/preview', definition()],
    (id) => ['POST', `/batch_exports/${id}/estimate`, {}],
    (id) => ['POST', `/batch_exports/${id}/preview`, {}],
    () => ['GET', '/batch_exports/'],
    (id) => ['POST', `/batch_exports/${id}/backfill/`, range()],
    (id) => ['POST', `/batch_exports/${id}/backfill/`, range()],
    async (id) => ['POST', `/batch_exports/${id}/runs/${await runOf(id)}/retry`, {}],
    async (id) => ['POST', `/batch_exports/${id}/runs/${await runOf(id)}/cancel`, {}],
  ];

  const ask = async (): Promise<void> => {
    const id = random.of(of.exports);
    const [method, path, body] = await random.of(requests)(id);
    const patience = AbortSignal.timeout(random.below(maxPatienceMs));
    const signal = AbortSignal.any([patience, stopping.signal]);
    const outcome = await tenant
      .call(method, path, body, { signal, readOnly: method === 'GET' })
      .then(({ status }) => String(status))
      .catch(() => 'left');
    const name = `${method} ${path.replaceAll(/[\da-f-]{36}|\d{4}-[\d\-:.TZ]+|\?.*/g, '…')} ${outcome}`;
    answered.set(name, (answered.get(name) ?? 0) + 1);
  };
  const asking = Array.from({ length: of.requests }, async () => {
    while (!stopping.signal.aborted) await ask();
  });
  return {
    answered,
    stop: async () => {
      stopping.abort();
      await Promise.all(asking);
    },
  };
}

type Request = readonly [method: string, path: string, body?: unknown];
type Asked = (exportId: string) => Request | Promise<Request>;
