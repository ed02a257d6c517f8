import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ReadingRecipe } from '../../src/reading/reading_recipes.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { hourAgo } from '../setup/hours.ts';
import { programPath } from '../setup/programs.ts';
import { startTrino } from '../tables/trino.ts';
import { queryOfWorstNames } from '../destination/worst_names.ts';
import {
  awkwardRows,
  createAwkwardEvents,
  insertAwkwardRows,
  refusedTimes,
} from '../destination/awkward_rows.ts';

// The matrix of `src/reading/README.md`: each program as it is printed reads rows with every value that readers are known to
// change, and each value is compared with the source.

const run = promisify(execFile);
const columns = [
  'event',
  'distinct_id',
  'elements_chain',
  'properties',
  'person_properties',
  'person_id',
  'timestamp',
  'created_at',
] as const;

/** A row as text, by column. */
type TextRow = Readonly<Record<string, string | null>>;

/** Runs the program of the first argument in Python, and writes its rows as text to the file of the second. */
const pythonRows = `
import datetime, decimal, json, os, sys
sys.setrecursionlimit(20000)
columns = ["uuid", ${columns.map((name) => `"${name}"`).join(', ')}]
epoch = datetime.datetime(1970, 1, 1)
def text_of(value):
    if isinstance(value, str): return json.dumps(value)
    if isinstance(value, dict): return "{" + ",".join(json.dumps(k) + ":" + text_of(v) for k, v in value.items()) + "}"
    if isinstance(value, list): return "[" + ",".join(map(text_of, value)) + "]"
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)
def shown(rows):
    for row in rows:
        yield {name: (epoch + datetime.timedelta(microseconds=value)).isoformat(" ")
               if name in ("timestamp", "created_at") and isinstance(value, int) else value
               for name, value in row.items()}
def write(rows):
    with open(sys.argv[2], "w") as file:
        json.dump(list(rows), file)
def write_frame(rows):
    import pyarrow
    table = rows.to_arrow() if hasattr(rows, "to_arrow") else rows
    table = table.select(columns)
    for index, field in enumerate(table.schema):
        if pyarrow.types.is_timestamp(field.type):
            table = table.set_column(index, field.name, table[field.name].cast(pyarrow.int64()))
    write(shown(table.to_pylist()))
program = sys.argv[1]
`;

/** DuckDB's extensions come from PyPI: its own server is not reachable in the tests. */
const withKeys = `
program = program.replace("<access key id>", os.environ["AWS_ACCESS_KEY_ID"])
program = program.replace("<secret access key>", os.environ["AWS_SECRET_ACCESS_KEY"])
statements = [statement for statement in program.split(";\\n") if statement.strip() and not statement.startswith("--")]
selected = ", ".join(f"{cast} as {name}" for name, cast in ((name, text.replace("?", name)) for name in columns))
`;

const runners: Readonly<Record<string, string>> = {
  DuckDB: `
import duckdb, importlib
for name in ["httpfs", "delta"]:
    package = importlib.import_module("duckdb_extension_" + name)
    path = os.path.join(os.path.dirname(package.__file__), "extensions", "v" + duckdb.__version__, name + ".duckdb_extension")
    program = program.replace(f"install {name};\\n", "").replace(f"load {name};", f"load '{path}';")
duckdb.execute("set TimeZone = 'UTC'")
text = "?::varchar"
${withKeys}
for statement in statements: duckdb.execute(statement)
found = duckdb.execute(f"select {selected} from exported").fetchall()
write(dict(zip(columns, row)) for row in found)`,
  ClickHouse: `
from chdb import session
opened = session.Session()
opened.query("create database read"); opened.query("use read")
text = "toString(?)"
${withKeys}
for statement in statements: opened.query(statement)
lines = str(opened.query(f"select {selected} from exported", "JSONEachRow")).split("\\n")
write(json.loads(line) for line in lines if line)`,
  Spark: `
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]")
for name, value in {
    "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.hadoop.fs.s3a.endpoint": os.environ["AWS_ENDPOINT_URL"], "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
    "spark.hadoop.fs.s3a.path.style.access": "true",
}.items(): builder = builder.config(name, value)
names = {"spark": builder.getOrCreate()}
exec(program, names)
write(row.asDict() for row in names["rows"].selectExpr(*[f"cast({name} as string) as {name}" for name in columns]).collect())`,
  Python: `
names = {}
exec(program, names)
kept = ("properties", "person_properties")
write({name: text_of(row[name]) if name in kept and row[name] is not None else row[name] for name in columns}
      for row in names["rows"])`,
};
const frames = `
names = {}
exec(program, names)
write_frame(names["rows"])`;

/** A number of JSON with all of its digits, in one form. */
function exactNumber(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const short = digits.replace(/0+$/, '');
  const power = Number(exponent) - fraction.length + digits.length - short.length;
  return short === '' ? '0' : `${sign}${short}e${power}`;
}

/** JSON without blanks, with each number and text in one form; other text as it is. */
const exactJson = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[ \t\r\n]+/g, (token) => {
    if (!token.startsWith('"')) return token.trim() === '' ? '' : exactNumber(token);
    try {
      return JSON.stringify(JSON.parse(token));
    } catch {
      return token;
    }
  });

/** A time in UTC with microseconds. */
const exactTime = (text: string): string => {
  const [, day = '', time = '', fraction = ''] =
    /^(\d+-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:\+00(?::?00)?|Z| UTC)?$/.exec(text) ?? [];
  return day === '' ? `not a time: ${text}` : `${day} ${time}.${fraction.padEnd(6, '0')}`;
};

const exact = (column: string, value: string | null | undefined): string | null => {
  if (value === null || value === undefined) return null;
  if (column.endsWith('properties')) return exactJson(value);
  return column === 'timestamp' || column === 'created_at' ? exactTime(value) : value;
};

let stack: Stack;
let trino: Awaited<ReturnType<typeof startTrino>>;
const folder = mkdtempSync(join(tmpdir(), 'exportd-matrix-'));
const programs: Record<string, string> = {};
const hour = () => hourAgo(3);

beforeAll(async () => {
  for (const name of ['table-readers', 'spark', 'trino'] as const) programs[name] = await programPath(name);
  stack = await startStack('matrix', { EXPORTD_EVENTS_RELATION: 'public.awkward_events' });
  await createAwkwardEvents(stack.pool);
  trino = await startTrino(stack.bucket.endpoint, stack.bucket);
  await trino.query('create schema files.lake');
});
afterAll(async () => {
  trino.close();
  rmSync(folder, { recursive: true });
  await stack.stop();
});

/** Runs the statements of Trino's program, and reads its view. */
async function trinoRows(code: string): Promise<TextRow[]> {
  const statements = code
    .replaceAll(/--.*/g, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter(Boolean);
  for (const statement of statements) await trino.query(statement, 'files', 'lake');
  const [, view = ''] = /from (\S+)$/.exec(statements.at(-1) ?? '') ?? [];
  const names = ['uuid', ...columns];
  const rows = await trino.query(
    `select ${names.map((name) => `cast("${name}" as varchar)`).join(', ')} from ${view}`,
    'files',
    'lake',
  );
  return rows.map((row) =>
    Object.fromEntries(names.map((name, index) => [name, row[index] as string | null])),
  );
}

async function rowsReadBy(recipe: ReadingRecipe | undefined): Promise<TextRow[]> {
  if (!recipe) throw new Error('The reader has no program.');
  const { reader, code } = recipe;
  if (reader === 'Trino') return trinoRows(code);
  const { accessKeyId, secretAccessKey, endpoint } = stack.bucket;
  const env = {
    ...process.env,
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  };
  const script = join(folder, 'run.py');
  const output = join(folder, 'rows.json');
  // Libraries of Rust sometimes crash in their clean-up.
  writeFileSync(script, `${pythonRows}${runners[reader] ?? frames}\nsys.stdout.flush()\nos._exit(0)\n`);
  const python = programs[reader === 'Spark' ? 'spark' : 'table-readers'] ?? '';
  await run(python, [script, code, output], { env, cwd: folder, maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(readFileSync(output, 'utf8')) as TextRow[];
}

/** Creates an export and exports the hour. */
async function exportHour(
  config: Record<string, unknown>,
  dialect_query: string | null = null,
): Promise<string> {
  const id = await stack.createExport({ paused: true, dialect_query }, config);
  const range = {
    start_at: hour().toISOString(),
    end_at: new Date(hour().getTime() + 3_600_000).toISOString(),
  };
  expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
  const [created] = await stack.runs(id);
  await stack.waitForRun(id, created?.id ?? '', 'Completed');
  return id;
}

const recipesOf = async (id: string): Promise<ReadingRecipe[]> =>
  ((await stack.call('GET', `/batch_exports/${id}/reading/`)).body.recipes as ReadingRecipe[]).filter(
    ({ tested }) => tested,
  );

/** Of JSON lines: what the note of the program, or of the page, says. */
const nulls = ['JSON null properties', 'JSON null person_properties'];
const withoutQuotes = [...nulls, 'JSON text properties'];
const formats = {
  JSONLines: {
    config: { file_format: 'JSONLines', compression: 'gzip' },
    readers: {
      DuckDB: ['decimals properties', 'JSON number properties', ...nulls],
      Python: nulls,
      Spark: withoutQuotes,
      ClickHouse: withoutQuotes,
    },
  },
  CSV: {
    config: { file_format: 'CSV', compression: 'gzip' },
    readers: { DuckDB: [], pyarrow: [], polars: [], Spark: [], ClickHouse: [] },
  },
  Parquet: {
    config: { file_format: 'Parquet', compression: 'zstd' },
    readers: { DuckDB: [], pyarrow: [], polars: [], Spark: [], ClickHouse: [], Trino: [] },
  },
  Delta: {
    config: { file_format: 'Parquet', compression: 'zstd', table_format: 'delta' },
    readers: { DuckDB: [], deltalake: [], polars: [], Spark: [], ClickHouse: [], Trino: [] },
  },
} as const;

describe.each(Object.entries(formats))('%s', (_, { config, readers }) => {
  let recipes: ReadingRecipe[];
  let source: readonly (TextRow & { readonly name: string; readonly uuid: string })[];
  beforeAll(async () => {
    await stack.pool.query('truncate public.awkward_rows');
    await insertAwkwardRows(stack.pool, stack.projectId, hour(), awkwardRows);
    const { rows } = await stack.pool.query(
      `select name, uuid::text, event, distinct_id, elements_chain, properties::text, person_properties::text, person_id::text,
         to_char(timestamp at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') as timestamp,
         to_char(created_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') as created_at from public.awkward_rows`,
    );
    source = rows as typeof source;
    const id = await exportHour(config);
    recipes = await recipesOf(id);
  });

  it('has programs for the readers that keep its values', () => {
    expect(recipes.map(({ reader }) => reader)).toEqual(Object.keys(readers));
  });

  it.each(Object.entries<readonly string[]>(readers))(
    'is read by %s with the values of the source',
    async (reader, differing) => {
      const recipe = recipes.find((one) => one.reader === reader);
      const read = new Map((await rowsReadBy(recipe)).map((row) => [row.uuid, row]));
      const differences = source.flatMap((row) => {
        const found = read.get(row.uuid);
        if (!found) return [`${row.name} is missing`];
        return columns
          .filter((column) => exact(column, found[column]) !== exact(column, row[column]))
          .map((column) => `${row.name} ${column}`);
      });
      expect({ rows: read.size, differences }).toEqual({
        rows: awkwardRows.length,
        differences: awkwardRows.flatMap(({ name }) =>
          columns.map((column) => `${name} ${column}`).filter((one) => differing.includes(one)),
        ),
      });
    },
  );

  it('refuses times that some readers cannot hold, alike', async () => {
    await stack.pool.query('truncate public.awkward_rows');
    await insertAwkwardRows(
      stack.pool,
      stack.projectId,
      hour(),
      [...refusedTimes, '2026-11-01 10:00:00Z'].map((time) => ({ name: time, time })),
    );
    const id = await exportHour({ ...config, on_bad_row: 'reject' });
    const [recipe] = await recipesOf(id);
    expect((await rowsReadBy(recipe)).map(({ created_at }) => exact('created_at', created_at))).toEqual([
      '2026-11-01 10:00:00.000000',
    ]);
  });
});

describe.each(['JSONLines', 'CSV', 'Parquet'] as const)('%s with columns of any names', (format) => {
  let recipes: ReadingRecipe[];
  beforeAll(async () => {
    await stack.pool.query('truncate public.awkward_rows');
    await insertAwkwardRows(stack.pool, stack.projectId, hour(), awkwardRows);
    recipes = await recipesOf(
      await exportHour(formats[format].config, queryOfWorstNames(['uuid', ...columns])),
    );
  });

  it.each(['Spark', 'ClickHouse'])('is read by %s', async (reader) => {
    const rows = await rowsReadBy(recipes.find((recipe) => recipe.reader === reader));
    expect(rows).toHaveLength(awkwardRows.length);
  });
});
