import { randomUUID } from 'node:crypto';
import { DeleteObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createPolicies } from '../../src/decisions/policies.ts';
import { configRules } from '../../src/temporal/capabilities.ts';
import { createRetry } from '../../src/decisions/retries.ts';
import { endRun } from '../../src/decisions/run_outcomes.ts';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import { createS3Proxy, type ProxiedRequest, type S3Proxy } from '../e2e/s3_proxy.ts';
import { withCrash } from '../export/crash_injection.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours } from '../export/rerun.ts';
import { errorResponse, forgetTraits, knowTraits, withoutConditions } from '../export/stores.ts';
import { createMaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { casesOf } from '../setup/effort.ts';
import { createTestedTable, publishRun } from './table_harness.ts';

let harness: ExportHarness;
let proxy: S3Proxy;
const traits = { conditional_put: true, conditional_complete: true, checksums: true };
const nextHour = createHours();
beforeAll(async () => {
  harness = await createExportHarness();
  proxy = await createS3Proxy(harness.bucket.endpoint);
});
beforeEach(() => knowTraits(harness, proxy, traits));
afterEach(() => {
  proxy.stopIntercepting();
});
afterAll(async () => {
  await proxy.close();
  await harness.close();
});

const isCommit = ({ operation, key }: Pick<ProxiedRequest, 'operation' | 'key'>): boolean =>
  operation === 'PutObject' && /\/_delta_log\/\d{20}\.json$/.test(key);

const createTable = () => createTestedTable(harness, proxy.endpoint, nextHour);

describe('a table', () => {
  it('gets a version with each interval that has rows, for one request more', async () => {
    const { batchExportId, table, hour, expectRows } = createTable();
    const hours = [hour(), hour(), hour()];
    for (const { insert, run } of hours) {
      await insert(1, 20);
      expect(await run()).toMatchObject({ latest_error: null });
    }
    const before = proxy.requests.length;
    const fourth = hour();
    await fourth.insert(1, 5);
    const { run_id } = await fourth.run();
    expect(proxy.requests.slice(before).map(({ operation }) => operation)).toEqual([
      'PutObject',
      'PutObject',
      'PutObject',
    ]);
    const empty = hour();
    await empty.run();
    expect(await table.versions()).toEqual([0, 1, 2, 3]);
    await expectRows(...hours, fourth);
    const [first, newest] = [await table.linesOf(0), await table.linesOf(3)];
    expect(first.slice(1, 3)).toMatchObject([
      { protocol: { minReaderVersion: 1, minWriterVersion: 2 } },
      {
        metaData: {
          id: batchExportId,
          partitionColumns: [],
          configuration: { 'delta.dataSkippingStatsColumns': '_inserted_at' },
        },
      },
    ]);
    expect(newest).toMatchObject([
      {
        commitInfo: { run_id, generation: 1, interval: fourth.of, fingerprint: { hash: expect.any(String) } },
      },
      { txn: { appId: `exportd-${batchExportId}`, version: 3 } },
      {
        add: { path: expect.stringMatching(/^2026\/\S+Z\.parquet$/), partitionValues: {}, dataChange: true },
      },
    ]);
    const stats = JSON.parse(newest[2]?.add?.stats ?? '') as object;
    const at = (second: number) => fourth.of.start.replace('00.000Z', `0${second}.000000Z`);
    expect(stats).toEqual({
      numRecords: 5,
      minValues: { _inserted_at: at(1) },
      maxValues: { _inserted_at: at(5) },
      nullCount: { _inserted_at: 0 },
    });
    const { rows } = await harness.database.pool.query(
      'select version, adds, removes from exportd.table_commits where id = $1',
      [run_id],
    );
    expect(rows).toEqual([{ version: 3, adds: 1, removes: 0 }]);
  });

  it('has the newest generation of an interval, and nothing of one that has no rows left', async () => {
    const { table, hour, expectRows, commitsOf } = createTable();
    const [one, other] = [hour(), hour()];
    for (const { insert, run } of [one, other]) {
      await insert(1, 20);
      await run();
    }
    await one.insert(30, 40);
    const { run_id, state } = await one.run();
    expect(state).toMatchObject({ status: 'Completed', generation: 2 });
    await expectRows(one, other);
    expect(await commitsOf(run_id)).toEqual([2]);
    expect((await table.linesOf(2)).filter(({ remove }) => remove)).toHaveLength(1);
    await other.remove(1, 20);
    expect(await other.run({ on_missing_rows: 'follow' })).toMatchObject({ latest_error: null });
    await expectRows(one);
    expect((await table.linesOf(3)).filter(({ add }) => add)).toEqual([]);
    // The same rows again, in another file.
    expect(await one.run()).toMatchObject({ latest_error: null });
    await expectRows(one);
  });

  it('keeps the files that late rows are added to', async () => {
    const { table, hour } = createTable();
    const one = hour();
    await one.insert(1, 20);
    await one.run();
    await one.remove(1, 3);
    await one.insert(30, 31);
    expect(await one.run()).toMatchObject({ latest_error: null, check: { outcome: 'late_rows_added' } });
    expect(await table.rows()).toHaveLength(22);
    expect((await table.linesOf(1)).filter(({ remove }) => remove)).toEqual([]);
  });

  it('has every column that its intervals ever had, and refuses another type before it publishes', async () => {
    const { batchExportId, config, table, hour } = createTable();
    const run = async (query: string) => {
      const one = hour();
      await one.insert(1, 3);
      const { run_id } = await one.create({ config, query });
      return { run_id, ...(await one.proceed(run_id)) };
    };
    await run('select uuid, _inserted_at, toInt(1) as n, event from events');
    await run('select uuid, _inserted_at, event as name from events');
    const fields = async (version: number) => {
      const metaData = (await table.linesOf(version)).find((line) => line.metaData)?.metaData;
      const { fields: found } = JSON.parse(metaData?.schemaString ?? '') as { fields: { name: string }[] };
      return found.map(({ name }) => name);
    };
    expect(await fields(1)).toEqual(['uuid', '_inserted_at', 'n', 'event', 'name']);
    const refused = await run('select uuid, _inserted_at, toString(event) as n from events');
    expect(refused.latest_error).toMatch(/^TableColumnConflict: The column n of the table has the type/);
    expect(await table.versions()).toEqual([0, 1]);
    expect((await table.keysBelow(`${batchExportId}/_manifests/`)).length).toBe(2);
  });

  it('keeps the earlier files of persons, which may have the only state of one', async () => {
    const { config, table, hour } = createTable();
    const one = hour();
    const { pool } = harness.database;
    await pool.query(
      `with person as (insert into persons (team_id, id, properties, created_at, updated_at)
         select 1, gen_random_uuid(), jsonb_build_object('number', n), $1, $1 from generate_series(1, 3) n
         returning id, properties ->> 'number' as number)
       insert into person_distinct_ids (team_id, distinct_id, person_id, updated_at)
       select 1, 'p' || number, id, $1 from person`,
      [one.of.start],
    );
    const run = () =>
      harness.createRun({ batchExportId: one.batchExportId, model: 'persons', of: one.of, config });
    const export_ = async () => {
      const { run_id } = await run();
      return one.proceed(run_id);
    };
    expect(await export_()).toMatchObject({ latest_error: null });
    // A changed person moves to a later interval.
    await pool.query(`update persons set updated_at = $1 where properties ->> 'number' = '1'`, [one.of.end]);
    expect(await export_()).toMatchObject({ latest_error: null });
    const states = (await table.rows()).map(({ distinct_id }) => String(distinct_id));
    expect(states.sort()).toEqual(['p1', 'p2', 'p2', 'p3', 'p3']);
    expect((await table.linesOf(1)).filter(({ remove }) => remove)).toEqual([]);
    // A run that may shrink the interval removes all of them.
    const { run_id } = await harness.createRun({
      batchExportId: one.batchExportId,
      model: 'persons',
      of: one.of,
      config,
      allow_shrink: true,
    });
    expect(await one.proceed(run_id)).toMatchObject({ latest_error: null });
    expect((await table.rows()).map(({ distinct_id }) => distinct_id).sort()).toEqual(['p2', 'p3']);
  });

  it('gets checkpoints, from which it can be read without its older versions', async () => {
    const { batchExportId, table, hour, expectRows } = createTable();
    const openDestination = createDestinationOpener(harness.database.pool, harness.keyRing, {
      ...harness.settings,
      EXPORTD_TABLE_CHECKPOINT_INTERVAL: 3,
    });
    const hours = Array.from({ length: 5 }, hour);
    for (const { insert, run } of hours) {
      await insert(1, 4);
      expect(await run({}, { openDestination })).toMatchObject({ latest_error: null });
    }
    expect(await table.keysBelow(`${batchExportId}/_delta_log/_last_checkpoint`)).toHaveLength(1);
    for (const version of [0, 1, 2])
      await harness.bucket.client.send(
        new DeleteObjectCommand({ Bucket: harness.bucket.bucket, Key: `${table.nameOf(version)}.json` }),
      );
    await expectRows(...hours);
    const [first] = hours;
    await first?.insert(10, 12);
    expect(await first?.run({}, { openDestination })).toMatchObject({ latest_error: null });
    await expectRows(...hours);
    expect(await table.versions()).toEqual([3, 4, 5]);
    // The next checkpoint lacks what was removed.
    const last = hour();
    await last.insert(1, 4);
    expect(await last.run({}, { openDestination })).toMatchObject({ latest_error: null });
    for (const version of [3, 4, 5])
      await harness.bucket.client.send(
        new DeleteObjectCommand({ Bucket: harness.bucket.bucket, Key: `${table.nameOf(version)}.json` }),
      );
    await expectRows(...hours, last);
  });
});

describe('a commit to a table', () => {
  it.each([
    ['before its manifest', 'putManifest'],
    ['before the request', 'commit'],
    ['after the request', 'committed'],
  ] as const)('is made once if the worker is killed %s', async (_, at) => {
    const { hour, commitsOf, expectRows } = createTable();
    const [one, other] = [hour(), hour()];
    await one.insert(1, 20);
    await one.run();
    await other.insert(1, 20);
    const run_id = await other.exported();
    await expect(publishRun(harness, run_id, withCrash(harness, at))).rejects.toThrow();
    await publishRun(harness, run_id);
    expect(await commitsOf(run_id)).toHaveLength(1);
    await expectRows(one, other);
    // What was recorded is the commit: its files can be replaced.
    await other.insert(30, 31);
    expect(await other.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other);
  });

  it.each([
    ['the connection breaks', 'after', 'broken'],
    ['the response is an error', 'after', errorResponse(500, 'InternalError')],
    ['the request is lost', 'before', 'broken'],
    ['it is in conflict with another one', 'before', errorResponse(409, 'ConditionalRequestConflict')],
  ] as const)('is made once if %s', async (_, when, outcome) => {
    const { hour, commitsOf, expectRows } = createTable();
    const one = hour();
    await one.insert(1, 20);
    let injected = 0;
    proxy.intercept({
      [when]: (request: ProxiedRequest) => (isCommit(request) && (injected += 1) === 1 ? outcome : undefined),
    });
    const { run_id, latest_error } = await one.run();
    expect({ latest_error, isInjected: injected > 0 }).toEqual({ latest_error: null, isInjected: true });
    expect(await commitsOf(run_id)).toEqual([0]);
    await expectRows(one);
  });

  it('is made once by the retry of a run that failed after it', async () => {
    for (const at of ['commit', 'committed'] as const) {
      const { hour, table, commitsOf, expectRows } = createTable();
      const [one, other] = [hour(), hour()];
      await one.insert(1, 20);
      await other.insert(1, 5);
      const run_id = await one.exported();
      await expect(publishRun(harness, run_id, withCrash(harness, at))).rejects.toThrow();
      const policies = createPolicies(harness.settings, configRules);
      await endRun(harness.journal, policies, run_id, { status: 'FailedRetryable', latest_error: 'Silent.' });
      // Another interval takes the next version meanwhile.
      await other.run();
      const { spec } = await harness.recorder.read(run_id);
      const retry_id = randomUUID();
      await harness.journal.transaction((transaction) =>
        createRetry(
          transaction,
          { definition: spec } as unknown as Parameters<typeof createRetry>[1],
          run_id,
          { id: retry_id, retry_number: 1 },
        ),
      );
      await harness.attempt().exportInterval({ run_id: retry_id });
      await publishRun(harness, retry_id);
      const commits = [...(await commitsOf(run_id)), ...(await commitsOf(retry_id))];
      expect(commits).toHaveLength(1);
      expect(await table.versions()).toEqual([0, 1]);
      await expectRows(one, other);
    }
  });

  it('gets the next version if another worker gets the planned one first', async () => {
    const { hour, table, commitsOf, expectRows } = createTable();
    const hours = [hour(), hour(), hour()];
    const ids: string[] = [];
    for (const one of hours) {
      await one.insert(1, 10);
      ids.push(await one.exported());
    }
    const waiting = new Set<string>();
    const all = Promise.withResolvers<undefined>();
    proxy.intercept({
      before: async (request) => {
        if (!isCommit(request) || waiting.size >= hours.length) return undefined;
        waiting.add(String(waiting.size));
        if (waiting.size === hours.length) all.resolve(undefined);
        await all.promise;
        return undefined;
      },
    });
    await Promise.all(ids.map((run_id) => publishRun(harness, run_id)));
    expect((await Promise.all(ids.map(commitsOf))).flat().sort()).toEqual([0, 1, 2]);
    expect(await table.versions()).toEqual([0, 1, 2]);
    await expectRows(...hours);
  });

  it('that arrives late finds its version taken', async () => {
    const { hour, commitsOf, expectRows } = createTable();
    const [one, other] = [hour(), hour()];
    await one.insert(1, 10);
    await other.insert(1, 10);
    const run_id = await one.exported();
    const reached = Promise.withResolvers<undefined>();
    const released = Promise.withResolvers<undefined>();
    let late: ProxiedRequest | undefined;
    proxy.intercept({
      before: async (request) => {
        if (late || !isCommit(request)) return undefined;
        late = request;
        reached.resolve(undefined);
        return released.promise;
      },
    });
    const zombie = publishRun(harness, run_id).catch(() => undefined);
    await reached.promise;
    // Another interval gets the version that the zombie planned.
    await other.run();
    await publishRun(harness, run_id);
    released.resolve(undefined);
    await zombie;
    expect(late?.status).toBe(412);
    expect(await commitsOf(run_id)).toEqual([1]);
    await expectRows(one, other);
  });

  it('is refused before anything is published by a store that overwrites', async () => {
    const { batchExportId, hour, table } = createTable();
    for (const known of [{ conditional_put: false }, {}]) {
      await forgetTraits(harness);
      await knowTraits(harness, proxy, known);
      proxy.intercept(withoutConditions(harness));
      const one = hour();
      await one.insert(1, 3);
      expect((await one.run()).latest_error).toMatch(/^ConditionalWritesMissing: .*table_format to null/);
    }
    expect(await table.versions()).toEqual([]);
    expect(await table.keysBelow(`${batchExportId}/_manifests`)).toEqual([]);
    expect(await table.keysBelow(`${batchExportId}/_exportd_test`)).toEqual([]);
  });
});

/** Replaces rows by as many others, whose files have no uuid to compare them by: the former file is kept. */
async function withKeptFile({ hour, config }: ReturnType<typeof createTable>) {
  const one = hour();
  const query = 'select event, _inserted_at from events';
  const run = async () => {
    const { run_id } = await one.create({ config, query });
    return one.proceed(run_id);
  };
  await one.insert(1, 20);
  await run();
  await one.remove(3, 3);
  await one.insert(3, 3);
  return { one, ...(await run()) };
}

describe('a kept file', () => {
  it('leaves the table, and stays where it is whatever the retention of VACUUM', async () => {
    const created = createTable();
    const { table, batchExportId } = created;
    const { latest_error, manifest_key } = await withKeptFile(created);
    expect(latest_error).toBeNull();
    const { kept } = await harness.reader.manifestAt(manifest_key ?? '');
    expect(kept).toHaveLength(1);
    const [removed] = (await table.linesOf(1)).flatMap(({ remove }) => remove ?? []);
    expect(kept[0]?.key).toBe(`${batchExportId}/${removed?.path ?? ''}`);
    expect(removed?.deletionTimestamp).toBeGreaterThan(Date.parse('9000-01-01T00:00:00Z'));
    expect(await table.live()).toHaveProperty('size', 1);
    expect(await table.keysBelow(kept[0]?.key ?? '')).toHaveLength(1);
  });
});

describe('partitions', () => {
  const partitionsOf = (time: string) => ({ date: time.slice(0, 10), hour: time.slice(11, 13) });
  const foldersOf = (time: string): string => `date=${time.slice(0, 10)}/hour=${time.slice(11, 13)}`;
  const partition_by = ['date', 'hour'];
  const nameOf = ({ start, end }: { start: string; end: string }): string =>
    [start, end].map((time) => time.replaceAll(/[-:]|\.000/g, '')).join('-');
  /** What a manifest says of its files. */
  const manifestAt = async (key: string | null) =>
    (await harness.reader.manifestAt(key ?? '')) as unknown as {
      readonly rejected_file: { readonly key: string } | null;
      readonly files: readonly { readonly key: string; readonly partition?: object }[];
    };

  it('of a table are columns with the values of the interval, in versions and checkpoints', async () => {
    const { batchExportId, table, hour, expectRows } = createTable();
    const options = { prefix: batchExportId, partition_by };
    const openDestination = createDestinationOpener(harness.database.pool, harness.keyRing, {
      ...harness.settings,
      EXPORTD_TABLE_CHECKPOINT_INTERVAL: 2,
    });
    const [one, other, last] = [hour(), hour(), hour()];
    const run = async ({ run: export_ }: typeof one) =>
      expect(await export_(options, { openDestination })).toMatchObject({ latest_error: null });
    for (const each of [one, other]) {
      await each.insert(1, 20);
      await run(each);
    }
    const metaData = (await table.linesOf(0)).find((line) => line.metaData)?.metaData;
    expect(metaData?.partitionColumns).toEqual(partition_by);
    const { fields } = JSON.parse(metaData?.schemaString ?? '') as {
      fields: { name: string; type: string }[];
    };
    expect(fields.slice(-2)).toMatchObject([
      { name: 'date', type: 'date' },
      { name: 'hour', type: 'integer' },
    ]);
    // Another generation, at whose version there is a checkpoint.
    await one.insert(30, 31);
    await run(one);
    await expectRows(one, other);
    const { date, hour: of } = partitionsOf(one.of.start);
    const values = { date, hour: String(Number(of)) };
    const path = `${foldersOf(one.of.start)}/${nameOf(one.of)}`;
    expect((await table.linesOf(2)).slice(2)).toMatchObject([
      { remove: { path: `${path}.parquet`, partitionValues: values } },
      { add: { path: `${path}-g2.parquet`, partitionValues: values } },
    ]);
    for (const version of [0, 1, 2]) await table.delete(`${table.nameOf(version)}.json`);
    await last.insert(1, 3);
    await run(last);
    await expectRows(one, other, last);
    // A run with another config finds the partitions of the table before it publishes.
    for (const changed of [{ partition_by: ['date'] }, { partition_by: [] }])
      expect((await last.run({ ...options, ...changed })).latest_error).toMatch(
        /^TableProtocol: .*has the partitions date, hour, and partition_by of the export .*use another prefix/,
      );
    await expectRows(one, other, last);
  });

  // Where a worker is killed does not depend on partitions: the tests of commits have each point.
  it.each(casesOf(['committed'] as const, ['commit', 'committed', 'putManifest'] as const))(
    'of a table are committed once if the worker is killed at %s',
    async (at) => {
      const { batchExportId, config, table, hour, commitsOf, expectRows } = createTable();
      const one = hour();
      await one.insert(1, 20);
      const { run_id } = await one.create({ config: { ...config, prefix: batchExportId, partition_by } });
      await one.count(run_id);
      await harness.attempt().exportInterval({ run_id });
      await expect(publishRun(harness, run_id, withCrash(harness, at))).rejects.toThrow();
      await publishRun(harness, run_id);
      expect(await commitsOf(run_id)).toEqual([0]);
      expect(await table.keysBelow(`${batchExportId}/date=`)).toHaveLength(1);
      await expectRows(one);
    },
  );

  it.each(['Parquet', 'JSONLines', 'CSV'])(
    'without a table are folders of files that their manifests name: %s',
    async (file_format) => {
      const { batchExportId, hour, table } = createTable();
      const one = hour();
      await one.insert(1, 3);
      await harness.database.pool.query(
        `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
         values (1, gen_random_uuid(), 'bad', 'd', '{}', 'infinity', $1)`,
        [one.of.start],
      );
      const plain = { table_format: null, file_format, compression: 'gzip', on_bad_row: 'reject' };
      const extension = { Parquet: 'parquet', JSONLines: 'jsonl.gz', CSV: 'csv.gz' }[file_format] ?? '';
      const options = { ...plain, prefix: batchExportId, partition_by };
      const first = await one.run(options);
      expect(first).toMatchObject({ latest_error: null });
      const folder = foldersOf(one.of.start);
      const manifest = await manifestAt(first.manifest_key);
      expect(manifest.files).toMatchObject([
        {
          key: `${batchExportId}/${folder}/${nameOf(one.of)}.${extension}`,
          partition: partitionsOf(one.of.start),
        },
      ]);
      expect(manifest.rejected_file?.key).toBe(
        `${batchExportId}/_rejected/${folder}/${nameOf(one.of)}-rejected.jsonl`,
      );
      expect(await table.keysBelow(`${batchExportId}/date`)).toHaveLength(1);
    },
  );

  it('that change apply from the next run on: files of both layouts have each row once', async () => {
    const { batchExportId, hour } = createTable();
    const one = hour();
    await one.insert(1, 20);
    const plain = { table_format: null, prefix: batchExportId };
    const before = await one.run(plain);
    expect((await manifestAt(before.manifest_key)).files[0]).not.toHaveProperty('partition');
    // The file of before stays where it is, and gets one with the late rows beside it.
    await one.remove(1, 3);
    await one.insert(30, 31);
    const late = await one.run({ ...plain, partition_by: ['date'] });
    expect(late).toMatchObject({ latest_error: null, check: { outcome: 'late_rows_added' } });
    const { date } = partitionsOf(one.of.start);
    expect((await manifestAt(late.manifest_key)).files).toMatchObject([
      { key: `${batchExportId}/${nameOf(one.of)}.parquet`, partition: {} },
      { key: `${batchExportId}/date=${date}/${nameOf(one.of)}-g2.parquet`, partition: { date } },
    ]);
    const again = await one.run({ ...plain, partition_by, on_missing_rows: 'follow' });
    expect(again).toMatchObject({ latest_error: null, manifest_key: before.manifest_key });
    const { files } = await manifestAt(again.manifest_key);
    expect(files.map(({ key }) => key)).toEqual([
      `${batchExportId}/${foldersOf(one.of.start)}/${nameOf(one.of)}-g3.parquet`,
    ]);
  });
});

describe('a table with another writer', () => {
  const twoHours = async () => {
    const created = createTable();
    return { ...created, ...(await created.twoHours()) };
  };

  it('gets the next version after a foreign commit', async () => {
    const { table, hour, one, other, expectRows } = await twoHours();
    expect(await table.commit()).toBe(2);
    const third = hour();
    await third.insert(1, 5);
    expect(await third.run()).toMatchObject({ latest_error: null });
    expect(await table.versions()).toEqual([0, 1, 2, 3]);
    await expectRows(one, other, third);
  });

  it('has no row twice after the other one has joined files, and fails the run that would replace one', async () => {
    const { batchExportId, table, one, other, hour, expectRows } = await twoHours();
    const [first] = [...(await table.live())];
    const joined = { ...first?.[1], path: `joined-${first?.[0].split('/').at(-1) ?? ''}`, tags: undefined };
    const { CopyObjectCommand } = await import('@aws-sdk/client-s3');
    await harness.bucket.client.send(
      new CopyObjectCommand({
        Bucket: harness.bucket.bucket,
        CopySource: `${harness.bucket.bucket}/${batchExportId}/${first?.[0] ?? ''}`,
        Key: `${batchExportId}/${joined.path}`,
      }),
    );
    await table.commit(
      { remove: { path: first?.[0], dataChange: false } },
      { add: { ...joined, dataChange: false } },
    );
    await expectRows(one, other);
    const before = await one.uuids();
    await one.insert(30, 31);
    const { latest_error, state } = await one.run();
    expect(latest_error).toMatch(/^TableChanged: .*no longer has the file .*OPTIMIZE/);
    // Nothing was published.
    expect(state.phase.name).toBe('exported');
    expect((await table.rows()).length).toBe(before.length + 20);
    // Other intervals are not affected.
    const third = hour();
    await third.insert(1, 5);
    expect(await third.run()).toMatchObject({ latest_error: null });
    expect((await table.rows()).length).toBe(before.length + 25);
  });

  it.each([
    [
      'a newer protocol',
      { protocol: { minReaderVersion: 3, minWriterVersion: 7 } },
      /^TableProtocol: .*3\/7/,
    ],
    [
      'another id',
      {
        metaData: {
          id: randomUUID(),
          format: { provider: 'parquet', options: {} },
          partitionColumns: [],
          schemaString: '{"type":"struct","fields":[]}',
          configuration: {},
        },
      },
      /^TableOfAnother: /,
    ],
  ])('is left alone once it has %s', async (_, line, message) => {
    const { table, one, hour } = await twoHours();
    await table.commit(line);
    const third = hour();
    await third.insert(1, 5);
    expect((await third.run()).latest_error).toMatch(message);
    await one.insert(30, 31);
    expect((await one.run()).latest_error).toMatch(message);
    expect(await table.versions()).toEqual([0, 1, 2]);
  });

  it('whose newest commit was overwritten fails the run that reads it', async () => {
    const { table, one } = await twoHours();
    await table.put(`${table.nameOf(1)}.json`, JSON.stringify({ commitInfo: { operation: 'OPTIMIZE' } }), {});
    await one.insert(30, 31);
    expect((await one.run()).latest_error).toMatch(/^TableOverwritten: Version 1 .*Spark/);
    expect(await table.versions()).toEqual([0, 1]);
  });

  it('that has lost a version fails the run that reads it', async () => {
    const { table, one } = await twoHours();
    await harness.bucket.client.send(
      new DeleteObjectCommand({ Bucket: harness.bucket.bucket, Key: `${table.nameOf(1)}.json` }),
    );
    await one.insert(30, 31);
    expect((await one.run()).latest_error).toMatch(/^TableChanged: .*lacks versions/);
  });
});

describe('the files that a commit took from a table', () => {
  /** An interval of which the clean-up may delete the first generation. */
  async function replaced(options: object = {}) {
    const created = createTable();
    const one = created.hour();
    await one.insert(1, 10);
    await one.run();
    const [path = ''] = [...(await created.table.live()).keys()];
    await one.insert(20, 25);
    expect(await one.run(options)).toMatchObject({ latest_error: null });
    const key = `${created.batchExportId}/${path}`;
    const isStored = async () => (await created.table.keysBelow(key)).length === 1;
    const cleanUp = (retention: string) =>
      createMaintenanceHarness(harness)
        .activities({ EXPORTD_TABLE_FILE_RETENTION: retention })
        .cleanUpExport({ batch_export_id: created.batchExportId });
    return { ...created, one, isStored, cleanUp };
  }

  it('are deleted once readers of older versions had their time', async () => {
    const { one, isStored, cleanUp, expectRows } = await replaced();
    await cleanUp('7d');
    expect(await isStored()).toBe(true);
    expect(await cleanUp('0s')).toMatchObject({ deleted: 1 });
    expect(await isStored()).toBe(false);
    await expectRows(one);
  });

  it('stay while the table has them, also after the export has moved to another', async () => {
    const { batchExportId, isStored, cleanUp, table } = await replaced({ prefix: randomUUID() });
    await expect(cleanUp('0s')).rejects.toThrow('The table still has a file');
    expect(await isStored()).toBe(true);
    expect(await table.rows()).toHaveLength(10);
    expect(await table.keysBelow(`${batchExportId}/_delta_log/`)).toHaveLength(1);
  });
});

describe('the rejected rows of a table', () => {
  it('are in a folder that maintenance of tables leaves alone', async () => {
    const { batchExportId, hour, table } = createTable();
    const one = hour();
    await one.insert(1, 3);
    await harness.database.pool.query(
      `update events set timestamp = 'infinity' where inserted_at = $1::timestamptz + interval '1 second'`,
      [one.of.start],
    );
    expect(await one.run({ on_bad_row: 'reject' })).toMatchObject({ latest_error: null });
    const keys = await table.keysBelow(`${batchExportId}/`);
    expect(keys.filter((key) => key.endsWith('-rejected.jsonl'))).toEqual([
      expect.stringMatching(new RegExp(`^${batchExportId}/_rejected/2026/`)),
    ]);
    expect(await table.rows()).toHaveLength(2);
  });
});

describe('a repair of a table', () => {
  async function damaged() {
    const created = createTable();
    const { batchExportId, table } = created;
    const repairable = await created.repairable();
    const { pool } = harness.database;
    const recorded = async () => {
      const { rows } = await pool.query<{ version: number }>(
        `select version from exportd.table_commits
         where batch_export_id = $1 and is_repair and etag is not null order by recorded_at`,
        [batchExportId],
      );
      return rows.map(({ version }) => version);
    };
    const overwrite = (version: number) =>
      table.put(`${table.nameOf(version)}.json`, '{"commitInfo":{"operation":"OPTIMIZE"}}\n', {});
    return { ...created, ...repairable, recorded, overwrite };
  }

  it('writes nothing while the table is what its manifests say', async () => {
    const { table, check, repair, recorded } = await damaged();
    expect(await check()).toEqual({
      ok: true,
      version: 2,
      manifests: 2,
      files: 2,
      left_intervals: 0,
      kinds: [],
    });
    expect(await repair()).toEqual({ version: null, adds: 0, removes: 0 });
    expect([await table.versions(), await recorded()]).toEqual([[0, 1, 2], []]);
  });

  it('adds what an overwritten version had, after which intervals are exported again', async () => {
    const { table, one, other, check, repair, recorded, overwrite, expectRows, hour } = await damaged();
    await overwrite(1);
    expect(await check()).toMatchObject({ ok: false, kinds: ['table_missing', 'table_overwritten'] });
    await other.insert(30, 31);
    expect((await other.run()).latest_error).toMatch(/^TableChanged/);
    await overwrite(2);
    expect((await other.run()).latest_error).toMatch(/^TableOverwritten/);
    expect(await repair()).toMatchObject({ version: 3, adds: 2, removes: 1 });
    expect(await recorded()).toEqual([3]);
    expect(await check()).toMatchObject({ ok: true, version: 3 });
    // The rows that its failed run did not publish are not there yet.
    expect(await table.rows()).toHaveLength(42);
    expect(await other.run()).toMatchObject({ latest_error: null });
    const next = hour();
    await next.insert(1, 5);
    expect(await next.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other, next);
    expect(await check()).toMatchObject({ ok: true, version: 5 });
  });

  it('is compared with the journal as a commit of a run is', async () => {
    const { overwrite, repair, other, check, expectRows, one } = await damaged();
    await overwrite(1);
    expect(await repair()).toMatchObject({ version: 3 });
    await overwrite(3);
    expect(await check()).toMatchObject({ kinds: ['table_overwritten'] });
    await other.insert(30, 31);
    expect((await other.run()).latest_error).toMatch(/^TableOverwritten: Version 3/);
    expect(await repair()).toMatchObject({ version: 4, adds: 0, removes: 0 });
    expect(await other.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other);
  });

  it('takes away the file of another writer, and has each row once', async () => {
    const { batchExportId, table, one, other, check, repair, expectRows } = await damaged();
    const [[path, add] = ['', undefined]] = [...(await table.live())];
    const { CopyObjectCommand } = await import('@aws-sdk/client-s3');
    await harness.bucket.client.send(
      new CopyObjectCommand({
        Bucket: harness.bucket.bucket,
        CopySource: `${harness.bucket.bucket}/${batchExportId}/${path}`,
        Key: `${batchExportId}/part-0.parquet`,
      }),
    );
    await table.commit(
      { remove: { path, dataChange: false } },
      { add: { ...add, path: 'part-0.parquet', tags: undefined, dataChange: false } },
    );
    expect(await check()).toMatchObject({ kinds: ['table_missing', 'table_unexpected'] });
    expect(await repair()).toMatchObject({ version: 4, adds: 1, removes: 1 });
    await expectRows(one, other);
    expect(await check()).toMatchObject({ ok: true });
    await one.insert(40, 41);
    expect(await one.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other);
  });

  it.each([
    ['lost a version', 1, ['table_unreadable']],
    ['lost its newest version', 2, ['table_missing', 'table_unexpected', 'table_unreadable']],
  ] as const)('makes a table that %s whole again', async (_, version, kinds) => {
    const { table, one, other, hour, check, repair, expectRows } = await damaged();
    await table.delete(`${table.nameOf(version)}.json`);
    expect(await check()).toMatchObject({ ok: false, kinds });
    expect(await repair()).toMatchObject({ version: 3, adds: 2, removes: 0 });
    await expectRows(one, other);
    expect(await check()).toMatchObject({ ok: true, version: 3 });
    const next = hour();
    await next.insert(1, 5);
    expect(await next.run()).toMatchObject({ latest_error: null });
    await one.insert(40, 41);
    expect(await one.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other, next);
  });

  const ends = [
    ['before its commit is sent', 'before', 'broken'],
    ['after it', 'after', 'broken'],
    ['after it with an error', 'after', errorResponse(500, 'InternalError')],
  ] as const;
  it.each(casesOf([ends[1]], ends))('is made once if the connection ends %s', async (_, when, outcome) => {
    const { table, overwrite, repair, recorded, one, other, expectRows } = await damaged();
    await overwrite(1);
    let injected = 0;
    proxy.intercept({
      [when]: (request: ProxiedRequest) => (isCommit(request) && (injected += 1) === 1 ? outcome : undefined),
    });
    const id = randomUUID();
    await repair(id).catch(() => repair(id));
    expect(injected).toBeGreaterThan(0);
    expect(await repair(id)).toMatchObject({ version: 3, adds: 1 });
    expect([await table.versions(), await recorded()]).toEqual([[0, 1, 2, 3], [3]]);
    await expectRows(one, other);
  });

  it('loses no version to a run that commits at the same time', async () => {
    const { table, overwrite, repair, hour, one, other, expectRows, check } = await damaged();
    await overwrite(1);
    const next = hour();
    await next.insert(1, 5);
    let isTaken = false;
    proxy.intercept({
      before: async (request: ProxiedRequest) => {
        if (!isCommit(request) || isTaken) return undefined;
        isTaken = true;
        expect(await next.run()).toMatchObject({ latest_error: null });
        return undefined;
      },
    });
    expect(await repair()).toMatchObject({ version: 4 });
    expect(await table.versions()).toEqual([0, 1, 2, 3, 4]);
    await expectRows(one, other, next);
    expect(await check()).toMatchObject({ ok: true });
  });

  it('leaves the files of an interval whose run is between its manifest and its commit', async () => {
    const { overwrite, repair, one, other, expectRows, commitsOf, check } = await damaged();
    await overwrite(1);
    await one.insert(40, 41);
    const run_id = await one.exported();
    await expect(publishRun(harness, run_id, withCrash(harness, 'commit'))).rejects.toThrow();
    expect(await repair()).toMatchObject({ adds: 1, removes: 0 });
    await publishRun(harness, run_id);
    expect(await commitsOf(run_id)).toHaveLength(1);
    await expectRows(one, other);
    expect(await check()).toMatchObject({ ok: true });
  });

  it('is refused while a file of a manifest does not exist', async () => {
    const { batchExportId, table, overwrite, repair, other } = await damaged();
    const [path = ''] = (await table.linesOf(1)).flatMap(({ add }) => add?.path ?? []);
    await overwrite(1);
    await table.delete(`${batchExportId}/${path}`);
    await expect(repair()).rejects.toThrow('1 files of its manifests do not exist');
    expect(await table.versions()).toEqual([0, 1, 2]);
    expect(other.of.start).toContain('2026');
  });
});
