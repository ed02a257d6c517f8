import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { ListObjectsV2Command } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createDestinationOpener } from '../../src/destination/open_destination.ts';
import { createS3Proxy } from '../e2e/s3_proxy.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours, createReruns } from '../export/rerun.ts';
import { programPath } from '../setup/programs.ts';
import { waitFor } from '../setup/wait_for.ts';
import { killPoints, withKill } from './kill_points.ts';
import { bucketProperties, startTrino } from './trino.ts';

/** Opens the table of the second argument in the catalog of the first. */
const open = `
import os, sys, time
from pyiceberg.catalog import load_catalog
s3 = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": "us-east-1", "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"], "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"]}
catalog = load_catalog("c", type="rest", uri=sys.argv[1], **s3, **{"py-io-impl": "pyiceberg.io.fsspec.FsspecFileIO"})
def table(): return catalog.load_table(sys.argv[2])
`;

/** Counts the table again and again. */
const countForever = `${open}
while True:
    print(table().scan(selected_fields=("uuid",)).to_arrow().num_rows, flush=True)
    time.sleep(0.05)
`;

/** The kill points of any table, and those of requests to the catalog and of objects of metadata. */
const points = [
  ...killPoints.filter(([, call]) => call !== 'create'),
  ['before', 'replace'],
  ['after', 'replace'],
  ['before', 'commit'],
  ['after', 'commit'],
] as const;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe('readers of an Iceberg table', () => {
  let harness: ExportHarness;
  let python: string;
  let uri: string;
  const folder = mkdtempSync(join(tmpdir(), 'exportd-iceberg-'));
  const children: ChildProcess[] = [];
  const nextHour = createHours();

  const environment = async () => {
    const credentials = await harness.bucket.client.config.credentials();
    return {
      ...process.env,
      AWS_ENDPOINT_URL: harness.bucket.endpoint,
      AWS_DEFAULT_REGION: 'us-east-1',
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: credentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    };
  };
  beforeAll(async () => {
    const [pyiceberg, catalog] = await Promise.all([
      programPath('pyiceberg'),
      programPath('iceberg-rest-catalog'),
    ]);
    python = pyiceberg;
    harness = await createExportHarness();
    const port = await freePort();
    uri = `http://127.0.0.1:${port}`;
    const warehouse = `s3://${harness.bucket.bucket}/warehouse`;
    const server = spawn(catalog, [String(port), folder, warehouse, harness.bucket.endpoint], {
      env: await environment(),
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(server);
    for await (const line of createInterface(server.stdout)) if (line === 'listens') break;
  });
  afterAll(async () => {
    for (const child of children) child.kill();
    rmSync(folder, { recursive: true });
    await harness.close();
  });

  const scriptOf = (text: string): string => {
    const path = join(folder, `${randomUUID()}.py`);
    writeFileSync(path, text);
    return path;
  };
  const run = async (text: string, name: string, endpoint = harness.bucket.endpoint): Promise<string> => {
    const { stdout } = await promisify(execFile)(python, [scriptOf(text), uri, name], {
      env: { ...(await environment()), AWS_ENDPOINT_URL: endpoint },
    });
    return stdout.trim();
  };
  /** Runs a query with DuckDB's own extension, for which the catalog is `lake`. @returns its row */
  const duckdb = async (query: string): Promise<unknown[]> => {
    const program = `
import duckdb, json, os, sys
for name in ["httpfs", "avro", "iceberg"]:
    package = __import__(f"duckdb_extension_{name}")
    folder = os.path.join(os.path.dirname(package.__file__), "extensions", "v" + duckdb.__version__)
    duckdb.execute(f"load '{folder}/{name}.duckdb_extension'")
keys = f"key_id '{os.environ['AWS_ACCESS_KEY_ID']}', secret '{os.environ['AWS_SECRET_ACCESS_KEY']}', region 'us-east-1'"
endpoint = f"endpoint '{os.environ['AWS_ENDPOINT_URL'].split('//')[1]}', use_ssl false, url_style 'path'"
duckdb.execute(f"create secret (type s3, {keys}, {endpoint})")
duckdb.execute(f"attach '' as lake (type iceberg, endpoint '{sys.argv[1]}', authorization_type 'none', access_delegation_mode 'none')")
print(json.dumps(duckdb.sql(sys.argv[2]).fetchone()), flush=True)
os._exit(0)`;
    const { stdout } = await promisify(execFile)(
      await programPath('table-readers'),
      [scriptOf(program), uri, query],
      {
        env: await environment(),
      },
    );
    return JSON.parse(stdout) as unknown[];
  };
  const keysBelow = async (Prefix: string): Promise<string[]> => {
    const { client, bucket: Bucket } = harness.bucket;
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix }));
    return Contents.map(({ Key = '' }) => Key);
  };
  /** An export with hours of events. */
  const createTable = () => {
    const batchExportId = randomUUID();
    const catalog_table = `t_${batchExportId.slice(0, 8)}`;
    const config = {
      ...{ file_format: 'Parquet', compression: 'zstd', table_format: 'iceberg' },
      ...{ catalog_uri: uri, catalog_namespace: 'lake', catalog_table },
    };
    const hour = () => {
      const of = nextHour();
      return { ...createReruns(harness, of, { batchExportId }), hour: of };
    };
    const name = `lake.${catalog_table}`;
    const count = async () => Number(await run(`${open}\nprint(table().scan().to_arrow().num_rows)`, name));
    return { batchExportId, config, hour, name, count };
  };

  it('see whole intervals only, while they are exported again and workers are killed', async () => {
    const { config, hour, name, count } = createTable();
    const first = hour();
    await first.insert(1, 20);
    expect(await first.run({ config })).toMatchObject({ latest_error: null });
    const counting = spawn(python, [scriptOf(countForever), uri, name], { env: await environment() });
    children.push(counting);
    const counts: number[] = [];
    createInterface(counting.stdout).on('line', (line) => counts.push(Number(line)));
    let expected = 20;
    const whole = new Set([expected]);
    const unreached: string[] = [];
    for (const point of points) {
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
      await one.insert(30, 36);
      whole.add((expected += 7));
      await exportHour();
      await waitFor(() => counts.at(-1) === expected, `the reader sees ${expected} rows`);
      if (reached === 0) unreached.push(point.join(' '));
    }
    expect(unreached).toEqual([]);
    expect(counts.filter((found) => !whole.has(found))).toEqual([]);
    expect(await count()).toBe(expected);
  });

  it('run the recipe of the documentation', async () => {
    const { config, hour, name } = createTable();
    const one = hour();
    await one.insert(1, 3);
    expect(await one.run({ config })).toMatchObject({ latest_error: null });
    const text = readFileSync('src/tables/README.md', 'utf8').split('### Iceberg')[1] ?? '';
    const [, recipe = ''] = /```python\n([\s\S]*?)```/.exec(text) ?? [];
    const output = await run(
      recipe.replace('http://localhost:8181', uri).replace('analytics.events', name),
      name,
    );
    for (const event of ['event 1', 'event 2', 'event 3']) expect(output).toContain(event);
  });

  it('find rows by time and by uuid, also after columns came', async () => {
    const { config, hour, name } = createTable();
    for (const query of [
      'select uuid, _inserted_at, toInt(1) as n from events',
      'select event as name, uuid, _inserted_at, toInt(2) as n from events',
    ]) {
      const one = hour();
      await one.insert(1, 4);
      const { run_id } = await one.create({ config, query });
      expect(await one.proceed(run_id)).toMatchObject({ latest_error: null });
    }
    const output = await run(
      `${open}
rows = table().scan().to_arrow().to_pylist()
print(len(rows), sorted({row["n"] for row in rows}), sorted({str(row["name"]) for row in rows}))
row = rows[0]
print(table().scan(row_filter=f"uuid = '{row['uuid']}'").to_arrow().num_rows)
print(table().scan(row_filter=f"_inserted_at = '{row['_inserted_at'].isoformat()}'").to_arrow().num_rows)
print(len(list(table().scan(row_filter=f"_inserted_at = '{row['_inserted_at'].isoformat()}'").plan_files())))`,
      name,
    );
    expect(output.split('\n')).toEqual([
      "8 [1, 2] ['None', 'event 1', 'event 2', 'event 3', 'event 4']",
      ...['1', '1', '1'],
    ]);
  });

  it('read a column that became a long, in the files from before too', async () => {
    const { config, hour, name } = createTable();
    // The columns of persons have an integer, and those of their queries longs.
    for (const query of [undefined, 'select distinct_id, team_id, _inserted_at from persons']) {
      const one = hour();
      await one.insertPersons(3);
      const { run_id } = await one.create({ model: 'persons', config, query });
      expect(await one.proceed(run_id)).toMatchObject({ latest_error: null });
    }
    const read = 'found = table().scan(row_filter="team_id = 1").to_arrow()';
    const print = 'print(found.schema.field("team_id").type, found["team_id"].to_pylist())';
    expect(await run(`${open}\n${read}\n${print}`, name)).toBe('int64 [1, 1, 1, 1, 1, 1]');
    const select = 'select typeof(any_value(team_id)), count(*), count(distinct distinct_id)';
    expect(await duckdb(`${select} from lake.${name} where team_id = 1`)).toEqual(['BIGINT', 6, 6]);
  });

  it('read a table whose manifests were merged and whose snapshots expired', async () => {
    const { batchExportId, config, hour, name } = createTable();
    const keeping = (retention: number) => ({
      openDestination: createDestinationOpener(harness.database.pool, harness.keyRing, {
        ...harness.settings,
        EXPORTD_TABLE_FILE_RETENTION: retention,
      }),
    });
    const hours = Array.from({ length: 112 }, hour);
    const export_ = async (one: (typeof hours)[number], retention: number): Promise<void> => {
      expect(await one.run({ config }, keeping(retention))).toMatchObject({ latest_error: null });
    };
    for (const [at, one] of hours.entries()) {
      await one.insert(1, 2);
      // The commits up to the hundredth merge, those after it expire.
      await export_(one, at < 105 ? 7 * 86_400_000 : 0);
    }
    /** pyiceberg takes no Z. */
    const offsetOf = (time: string): string => time.replace('Z', '+00:00');
    const [one] = hours;
    if (!one) throw new RangeError('There is no hour.');
    await one.insert(10, 14);
    await export_(one, 0);
    const found = await run(
      `${open}
of = table()
snapshot = of.current_snapshot()
rows = of.scan().to_arrow()
print(rows.num_rows, len(set(rows["uuid"].to_pylist())), len(of.metadata.snapshots), len(snapshot.manifests(of.io)))
print(of.scan(row_filter="_inserted_at >= '${offsetOf(one.hour.start)}' and _inserted_at < '${offsetOf(one.hour.end)}'").to_arrow().num_rows)`,
      name,
    );
    const [counts = '', ofHour] = found.split('\n');
    const [rows, uuids, snapshots, manifests] = counts.split(' ').map(Number);
    expect({ rows, uuids, ofHour }).toEqual({ rows: 229, uuids: 229, ofHour: '7' });
    // Every tenth commit removes the snapshots before it.
    expect(snapshots).toBeLessThan(10);
    expect(manifests).toBeLessThan(20);
    expect(await duckdb(`select count(*), count(distinct uuid) from lake.${name}`)).toEqual([229, 229]);
    // No object of a snapshot that is gone is left.
    const stored = await keysBelow(`${batchExportId}/metadata/snap-`);
    expect(stored.length).toBeLessThan(10);
  });

  it('open the files of one partition alone for a query on it', async () => {
    const { config, hour, name } = createTable();
    const partitioned = { ...config, prefix: name, partition_by: ['date', 'hour', 'event'] };
    const hours = [hour(), hour()];
    for (const one of hours) {
      await one.insertNamed(['$pageview', 'sign up', '$pageview', '', 'é/%="']);
      expect(await one.run({ config: partitioned })).toMatchObject({ latest_error: null });
    }
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    try {
      const of = hours[1]?.hour.start ?? '';
      const query = async (filter: string): Promise<unknown> => {
        const before = proxy.requests.length;
        const printed = await run(
          `${open}
rows = table().scan(row_filter=${JSON.stringify(filter)}).to_arrow().to_pylist()
print(len(rows), sorted({(str(row["date"]), row["hour"], row["event_partition"], row["event"]) for row in rows}))`,
          name,
          proxy.endpoint,
        );
        const opened = proxy.requests
          .slice(before)
          .filter(({ operation, key }) => operation === 'GetObject' && key.endsWith('.parquet'))
          .map(({ key }) => key);
        return [printed.replaceAll("'", '"'), new Set(opened).size];
      };
      const [date, at] = [of.slice(0, 10), Number(of.slice(11, 13))];
      const row = (partition: string, event: string): string =>
        `("${date}", ${at}, ${partition}, "${event}")`;
      const ofHour = `date = '${date}' and hour = ${at}`;
      expect(await query(`${ofHour} and event_partition = '$pageview'`)).toEqual([
        `2 [${row('"$pageview"', '$pageview')}]`,
        1,
      ]);
      expect(
        await query(`${ofHour} and event_partition in ('sign up', '__other__') and event = 'sign up'`),
      ).toEqual([`1 [${row('"sign up"', 'sign up')}]`, 1]);
      expect(await query(`${ofHour} and event_partition is null`)).toEqual([`1 [${row('None', '')}]`, 1]);
      expect(await query("event_partition = 'sign up'")).toMatchObject([expect.stringMatching(/^2 /), 2]);
    } finally {
      await proxy.close();
    }
    // Iceberg's own writer reads what exportd wrote, and removes a partition.
    await run(`${open}\ntable().delete("event_partition = 'sign up'")`, name);
    expect(await run(`${open}\nprint(table().scan().to_arrow().num_rows)`, name)).toBe('8');
  });

  it('are also Trino', async () => {
    const { config, hour, name } = createTable();
    const one = hour();
    const partitioned = { ...config, prefix: name, partition_by: ['date', 'event'] };
    for (const from of [1, 30]) {
      await one.insert(from, from + 9);
      expect(await one.run({ config: partitioned })).toMatchObject({ latest_error: null });
    }
    const trino = await startTrino({
      'connector.name': 'iceberg',
      'iceberg.catalog.type': 'rest',
      'iceberg.rest-catalog.uri': uri,
      ...bucketProperties(harness.bucket.endpoint, await harness.bucket.client.config.credentials()),
    });
    try {
      expect(await trino.query(`select count(*), count(distinct uuid) from exported.${name}`)).toEqual([
        [20, 20],
      ]);
      expect(
        await trino.query(
          `select count(*) from exported.${name} where _inserted_at = (select max(_inserted_at) from exported.${name})`,
        ),
      ).toEqual([[1]]);
      expect(
        await trino.query(`select event from exported.${name} where event_partition = 'event 5'`),
      ).toEqual([['event 5']]);
    } finally {
      trino.close();
    }
  });

  it('append, overwrite and expire between commits of exportd, which lose and double nothing', async () => {
    const { config, hour, name, count } = createTable();
    const [one, other] = [hour(), hour()];
    for (const { insert, run: export_ } of [one, other]) {
      await insert(1, 20);
      expect(await export_({ config })).toMatchObject({ latest_error: null });
    }
    // A row of another writer, whose snapshot has an id of 63 bits.
    await run(`${open}\ntable().append(table().scan(limit=1).to_arrow())`, name);
    await one.insert(30, 36);
    expect(await one.run({ config })).toMatchObject({ latest_error: null });
    expect(await count()).toBe(48);
    await run(
      `${open}\ntable().maintenance.expire_snapshots().older_than(__import__("datetime").datetime.now()).commit()`,
      name,
    );
    await other.insert(30, 31);
    expect(await other.run({ config })).toMatchObject({ latest_error: null });
    expect(await count()).toBe(50);
    // All rows move to a file of the other writer.
    await run(`${open}\ntable().overwrite(table().scan().to_arrow())`, name);
    await one.insert(40, 41);
    expect((await one.run({ config })).latest_error).toMatch(/^TableChanged: /);
    const next = hour();
    await next.insert(1, 5);
    expect(await next.run({ config })).toMatchObject({ latest_error: null });
    expect(await count()).toBe(55);
  });
});
