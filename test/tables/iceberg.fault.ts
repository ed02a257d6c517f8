import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { batchExportDecider, type BatchExportEvent } from '../../src/domain/batch_export.ts';
import { repairTable } from '../../src/export/repair_table.ts';
import { formatManifestList } from '../../src/tables/iceberg_manifest.ts';
import { checkTable, openTable } from '../../src/verify/check_table.ts';
import { readDefinition } from '../../src/verify/locations.ts';
import { withCrash } from '../export/crash_injection.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours, createReruns } from '../export/rerun.ts';
import { createMaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { createIcebergReader } from './iceberg_reader.ts';
import { type CatalogRequest, isCommit, type RestCatalog, startRestCatalog } from './rest_catalog.ts';

let harness: ExportHarness;
let catalog: RestCatalog;
const stops: (() => void)[] = [];
const intercept = (...input: Parameters<RestCatalog['intercept']>): void => {
  stops.push(catalog.intercept(...input));
};
const nextHour = createHours();
beforeAll(async () => {
  harness = await createExportHarness();
  catalog = await startRestCatalog({ client: 'exportd:secret' });
});
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});
afterAll(async () => {
  await catalog.close();
  await harness.close();
});

/** An export to a table, several of its hours, and a reader of the table. */
function createTable() {
  const batchExportId = randomUUID();
  const name = `t_${batchExportId.replaceAll('-', '')}`;
  const config = {
    ...{ file_format: 'Parquet', compression: 'zstd', table_format: 'iceberg' },
    ...{ catalog_uri: catalog.uri, catalog_namespace: 'lake.events', catalog_table: name },
    catalog_credential: 'exportd:secret',
  };
  const key = `lake\u001fevents/${name}`;
  const table = createIcebergReader(harness.bucket, catalog, key);
  const hour = () => {
    const of = nextHour();
    const reruns = createReruns(harness, of, { batchExportId });
    const exported = async () => {
      const { run_id } = await reruns.create({ config });
      await reruns.count(run_id);
      await harness.attempt().exportInterval({ run_id });
      return run_id;
    };
    return {
      ...reruns,
      of,
      exported,
      run: (options: object = {}, attempt?: Parameters<typeof reruns.proceed>[1]) =>
        reruns.run({ config: { ...config, ...options } }, attempt),
      uuids: async (): Promise<string[]> => {
        const { rows } = await harness.database.pool.query<{ uuid: string }>(
          'select uuid::text from events where inserted_at >= $1 and inserted_at < $2 order by uuid',
          [of.start, of.end],
        );
        return rows.map(({ uuid }) => uuid);
      },
    };
  };
  /** Expects that the table has the rows of the hours, each once. */
  const expectRows = async (...hours: readonly ReturnType<typeof hour>[]): Promise<void> => {
    const expected = (await Promise.all(hours.map(({ uuids }) => uuids()))).flat().sort();
    expect((await table.rows()).map(({ uuid }) => String(uuid)).sort()).toEqual(expected);
  };
  const commitsOf = (runId: string): number =>
    table.commits().filter(({ run_id }) => run_id === runId).length;
  /** Commits as another writer does, whose ids have 63 bits. */
  const foreign = (manifestList = table.current()?.['manifest-list'] ?? '', more: object = {}): bigint => {
    const id = 2n ** 62n + BigInt(Math.floor(Math.random() * 2 ** 40)) * 2n + 1n;
    catalog.update(
      key,
      {
        action: 'add-snapshot',
        snapshot: {
          'snapshot-id': id,
          'parent-snapshot-id': table.table()['current-snapshot-id'],
          'sequence-number': table.table()['last-sequence-number'] + 1,
          ...{ 'timestamp-ms': Date.now(), 'manifest-list': manifestList },
          summary: { operation: 'append', 'engine-name': 'spark' },
          ...more,
        },
      },
      { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': id },
    );
    return id;
  };
  return { batchExportId, config, key, table, hour, commitsOf, expectRows, foreign };
}

const publish = (run_id: string, more: Parameters<ExportHarness['attempt']>[0] = {}) =>
  harness.attempt(more).publishManifest({ run_id });

describe('an Iceberg table', () => {
  it('gets a snapshot with each interval that has rows, whose columns have the ids of its files', async () => {
    const { batchExportId, table, hour, expectRows } = createTable();
    const hours = [hour(), hour(), hour()];
    for (const { insert, run } of hours) {
      await insert(1, 20);
      expect(await run()).toMatchObject({ latest_error: null });
    }
    const { run_id: empty } = await hour().run();
    expect(table.commits().map(({ run_id }) => run_id)).not.toContain(empty);
    await expectRows(...hours);
    const metadata = table.table();
    expect(metadata).toMatchObject({
      'last-sequence-number': 3,
      location: `s3://${harness.bucket.bucket}/${batchExportId}`,
      properties: { 'exportd.batch-export-id': batchExportId },
    });
    const schema = metadata.schemas.find((one) => one['schema-id'] === metadata['current-schema-id']);
    const ids = Object.fromEntries(schema?.fields.map(({ name, id }) => [name, id]) ?? []) as object;
    const [file] = await table.live();
    expect(await table.fieldIds(file?.data_file.file_path ?? '')).toEqual(ids);
    const types = Object.fromEntries(schema?.fields.map(({ name, type }) => [name, type]) ?? []) as object;
    expect(types).toMatchObject({ uuid: 'string', _inserted_at: 'timestamptz', properties: 'string' });
    expect(table.current()?.summary).toMatchObject({
      ...{ operation: 'append', 'added-records': '20', 'total-records': '60', 'total-data-files': '3' },
      ...{ 'exportd.generation': '1', 'exportd.interval-start': hours[2]?.of.start },
    });
    const [bound] = file?.data_file.lower_bounds ?? [];
    expect(bound?.value.readBigInt64LE()).toBe(BigInt(Date.parse(hours[2]?.of.start ?? '') + 1_000) * 1_000n);
    const { rows } = await harness.database.pool.query(
      'select table_version, table_adds from exportd.batch_export_runs where batch_export_id = $1 order by table_version',
      [batchExportId],
    );
    expect(rows.slice(0, 3)).toEqual([1, 2, 3].map((table_version) => ({ table_version, table_adds: 1 })));
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
    expect(commitsOf(run_id)).toBe(1);
    expect(table.commits().at(-1)).toMatchObject({ adds: 1, removes: 1 });
    expect(table.current()?.summary).toMatchObject({ operation: 'overwrite', 'total-records': '51' });
    await other.remove(1, 20);
    expect(await other.run({ on_missing_rows: 'follow' })).toMatchObject({ latest_error: null });
    expect(table.current()?.summary).toMatchObject({ operation: 'delete', 'total-records': '31' });
    await expectRows(one);
    expect(await one.run()).toMatchObject({ latest_error: null });
    await expectRows(one);
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
    expect(await run('select event as name, uuid, _inserted_at from events')).toMatchObject({
      latest_error: null,
    });
    const fields = () => {
      const { schemas, 'current-schema-id': id } = table.table();
      return schemas.find((one) => one['schema-id'] === id)?.fields.map(({ name }) => name);
    };
    expect(fields()).toEqual(['uuid', '_inserted_at', 'n', 'event', 'name']);
    const ids = await Promise.all(
      (await table.live()).map(({ data_file }) => table.fieldIds(data_file.file_path)),
    );
    expect(ids[0]?.uuid).toBe(ids[1]?.uuid);
    const refused = await run('select uuid, _inserted_at, toString(event) as n from events');
    expect(refused.latest_error).toMatch(/^TableColumnConflict: The column n of the table has the type/);
    expect(table.commits()).toHaveLength(2);
    expect((await table.keysBelow(`${batchExportId}/_manifests/`)).length).toBe(2);
  });
});

describe('a commit to a catalog', () => {
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
    await expect(publish(run_id, withCrash(harness, at))).rejects.toThrow();
    await publish(run_id);
    expect(commitsOf(run_id)).toBe(1);
    await expectRows(one, other);
    // What was recorded is the commit: its files can be replaced.
    await other.insert(30, 31);
    expect(await other.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other);
  });

  it.each([
    ['the connection breaks', 'after', 'broken'],
    ['the response is an error', 'after', 500],
    ['a gateway gives up', 'after', 504],
    ['the request is lost', 'before', 'broken'],
    ['the catalog is busy', 'before', 503],
    ['another commit came first', 'before', 409],
  ] as const)('is made once if %s', async (_, when, outcome) => {
    const { batchExportId, table, hour, commitsOf, expectRows } = createTable();
    const one = hour();
    await one.insert(1, 20);
    let injected = 0;
    intercept({
      [when]: (request: CatalogRequest) => (isCommit(request) && (injected += 1) === 1 ? outcome : undefined),
    });
    const { run_id, latest_error } = await one.run();
    expect({ latest_error, isInjected: injected > 0 }).toEqual({ latest_error: null, isInjected: true });
    expect(commitsOf(run_id)).toBe(1);
    await expectRows(one);
    // Nothing of a commit that was refused stays.
    expect(await table.keysBelow(`${batchExportId}/metadata/`)).toHaveLength(2);
  });

  it('is made once if it arrives although its response was lost, and another one has followed', async () => {
    const { hour, commitsOf, expectRows } = createTable();
    const [one, other] = [hour(), hour()];
    await one.insert(1, 10);
    await other.insert(1, 10);
    const run_id = await one.exported();
    let lost = 0;
    intercept({
      after: async (request) => {
        if (!isCommit(request) || (lost += 1) > 1) return undefined;
        await other.run();
        return 'broken';
      },
    });
    await publish(run_id);
    expect(commitsOf(run_id)).toBe(1);
    await expectRows(one, other);
  });

  it('gets the next version if another worker gets the planned one first', async () => {
    const { hour, table, commitsOf, expectRows } = createTable();
    const hours = [hour(), hour(), hour()];
    const ids: string[] = [];
    for (const one of hours) {
      await one.insert(1, 10);
      ids.push(await one.exported());
    }
    let waiting = 0;
    const all = Promise.withResolvers<undefined>();
    intercept({
      before: async (request) => {
        if (!isCommit(request) || waiting >= hours.length) return undefined;
        waiting += 1;
        if (waiting === hours.length) all.resolve(undefined);
        await all.promise;
        return undefined;
      },
    });
    await Promise.all(ids.map((run_id) => publish(run_id)));
    expect(ids.map(commitsOf)).toEqual([1, 1, 1]);
    expect(table.table()['last-sequence-number']).toBe(3);
    await expectRows(...hours);
  });

  it('that arrives late finds another snapshot', async () => {
    const { hour, commitsOf, expectRows } = createTable();
    const [one, other] = [hour(), hour()];
    await one.insert(1, 10);
    await other.insert(1, 10);
    const run_id = await one.exported();
    const reached = Promise.withResolvers<undefined>();
    const released = Promise.withResolvers<undefined>();
    let isHeld = false;
    intercept({
      before: async (request) => {
        if (isHeld || !isCommit(request)) return undefined;
        isHeld = true;
        reached.resolve(undefined);
        await released.promise;
        return undefined;
      },
    });
    const zombie = publish(run_id).catch(() => undefined);
    await reached.promise;
    await other.run();
    await publish(run_id);
    released.resolve(undefined);
    await zombie;
    expect(commitsOf(run_id)).toBe(1);
    await expectRows(one, other);
  });

  it('asks for another token when the catalog no longer takes the one that it has', async () => {
    const { hour, expectRows } = createTable();
    const one = hour();
    await one.insert(1, 3);
    await one.run();
    catalog.revokeTokens();
    const other = hour();
    await other.insert(1, 3);
    expect(await other.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other);
    const denied = await other.run({ catalog_credential: 'exportd:wrong' });
    expect(denied.latest_error).toMatch(/^CatalogAccessDenied: .*status 401\); check the catalog_token/);
    expect(denied.latest_error).not.toContain('wrong');
  });
});

describe('an Iceberg table with another writer', () => {
  /** Two hours in a table. */
  async function twoHours() {
    const created = createTable();
    const [one, other] = [created.hour(), created.hour()];
    for (const { insert, run } of [one, other]) {
      await insert(1, 20);
      await run();
    }
    return { ...created, one, other };
  }

  it('gets the next snapshot after a foreign one, and replaces what it has', async () => {
    const { table, hour, one, other, expectRows, foreign } = await twoHours();
    const id = foreign();
    const third = hour();
    await third.insert(1, 5);
    expect(await third.run()).toMatchObject({ latest_error: null });
    expect(table.current()?.['parent-snapshot-id']).toBe(id);
    foreign();
    await one.insert(30, 31);
    expect(await one.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other, third);
  });

  it('has no row twice after the other one has moved rows, and fails the run that would replace them', async () => {
    const { batchExportId, table, hour, one, foreign } = await twoHours();
    const Key = `${batchExportId}/metadata/foreign.avro`;
    const Body = formatManifestList({ id: '1', parent: null, sequence: 3 }, []);
    await harness.bucket.client.send(new PutObjectCommand({ Bucket: harness.bucket.bucket, Key, Body }));
    foreign(`s3://${harness.bucket.bucket}/${Key}`);
    await one.insert(30, 31);
    const { latest_error, state } = await one.run();
    expect(latest_error).toMatch(/^TableChanged: .*no longer has the file .*OPTIMIZE/);
    // Nothing was published.
    expect(state.publish_started_at).toBeNull();
    expect(await table.rows()).toEqual([]);
    const third = hour();
    await third.insert(1, 5);
    expect(await third.run()).toMatchObject({ latest_error: null });
    expect(await table.rows()).toHaveLength(5);
  });

  it('that went back to an older snapshot fails the run that follows', async () => {
    const { key, table, hour, foreign } = await twoHours();
    const [first] = table.table().snapshots;
    catalog.update(key, {
      ...{ action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch' },
      'snapshot-id': first?.['snapshot-id'],
    });
    const third = hour();
    await third.insert(1, 5);
    expect((await third.run()).latest_error).toMatch(/^TableChanged: .*lacks versions/);
    foreign();
    const fourth = hour();
    await fourth.insert(1, 5);
    expect((await fourth.run()).latest_error).toMatch(/^TableOverwritten: Version 2 .*older version/);
  });

  it.each([
    [
      'another export',
      (table: ReturnType<RestCatalog['tables']['get']>) =>
        table && Object.assign(table.properties, { 'exportd.batch-export-id': 'x' }),
      /^TableOfAnother: /,
    ],
    [
      'a newer format',
      (table: ReturnType<RestCatalog['tables']['get']>) =>
        table && Object.assign(table, { 'format-version': 3 }),
      /^TableProtocol: .*version 3/,
    ],
    [
      'partitions',
      (table: ReturnType<RestCatalog['tables']['get']>) =>
        table && Object.assign(table, { 'partition-specs': [{ 'spec-id': 1, fields: [{ name: 'x' }] }] }),
      /^TableProtocol: .*partitions/,
    ],
  ])('is left alone once it has %s', async (_, change, message) => {
    const { key, table, one, hour } = await twoHours();
    change(catalog.tables.get(key));
    const third = hour();
    await third.insert(1, 5);
    expect((await third.run()).latest_error).toMatch(message);
    await one.insert(30, 31);
    expect((await one.run()).latest_error).toMatch(message);
    expect(table.commits()).toHaveLength(2);
  });
});

describe('what an Iceberg table no longer needs', () => {
  it('is deleted once readers of older snapshots had their time', async () => {
    const { batchExportId, table, hour, expectRows } = createTable();
    const one = hour();
    await one.insert(1, 10);
    await one.run();
    const [file] = await table.live();
    const data = (file?.data_file.file_path ?? '').replace(`s3://${harness.bucket.bucket}/`, '');
    await one.insert(20, 25);
    expect(await one.run()).toMatchObject({ latest_error: null });
    const isStored = async () => (await table.keysBelow(data)).length === 1;
    const cleanUp = (retention: string) =>
      createMaintenanceHarness(harness)
        .activities({ EXPORTD_TABLE_FILE_RETENTION: retention })
        .cleanUpExport({ batch_export_id: batchExportId });
    await cleanUp('7d');
    expect([await isStored(), table.table().snapshots.length]).toEqual([true, 2]);
    expect(await cleanUp('0s')).toMatchObject({ deleted: 1 });
    expect([await isStored(), table.table().snapshots.length]).toEqual([false, 1]);
    await expectRows(one);
    // The list of the snapshot, its manifest, and that of the file that left.
    expect(await table.keysBelow(`${batchExportId}/metadata/`)).toHaveLength(3);
  });

  it('stays while a branch or tag of another has it', async () => {
    const { batchExportId, key, table, hour } = createTable();
    const one = hour();
    await one.insert(1, 10);
    await one.run();
    const first = table.current()?.['snapshot-id'];
    catalog.update(key, {
      ...{ action: 'set-snapshot-ref', 'ref-name': 'audit', type: 'tag', 'snapshot-id': first },
    });
    await one.insert(20, 25);
    await one.run();
    await expect(
      createMaintenanceHarness(harness)
        .activities({ EXPORTD_TABLE_FILE_RETENTION: '0s' })
        .cleanUpExport({ batch_export_id: batchExportId }),
    ).rejects.toThrow('The table still has a file');
    expect(await table.live(table.current(first))).toHaveLength(1);
  });
});

describe('a repair of an Iceberg table', () => {
  /** A table of two hours, of which one was exported again; the export is in the journal. */
  async function exported() {
    const created = createTable();
    const { batchExportId } = created;
    const [one, other] = [created.hour(), created.hour()];
    for (const { insert, run } of [one, other]) {
      await insert(1, 20);
      await run();
    }
    await one.insert(30, 31);
    const { run_id } = await one.run();
    const { spec } = await harness.recorder.read(run_id);
    await harness.journal.transaction(async (transaction) => {
      const stream = await transaction.lock(batchExportDecider, batchExportId);
      const event: BatchExportEvent = {
        type: 'BatchExportCreated',
        data: {
          team_id: spec.team_id,
          definition: {
            ...{ name: 'Table', model: 'events', interval: 'hour', timezone: 'UTC', offset_hour: 0 },
            ...{ offset_day: 0, destination_type: 'S3', config_version: spec.config_version },
            ...{ start_at: null, end_at: null, dialect_query: null, retention_days: null },
          },
          scheduled_until: one.of.end,
          paused: true,
        },
      };
      await stream.append('created', [event]);
    });
    const { signal } = new AbortController();
    const { keyRing, settings, journal } = harness;
    const { pool } = harness.database;
    const dependencies = { pool, keyRing, settings, journal, onError: () => undefined };
    const definition = await readDefinition(pool, batchExportId);
    const check = async () => {
      const { findings, ...rest } = await checkTable(dependencies, definition, signal);
      return { ...rest, kinds: [...new Set(findings.map(({ kind }) => kind))].sort() };
    };
    const repair = (repairId = randomUUID()) =>
      repairTable(dependencies, { batchExportId, repairId, userId: 7, signal });
    const open = () => openTable(dependencies, definition);
    return { ...created, one, other, check, repair, open, signal };
  }

  it('writes nothing while the table is what its manifests say, which is described', async () => {
    const { check, repair, open, foreign, signal } = await exported();
    expect(await check()).toEqual({
      ...{ ok: true, version: 3, manifests: 2, files: 2, left_intervals: 0, kinds: [] },
    });
    expect(await repair()).toEqual({ version: null, adds: 0, removes: 0 });
    foreign();
    const opened = await open();
    const head = await opened?.table.head(signal);
    if (!opened || !head) throw new Error('There is no table.');
    expect(opened.table.describe(head)).toMatchObject({
      ...{ format: 'iceberg', version: 4, files: 2, rows: 42, protocol: { reader: 2, writer: 2 } },
    });
    const versions = await opened.table.history({ before: null, limit: 3 }, signal);
    expect(versions).toMatchObject([
      { version: 4, writer: 'other', description: 'spark, append' },
      { version: 3, writer: 'run', generation: 2, adds: 1, removes: 1 },
      { version: 2, writer: 'run', generation: 1, adds: 1, removes: 0 },
    ]);
    opened.close();
  });

  it('makes a table whole again that went back to an older snapshot', async () => {
    const { key, table, one, other, hour, check, repair, expectRows } = await exported();
    const [first] = table.table().snapshots;
    catalog.update(key, {
      ...{ action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch' },
      'snapshot-id': first?.['snapshot-id'],
    });
    expect(await check()).toMatchObject({ ok: false });
    expect(await repair()).toMatchObject({ version: 4, adds: 2 });
    await expectRows(one, other);
    expect(await check()).toMatchObject({ ok: true, version: 4 });
    const next = hour();
    await next.insert(1, 5);
    expect(await next.run()).toMatchObject({ latest_error: null });
    await one.insert(40, 41);
    expect(await one.run()).toMatchObject({ latest_error: null });
    await expectRows(one, other, next);
  });

  it('adds the files that another writer took away, once', async () => {
    const { batchExportId, one, other, check, repair, expectRows, foreign } = await exported();
    const Key = `${batchExportId}/metadata/foreign.avro`;
    const Body = formatManifestList({ id: '1', parent: null, sequence: 4 }, []);
    await harness.bucket.client.send(new PutObjectCommand({ Bucket: harness.bucket.bucket, Key, Body }));
    foreign(`s3://${harness.bucket.bucket}/${Key}`);
    expect(await check()).toMatchObject({ kinds: ['table_missing'] });
    const id = randomUUID();
    expect(await repair(id)).toMatchObject({ version: 5, adds: 2, removes: 0 });
    expect(await repair(id)).toMatchObject({ version: 5, adds: 2, removes: 0 });
    await expectRows(one, other);
    expect(await check()).toMatchObject({ ok: true });
  });
});
