import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours, createReruns } from '../export/rerun.ts';
import { programPath } from '../setup/programs.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createDeltaReader } from './delta_reader.ts';

/** Opens the table of the first argument. */
const open = `
import os, sys, time, deltalake, duckdb
options = {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"], "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
def table(): return deltalake.DeltaTable(sys.argv[1], storage_options=options)
`;

/** Counts the table again and again, with two readers. */
const countForever = `${open}
while True:
    events = table().to_pyarrow_dataset()
    print("deltalake", events.count_rows(), flush=True)
    print("duckdb", duckdb.sql("select count(*) from events").fetchone()[0], flush=True)
    time.sleep(0.05)
`;

/** Calls of an attempt at a small interval, in their order, before or after which its worker is killed. */
const killPoints = [
  // Reserves the generation too.
  ['before', 'startExport'],
  ['after', 'startExport'],
  ['before', 'planWholeFile'],
  ['after', 'planWholeFile'],
  ['before', 'putFile'],
  ['after', 'putFile'],
  ['before', 'recordFile'],
  ['after', 'recordFile'],
  ['before', 'finishExport'],
  ['after', 'finishExport'],
  ['before', 'startPublish'],
  ['after', 'startPublish'],
  ['before', 'putManifest'],
  ['after', 'putManifest'],
  ['before', 'planTableCommit'],
  ['after', 'planTableCommit'],
  ['before', 'create'],
  ['after', 'create'],
  ['before', 'recordTableCommit'],
  ['after', 'recordTableCommit'],
  ['before', 'complete'],
  ['after', 'complete'],
] as const;

/**
 * Dependencies of an attempt whose worker is killed before or after its first call of this name, of the journal, the bucket or the
 * log of the table. Nothing that it does afterwards reaches any of them.
 */
function withKill(
  { recorder, openDestination }: Pick<ExportHarness, 'recorder' | 'openDestination'>,
  [when, call]: (typeof killPoints)[number],
) {
  let dead = false;
  const kill = (): never => {
    dead = true;
    throw new Error('killed');
  };
  const mortal = <Calls extends object>(calls: Calls): Calls =>
    new Proxy(calls, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function' || name === 'close') return value;
        return (...input: unknown[]): unknown => {
          if (dead || (name === call && when === 'before')) kill();
          const result: unknown = Reflect.apply(value, target, input);
          if (name === 'table') return result === null ? null : mortal(result as object);
          return name === call ? Promise.resolve(result).then(kill) : result;
        };
      },
    });
  return {
    isDead: () => dead,
    recorder: mortal(recorder),
    openDestination: async (...input: Parameters<typeof openDestination>) =>
      mortal(await openDestination(...input)),
  };
}

describe('readers of a table', () => {
  let harness: ExportHarness;
  let python: string;
  const folder = mkdtempSync(join(tmpdir(), 'exportd-tables-'));
  const readers: ChildProcess[] = [];
  const nextHour = createHours();
  const config = { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' };
  beforeAll(async () => {
    python = await programPath('table-readers');
    harness = await createExportHarness();
  });
  afterAll(async () => {
    for (const reader of readers) reader.kill();
    rmSync(folder, { recursive: true });
    await harness.close();
  });

  const environment = async () => {
    const credentials = await (
      harness.bucket.client.config.credentials as () => Promise<{
        accessKeyId: string;
        secretAccessKey: string;
      }>
    )();
    return {
      ...process.env,
      AWS_ENDPOINT_URL: harness.bucket.endpoint,
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    };
  };
  const scriptOf = (text: string): string => {
    const path = join(folder, `${randomUUID()}.py`);
    writeFileSync(path, text);
    return path;
  };
  const run = async (text: string, root: string): Promise<string> => {
    const args = [scriptOf(text), `s3://${harness.bucket.bucket}/${root}`];
    const { stdout } = await promisify(execFile)(python, args, { env: await environment() });
    return stdout;
  };
  /** An export with hours of 20 events. */
  const createTable = () => {
    const batchExportId = randomUUID();
    const hour = () => createReruns(harness, nextHour(), { batchExportId });
    return { batchExportId, hour, reader: createDeltaReader(harness.bucket, batchExportId) };
  };

  it('see whole intervals only, while they are exported again and workers are killed', async () => {
    const { batchExportId, hour, reader } = createTable();
    const first = hour();
    await first.insert(1, 20);
    await first.run({ config });
    const counting = spawn(
      python,
      [scriptOf(countForever), `s3://${harness.bucket.bucket}/${batchExportId}`],
      {
        env: await environment(),
      },
    );
    readers.push(counting);
    const counts: string[] = [];
    createInterface(counting.stdout).on('line', (line) => counts.push(line));
    let expected = 20;
    const whole = new Set([expected]);
    const seen = () =>
      waitFor(
        () => counts.length > 4 && counts.slice(-4).every((line) => line.endsWith(` ${expected}`)),
        `the readers see ${expected} rows`,
      );
    const unreached: string[] = [];
    for (const point of killPoints) {
      const one = hour();
      await one.insert(1, 20);
      let reached = 0;
      /** One attempt at a run, whose worker is killed there, and another one. */
      const exportHour = async () => {
        const { run_id } = await one.create({ config });
        const { check_replacement } = await one.count(run_id);
        if (check_replacement) await harness.attempt().checkReplacement({ run_id });
        const killed = withKill(harness, point);
        const attempt = harness.attempt(killed);
        await attempt.exportInterval({ run_id }).catch(() => undefined);
        await attempt.publishManifest({ run_id }).catch(() => undefined);
        if (killed.isDead()) reached += 1;
        const { finished } = await harness.recorder.read(run_id);
        if (!finished) await harness.attempt().exportInterval({ run_id });
        await harness.attempt().publishManifest({ run_id });
      };
      whole.add((expected += 20));
      await exportHour();
      // Other rows of the same hour.
      await one.insert(30, 36);
      whole.add((expected += 7));
      await exportHour();
      await seen();
      if (reached === 0) unreached.push(point.join(' '));
    }
    expect(unreached).toEqual([]);
    expect(counts.filter((line) => !whole.has(Number(line.split(' ')[1])))).toEqual([]);
    expect(new Set(counts.map((line) => line.split(' ')[0]))).toEqual(new Set(['deltalake', 'duckdb']));
    expect(await reader.rows()).toHaveLength(expected);
  });

  it('run the recipe of the documentation, and polars scans the table', async () => {
    const { batchExportId, hour } = createTable();
    const one = hour();
    await one.insert(1, 3);
    await one.run({ config });
    const text = readFileSync('src/tables/README.md', 'utf8').split('## Reading')[1] ?? '';
    const [, recipe = ''] = /```python\n([\s\S]*?)```/.exec(text) ?? [];
    const output = await run(
      recipe.replace('s3://exportd-demo/events', `s3://${harness.bucket.bucket}/${batchExportId}`),
      '',
    );
    for (const name of ['event 1', 'event 2', 'event 3']) expect(output).toContain(name);
    const polars = await run(
      `${open}
import polars
print(polars.scan_delta(sys.argv[1], storage_options=options).select("event").collect().to_series().sort().to_list())`,
      batchExportId,
    );
    expect(polars.trim()).toBe("['event 1', 'event 2', 'event 3']");
  });

  it('read a checkpoint of exportd without the versions before it, and find a row by its time and by its uuid', async () => {
    const { batchExportId, hour, reader } = createTable();
    for (let hours = 0; hours < 12; hours += 1) {
      const one = hour();
      await one.insert(1, 4);
      await one.run({ config });
    }
    for (let version = 0; version < 10; version += 1) await reader.delete(`${reader.nameOf(version)}.json`);
    const [row] = await reader.rows();
    const output = await run(
      `${open}
events = table().to_pyarrow_dataset()
print(events.count_rows())
print(duckdb.sql("select count(*) from events where uuid = '${String(row?.uuid)}'").fetchone()[0])
print(duckdb.sql("select count(distinct uuid), typeof(any_value(uuid)), typeof(any_value(_inserted_at)) from events").fetchone())
`,
      batchExportId,
    );
    expect(output.split('\n').slice(0, 2)).toEqual(['48', '1']);
    expect(output).toContain("(48, 'VARCHAR', 'TIMESTAMP WITH TIME ZONE')");
  });

  it('double no row after compact(), after which its intervals are not exported again', async () => {
    const { batchExportId, hour, reader } = createTable();
    const hours = [hour(), hour(), hour()];
    for (const one of hours) {
      await one.insert(1, 20);
      await one.run({ config });
    }
    await run(`${open}\nprint(table().optimize.compact())`, batchExportId);
    expect(await reader.rows()).toHaveLength(60);
    await hours[0]?.insert(30, 36);
    expect((await hours[0]?.run({ config }))?.latest_error).toMatch(/^TableChanged: /);
    const next = hour();
    await next.insert(1, 5);
    expect(await next.run({ config })).toMatchObject({ latest_error: null });
    expect(await reader.rows()).toHaveLength(65);
    expect(
      (await run(`${open}\nprint(table().to_pyarrow_dataset().count_rows())`, batchExportId)).trim(),
    ).toBe('65');
  });
});
