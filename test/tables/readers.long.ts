import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createS3Proxy } from '../e2e/s3_proxy.ts';
import { createExportHarness, type ExportHarness } from '../export/export_harness.ts';
import { createHours, createReruns } from '../export/rerun.ts';
import { programPath } from '../setup/programs.ts';
import { waitFor } from '../setup/wait_for.ts';
import { createDeltaReader } from './delta_reader.ts';
import { killPoints, withKill } from './kill_points.ts';
import { startTrino } from './trino.ts';

/** Opens the table of the first argument. */
const open = `
import os, sys, time, deltalake, duckdb
options = {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"], "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
def table(): return deltalake.DeltaTable(sys.argv[1], storage_options=options)
`;

/** Opens Spark, for which tables are in s3a. */
const openSpark = `
import os, sys
from pyspark.sql import SparkSession
settings = {
    "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1", "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.hadoop.fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"], "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
}
builder = SparkSession.builder.master("local[1]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
root = sys.argv[1].replace("s3://", "s3a://")
def rows(): return spark.read.format("delta").load(root)
`;

/** Ends a program without the clean-up of its libraries, in which deltalake and polars sometimes crash. */
const end = `
import os, sys
sys.stdout.flush()
os._exit(0)
`;

/** Queries on one day of a table, which print its rows and hours. */
const queriesOfTable = {
  deltalake: `
import pyarrow.dataset as ds, datetime
rows = table().to_pyarrow_dataset().to_table(filter=ds.field("date") == datetime.date(2026, 3, 2))
print(rows.num_rows, sorted(set(rows["hour"].to_pylist())))`,
  DuckDB: `
events = table().to_pyarrow_dataset()
print(*duckdb.sql("select count(uuid), list(distinct hour order by hour) from events where date = '2026-03-02'").fetchone())`,
  polars: `
import polars, datetime
events = polars.scan_delta(sys.argv[1], storage_options=options)
rows = events.filter(polars.col("date") == datetime.date(2026, 3, 2)).collect()
print(rows.height, rows["hour"].unique().sort().to_list())`,
};

/** Loads an extension of DuckDB from PyPI: its own server is not reachable in the tests. */
const loadExtension = (name: string): string => `
import duckdb_extension_${name} as package
folder = os.path.join(os.path.dirname(package.__file__), "extensions", "v" + duckdb.__version__)
duckdb.execute(f"load '{folder}/${name}.duckdb_extension'")
`;

/** Connects DuckDB with the bucket. */
const openBucket = `${loadExtension('httpfs')}
keys = f"key_id '{os.environ['AWS_ACCESS_KEY_ID']}', secret '{os.environ['AWS_SECRET_ACCESS_KEY']}', region 'us-east-1'"
endpoint = f"endpoint '{os.environ['AWS_ENDPOINT_URL'].split('//')[1]}', use_ssl false, url_style 'path'"
duckdb.execute(f"create secret (type s3, {keys}, {endpoint})")
`;

/** The same over the folders of an export without a table. */
const queriesOfFolders = {
  DuckDB: `
${openBucket}files = f"read_parquet('{sys.argv[1]}/date=*/hour=*/*.parquet', hive_types = {{'date': DATE, 'hour': INTEGER}})"
print(*duckdb.sql(f"select count(uuid), list(distinct hour order by hour) from {files} where date = '2026-03-02'").fetchone())`,
  pyarrow: `
import pyarrow, pyarrow.dataset as ds, pyarrow.fs, datetime
host = os.environ["AWS_ENDPOINT_URL"].split("//")[1]
store = pyarrow.fs.S3FileSystem(region="us-east-1", endpoint_override=host, scheme="http")
partitions = ds.partitioning(pyarrow.schema([("date", pyarrow.date32()), ("hour", pyarrow.int32())]), flavor="hive")
root = sys.argv[1].split("//")[1]
files = ds.dataset(root, format="parquet", filesystem=store, partitioning=partitions, schema=pyarrow.schema(
    [("uuid", pyarrow.string()), ("date", pyarrow.date32()), ("hour", pyarrow.int32())]))
rows = files.to_table(filter=ds.field("date") == datetime.date(2026, 3, 2))
print(rows.num_rows, sorted(set(rows["hour"].to_pylist())))`,
};

/** Counts the table again and again, with two readers. */
const countForever = `${open}
while True:
    events = table().to_pyarrow_dataset()
    print("deltalake", events.count_rows(), flush=True)
    print("duckdb", duckdb.sql("select count(*) from events").fetchone()[0], flush=True)
    time.sleep(0.05)
`;

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
  const run = async (
    text: string,
    root: string,
    endpoint = harness.bucket.endpoint,
    program = python,
    more: readonly string[] = [],
  ): Promise<string> => {
    const args = [scriptOf(`${text}${end}`), `s3://${harness.bucket.bucket}/${root}`, ...more];
    const env = { ...(await environment()), AWS_ENDPOINT_URL: endpoint };
    const { stdout } = await promisify(execFile)(program, args, { env, cwd: folder });
    return stdout;
  };
  /** An export with hours of 20 events. */
  const createTable = () => {
    const batchExportId = randomUUID();
    const hour = () => {
      const of = nextHour();
      return { ...createReruns(harness, of, { batchExportId }), of };
    };
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
        const { phase } = await harness.recorder.read(run_id);
        if (phase.name === 'exporting') await harness.attempt().exportInterval({ run_id });
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

  it('open the files of one day alone for a query on it, with a table and without', async () => {
    const proxy = await createS3Proxy(harness.bucket.endpoint);
    try {
      for (const table_format of ['delta', null]) {
        const batchExportId = randomUUID();
        const partitioned = {
          ...config,
          table_format,
          prefix: batchExportId,
          partition_by: ['date', 'hour'],
        };
        for (const day of ['2026-03-01', '2026-03-02', '2026-03-03'])
          for (const hour of ['05', '17']) {
            const start = new Date(`${day}T${hour}:00:00.000Z`);
            const end = new Date(start.getTime() + 3_600_000).toISOString();
            const one = createReruns(harness, { start: start.toISOString(), end }, { batchExportId });
            if (table_format !== null) await one.insert(1, 20);
            expect(await one.run({ config: partitioned })).toMatchObject({ latest_error: null });
          }
        /** Which files a program opens, by their folders, and what it prints. */
        const openedBy = async (program: string) => {
          const before = proxy.requests.length;
          const printed = await run(program, batchExportId, proxy.endpoint);
          const opened = proxy.requests
            .slice(before)
            .filter(({ operation, key }) => operation === 'GetObject' && key.endsWith('.parquet'))
            .map(({ key }) => key.slice(batchExportId.length + 1).replace(/\/[^/]*$/, ''));
          return { printed: printed.trim(), opened: [...new Set(opened)].sort() };
        };
        const programs = table_format === null ? queriesOfFolders : queriesOfTable;
        for (const [reader, program] of Object.entries(programs))
          expect([reader, await openedBy(`${open}${program}`)]).toEqual([
            reader,
            {
              printed: '40 [5, 17]',
              opened: [
                // It reads the columns from the first file, where no log says them.
                ...(table_format === null && reader === 'DuckDB' ? ['date=2026-03-01/hour=05'] : []),
                'date=2026-03-02/hour=05',
                'date=2026-03-02/hour=17',
              ],
            },
          ]);
      }
    } finally {
      await proxy.close();
    }
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

  it('read a column that became a long, in the files from before too', async () => {
    const { batchExportId, hour, reader } = createTable();
    // The columns of persons have an integer, and those of their queries longs.
    for (const query of [undefined, 'select distinct_id, team_id, _inserted_at from persons']) {
      const one = hour();
      await one.insertPersons(3);
      const { run_id } = await one.create({ model: 'persons', config, query });
      expect(await one.proceed(run_id)).toMatchObject({ latest_error: null });
    }
    const typesIn = async (version: number) => {
      const { schemaString = '' } =
        (await reader.linesOf(version)).find(({ metaData }) => metaData)?.metaData ?? {};
      const { fields } = JSON.parse(schemaString) as { fields: { name: string; type: string }[] };
      return fields.filter(({ name }) => name === 'team_id').map(({ type }) => type);
    };
    expect([await typesIn(0), await typesIn(1)]).toEqual([['integer'], ['long']]);
    const output = await run(
      `${open}${openBucket}
persons = table().to_pyarrow_dataset()
print(persons.schema.field("team_id").type, persons.to_table(columns=["team_id"])["team_id"].to_pylist())
of = "select typeof(any_value(team_id)), count(*), sum(team_id), count(distinct distinct_id) from "
print(*duckdb.sql(of + "persons").fetchone())
${loadExtension('delta')}
print(*duckdb.sql(of + f"delta_scan('{sys.argv[1]}')").fetchone())
import polars
print(polars.scan_delta(sys.argv[1], storage_options=options).select("team_id").collect().to_series().to_list())`,
      batchExportId,
    );
    expect(output.trim().split('\n')).toEqual([
      'int64 [1, 1, 1, 1, 1, 1]',
      'BIGINT 6 6 6',
      'BIGINT 6 6 6',
      '[1, 1, 1, 1, 1, 1]',
    ]);
  });

  it('are also Spark, whose OPTIMIZE doubles and loses nothing', async () => {
    const { batchExportId, hour, reader } = createTable();
    const partitioned = { ...config, prefix: batchExportId, partition_by: ['date', 'hour'] };
    const [one, other] = [hour(), hour()];
    for (const each of [one, other]) {
      await each.insert(1, 20);
      expect(await each.run({ config: partitioned })).toMatchObject({ latest_error: null });
    }
    // A second file of an hour, which OPTIMIZE joins with the first.
    await one.remove(1, 3);
    await one.insert(30, 31);
    expect(await one.run({ config: partitioned })).toMatchObject({ check: { outcome: 'late_rows_added' } });
    const spark = await programPath('spark');
    const output = await run(
      `${openSpark}
found = rows()
print([found.schema[name].dataType.simpleString() for name in ["uuid", "_inserted_at", "date", "hour"]])
print(found.count(), found.select("uuid").distinct().count(), found.where("hour = ${Number(other.of.start.slice(11, 13))}").count())
print(found.where("date = '${other.of.start.slice(0, 10)}' and event = 'event 5'").select("_inserted_at").collect()[0][0])
print(found.where("uuid = '" + found.first().uuid + "'").count())
spark.sql(f"optimize delta.\`{root}\`")
print(rows().count())`,
      batchExportId,
      harness.bucket.endpoint,
      spark,
    );
    expect(output.trim().split('\n')).toEqual([
      "['string', 'timestamp', 'date', 'int']",
      '42 42 20',
      expect.stringMatching(/^2026-01-3\d \d\d:00:05$/),
      '1',
      '42',
    ]);
    expect(await reader.rows()).toHaveLength(42);
    await one.insert(40, 41);
    expect((await one.run({ config: partitioned })).latest_error).toMatch(/^Table(Changed|Overwritten): /);
    // An hour that OPTIMIZE left alone is exported again, and a new one is added.
    const next = hour();
    await next.insert(1, 5);
    expect(await next.run({ config: partitioned })).toMatchObject({ latest_error: null });
    await other.insert(30, 31);
    expect(await other.run({ config: partitioned })).toMatchObject({ latest_error: null });
    const expected = 42 + 5 + 2;
    expect(await reader.rows()).toHaveLength(expected);
    expect(
      (
        await run(`${openSpark}\nprint(rows().count())`, batchExportId, harness.bucket.endpoint, spark)
      ).trim(),
    ).toBe(String(expected));
  });

  it('are also Trino, which sees times to the millisecond', async () => {
    const { batchExportId, hour } = createTable();
    const partitioned = { ...config, prefix: batchExportId, partition_by: ['date', 'hour'] };
    const [one, other] = [hour(), hour()];
    for (const each of [one, other]) {
      await each.insert(1, 20);
      expect(await each.run({ config: partitioned })).toMatchObject({ latest_error: null });
    }
    await one.insert(30, 36);
    expect(await one.run({ config: partitioned })).toMatchObject({ latest_error: null });
    const credentials = await harness.bucket.client.config.credentials();
    const trino = await startTrino(harness.bucket.endpoint, credentials);
    try {
      await trino.query('create schema exported.lake');
      await trino.query(
        `call exported.system.register_table('lake', 'events', 's3://${harness.bucket.bucket}/${batchExportId}')`,
      );
      const table = 'exported.lake.events';
      expect(await trino.query(`select count(*), count(distinct uuid) from ${table}`)).toEqual([[47, 47]]);
      const { start } = other.of;
      const [day, hourOfDay] = [start.slice(0, 10), Number(start.slice(11, 13))];
      expect(
        await trino.query(
          `select count(*) from ${table} where date = date '${day}' and hour = ${hourOfDay} and _inserted_at >= timestamp '${day} ${start.slice(11, 19)} UTC'`,
        ),
      ).toEqual([[20]]);
      expect(
        await trino.query(
          `select count(*) from ${table} where uuid = (select max(uuid) from ${table}) and json_extract_scalar(properties, '$.missing') is null`,
        ),
      ).toEqual([[1]]);
      expect(await trino.query(`select distinct typeof(uuid), typeof(_inserted_at) from ${table}`)).toEqual([
        ['varchar', 'timestamp(3) with time zone'],
      ]);
    } finally {
      trino.close();
    }
  });

  it('leave kept files to people when they vacuum, and delete what was replaced', async () => {
    const { batchExportId, hour, reader } = createTable();
    const one = hour();
    await one.insert(1, 20);
    const exportRows = async (query: string) => {
      const { run_id } = await one.create({ config: { ...config, prefix: batchExportId }, query });
      expect(await one.proceed(run_id)).toMatchObject({ latest_error: null });
    };
    const query = 'select event, _inserted_at from events';
    await exportRows(query);
    // As many other rows, which cannot be compared without uuid.
    await one.remove(3, 3);
    await one.insert(3, 3);
    await exportRows(query);
    const other = hour();
    for (const last of [5, 6]) {
      await other.insert(last, last);
      expect(await other.run({ config: { ...config, prefix: batchExportId } })).toMatchObject({
        latest_error: null,
      });
    }
    const files = async () => (await reader.keysBelow(`${batchExportId}/2`)).length;
    expect(await files()).toBe(4);
    const vacuum =
      'table().vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)';
    await run(`${open}\nprint(${vacuum})`, batchExportId);
    // The replaced file of the other hour is gone.
    expect(await files()).toBe(3);
    await run(
      `${openSpark}\nspark.sql(f"vacuum delta.\`{root}\` retain 0 hours")`,
      ...([batchExportId, harness.bucket.endpoint, await programPath('spark')] as const),
    );
    expect(await files()).toBe(3);
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
