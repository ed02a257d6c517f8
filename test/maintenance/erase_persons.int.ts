import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListObjectVersionsCommand,
  PutBucketVersioningCommand,
  PutObjectRetentionCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { collapseHistory } from '../../src/decisions/collapse_history.ts';
import { requestErasure } from '../../src/decisions/erasures.ts';
import { createErasedIdReader } from '../../src/destination/erased_ids.ts';
import type { OpenDestination } from '../../src/destination/open_destination.ts';
import { type Manifest, parseManifest } from '../../src/destination/manifest.ts';
import type { Model } from '../../src/domain/batch_export.ts';
import { checkRunBarrier, countRows } from '../../src/export/count.ts';
import { advanceErasure } from '../../src/maintenance/erase_persons.ts';
import { createLogger } from '../../src/telemetry/logger.ts';
import { decompress } from '../../src/verify/files/decompress.ts';
import { extensionsOf, readRows } from '../../src/verify/files/read_rows.ts';
import { verifyBatchExport } from '../../src/verify/verify_batch_export.ts';
import { quickPolicies } from '../decisions/commander.ts';
import { type OwnObjectStore, startOwnObjectStore } from '../e2e/own_object_store.ts';
import { createS3Proxy, type S3Proxy } from '../e2e/s3_proxy.ts';
import { type Interruptions, withCrash } from '../export/crash_injection.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { errorResponse } from '../export/stores.ts';
import type { TestBucket } from '../setup/bucket.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import { createMaintenanceHarness, type MaintenanceHarness } from './maintenance_harness.ts';

const hours = [10, 11].map((hour) => ({
  start: `2026-01-01T${hour}:00:00.000Z`,
  end: `2026-01-01T${hour + 1}:00:00.000Z`,
}));
const [firstHour] = hours as [(typeof hours)[number]];

let harness: ExportHarness;
let maintenance: MaintenanceHarness;
beforeAll(async () => {
  harness = await createExportHarness();
  maintenance = createMaintenanceHarness(harness);
});
afterAll(() => harness.close());

/** A project with events and persons in each hour: `erased` and others. */
async function seed(erased: string): Promise<void> {
  const { pool } = harness.database;
  await pool.query('truncate events, persons, person_distinct_ids');
  await pool.query('delete from exportd.erased_ids');
  // An erasure searches all exports of its project.
  await pool.query('update exportd.batch_exports set team_id = 2 where team_id = 1');
  const others = 40;
  for (const { start } of hours)
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, elements_chain, person_id, timestamp, created_at, inserted_at)
       select 1, gen_random_uuid(), 'event ' || n % 3 || ', "quoted"' || chr(10), case when n % 8 = 0 then $2 else 'person ' || n end,
         jsonb_build_object('n', n, 'text', 'ümläut " , ' || chr(9), 'number', 1.50, 'nested', jsonb_build_array(null, true)),
         case when n % 3 = 0 then '' else 'a,b' end, gen_random_uuid(), moment, moment, moment
       from generate_series(1, $3::int) n
       cross join lateral (select $1::timestamptz + make_interval(secs => 3600.0 * (n - 1) / $3, mins => 0) as moment) m`,
      [start, erased, others],
    );
  await pool.query(
    `with numbered as (
       select n, gen_random_uuid() as id, $1::timestamptz + make_interval(mins => n * 2) as moment from generate_series(0, 50) n),
     inserted as (
       insert into persons (team_id, id, properties, version, created_at, updated_at)
       select 1, id, jsonb_build_object('n', n), n, moment, moment from numbered)
     insert into person_distinct_ids (team_id, distinct_id, person_id, version, updated_at)
     select 1, case when n = 29 then $2 else 'person ' || n end, id, 0, moment from numbered`,
    [firstHour.start, erased],
  );
}

/** Exports both hours. */
async function exportHours(
  model: Model,
  config: object,
  batchExportId: string = randomUUID(),
): Promise<string> {
  for (const of of hours) {
    const prefix = 'partition_by' in config ? { prefix: batchExportId } : {};
    const run = await harness.createRun({ batchExportId, model, of, config: { ...config, ...prefix } });
    const activities = harness.attempt();
    const counting = { run_id: run.run_id, settled: true, blocked_by: [] };
    await countRows(harness, counting, new AbortController().signal);
    await activities.exportInterval(run);
    await activities.publishManifest(run);
  }
  await maintenance.createExport(batchExportId, hours.length, model);
  return batchExportId;
}

/** Exports hours again, after persons have moved to a later interval, so that the files of the former generation stay. */
async function movePersons(
  batchExportId: string,
  numbers: readonly number[],
  config: object,
  again: readonly (typeof hours)[number][] = hours,
): Promise<void> {
  await harness.database.pool.query(
    `update persons set updated_at = $1 where (properties ->> 'n')::int = any($2)`,
    [hours.at(-1)?.end, numbers],
  );
  const { rows } = await harness.database.pool.query<{ model: Model }>(
    'select model from exportd.batch_exports where id = $1',
    [batchExportId],
  );
  for (const of of again) {
    const run = await harness.createRun({ batchExportId, model: rows[0]?.model ?? 'events', of, config });
    const activities = harness.attempt();
    await activities.exportInterval(run);
    await activities.publishManifest(run);
  }
}

const objectOf = async (Key: string, { client, bucket: Bucket } = harness.bucket): Promise<Buffer> => {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
  return Buffer.from((await Body?.transformToByteArray()) ?? []);
};

const manifestsOf = async (batchExportId: string): Promise<Manifest[]> => {
  const manifests: Manifest[] = [];
  for (const key of await maintenance.keysOf(batchExportId)) {
    const manifest = key.endsWith('.json') ? parseManifest((await objectOf(key)).toString()) : undefined;
    if (manifest) manifests.push(manifest);
  }
  return manifests;
};

type Values = readonly (string | null | undefined)[];

const earlierOf = ({ earlier }: Manifest) => earlier;

/** All values of all rows of an export, as the readers of `verify` return them. @param of which files of its manifests */
async function rowsOf(
  batchExportId: string,
  of: (manifest: Manifest) => readonly Pick<Manifest['files'][number], 'key' | 'rows' | 'bytes'>[] = ({
    files,
  }) => files,
): Promise<Values[]> {
  const rows: Values[] = [];
  for (const manifest of await manifestsOf(batchExportId))
    for (const file of of(manifest)) {
      const { columns, model } = manifest;
      const bytes = await objectOf(file.key);
      async function* chunks(): AsyncGenerator<Buffer> {
        yield await Promise.resolve(bytes);
      }
      const id = model === 'events' ? 'uuid' : 'distinct_id';
      for await (const { values } of readRows(file, chunks(), { id, columns, whole: true }))
        rows.push(values);
    }
  return rows;
}

/** What disturbs an erasure. */
interface Disturbance {
  /** Crashes the first attempt at a run. */
  readonly crash?: keyof Interruptions;
  /** Called before the first attempt at a run. */
  readonly before?: () => Promise<void>;
  /** Changes the bytes of files before they are written. */
  readonly change?: (body: Buffer) => Buffer;
  /** Of the worker. */
  readonly settings?: object;
}

/** Runs an erasure to its end, as its workflow does. */
async function erase(
  distinctId: string,
  { crash, before, change, settings: more }: Disturbance = {},
): Promise<string> {
  const { journal, keyRing, database, source, readSelection, openLocation, recorder } = harness;
  const id = await requestErasure(journal, keyRing, {
    team_id: 1,
    user_id: 1,
    distinct_ids: [distinctId],
  });
  const settings = { ...harness.settings, SOURCE_DATABASE_URL: database.url, ...more };
  const execute = async (run_id: string): Promise<void> => {
    const counting = { recorder, source, readSelection, settings };
    const { counted } = await checkRunBarrier(
      counting,
      { run_id, state: { phase: 'settling' } },
      new AbortController().signal,
    );
    await before?.();
    const crashing = crash && harness.attempt(withCrash(harness, crash));
    [crash, before] = [undefined, undefined];
    const usual = harness.attempt(change && { openDestination: changing(change) });
    for (const activities of [crashing, usual].filter((one) => one !== undefined))
      try {
        if (counted?.rows === 0) await activities.publishManifest({ run_id });
        else await activities.exportInterval({ run_id, publishes: true });
      } catch (error) {
        if (activities !== crashing) throw error;
      }
  };
  const { maintenance: policy } = quickPolicies({});
  for (let step = 0; step < 200; step += 1) {
    const { ended } = await advanceErasure(
      {
        ...{ journal, keyRing, source, readSelection, openLocation, settings },
        policies: { maintenance: policy },
        readErasedIds: createErasedIdReader(database.pool, keyRing),
        backfills: { start: () => Promise.resolve() },
        logger: createLogger('test', { EXPORTD_LOG_LEVEL: 'silent' }),
        runs: {
          start: async ({ run_id }) => {
            await execute(run_id).catch((error: unknown) =>
              endRun(journal, quickPolicies({}), run_id, {
                status: 'Failed',
                latest_error: errorText(error),
              }),
            );
            return true;
          },
        },
      },
      id,
      { progress: { rows: 0 }, signal: new AbortController().signal },
    );
    if (ended) return id;
  }
  throw new Error('The erasure did not end.');
}

/** A destination that does not write what it is given. */
const changing =
  (change: (body: Buffer) => Buffer): OpenDestination =>
  async (...input) => {
    const real = await harness.openDestination(...input);
    return { ...real, putFile: (file, body, signal) => real.putFile(file, change(body), signal) };
  };

const errorText = (error: unknown): string =>
  error instanceof Error && 'type' in error ? `${String(error.type)}: ${error.message}` : String(error);

const erasureOf = async (id: string) => {
  const { rows } = await harness.database.pool.query<{
    status: string;
    rows_erased: number;
    held: readonly object[];
    certificate: {
      failed: readonly object[];
      verified: readonly { findings: number }[];
    };
  }>('select status, rows_erased, held, certificate from exportd.erasures where id = $1', [id]);
  const [found] = rows;
  if (!found) throw new Error('There is no such erasure.');
  return found;
};

const verify = (batchExportId: string) =>
  verifyBatchExport(
    {
      ...{ pool: harness.database.pool, keyRing: harness.keyRing, settings: harness.settings },
      ...{ sourceUrl: harness.database.url, onError: () => undefined },
    },
    { batchExportId, deep: true, from: firstHour.start, to: hours.at(-1)?.end },
  );

/** The lines of the text files of an export, unpacked. */
async function linesOf(batchExportId: string): Promise<string[]> {
  const texts: string[] = [];
  for (const { files } of await manifestsOf(batchExportId))
    for (const { key } of files) texts.push((await unpacked(key)).toString());
  return texts.join('').split(/(?<=\n)(?=\{|uuid,|[0-9a-f]{8}-[0-9a-f]{4}-)/);
}

async function unpacked(key: string, bucket = harness.bucket): Promise<Buffer> {
  const { codec } = extensionsOf(key);
  return buffer(decompress(Readable.from([await objectOf(key, bucket)]), codec));
}

/** The objects of an export that have a text somewhere, unpacked. */
async function objectsWith(batchExportId: string, text: string): Promise<string[]> {
  const found: string[] = [];
  for (const key of await maintenance.keysOf(batchExportId))
    if ((await unpacked(key)).includes(text)) found.push(key);
  return found;
}

/** The tables of the control database that have a text somewhere. */
async function tablesWith(text: string): Promise<string[]> {
  const { pool } = harness.database;
  const { rows } = await pool.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'exportd' and table_type = 'BASE TABLE'`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const { rowCount } = await pool.query(
      `select from exportd.${name} as stored where strpos(stored::text, $1) > 0 limit 1`,
      [text],
    );
    if (rowCount !== 0) found.push(name);
  }
  return found;
}

/** The keys of the files that readers of the manifests of an export read. */
const readKeys = async (batchExportId: string): Promise<string[]> =>
  (await manifestsOf(batchExportId))
    .flatMap(({ files, earlier }) => [...files, ...earlier])
    .map(({ key }) => key)
    .toSorted();

const jsonLines = { file_format: 'JSONLines', compression: 'gzip' };
const partitioned = { ...jsonLines, partition_by: ['date', 'hour', 'event'] };
const delta = { file_format: 'Parquet', compression: null, table_format: 'delta' };

describe('erasing a person', () => {
  it.each([
    ['events as JSON lines', 'events', jsonLines],
    ['events as CSV', 'events', { file_format: 'CSV', compression: 'zstd' }],
    ['events of a Delta table', 'events', delta],
    ['events partitioned by their names', 'events', partitioned],
    ['persons as JSON lines', 'persons', { file_format: 'JSONLines', compression: null }],
    ['persons as Parquet', 'persons', { file_format: 'Parquet', compression: 'snappy' }],
  ] as const)('takes their rows, and no other, from %s', async (_, model, config) => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours(model, config);
    const isText = config.file_format !== 'Parquet';
    const [before, lines] = [await rowsOf(batchExportId), isText ? await linesOf(batchExportId) : []];
    const id = await erase(erased);
    expect(await erasureOf(id)).toMatchObject({ status: 'Completed', held: [], certificate: { failed: [] } });
    const others = before.filter((values) => !values.includes(erased));
    expect(others.length).toBeLessThan(before.length);
    expect(await rowsOf(batchExportId)).toEqual(others);
    // Byte by byte.
    expect(isText ? await linesOf(batchExportId) : []).toEqual(
      lines.filter((line) => !line.includes(erased)),
    );
    expect(await objectsWith(batchExportId, erased)).toEqual([]);
    expect(await tablesWith(erased)).toEqual([]);
    const data = (await maintenance.keysOf(batchExportId)).filter(
      (key) => !key.endsWith('.json') && !key.includes('_delta_log/'),
    );
    const named = (await manifestsOf(batchExportId)).flatMap(({ files }) => files.map(({ key }) => key));
    expect(data.toSorted()).toEqual(named.toSorted());
    expect((await verify(batchExportId)).findings).toEqual([]);
  });

  it.each([
    ['after a file was sent', 'written', jsonLines],
    ['before the manifest', 'putManifest', jsonLines],
    ['after the manifest', 'published', jsonLines],
    ['before a commit to the table', 'commit', delta],
    ['after a commit to the table', 'committed', delta],
  ] as const)('continues after its worker was killed %s', async (_, crash, config) => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('events', config);
    const others = (await rowsOf(batchExportId)).filter((values) => !values.includes(erased));
    expect(await erasureOf(await erase(erased, { crash }))).toMatchObject({ status: 'Completed' });
    expect(await rowsOf(batchExportId)).toEqual(others);
    expect(await objectsWith(batchExportId, erased)).toEqual([]);
    expect((await verify(batchExportId)).findings).toEqual([]);
  });

  it('keeps them out of later exports, while the source has their rows', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('events', jsonLines);
    const id = await erase(erased);
    const rows = await rowsOf(batchExportId);
    const again = await harness.createRun({ batchExportId, config: jsonLines });
    const activities = harness.attempt();
    await activities.exportInterval(again);
    await activities.publishManifest(again);
    expect(await rowsOf(batchExportId)).toEqual(rows);
    expect((await verify(batchExportId)).findings).toEqual([]);
    expect((await erasureOf(id)).rows_erased).toBe(10);
  });

  it('writes what their history was collapsed to in the ledger', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('events', jsonLines);
    const others = (await rowsOf(batchExportId)).filter((values) => !values.includes(erased));
    await collapseHistory(
      harness.journal,
      { historyMs: 0, deletedExportMs: undefined, idempotencyKeyMs: 0, newestRuns: 0 },
      () => false,
    );
    const { rowCount } = await harness.database.pool.query(
      'select from exportd.batch_export_runs where batch_export_id = $1',
      [batchExportId],
    );
    expect(rowCount).toBe(0);
    expect(await erasureOf(await erase(erased))).toMatchObject({
      status: 'Completed',
      rows_erased: 10,
      certificate: { failed: [] },
    });
    expect(await rowsOf(batchExportId)).toEqual(others);
    expect(await objectsWith(batchExportId, erased)).toEqual([]);
    expect(await maintenance.keysOf(batchExportId)).toHaveLength(2 * hours.length);
    expect((await verify(batchExportId)).findings).toEqual([]);
  });

  const csv = { file_format: 'CSV', compression: null };
  it.each([
    ['as JSON lines', jsonLines, csv],
    ['as Parquet', { file_format: 'Parquet', compression: 'snappy' }, csv],
    ['in the format of the newest', jsonLines, jsonLines],
    ['that a Delta table has', delta, delta],
    ['that are sent in parts', { file_format: 'JSONLines', compression: null, large: true }, csv],
  ] as const)('takes persons out of files of earlier generations %s', async (_, first, next) => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const { large, ...config } = { large: false, ...first };
    // A file of more than the 5 MiB of a part.
    if (large)
      await harness.database.pool.query(
        `update persons set properties = properties || jsonb_build_object('large', repeat('0123456789', 19000))
         where (properties ->> 'n')::int < 30`,
      );
    const batchExportId = await exportHours('persons', config);
    await movePersons(batchExportId, [3, 4, 5, 40, 41], next);
    const [files, earlier] = [await rowsOf(batchExportId), await rowsOf(batchExportId, earlierOf)];
    expect(earlier.filter((values) => values.includes(erased))).toHaveLength(1);
    const sizes = (await manifestsOf(batchExportId)).flatMap(earlierOf).map(({ bytes }) => bytes);
    expect(Math.max(...sizes) > harness.settings.EXPORTD_S3_PART_SIZE).toBe(large);
    const isOther = (values: Values): boolean => !values.includes(erased);
    const found = await erasureOf(await erase(erased));
    expect(found).toMatchObject({
      status: 'Completed',
      rows_erased: 2,
      held: [],
      certificate: { failed: [] },
    });
    expect(await rowsOf(batchExportId)).toEqual(files.filter(isOther));
    expect(await rowsOf(batchExportId, earlierOf)).toEqual(earlier.filter(isOther));
    const live = [...(await createDeltaReader(harness.bucket, batchExportId).live()).keys()];
    expect(live.map((path) => `${batchExportId}/${path}`).toSorted()).toEqual(
      next === delta ? await readKeys(batchExportId) : [],
    );
    expect(await objectsWith(batchExportId, erased)).toEqual([]);
    expect(await tablesWith(erased)).toEqual([]);
    expect(await maintenance.uploadsOf(batchExportId)).toEqual([]);
    expect((await verify(batchExportId)).findings).toEqual([]);
  });

  it('takes persons out of kept files of rejected rows, also out of files that were written again', async () => {
    const [erased, other] = [`erased-${randomUUID()}`, 'person 8'];
    await seed(erased);
    await harness.database.pool.query(
      `update persons set created_at = 'infinity' where (properties ->> 'n')::int in (7, 8, 29)`,
    );
    const rejecting = { ...jsonLines, on_bad_row: 'reject' };
    const batchExportId = await exportHours('persons', rejecting);
    await movePersons(batchExportId, [3, 4], rejecting);
    const readKept = async () => {
      const [first] = await manifestsOf(batchExportId);
      const [file, ...more] = first?.kept ?? [];
      expect(more).toEqual([]);
      return { file, lines: (await objectOf(file?.key ?? '')).toString().split('\n') };
    };
    const before = await readKept();
    expect(before.file).toMatchObject({ key: expect.stringMatching(/-rejected\.jsonl$/), rows: 3 });
    for (const [id, rows] of [
      [erased, 2],
      [other, 1],
    ] as const) {
      expect(await erasureOf(await erase(id))).toMatchObject({
        status: 'Completed',
        certificate: { failed: [] },
      });
      expect((await readKept()).file).toMatchObject({
        rows,
        key: expect.stringMatching(/-rejected\.jsonl$/),
      });
    }
    expect((await readKept()).lines).toEqual(
      before.lines.filter((line) => !line.includes(erased) && !line.includes(`"${other}"`)),
    );
    for (const id of [erased, `"${other}"`]) expect(await objectsWith(batchExportId, id)).toEqual([]);
    expect((await verify(batchExportId)).findings).toEqual([]);
  });

  it.each([
    ['a former prefix', 'events'],
    ['a former bucket', 'events'],
    ['a former bucket', 'persons'],
  ] as const)('takes persons out of %s of %s that an export has left', async (place, model) => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const former = { ...harness.bucket, bucket: `former-${randomUUID()}` };
    await harness.bucket.client.send(new CreateBucketCommand({ Bucket: former.bucket }));
    const batchExportId = randomUUID();
    const config = place === 'a former bucket' ? { bucket_name: former.bucket } : {};
    await exportHours(model, { ...jsonLines, ...config }, batchExportId);
    const rowsIn = async (bucket: TestBucket): Promise<string[]> => {
      const texts: string[] = [];
      for (const key of await maintenance.keysOf(batchExportId, bucket))
        if (key.includes('.jsonl')) texts.push((await unpacked(key, bucket)).toString());
      return texts.join('').trim().split('\n').toSorted();
    };
    const before = await rowsIn(place === 'a former bucket' ? former : harness.bucket);
    // The first hour is exported again: to another place, which leaves files of persons where they were.
    await movePersons(batchExportId, [3, 4, 5], { ...jsonLines, prefix: `${batchExportId}/moved` }, [
      firstHour,
    ]);
    const [manifest] = await manifestsOf(batchExportId);
    const { earlier_generations } = await harness.recorder.read(manifest?.run_id ?? '');
    expect(earlier_generations.elsewhere).toEqual(model === 'persons' ? [1] : []);
    expect(await erasureOf(await erase(erased))).toMatchObject({
      status: 'Completed',
      held: [],
      certificate: { failed: [] },
    });
    const buckets = [former, harness.bucket];
    const after = (await Promise.all(buckets.map(rowsIn))).flat().filter((line) => line !== '');
    const others = before.filter((line) => !line.includes(erased));
    expect(others.length).toBeLessThan(before.length);
    // Each of the others is there as it was.
    expect(others.filter((line) => !after.includes(line))).toEqual([]);
    expect(after.filter((line) => line.includes(erased))).toEqual([]);
    const manifests: string[] = [];
    for (const bucket of buckets)
      for (const key of await maintenance.keysOf(batchExportId, bucket))
        if (key.endsWith('.json')) manifests.push((await objectOf(key, bucket)).toString());
    expect(manifests.filter((text) => text.includes(erased))).toEqual([]);
    // One of each interval: what was left elsewhere is with the rest of its interval now.
    expect(manifests).toHaveLength(hours.length);
    expect((await manifestsOf(batchExportId)).flatMap(earlierOf)).toHaveLength(model === 'persons' ? 1 : 0);
    expect((await verify(batchExportId)).findings).toEqual([]);
  });

  it('publishes nothing if other values than those of the persons would change', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('events', { file_format: 'JSONLines', compression: null });
    const before = await manifestsOf(batchExportId);
    // The keys of all rows, and so all fingerprints, stay the same.
    const change = (body: Buffer): Buffer =>
      Buffer.from(body.toString('latin1').replaceAll('1.50', '1.51'), 'latin1');
    const found = await erasureOf(await erase(erased, { change }));
    expect(found).toMatchObject({
      status: 'Incomplete',
      rows_erased: 0,
      certificate: {
        failed: hours.map(() => ({
          batch_export_id: batchExportId,
          error: expect.stringContaining('ErasureMismatch'),
        })),
      },
    });
    expect(await manifestsOf(batchExportId)).toEqual(before);
  });

  it('searches an interval again whose manifest was replaced since it was searched', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('events', jsonLines);
    const others = (await rowsOf(batchExportId)).filter((values) => !values.includes(erased));
    const [manifestKey = ''] = (await maintenance.keysOf(batchExportId)).filter((key) =>
      key.endsWith('.json'),
    );
    // As after the control database was restored: the bucket has a manifest that the journal does not know.
    const before = async (): Promise<void> => {
      const manifest = JSON.parse((await objectOf(manifestKey)).toString()) as Manifest;
      const files = manifest.files.map((file) => ({ ...file, key: file.key.replace('.jsonl', '-g7.jsonl') }));
      for (const [index, { key }] of files.entries())
        await maintenance.putObject(key, await objectOf(manifest.files[index]?.key ?? ''));
      const newer = { ...manifest, files, run_id: randomUUID(), generation: 7 };
      await maintenance.putObject(manifestKey, JSON.stringify(newer));
    };
    const id = await erase(erased, { before });
    expect(await erasureOf(id)).toMatchObject({ status: 'Completed', certificate: { failed: [] } });
    const { rows } = await harness.database.pool.query<{ latest_error: string }>(
      'select latest_error from exportd.batch_export_runs where backfill_id = $1 and latest_error is not null',
      [id],
    );
    expect(rows).toEqual([{ latest_error: expect.stringContaining('ErasureObsolete') }]);
    expect(await rowsOf(batchExportId)).toEqual(others);
    expect(await objectsWith(batchExportId, erased)).toEqual([]);
  });

  it('leaves an interval whose file was damaged as it is, and says so', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('events', jsonLines);
    const [manifest] = await manifestsOf(batchExportId);
    await maintenance.putObject(manifest?.files[0]?.key ?? '', 'other bytes');
    const before = await manifestsOf(batchExportId);
    const found = await erasureOf(await erase(erased));
    expect(found).toMatchObject({
      status: 'Incomplete',
      certificate: {
        failed: [{ batch_export_id: batchExportId, error: expect.stringContaining('has 11 bytes') }],
      },
    });
    expect((await manifestsOf(batchExportId))[0]).toEqual(before[0]);
  });
});

describe('erasing a person from a table', () => {
  const createTable = () => {
    const batchExportId = randomUUID();
    const table = createDeltaReader(harness.bucket, batchExportId);
    return {
      ...{ batchExportId, config: delta },
      rows: async () =>
        (await table.rows())
          .map((row) =>
            JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
          )
          .toSorted(),
      liveKeys: async () =>
        [...(await table.live()).keys()]
          .map((path) => `${batchExportId}/${decodeURIComponent(path)}`)
          .toSorted(),
      /** How many versions a reader can go back to, the newest one among them. */
      versions: async () => (await table.versions()).length,
    };
  };

  const dataOf = async (batchExportId: string): Promise<string[]> =>
    (await maintenance.keysOf(batchExportId))
      .filter((key) => /(?<!checkpoint)\.parquet$/.test(key))
      .toSorted();

  it('leaves no trace in the files, the log and the versions of a table', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const { batchExportId, config, rows, liveKeys, versions } = createTable();
    await exportHours('events', config, batchExportId);
    const [before, files] = [await rows(), await liveKeys()];
    expect(before.filter((row) => row.includes(erased))).toHaveLength(10);
    expect(await versions()).toBe(2);
    expect(await erasureOf(await erase(erased))).toMatchObject({
      status: 'Completed',
      held: [],
      certificate: { failed: [] },
    });
    expect(await rows()).toEqual(before.filter((row) => !row.includes(erased)));
    expect(await versions()).toBe(1);
    expect(await dataOf(batchExportId)).toEqual(await liveKeys());
    expect((await dataOf(batchExportId)).filter((key) => files.includes(key))).toEqual([]);
    expect(await objectsWith(batchExportId, erased)).toEqual([]);
    expect((await verify(batchExportId)).findings).toEqual([]);
    // The table grows as before.
    const after = await rows();
    const third = { start: hours.at(-1)?.end ?? '', end: '2026-01-01T13:00:00.000Z' };
    await harness.database.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, person_id, timestamp, created_at, inserted_at)
         values (1, gen_random_uuid(), 'late', $2, '{}', gen_random_uuid(), $1, $1, $1),
           (1, gen_random_uuid(), 'late', 'another', '{}', gen_random_uuid(), $1, $1, $1)`,
      [third.start, erased],
    );
    const run = await harness.createRun({ batchExportId, of: third, config });
    await harness.attempt().exportInterval(run);
    await harness.attempt().publishManifest(run);
    expect(await rows()).toHaveLength(after.length + 1);
    expect(await objectsWith(batchExportId, erased)).toEqual([]);
  });
});

describe('erasing a person in a bucket that keeps versions', () => {
  let store: OwnObjectStore;
  let proxy: S3Proxy;
  let usual: [ExportHarness, MaintenanceHarness];
  const locked = `locked-${randomUUID()}`;
  beforeAll(async () => {
    usual = [harness, maintenance];
    store = await startOwnObjectStore({ keepsVersions: true });
    const { client, bucket: Bucket } = store.bucket;
    const VersioningConfiguration = { Status: 'Enabled' } as const;
    await client.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
    await client.send(new CreateBucketCommand({ Bucket: locked, ObjectLockEnabledForBucket: true }));
    proxy = await createS3Proxy(store.bucket.endpoint);
    harness = await createExportHarness(store.bucket);
    maintenance = createMaintenanceHarness(harness);
  });
  afterAll(async () => {
    await harness.close();
    await proxy.close();
    await store.close();
    [harness, maintenance] = usual;
  });

  const versionsIn = async (Bucket: string) => {
    const { Versions = [] } = await store.bucket.client.send(new ListObjectVersionsCommand({ Bucket }));
    return Versions.map(({ Key = '', VersionId = '' }) => ({ Key, VersionId }));
  };

  /** The keys of the versions that have a text. */
  const versionsWith = async (text: string): Promise<string[]> => {
    const { client, bucket: Bucket } = store.bucket;
    const found: string[] = [];
    for (const version of await versionsIn(Bucket)) {
      const { Body } = await client.send(new GetObjectCommand({ Bucket, ...version }));
      if ((await Body?.transformToString())?.includes(text)) found.push(version.Key);
    }
    return found;
  };
  const text = { file_format: 'JSONLines', compression: null };

  it('leaves no version of a manifest whose first or last key is theirs', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('persons', text);
    expect((await versionsWith(erased)).some((key) => key.endsWith('.json'))).toBe(true);
    expect(await erasureOf(await erase(erased))).toMatchObject({ status: 'Completed', held: [] });
    expect(await versionsWith(erased)).toEqual([]);
    expect(await rowsOf(batchExportId)).toHaveLength(50);
  });

  it('leaves none at a former prefix either, where a delete marker hides the manifests', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('persons', text);
    await movePersons(batchExportId, [3], text);
    await movePersons(batchExportId, [4], { ...text, prefix: `${batchExportId}/moved` });
    await maintenance.activities().cleanUpExport({ batch_export_id: batchExportId });
    const hidden = new RegExp(`^${batchExportId}/_manifests/`);
    expect(await maintenance.keysOf(batchExportId)).not.toContainEqual(expect.stringMatching(hidden));
    expect(await versionsWith(erased)).toContainEqual(expect.stringMatching(hidden));
    expect(await erasureOf(await erase(erased))).toMatchObject({ status: 'Completed', held: [] });
    expect(await versionsWith(erased)).toEqual([]);
  });

  it('says what it may not list, and finds it once it may', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const permit = proxy.intercept({
      before: ({ operation }) =>
        operation === 'ListObjectVersions' ? errorResponse(403, 'AccessDenied') : undefined,
    });
    const batchExportId = await exportHours('persons', { ...text, endpoint_url: proxy.endpoint });
    const { status, held } = await erasureOf(await erase(erased));
    permit();
    expect(status).toBe('Incomplete');
    expect(held).toEqual([
      {
        ...{ batch_export_id: batchExportId, object: null },
        reason: expect.stringContaining('s3:ListBucketVersions'),
      },
    ]);
    expect(await versionsWith(erased)).not.toEqual([]);
    expect(await erasureOf(await erase(erased))).toMatchObject({ status: 'Completed', held: [] });
    expect(await versionsWith(erased)).toEqual([]);
  });

  const retain = (RetainUntilDate: Date, version: { Key: string; VersionId: string }) =>
    store.bucket.client.send(
      new PutObjectRetentionCommand({
        ...{ Bucket: locked, ...version, BypassGovernanceRetention: true },
        Retention: { Mode: 'GOVERNANCE', RetainUntilDate },
      }),
    );
  const filesOf = async (batchExportId: string) =>
    (await versionsIn(locked)).filter(
      ({ Key }) => Key.startsWith(`${batchExportId}/`) && !Key.endsWith('.json'),
    );

  it('deletes later what object lock held until its date was read', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const config = { ...jsonLines, bucket_name: locked, endpoint_url: proxy.endpoint };
    const batchExportId = await exportHours('events', config);
    const files = await filesOf(batchExportId);
    const until = new Date(Date.now() + 1_000);
    for (const file of files) await retain(until, file);
    await waitFor(() => Date.now() > until.getTime(), 'the date is over');
    // The first is the deletion of the version, before one that hides it.
    const refused = new Set(files.map(({ Key }) => Key));
    const permit = proxy.intercept({
      before: ({ operation, key }) =>
        operation === 'DeleteObject' && refused.delete(key) ? errorResponse(403, 'ObjectLocked') : undefined,
    });
    await erase(erased);
    permit();
    expect(await filesOf(batchExportId)).toEqual(expect.arrayContaining(files));
    await harness.database.pool.query(
      'update exportd.destination_objects set held_until = clock_timestamp() where held_until is not null',
    );
    await erase(`nobody-${randomUUID()}`);
    const left = await filesOf(batchExportId);
    expect(left.filter((one) => files.some(({ VersionId }) => VersionId === one.VersionId))).toEqual([]);
  });

  it('deletes what object lock holds after its date, by the next erasure', async () => {
    const erased = `erased-${randomUUID()}`;
    await seed(erased);
    const batchExportId = await exportHours('events', { ...jsonLines, bucket_name: locked });
    const files = await filesOf(batchExportId);
    for (const file of files) await retain(new Date(Date.now() + 86_400_000), file);
    const id = await erase(erased);
    const { status, held } = await erasureOf(id);
    expect({ status, held }).toEqual({
      status: 'Incomplete',
      held: files.map(({ Key }) => ({
        ...{ batch_export_id: batchExportId, object: Key },
        ...{ reason: expect.stringContaining('Object lock'), until: expect.any(String) },
      })),
    });
    const versionsLeft = async () =>
      (await versionsIn(locked)).filter((version) =>
        files.some((file) => file.VersionId === version.VersionId),
      );
    expect(await versionsLeft()).toEqual(files);
    // Their date is over.
    for (const file of files) await retain(new Date(Date.now() + 1_000), file);
    await waitFor(async () => {
      await harness.database.pool.query(
        'update exportd.destination_objects set held_until = clock_timestamp() where held_until is not null',
      );
      await erase(`nobody-${randomUUID()}`);
      return (await versionsLeft()).length === 0;
    }, 'the versions are deleted');
    expect(await erasureOf(await erase(`nobody-${randomUUID()}`))).toMatchObject({
      status: 'Completed',
      held: [],
    });
  });
});
