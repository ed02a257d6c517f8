import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { assignPorts } from '../../src/local_stack/ports.ts';
import { exportedRows, insertEvents, readObject } from '../e2e/rows.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { verifyExport } from '../e2e/verify_export.ts';
import { fromSetUp } from '../setup/environment.ts';
import { hourAgo } from '../setup/hours.ts';
import { expectBorne, workerAt } from '../setup/process_watch.ts';
import { waitFor } from '../setup/wait_for.ts';

/** Two rows that are 16 times as wide as a row may be. */
const wideRows = 2;
const wideBytes = 64_000_000;

describe('an export of rows of 64 MB', () => {
  let stack: Stack;
  let port: number;
  let wide: string[];
  beforeAll(async () => {
    const folder = fromSetUp('EXPORTD_TEST_FOLDER');
    ({ worker: port } = await assignPorts(join(folder, `${randomUUID()}.ports.json`), ['worker']));
    stack = await startStack(
      'wide-rows',
      { EXPORTD_WORKER_HTTP_PORT: String(port), EXPORTD_MAX_ROW_SIZE: '4MiB' },
      { v8Options: [] },
    );
    await insertEvents(stack.pool, stack.projectId, hourAgo(3), 1_000);
    await insertEvents(stack.pool, stack.projectId, hourAgo(2), 1_000);
    const { rows } = await stack.pool.query<{ uuid: string }>(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       select $1, gen_random_uuid(), 'wide', 'person', jsonb_build_object('wide', repeat('a', $3)), moment, moment
       from generate_series(1, $4) n
       cross join lateral (select $2::timestamptz + make_interval(mins => n * 10) as moment) m
       returning uuid`,
      [stack.projectId, hourAgo(3), wideBytes, wideRows],
    );
    wide = rows.map(({ uuid }) => uuid).sort();
    // What a worker loads once is no growth.
    const { id, run_id } = await backfill({}, 2);
    await stack.waitForRun(id, run_id, 'Completed');
  });
  afterAll(() => stack.stop());

  async function backfill(config: Record<string, unknown>, hours: number, fields = {}) {
    const id = await stack.createExport(fields, config);
    await stack.call('POST', `/batch_exports/${id}/backfill/`, {
      start_at: hourAgo(hours).toISOString(),
      end_at: hourAgo(hours - 1).toISOString(),
    });
    const { id: run_id } = await waitFor(async () => (await stack.runs(id))[0], 'the backfill has a run');
    return { id, run_id };
  }

  /** Exports the hour with the wide rows within the limits of memory and silence. */
  const exportHour = (config: Record<string, unknown>, status: string, fields = {}) =>
    expectBorne(workerAt(port), async () => {
      const { id, run_id } = await backfill(config, 3, fields);
      return { id, run: await stack.waitForRun(id, run_id, status) };
    });

  it('fails by default, and names row, column and limit', async () => {
    const { run } = await exportHour({}, 'Failed');
    expect(run.latest_error).toMatch(
      /^UnencodableRow: Row [0-9a-f-]{36} cannot be exported: column properties .*EXPORTD_MAX_ROW_SIZE/,
    );
    expect(wide).toContain(/Row ([0-9a-f-]{36})/.exec(run.latest_error ?? '')?.[1]);
  });

  it.each(['JSONLines', 'Parquet'])(
    'with on_bad_row reject writes them to the rejected file (%s)',
    async (file_format) => {
      const { id, run } = await exportHour(
        { file_format, compression: 'zstd', on_bad_row: 'reject' },
        'Completed',
      );
      expect(run.records_completed).toBe(1_000);
      const manifest = JSON.parse((await readObject(stack.bucket, run.manifest_key ?? '')).toString()) as {
        rejected: number;
        rejected_file: { key: string };
      };
      expect(manifest.rejected).toBe(wideRows);
      const lines = (await readObject(stack.bucket, manifest.rejected_file.key))
        .toString()
        .trimEnd()
        .split('\n');
      const rejected = lines.map(
        (line) => JSON.parse(line) as { id: string; column: string; reason: string },
      );
      expect(rejected.map((row) => row.id).sort()).toEqual(wide);
      expect(new Set(rejected.map(({ column }) => column))).toEqual(new Set(['properties']));
      expect((await verifyExport(stack, id)).findings).toEqual([]);
    },
  );

  it('made by a query of many columns fails, and names the first column that is too much', async () => {
    const columns = Array.from({ length: 50 }, (_, index) => `repeat('a', 1000000) as c${index}`);
    const dialect_query = `select uuid, ${columns.join(', ')} from events where event = 'wide'`;
    const { run } = await exportHour({}, 'Failed', { dialect_query });
    expect(run.latest_error).toMatch(/column c\d+ .*EXPORTD_MAX_ROW_SIZE/);
  });

  it('exports rows up to the limit', async () => {
    await stack.pool.query(
      `insert into events (team_id, uuid, event, distinct_id, properties, timestamp, inserted_at)
       values ($1, gen_random_uuid(), 'large', 'person', jsonb_build_object('large', repeat('b', 4000000)), $2, $2)`,
      [stack.projectId, hourAgo(4)],
    );
    const { id, run_id } = await backfill({ compression: 'gzip' }, 4);
    const run = await stack.waitForRun(id, run_id, 'Completed');
    const rows = await exportedRows(stack.bucket, run.manifest_key ?? '');
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows[0])).toContain('b'.repeat(1_000_000));
  });
});
