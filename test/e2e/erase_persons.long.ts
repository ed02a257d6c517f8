import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { randomUUID } from 'node:crypto';
import {
  GetObjectCommand,
  ListObjectVersionsCommand,
  paginateListObjectsV2,
  PutBucketVersioningCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parseManifest } from '../../src/destination/manifest.ts';
import { createKey } from '../../src/http/accounts.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { startDuckDb, type IndependentReader } from '../encoding/duckdb.ts';
import { createBucket } from '../setup/bucket.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { failoverWorkers } from '../setup/timeouts.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import { type BlockedEvent, blockEvent, type JournalGate } from './journal_gate.ts';
import { type OwnObjectStore, startOwnObjectStore } from './own_object_store.ts';
import { blockRequests } from './request_gate.ts';
import { readObject } from './rows.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from './s3_proxy.ts';
import { startStack, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const others = 8;
/** Of one person, who has another device in each hour: an erasure takes a hundred ids at most. */
const mark = `erased-${randomUUID()}`;

const events = { model: 'events', perHour: others + 2, erasedPerHour: 2 } as const;
const persons = { model: 'persons', perHour: others + 1, erasedPerHour: 1 } as const;
const exportsOf = {
  lines: { ...events, config: { file_format: 'JSONLines', compression: 'gzip' } },
  csv: { ...events, config: { file_format: 'CSV', compression: 'zstd' } },
  parquet: { ...persons, config: { file_format: 'Parquet', compression: 'snappy' } },
  delta: { ...events, config: { file_format: 'Parquet', compression: 'snappy', table_format: 'delta' } },
} as const;
type ExportName = keyof typeof exportsOf;

/** What is erased, and where workers are killed meanwhile. */
interface Scenario {
  readonly hours: number;
  readonly names: readonly ExportName[];
  readonly keepsVersions: boolean;
  /** In the order in which an erasure reaches them. @param first the export whose objects are removed first */
  readonly killPoints: (first: ExportName) => Readonly<Record<string, CreateGate>>;
}

/** Where the worker is killed. `open`: lets what was blocked go on, without the worker. */
type CreateGate = (at: { readonly proxy: S3Proxy; readonly stack: Stack }) => Promise<JournalGate>;

const isManifest = ({ key }: ProxiedRequest): boolean => key.includes('/_manifests/');
const isCommit = ({ key }: ProxiedRequest): boolean => /\/_delta_log\/\d+\.json$/.test(key);
const isCheckpoint = ({ key }: ProxiedRequest): boolean => key.endsWith('.checkpoint.parquet');
const isVersion = ({ versionId }: ProxiedRequest): boolean => versionId !== null;
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

/** First those of each interval, then those of the end. */
const usualKillPoints: Readonly<Record<string, CreateGate>> = {
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

const tableKillPoints: Readonly<Record<string, CreateGate>> = {
  'before the versions of a table are forgotten': atRequest('before', 'PutObject', isCheckpoint),
  'after a checkpoint without them': atRequest('after', 'PutObject', isCheckpoint),
  'before a version of a table is deleted': atRequest('before', 'DeleteObject', isCommit),
  'after a version of a table was deleted': atRequest('after', 'DeleteObject', isCommit),
};
const versionKillPoints: Readonly<Record<string, CreateGate>> = {
  'before versions of manifests are listed': atRequest('before', 'ListObjectVersions', () => true),
  'before a version of a manifest is read': atRequest(
    'before',
    'GetObject',
    (request) => isManifest(request) && isVersion(request),
  ),
  'before a version of a manifest is deleted': atRequest(
    'before',
    'DeleteObject',
    (request) => isManifest(request) && isVersion(request),
  ),
  'after a version of a manifest was deleted': atRequest(
    'after',
    'DeleteObject',
    (request) => isManifest(request) && isVersion(request),
  ),
};

/** Events and persons in each hour: the one that is erased is the first or the last of them. */
async function seed({ pool, projectId }: Stack, starts: readonly string[]): Promise<void> {
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
  /** The objects that have the mark of the erased person, and the replaced versions that have it. */
  readonly marked: readonly string[];
  /** All current objects. */
  readonly objects: readonly string[];
  /** The keys of versions that are not current, and of no log. */
  readonly former: readonly string[];
}

const isOfLog = (key: string): boolean => key.includes('/_delta_log/');

/** Reads every object of the bucket, in every version. @throws Error for one that is no file, no manifest and of no log */
async function readBucket({ bucket }: Stack, duckDb: IndependentReader): Promise<Found> {
  const folder = mkdtempSync(join(fromSetUp('EXPORTD_TEST_FOLDER'), 'bucket-'));
  const rows = new Map<string, string[]>();
  const marked: string[] = [];
  const keys: string[] = [];
  for await (const { Contents = [] } of paginateListObjectsV2(bucket, { Bucket: bucket.bucket }))
    keys.push(...Contents.map(({ Key = '' }) => Key));
  const former: string[] = [];
  const { Versions = [], IsTruncated } = await bucket.client.send(
    new ListObjectVersionsCommand({ Bucket: bucket.bucket }),
  );
  for (const { Key = '', VersionId = '', IsLatest } of Versions) {
    if (IsLatest === true) continue;
    const { Body } = await bucket.client.send(
      new GetObjectCommand({ Bucket: bucket.bucket, Key, VersionId }),
    );
    if (Buffer.from((await Body?.transformToByteArray()) ?? []).includes(mark)) marked.push(Key);
    if (!isOfLog(Key)) former.push(Key);
  }
  // A bucket without versions has more objects than one list.
  if (IsTruncated === true && former.length > 0) throw new Error('There are too many versions.');
  const manifests = keys.filter((key) => key.endsWith('.json') && !isOfLog(key));
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
    if (isCheckpoint({ key } as ProxiedRequest)) {
      const log = await duckDb.parquet(path, [{ name: 'add', type: 'json' }]);
      if (log.some((row) => String(row).includes(mark))) marked.push(key);
    }
    if (isOfLog(key)) continue;
    const ofExport = columns.get(prefix) ?? [];
    const parquet = () => duckDb.parquet(path, ofExport);
    const read = {
      lines: async () => (await duckDb.jsonTexts(path)).map((line) => [line]),
      csv: () => duckDb.csv(path, ofExport),
      ...{ parquet, delta: parquet },
    }[prefix];
    if (!read) throw new Error(`${key} is of no export.`);
    const found = (await read()).map((row) => JSON.stringify(row));
    if (found.some((row) => row.includes(mark))) marked.push(key);
    rows.set(prefix, [...(rows.get(prefix) ?? []), ...found]);
  }
  return {
    rows: new Map([...rows].map(([prefix, found]) => [prefix, found.sort()])),
    marked: [...new Set(marked)],
    ...{ objects: keys, former },
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
}

const scenarios: Readonly<Record<string, Scenario>> = {
  'who is in 300 intervals': {
    ...{ hours: 100, names: ['lines', 'csv', 'parquet'], keepsVersions: false },
    killPoints: () => usualKillPoints,
  },
  'of a table, in a bucket that keeps versions': {
    ...{ hours: 6, names: ['delta', 'parquet'], keepsVersions: true },
    killPoints: (first) => ({
      'before a commit to a table': atRequest('before', 'PutObject', isCommit),
      'after a commit to a table': atRequest('after', 'PutObject', isCommit),
      ...(first === 'delta'
        ? { ...tableKillPoints, ...versionKillPoints }
        : { ...versionKillPoints, ...tableKillPoints }),
      'before the certificate is recorded': atEvent({ type: 'ErasureEnded' }),
    }),
  },
};

describe.each(Object.entries(scenarios))('erasing a person %s, while workers are killed', (_, scenario) => {
  const { hours, names, keepsVersions } = scenario;
  const starts = Array.from({ length: hours }, (_, index) => hourAgo(hours + 1 - index).toISOString());
  const erasedIds = starts.map((_, index) => `${mark}-${index}`);
  let stack: Stack;
  let proxy: S3Proxy;
  let own: OwnObjectStore | undefined;
  let duckDb: IndependentReader;
  let exportIds: string[];
  let before: Found;
  let after: Found;
  let erasure: Erasure;
  let points: [string, CreateGate][];
  const reached: string[] = [];

  beforeAll(async () => {
    duckDb = await startDuckDb();
    if (keepsVersions) own = await startOwnObjectStore({ keepsVersions });
    const bucket = own?.bucket ?? (await createBucket());
    if (keepsVersions)
      await bucket.client.send(
        new PutBucketVersioningCommand({
          Bucket: bucket.bucket,
          VersioningConfiguration: { Status: 'Enabled' },
        }),
      );
    proxy = await createS3Proxy(bucket.endpoint);
    stack = await startStack(
      keepsVersions ? 'erase-versions' : 'erase-persons',
      { ...failoverWorkers, EXPORTD_ACTIVITY_RETRY_MAX: '500ms' },
      { bucket: { ...bucket, endpoint: proxy.endpoint } },
    );
    await seed(stack, starts);
    exportIds = await Promise.all(
      names.map((prefix) => {
        const { model, config } = exportsOf[prefix];
        return stack.createExport({ model }, { ...config, prefix });
      }),
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
        return completed === hours * names.length;
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
    const first = names[exportIds.indexOf(exportIds.toSorted()[0] ?? '')] ?? 'lines';
    points = Object.entries(scenario.killPoints(first));
    let gate = await points[0]?.[1]({ proxy, stack });
    const { id } = await call('POST', '/erasures/', { distinct_ids: erasedIds });
    for (const [index, [point]] of points.entries()) {
      await gate?.reached();
      reached.push(point);
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
    await own?.close();
  });

  it('resumes at every point', () => {
    expect(reached).toEqual(points.map(([point]) => point));
    expect(reached.length).toBeGreaterThanOrEqual(keepsVersions ? 10 : 20);
  });

  it('leaves no trace in any object of the bucket, in any version', () => {
    // The same search finds a file of each interval before, and the manifests of persons, whose keys are the ids.
    expect(before.marked).toHaveLength(hours * (names.length + 1));
    const isOfInterval = (key: string): boolean => !isOfLog(key);
    expect(before.objects.filter(isOfInterval)).toHaveLength(2 * hours * names.length);
    expect(after.marked).toEqual([]);
    expect(after.objects.filter(isOfInterval)).toHaveLength(2 * hours * names.length);
    expect(after.former.filter((key) => !key.includes('/_manifests/'))).toEqual([]);
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

  it.each(names)('leaves every other row of %s as it was', (prefix) => {
    const [all, left] = [before.rows.get(prefix) ?? [], after.rows.get(prefix) ?? []];
    expect(all).toHaveLength(hours * exportsOf[prefix].perHour);
    expect(left).toEqual(all.filter((row) => !row.includes(mark)));
  });

  for (const prefix of names.filter((one) => one === 'delta'))
    it('leaves the table with its newest version alone', async () => {
      const table = createDeltaReader(stack.bucket, prefix);
      const { perHour, erasedPerHour } = exportsOf[prefix];
      expect(await table.rows()).toHaveLength(hours * (perHour - erasedPerHour));
      expect(await table.versions()).toHaveLength(1);
      const live = [...(await table.live()).keys()].map((path) => `${prefix}/${decodeURIComponent(path)}`);
      const files = after.objects.filter(
        (key) => key.startsWith(`${prefix}/`) && !isOfLog(key) && !key.endsWith('.json'),
      );
      expect(live.toSorted()).toEqual(files.toSorted());
    });

  it('is certified, and verified', async () => {
    const { certificate } = erasure;
    expect(erasure).toMatchObject({ status: 'Completed', failed: [], held: [] });
    const perHour = names.reduce((sum, prefix) => sum + exportsOf[prefix].erasedPerHour, 0);
    expect(certificate).toMatchObject({ status: 'Completed', rows_erased: hours * perHour, failed: [] });
    // Those of killed attempts are among them.
    expect(certificate.objects_removed).toBeGreaterThanOrEqual(hours * names.length);
    const sum = (of: 'findings' | 'manifests') =>
      certificate.verified.reduce((total, verified) => total + verified[of], 0);
    expect([sum('findings'), sum('manifests')]).toEqual([0, hours * names.length]);
    for (const id of exportIds) expect((await verifyExport(stack, id)).findings).toEqual([]);
  });
});
