import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { formatManifestList } from '../../src/tables/iceberg_manifest.ts';
import { openTable } from '../../src/verify/check_table.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours } from '../export/rerun.ts';
import { createMaintenanceHarness } from '../maintenance/maintenance_harness.ts';
import { createIcebergReader } from './iceberg_reader.ts';
import { type CatalogRequest, isCommit, type RestCatalog, startRestCatalog } from './rest_catalog.ts';
import { createHoursOfTable, itCommitsOnceWhenKilled, publishRun } from './table_harness.ts';

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
  const tested = createHoursOfTable(harness, nextHour, { batchExportId, config, rows: table.rows });
  const commitsOf = (runId: string): Promise<number> =>
    Promise.resolve(table.commits().filter(({ run_id }) => run_id === runId).length);
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
  return { ...tested, batchExportId, config, key, table, commitsOf, foreign };
}

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

  it('is read once for a commit', async () => {
    const { hour, expectRows } = createTable();
    const [one, other] = [hour(), hour()];
    const requestsOf = async (run: () => Promise<unknown>): Promise<string[]> => {
      const before = catalog.requests.length;
      expect(await run()).toMatchObject({ latest_error: null });
      return catalog.requests
        .slice(before)
        .filter(({ path }) => path.includes('/tables/'))
        .map(({ method }) => method);
    };
    for (const { insert, run } of [one, other]) {
      await insert(1, 3);
      await requestsOf(run);
    }
    const third = hour();
    await third.insert(1, 3);
    expect(await requestsOf(third.run)).toEqual(['GET', 'POST']);
    await one.insert(10, 11);
    expect(await requestsOf(one.run)).toEqual(['GET', 'POST']);
    await expectRows(one, other, third);
  });

  it('has the partitions of its files, by which readers skip manifests', async () => {
    const { batchExportId, table, hour, expectRows } = createTable();
    const options = { prefix: batchExportId, partition_by: ['date', 'hour', 'event'] };
    const [one, other] = [hour(), hour()];
    await one.insertNamed(['a', 'b c', 'a', '']);
    await other.insertNamed(['b c']);
    for (const { run } of [one, other]) expect(await run(options)).toMatchObject({ latest_error: null });
    const metadata = table.table();
    const schema = metadata.schemas.find((each) => each['schema-id'] === metadata['current-schema-id']);
    const fields = schema?.fields.slice(-3) ?? [];
    expect(fields).toMatchObject([
      { name: 'date', type: 'date' },
      { name: 'hour', type: 'int' },
      { name: 'event_partition', type: 'string' },
    ]);
    expect(metadata['default-spec-id']).toBe(1);
    expect(metadata['partition-specs']).toEqual([
      { 'spec-id': 0, fields: [] },
      {
        'spec-id': 1,
        fields: fields.map(({ id, name }, at) => ({
          ...{ 'source-id': id, 'field-id': 1_000 + at, name, transform: 'identity' },
        })),
      },
    ]);
    const timeOf = ({ of }: typeof one) => ({
      date: Date.parse(of.start.slice(0, 10)) / 86_400_000,
      hour: Number(of.start.slice(11, 13)),
    });
    const partitionsOf = async () => (await table.live()).map(({ data_file }) => data_file.partition);
    expect(await partitionsOf()).toEqual([
      { ...timeOf(other), event_partition: 'b c' },
      { ...timeOf(one), event_partition: 'a' },
      { ...timeOf(one), event_partition: 'b c' },
      { ...timeOf(one), event_partition: null },
    ]);
    const int = (value: number): Buffer => Buffer.from(new Int32Array([value]).buffer);
    const boundsOf = (hours: typeof one, first: string, last: string, contains_null: boolean) => [
      ...Object.values(timeOf(hours)).map((value) => ({
        ...{ contains_null: false, lower_bound: int(value), upper_bound: int(value) },
      })),
      { contains_null, lower_bound: Buffer.from(first), upper_bound: Buffer.from(last) },
    ];
    expect(await table.manifests()).toMatchObject([
      { partition_spec_id: 1, partitions: boundsOf(other, 'b c', 'b c', false) },
      { partition_spec_id: 1, partitions: boundsOf(one, 'a', 'b c', true) },
    ]);
    // The next run of the hour has its own partitions, and the manifest of the other hour stays.
    await one.insertNamed(['z'], 100);
    expect(await one.run(options)).toMatchObject({ latest_error: null });
    expect(await partitionsOf()).toContainEqual({ ...timeOf(one), event_partition: 'z' });
    expect(await partitionsOf()).toContainEqual({ ...timeOf(other), event_partition: 'b c' });
    await expectRows(one, other);
    for (const partition_by of [['date', 'hour'], []]) {
      const changed = await hour().run({ ...options, partition_by });
      expect(changed.latest_error).toBeNull();
    }
    const late = hour();
    await late.insertNamed(['a']);
    for (const partition_by of [['date', 'hour'], []])
      expect((await late.run({ ...options, partition_by })).latest_error).toMatch(
        /^TableProtocol: .*other partitions than partition_by/,
      );
    await expectRows(one, other);
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
    expect(await commitsOf(run_id)).toBe(1);
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
  itCommitsOnceWhenKilled(() => harness, createTable);

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
    expect(await commitsOf(run_id)).toBe(1);
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
    await publishRun(harness, run_id);
    expect(await commitsOf(run_id)).toBe(1);
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
    await Promise.all(ids.map((run_id) => publishRun(harness, run_id)));
    expect(await Promise.all(ids.map(commitsOf))).toEqual([1, 1, 1]);
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
    const zombie = publishRun(harness, run_id).catch(() => undefined);
    await reached.promise;
    await other.run();
    await publishRun(harness, run_id);
    released.resolve(undefined);
    await zombie;
    expect(await commitsOf(run_id)).toBe(1);
    await expectRows(one, other);
  });

  it('is signed for AWS where the catalog wants that, with the keys of the bucket', async () => {
    const { accessKeyId, secretAccessKey } = await harness.bucket.client.config.credentials();
    const signature = { accessKeyId, secretAccessKey, region: 'us-east-1', service: 'glue' };
    const [signed, other] = await Promise.all([
      startRestCatalog({ signature }),
      startRestCatalog({ signature: { ...signature, service: 's3tables' } }),
    ]);
    try {
      const { hour } = createTable();
      const one = hour();
      await one.insert(1, 3);
      const config = {
        ...{ catalog_uri: signed.uri, catalog_signing_name: 'glue', catalog_credential: undefined },
        // In paths it is escaped, and in signatures twice.
        ...{ catalog_namespace: 'lake.events', catalog_warehouse: 'a b/c' },
      };
      expect(await one.run(config)).toMatchObject({ latest_error: null });
      await one.insert(4, 5);
      expect(await one.run(config)).toMatchObject({ latest_error: null });
      expect([...signed.tables.values()].map((table) => table['last-sequence-number'])).toEqual([2]);
      const denied = await one.run({ ...config, catalog_uri: other.uri });
      expect(denied.latest_error).toMatch(
        /^CatalogAccessDenied: .*status 403\); check .*catalog_signing_name/,
      );
    } finally {
      await Promise.all([signed.close(), other.close()]);
    }
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
  const twoHours = async () => {
    const created = createTable();
    return { ...created, ...(await created.twoHours()) };
  };

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

describe('versions between a tag and the newest one', () => {
  it('expire without what the two need', async () => {
    const { batchExportId, key, table, hour, expectRows } = createTable();
    const [one, other] = [hour(), hour()];
    await other.insert(1, 10);
    await other.run();
    const first = table.current()?.['snapshot-id'];
    catalog.update(key, {
      ...{ action: 'set-snapshot-ref', 'ref-name': 'audit', type: 'tag', 'snapshot-id': first },
    });
    await one.insert(1, 10);
    await one.run();
    await one.insert(20, 25);
    await one.run();
    await createMaintenanceHarness(harness)
      .activities({ EXPORTD_TABLE_FILE_RETENTION: '0s' })
      .cleanUpExport({ batch_export_id: batchExportId });
    expect(table.table().snapshots).toHaveLength(2);
    expect(await table.live(table.current(first))).toHaveLength(1);
    await expectRows(one, other);
  });
});

describe('a repair of an Iceberg table', () => {
  const exported = async () => {
    const created = createTable();
    const repairable = await created.repairable();
    const open = async () => openTable(repairable.dependencies, await repairable.definition());
    return { ...created, ...repairable, open };
  };

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
