import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Manifest } from '../../src/destination/manifest.ts';
import type { ExportedColumn } from '../../src/source/row_selection.ts';
import { startDuckDb, type IndependentReader } from '../encoding/duckdb.ts';
import { waitFor } from '../setup/wait_for.ts';
import { exportedRows, insertEvents, keysUnder, readObject } from './rows.ts';
import { hourAgo } from '../setup/hours.ts';
import { startStack, type Stack } from './stack.ts';
import { verifyExport } from './verify_export.ts';

const rowsPerHour = 40;
let stack: Stack;
let duckDb: IndependentReader;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'exportd-dialect-query-'));
  duckDb = await startDuckDb();
  stack = await startStack('dialect-query');
  await insertEvents(stack.pool, stack.projectId, hourAgo(2), rowsPerHour);
  await stack.pool.query(
    `update events set event = case when (properties->>'n')::int % 4 = 0 then 'hidden' else event end where team_id = $1`,
    [stack.projectId],
  );
});
afterAll(async () => {
  duckDb.close();
  rmSync(folder, { recursive: true });
  await stack.stop();
});

const dialect_query = `select uuid, toInt(properties.n) as n, toInt(properties.n) / 8 as part, toDate(timestamp) as day,
  [properties.n, 'x'] as list, properties.quote as quote, n > 10 as large from events where toInt(properties.n) <= 20`;

/** Exports the hour and returns the manifest of its newest run. */
async function exportHour(id: string): Promise<Manifest & { readonly key: string }> {
  const before = (await stack.runs(id)).length;
  const range = { start_at: hourAgo(2).toISOString(), end_at: hourAgo(1).toISOString() };
  expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
  const key = await waitFor(async () => {
    const [run, ...others] = await stack.runs(id);
    return others.length === before && run?.status === 'Completed' && run.manifest_key;
  }, 'the hour is exported');
  return { ...(JSON.parse((await readObject(stack.bucket, key)).toString()) as Manifest), key };
}

/** The result of the query, computed without the dialect. */
const expectedRows = async () =>
  (
    await stack.pool.query<Record<string, unknown>>(
      `select uuid, n, n / 8.0::float8 as part, to_char(timestamp, 'YYYY-MM-DD') as day, array[n::text, 'x'] as list,
         properties->>'quote' as quote, n > 10 as large
       from events, lateral (select (properties->>'n')::int as n) as numbers
       where team_id = $1 and event <> 'hidden' and n <= 20 order by inserted_at, uuid`,
      [stack.projectId],
    )
  ).rows;

describe('an export with a dialect_query', () => {
  it('has the columns of the query as JSON lines, and new columns from the first run after a change', async () => {
    const config = { exclude_events: ['hidden'], prefix: 'lines', compression: 'gzip' };
    const id = await stack.createExport({ dialect_query, paused: true }, config);
    const manifest = await exportHour(id);
    expect(manifest.columns).toEqual([
      { name: 'uuid', type: 'uuid' },
      { name: 'n', type: 'bigint' },
      { name: 'part', type: 'double' },
      { name: 'day', type: 'date' },
      { name: 'list', type: 'json' },
      { name: 'quote', type: 'text' },
      { name: 'large', type: 'boolean' },
    ]);
    const rows = await expectedRows();
    expect(rows.length).toBe(15);
    expect(manifest).toMatchObject({ rows: 15, source_rows: 15 });
    expect(await exportedRows(stack.bucket, manifest.key)).toEqual(rows);
    expect(await verifyExport(stack, id)).toMatchObject({ ok: true, findings: [] });

    const changed = await stack.call('PATCH', `/batch_exports/${id}/`, {
      dialect_query: 'select properties.n as n, _inserted_at from events',
    });
    expect(changed.status).toBe(200);
    const next = await exportHour(id);
    expect(next).toMatchObject({
      generation: 2,
      rows: 30,
      columns: [{ name: 'n' }, { name: '_inserted_at' }],
    });
    expect(await verifyExport(stack, id)).toMatchObject({ ok: true, findings: [] });
  });

  it('has them as Parquet, readable by DuckDB', async () => {
    const config = {
      exclude_events: ['hidden'],
      prefix: 'parquet',
      file_format: 'Parquet',
      compression: 'zstd',
    };
    const id = await stack.createExport({ dialect_query, paused: true }, config);
    const { columns, files } = await exportHour(id);
    const [file] = files;
    const path = join(folder, 'rows.parquet');
    writeFileSync(path, await readObject(stack.bucket, file?.key ?? ''));
    const days = (day: unknown) => String(Date.parse(`${String(day)}T00:00:00Z`) / 86_400_000);
    expect(await duckDb.parquet(path, columns as ExportedColumn[])).toEqual(
      (await expectedRows()).map(({ uuid, n, part, day, list, quote, large }) => [
        uuid,
        String(n),
        String(part),
        days(day),
        `["${(list as string[]).join('", "')}"]`,
        quote,
        String(large),
      ]),
    );
    expect(await verifyExport(stack, id)).toMatchObject({ ok: true, findings: [] });
  });

  it('answers in DuckDB what the README of queries asks', async () => {
    await stack.pool.query(
      `update events set properties = properties || jsonb_build_object('$browser', (array['Chrome', 'Firefox', 'Safari'])[1 + (properties->>'n')::int % 7 % 3])
       where team_id = $1`,
      [stack.projectId],
    );
    const text = readFileSync('src/queries/README.md', 'utf8').split('**Many events.**')[1] ?? '';
    const [selected = '', asked = ''] = [...text.matchAll(/```sql\n(.*?)```/gs)].map(([, code]) => code);
    const config = { prefix: 'dashboards', file_format: 'Parquet', compression: 'zstd' };
    await exportHour(await stack.createExport({ dialect_query: selected, paused: true }, config));
    for (const key of await keysUnder(stack.bucket, 'dashboards/')) {
      mkdirSync(dirname(join(folder, key)), { recursive: true });
      writeFileSync(join(folder, key), await readObject(stack.bucket, key));
    }
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    await connection.run(`set file_search_path = '${folder}'`);
    const found = (await connection.runAndReadAll(asked)).getRowsJson();
    connection.closeSync();
    instance.closeSync();
    const { rows } = await stack.pool.query<{ browser: string; events: number }>(
      `select properties->>'$browser' as browser, count(*)::int as events from events
       where team_id = $1 and event = '$pageview' group by 1 order by 2 desc, 1`,
      [stack.projectId],
    );
    expect(found.map(([browser, events]) => ({ browser, events: Number(events) }))).toEqual(rows);
    expect(found).toHaveLength(3);
  });
});
