import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { exportd } from '../cli/command_line.ts';
import { configOf } from '../destination/bucket_requests.ts';
import { startBlackholeServer } from '../isolation/blackhole_server.ts';
import { useTestBucket } from '../setup/use_test_bucket.ts';
import { createDeltaReader } from '../tables/delta_reader.ts';
import { type ApiHarness, openApiHarness } from './api_harness.ts';

let api: ApiHarness;
let url: string;
const bucket = useTestBucket();
beforeAll(async () => {
  api = await openApiHarness({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true' });
  url = await api.listen();
});
beforeEach(() => {
  api.mode = 'decide';
});
afterAll(() => api.close());

/** An export to a table that has nothing yet. */
async function createTable() {
  const root = randomUUID();
  const config = configOf(bucket, {
    prefix: `${root}/{year}`,
    file_format: 'Parquet',
    compression: 'zstd',
    table_format: 'delta',
  });
  const id = await api.createExport({ destination: { type: 'S3', config } });
  const call = (method: 'GET' | 'POST', path = '') =>
    api.call(method, `batch_exports/${id}/table/${path}`, method === 'POST' ? {} : undefined);
  const condition = async () => {
    const { body } = await api.call('GET', `batch_exports/${id}/`);
    return body.condition as { cause: string; summary: string; actions: { path: string; command: string }[] };
  };
  return { id, root, call, condition, table: createDeltaReader(bucket, root) };
}

describe('the table of an export', () => {
  it('is not there before its first run, and nothing is to be repaired', async () => {
    const { call } = await createTable();
    const described = await call('GET');
    expect([described.status, described.body]).toMatchObject([
      409,
      { code: 'table_unavailable', detail: expect.stringContaining('There is no table at s3://') },
    ]);
    expect((await call('GET', 'history/')).body).toEqual({ next_before: null, results: [] });
    expect((await call('POST', 'check/')).body).toMatchObject({ ok: true, version: null, findings: [] });
    expect((await call('POST', 'repair/')).body).toEqual({
      version: null,
      files_added: 0,
      files_removed: 0,
    });
  });

  it('is described and checked; what differs is its condition until it is repaired', async () => {
    const { id, root, call, condition, table } = await createTable();
    const schema = { fields: [{ name: 'uuid', type: 'string', nullable: true, metadata: {} }] };
    const metaData = {
      id,
      format: { provider: 'parquet', options: {} },
      schemaString: JSON.stringify(schema),
      partitionColumns: [],
      configuration: {},
    };
    const add = {
      path: 'part-0.parquet',
      partitionValues: {},
      size: 10,
      modificationTime: 1,
      dataChange: true,
      stats: '{"numRecords":7}',
    };
    await table.commit({ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData });
    await table.commit({ add });
    expect((await call('GET')).body).toEqual({
      location: `s3://${bucket.bucket}/${root}`,
      version: 1,
      files: 1,
      rows: 7,
      bytes: 10,
      columns: [{ name: 'uuid', type: 'string' }],
      partition_columns: [],
      protocol: { reader: 1, writer: 2 },
      checkpoint: null,
    });
    const found = await call('POST', 'check/');
    expect(found.body).toMatchObject({
      ok: false,
      version: 1,
      manifests: 0,
      files: 1,
      findings: [
        { kind: 'table_unexpected', object: `${root}/part-0.parquet` },
        { kind: 'table_file_missing', object: `${root}/part-0.parquet` },
      ],
    });
    const { cause, summary, actions } = await condition();
    expect([cause, summary]).toEqual(['table_changed', expect.stringContaining('no manifest lists it')]);
    const [{ path, command } = { path: '', command: '' }] = actions;
    expect(command).toBe(`exportd table repair ${id}`);
    // The button of the condition fixes it.
    expect((await api.call('POST', path, {})).body).toEqual({
      version: 2,
      files_added: 0,
      files_removed: 1,
    });
    expect((await condition()).cause).not.toBe('table_changed');
    const { body } = await call('GET', 'history/?limit=2');
    expect(body).toMatchObject({
      next_before: 1,
      results: [
        { version: 2, writer: 'repair', description: null, files_added: 0, files_removed: 1 },
        { version: 1, writer: 'other', description: 'another, OPTIMIZE', files_added: 1, files_removed: 0 },
      ],
    });
    expect((await call('GET', 'history/?limit=2&before=1')).body).toMatchObject({
      next_before: null,
      results: [{ version: 0 }],
    });
    const trail = await api.call('GET', `audit/?object=batch_exports/${id}`);
    expect((trail.body.results as object[])[0]).toMatchObject({
      action: 'table.repair',
      user: { email: 'ada@example.com' },
    });
  });

  it('is described, listed, checked and repaired by the command line', async () => {
    const { id, root, table } = await createTable();
    const service = { EXPORTD_BASE_URL: url, EXPORTD_API_KEY: api.key };
    const run = (...args: readonly string[]) => exportd(service, 'table', ...args);
    const absent = await run('describe', id);
    expect([absent.code, absent.stderr]).toEqual([1, expect.stringContaining('There is no table at s3://')]);
    expect(await run('check', id)).toMatchObject({ code: 0, stderr: '' });
    expect((await run('repair', id)).stdout).toBe(
      'The table is what its manifests say. Nothing was written.\n',
    );
    const fields = ['uuid', 'date'].map((name) => ({ name, type: 'string', nullable: true, metadata: {} }));
    const metaData = {
      id,
      format: { provider: 'parquet', options: {} },
      schemaString: JSON.stringify({ fields }),
      partitionColumns: ['date'],
      configuration: {},
    };
    await table.commit({ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, { metaData });
    const add = { path: 'part-0.parquet', partitionValues: { date: '2026-11-01' }, size: 2_048 };
    await table.commit({ add: { ...add, modificationTime: 1, dataChange: true, stats: '{"numRecords":7}' } });
    const described = await run('describe', id);
    for (const shown of [`s3://${bucket.bucket}/${root}`, 'uuid', 'date'])
      expect(described.stdout).toContain(shown);
    expect(JSON.parse((await run('describe', id, '--json')).stdout)).toMatchObject({
      version: 1,
      files: 1,
      rows: 7,
      bytes: 2_048,
      partition_columns: ['date'],
    });
    const listed = await run('history', id, '--limit', '1');
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining('another, OPTIMIZE')]);
    expect(listed.stdout.trimEnd().split('\n')).toHaveLength(2);
    expect((await run('history', id, '--before', '1', '--json')).stdout).toContain('"version": 0');
    const checked = await run('check', id);
    expect([checked.code, checked.stdout]).toEqual([1, expect.stringContaining(`${root}/part-0.parquet`)]);
    // Its partitions are not those of the export.
    const refused = await run('repair', id);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('has the partitions date')]);
    await table.commit({ metaData: { ...metaData, partitionColumns: [] } });
    expect((await run('repair', id)).stdout).toBe('Wrote version 3: 0 files added, 1 file removed.\n');
    expect((await run('check', id)).code).toBe(0);
    const other = await run('describe', randomUUID());
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('There is no batch export')]);
  });

  it('with a log that is no table is named as such', async () => {
    const { id, call, table, condition } = await createTable();
    await table.put(`${table.nameOf(0)}.json`, 'null\n');
    const { status, body } = await call('GET');
    expect([status, body.code, body.detail]).toEqual([
      409,
      'table_unavailable',
      expect.stringContaining('is not a commit of a Delta table'),
    ]);
    expect((await call('POST', 'check/')).body).toMatchObject({
      ok: false,
      version: null,
      findings: [{ kind: 'table_unreadable' }],
    });
    expect((await condition()).cause).toBe('table_changed');
    expect((await call('GET', 'history/')).body).toMatchObject({ results: [{ writer: 'unknown' }] });
    const deleted = await api.call('DELETE', `batch_exports/${id}/`);
    expect(deleted.status).toBe(204);
    const { rows } = await api.database.pool.query('select from exportd.jobs where target = $1', [id]);
    expect(rows).toEqual([]);
  });

  it('is asked for in vain while Temporal is not there, and of an export without one', async () => {
    const { call } = await createTable();
    api.mode = 'unreachable';
    expect((await call('GET')).body).toMatchObject({ code: 'temporal_unreachable' });
    api.mode = 'decide';
    const id = await api.createExport();
    const { status, body } = await api.call('GET', `batch_exports/${id}/table/`);
    expect([status, body.detail]).toEqual([400, expect.stringContaining('has no table')]);
  });
});

describe('a request about a table', () => {
  it('ends after its time when the store does not respond', async () => {
    const blackhole = await startBlackholeServer();
    const impatient = await openApiHarness({
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
      EXPORTD_TABLE_READ_TIMEOUT: '1s',
    });
    const config = configOf(bucket, {
      endpoint_url: blackhole.endpoint,
      file_format: 'Parquet',
      compression: 'zstd',
      table_format: 'delta',
    });
    const id = await impatient.createExport({ destination: { type: 'S3', config } });
    for (const path of ['', 'history/']) {
      const { status, body } = await impatient.call('GET', `batch_exports/${id}/table/${path}`);
      expect([path, status, body.detail]).toEqual([
        path,
        409,
        expect.stringMatching(/^No answer within 1 s, the time that it may take/),
      ]);
    }
    await impatient.close();
    await blackhole.close();
  });
});
