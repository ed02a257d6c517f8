import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { paginateListObjectsV2 } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseManifest } from '../../src/destination/manifest.ts';
import { createKey } from '../../src/http/accounts.ts';
import { isSignedBy } from '../../src/http/proofs/signature.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { startDuckDb, type IndependentReader } from '../encoding/duckdb.ts';
import { createBucket } from '../setup/bucket.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { type BlockedEvent, blockEvent, type JournalGate } from './journal_gate.ts';
import { blockRequests } from './request_gate.ts';
import { readObject } from './rows.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const hours = 100;
const starts = Array.from({ length: hours }, (_, index) => hourAgo(hours + 1 - index).toISOString());
const others = 8;
/** Of one person, who has another device in each hour: an erasure takes a hundred ids at most. */
const mark = `erased-${randomUUID()}`;
const erasedIds = starts.map((_, index) => `${mark}-${index}`);

const exports = [
  { model: 'events', prefix: 'lines', config: { file_format: 'JSONLines', compression: 'gzip' } },
  { model: 'events', prefix: 'csv', config: { file_format: 'CSV', compression: 'zstd' } },
  { model: 'persons', prefix: 'parquet', config: { file_format: 'Parquet', compression: 'snappy' } },
] as const;

/** Where the worker is killed. `open`: lets what was blocked go on, without the worker. */
type CreateGate = (at: { readonly proxy: S3Proxy; readonly stack: Stack }) => Promise<JournalGate>;

const isManifest = ({ key }: ProxiedRequest): boolean => key.includes('/_manifests/');
/** The first generation has no number in its keys. */
const isNewFile = ({ key }: ProxiedRequest): boolean => /-g\d+\./.test(key);
const isOldFile = (request: ProxiedRequest): boolean => !isManifest(request) && !isNewFile(request);

const atRequest =
  (
    when: 'before' | 'after',
    operation: ProxiedRequest['operation'],
    isMeant: (request: ProxiedRequest) => boolean,
    then: 'is lost' | 'arrives later' = 'is lost',
  ): CreateGate =>
  ({ proxy }) => {
    const gate = blockRequests(proxy, `${when} ${operation}`, {
      when,
      matches: (request) => request.operation === operation && isMeant(request),
    });
    const open = (): Promise<void> => {
      gate.open(then === 'is lost' ? 'broken' : undefined);
      return Promise.resolve();
    };
    return Promise.resolve({ reached: gate.reached, open });
  };

const atEvent =
  (event: BlockedEvent): CreateGate =>
  ({ stack }) =>
    blockEvent(stack, event);

/** In the order in which an erasure reaches them: first those of each interval, then those of the end. */
const killPoints: Readonly<Record<string, CreateGate>> = {
  'before a file is searched': atRequest('before', 'GetObject', isOldFile),
  'while a file is searched': atRequest('after', 'GetObject', isOldFile),
  'before the rows that were found are recorded': atEvent({ type: 'ErasureIntervalFound' }),
  'before an export starts': atEvent({ type: 'RunExportStarted' }),
  'before a new file is sent': atRequest('before', 'PutObject', isNewFile),
  'while a new file is on its way': atRequest('before', 'PutObject', isNewFile, 'arrives later'),
  'after a new file was sent': atRequest('after', 'PutObject', isNewFile),
  'before a new file is recorded': atEvent({ type: 'RunFileCompleted' }),
  'while a new file is compared': atRequest('before', 'GetObject', isNewFile),
  'before an export is finished': atEvent({ type: 'RunExportFinished' }),
  'before publishing is claimed': atEvent({ type: 'RunPublishStarted' }),
  'before a manifest is sent': atRequest('before', 'PutObject', isManifest),
  'while a manifest is on its way': atRequest('before', 'PutObject', isManifest, 'arrives later'),
  'after a manifest was sent': atRequest('after', 'PutObject', isManifest),
  'before a run completes': atEvent({ type: 'RunCompleted' }),
  'before the end of an interval is recorded': atEvent({ type: 'ErasureIntervalEnded' }),
  'before an object is removed': atRequest('before', 'DeleteObject', isOldFile),
  'after an object was removed': atRequest('after', 'DeleteObject', isOldFile),
  'before a removal is recorded': atEvent({ type: 'RunObjectDeleted' }),
  'before the removals of an export are recorded': atEvent({ type: 'ErasureObjectsRemoved' }),
  'while the new files are verified': atRequest('before', 'GetObject', isNewFile),
  'while keys are forgotten': atEvent({ type: 'RunFileCompleted', while: 'UPDATE' }),
  'before the certificate is recorded': atEvent({ type: 'ErasureEnded' }),
};

/** Events and persons in each hour: the one that is erased is the first or the last of them. */
async function seed({ pool, projectId }: Stack): Promise<void> {
  await pool.query(
    `insert into events (team_id, uuid, event, distinct_id, properties, person_id, timestamp, created_at, inserted_at)
     select $1, gen_random_uuid(), 'event, "quoted"', case when n in (2, 5) then $4 || '-' || hour - 1 else 'person ' || n end,
       jsonb_build_object('n', n, 'text', 'ümläut " , ' || chr(9), 'number', 1.50), gen_random_uuid(), moment, moment, moment
     from unnest($2::timestamptz[]) with ordinality as hours (start, hour)
     cross join generate_series(1, $3::int + 2) n
     cross join lateral (select start + make_interval(mins => n * 5) as moment) m`,
    [projectId, starts, others, mark],
  );
  await pool.query(
    `with person as (
       insert into persons (team_id, id, properties, version, created_at, updated_at)
       select $1, gen_random_uuid(), jsonb_build_object('n', n), n, '2020-01-01', '2020-01-01'
       from generate_series(0, $3::int) n returning id, version)
     insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
     select $1, case when version = 0 then $4 || '-' || hour - 1 else 'person ' || version || ' of ' || hour end, id, 0,
       start + make_interval(mins => case when version = 0 then hour::int % 2 * 55 else 5 + version::int * 5 end)
     from person cross join unnest($2::timestamptz[]) with ordinality as hours (start, hour)`,
    [projectId, starts, others, mark],
  );
}

/** What DuckDB reads of all objects of the bucket. */
interface Found {
  /** The rows of each export, sorted. */
  readonly rows: ReadonlyMap<string, readonly string[]>;
  /** The objects that have the mark of the erased person. */
  readonly marked: readonly string[];
  readonly objects: readonly string[];
}

/** Reads every object of the bucket. @throws Error for one that is no file and no manifest */
async function readBucket({ bucket }: Stack, duckDb: IndependentReader): Promise<Found> {
  const folder = mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'bucket-'));
  const rows = new Map<string, string[]>();
  const marked: string[] = [];
  const keys: string[] = [];
  for await (const { Contents = [] } of paginateListObjectsV2(bucket, { Bucket: bucket.bucket }))
    keys.push(...Contents.map(({ Key = '' }) => Key));
  const manifests = keys.filter((key) => key.endsWith('.json'));
  const columns = new Map<string, ReturnType<typeof columnsOf>>();
  for (const key of keys) {
    const path = join(folder, key);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, await readObject(bucket, key));
    if (readFileSync(path).includes(mark)) marked.push(key);
    const [prefix = ''] = key.split('/');
    if (manifests.includes(key)) columns.set(prefix, columnsOf(readFileSync(path, 'utf8')));
  }
  for (const key of keys.filter((one) => !manifests.includes(one))) {
    const [prefix = ''] = key.split('/');
    const path = join(folder, key);
    const ofExport = columns.get(prefix) ?? [];
    const read = {
      lines: async () => (await duckDb.jsonTexts(path)).map((line) => [line]),
      csv: () => duckDb.csv(path, ofExport),
      parquet: () => duckDb.parquet(path, ofExport),
    }[prefix];
    if (!read) throw new Error(`${key} is of no export.`);
    const found = (await read()).map((row) => JSON.stringify(row));
    if (found.some((row) => row.includes(mark))) marked.push(key);
    rows.set(prefix, [...(rows.get(prefix) ?? []), ...found]);
  }
  return {
    rows: new Map([...rows].map(([prefix, found]) => [prefix, found.sort()])),
    marked: [...new Set(marked)],
    objects: keys,
  };
}

function columnsOf(manifest: string) {
  const parsed = parseManifest(manifest);
  if (!parsed) throw new Error('It is no manifest.');
  return parsed.columns as readonly ExportedColumn[];
}

interface Erasure {
  readonly id: string;
  readonly status: string;
  readonly progress: Readonly<Record<string, number>>;
  readonly failed: readonly object[];
  readonly held: readonly object[];
  readonly certificate: Readonly<Record<string, unknown>> & {
    readonly verified: readonly { readonly findings: number; readonly manifests: number }[];
  };
  readonly signature: Parameters<typeof isSignedBy>[1];
}

describe('erasing a person who is in 300 intervals, while the worker is killed again and again', () => {
  let stack: Stack;
  let proxy: S3Proxy;
  let duckDb: IndependentReader;
  let exportIds: string[];
  let before: Found;
  let after: Found;
  let erasure: Erasure;
  const reached: string[] = [];

  beforeAll(async () => {
    duckDb = await startDuckDb();
    const bucket = await createBucket();
    proxy = await createS3Proxy(bucket.endpoint);
    stack = await startStack(
      'erase-persons',
      { ...failoverWorkers, EXPORTD_ACTIVITY_RETRY_MAX: '500ms' },
      { bucket: { ...bucket, endpoint: proxy.endpoint } },
    );
    await seed(stack);
    exportIds = await Promise.all(
      exports.map(({ model, prefix, config }) => stack.createExport({ model }, { ...config, prefix })),
    );
    const range = { start_at: starts[0], end_at: hourAgo(1).toISOString() };
    for (const id of exportIds) await stack.call('POST', `/batch_exports/${id}/backfill/`, range);
    let completed = 0;
    await waitFor(
      async () => {
        const { rows } = await stack.pool.query<{ completed: number }>(
          `select count(*)::int as completed from exportd.batch_export_runs where status = 'Completed'`,
        );
        completed = rows[0]?.completed ?? 0;
        return completed === hours * exports.length;
      },
      () => `all intervals are exported; ${completed} are`,
      400_000,
    );
    before = await readBucket(stack, duckDb);

    const { rows } = await stack.pool.query<{ id: number }>('select id from exportd.users');
    const { key } = await createKey(stack.pool, {
      user_id: rows[0]?.id ?? 0,
      project_ids: [stack.projectId],
      scopes: ['erasure:read', 'erasure:write'],
    });
    const call = async (method: string, path: string, body?: object): Promise<Erasure> => {
      const response = await stack.call(method, path, body, { authorization: `Bearer ${key}` });
      if (response.status >= 400) throw new Error(response.text);
      return response.body as unknown as Erasure;
    };
    const points = Object.entries(killPoints);
    const [first] = points;
    let gate = await first?.[1]({ proxy, stack });
    const { id } = await call('POST', '/erasures/', { distinct_ids: erasedIds });
    for (const [index, [name]] of points.entries()) {
      await gate?.reached();
      reached.push(name);
      await stack.killWorker();
      await gate?.open();
      // Nothing gets past the next point meanwhile.
      gate = await points[index + 1]?.[1]({ proxy, stack });
      await stack.startWorker();
    }
    await waitFor(
      async () => {
        erasure = await call('GET', `/erasures/${id}/`);
        return erasure.status !== 'Running';
      },
      () => `the erasure ends: ${JSON.stringify(erasure.progress)}`,
    );
    after = await readBucket(stack, duckDb);
  }, 1_800_000);
  afterAll(async () => {
    duckDb.close();
    await stack.stop();
    await proxy.close();
  });

  it('resumes at every point', () => {
    expect(reached).toEqual(Object.keys(killPoints));
    expect(reached.length).toBeGreaterThanOrEqual(20);
  });

  it('leaves no trace in any object of the bucket', () => {
    // The same search finds a file of each interval before, and the manifests of persons, whose keys are the ids.
    expect(before.marked).toHaveLength(hours * (exports.length + 1));
    expect(before.objects).toHaveLength(2 * hours * exports.length);
    expect(after.marked).toEqual([]);
    expect(after.objects).toHaveLength(2 * hours * exports.length);
  });

  it('leaves no trace in the control database', async () => {
    const { rows } = await stack.pool.query<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'exportd' and table_type = 'BASE TABLE'`,
    );
    const marked: string[] = [];
    for (const { name } of rows) {
      const found = await stack.pool.query(
        `select from exportd."${name}" as stored where strpos(stored::text, $1) > 0 limit 1`,
        [mark],
      );
      if (found.rowCount !== 0) marked.push(name);
    }
    expect(marked).toEqual([]);
  });

  it.each(exports)('leaves every other row of $prefix as it was', ({ prefix, model }) => {
    const [all, left] = [before.rows.get(prefix) ?? [], after.rows.get(prefix) ?? []];
    expect(all).toHaveLength(hours * (others + (model === 'events' ? 2 : 1)));
    expect(left).toEqual(all.filter((row) => !row.includes(mark)));
  });

  it('is certified, and verified', async () => {
    const { certificate, signature } = erasure;
    expect(erasure).toMatchObject({ status: 'Completed', failed: [], held: [] });
    expect(certificate).toMatchObject({
      status: 'Completed',
      rows_erased: hours * 5,
      failed: [],
    });
    // Those of killed attempts are among them.
    expect(certificate.objects_removed).toBeGreaterThanOrEqual(hours * exports.length);
    expect(isSignedBy(certificate, signature)).toBe(true);
    expect(isSignedBy({ ...certificate, rows_erased: 1 }, signature)).toBe(false);
    expect(certificate.verified.map(({ findings, manifests }) => [findings, manifests])).toEqual(
      exports.map(() => [0, hours]),
    );
    for (const id of exportIds) expect((await verifyExport(stack, id)).findings).toEqual([]);
  });
});
