import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { ReadingRecipe } from '../../src/reading/reading_recipes.ts';
import { insertEvents } from '../e2e/rows.ts';
import { startStack, type Stack } from '../e2e/stack.ts';
import { hourAgo } from '../setup/hours.ts';
import { programPath } from '../setup/programs.ts';
import { queryOfWorstNames } from '../destination/worst_names.ts';

// The programs of `reading` that need neither Java nor ClickHouse, as a reader copies them, against real exports in each format. An hour was exported
// again, so the bucket has files of an older generation, which a listing would count twice.

const run = promisify(execFile);
let stack: Stack;
let python: string;

beforeAll(async () => {
  [stack, python] = await Promise.all([startStack('reading'), programPath('table-readers')]);
});
afterAll(() => stack.stop());

const rowsOfHour = 500;

/** DuckDB's extension comes from PyPI: its own server is not reachable in the tests. */
const runDuckdb = `
import duckdb, importlib, os, sys
program = sys.argv[1]
for name in ["httpfs", "delta"]:
    package = importlib.import_module("duckdb_extension_" + name)
    path = os.path.join(os.path.dirname(package.__file__), "extensions", "v" + duckdb.__version__, name + ".duckdb_extension")
    program = program.replace(f"install {name};\\n", "").replace(f"load {name};", f"load '{path}';")
program = program.replace("<access key id>", os.environ["AWS_ACCESS_KEY_ID"])
program = program.replace("<secret access key>", os.environ["AWS_SECRET_ACCESS_KEY"])
*statements, last = [statement for statement in program.split(";\\n") if statement.strip() and not statement.startswith("--")]
for statement in statements:
    duckdb.execute(statement)
print(duckdb.execute(last).fetchone()[0])
`;

/** Runs a program, and returns the number of rows that it prints. */
async function rowsReadBy({ reader, code }: ReadingRecipe): Promise<number> {
  const { accessKeyId, secretAccessKey } = stack.bucket;
  const environment = {
    ...process.env,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
  };
  // Libraries of Rust sometimes crash in their clean-up.
  const call =
    reader === 'DuckDB' ? [runDuckdb, code] : [`${code}\nimport os, sys\nsys.stdout.flush()\nos._exit(0)\n`];
  const { stdout } = await run(python, ['-c', ...call], { env: environment });
  return Number(stdout.trim());
}

const readersOf = {
  Parquet: ['DuckDB', 'pyarrow', 'polars'],
  JSONLines: ['DuckDB', 'Python'],
  CSV: ['DuckDB', 'pyarrow', 'polars'],
};
/** Those of test/reading/reading_matrix.long.ts. */
const readersOfMatrix = ['Spark', 'ClickHouse', 'Trino'];

it.each([
  ['Parquet', 'zstd', {}],
  ['Parquet', null, { prefix: "it's [a]/{year} b" }],
  ['Parquet', 'snappy', { table_format: 'delta' }],
  ['Parquet', 'zstd', { prefix: 'partitioned', partition_by: ['date', 'hour'] }],
  ['JSONLines', 'gzip', { prefix: '{table}', partition_by: ['date'] }],
  ['JSONLines', 'gzip', {}],
  ['JSONLines', 'zstd', { max_file_size_mb: 1 }],
  ['JSONLines', null, {}],
  ['CSV', 'gzip', {}],
  ['CSV', 'gzip', { prefix: 'partitioned', partition_by: ['date', 'hour'] }],
] as const)(
  '%s with %s is read with the rows of the newest generations alone',
  async (file_format, compression, config) => {
    await stack.pool.query('truncate events');
    for (const hours of [3, 2]) await insertEvents(stack.pool, stack.projectId, hourAgo(hours), rowsOfHour);
    const id = await stack.createExport({ paused: true }, { file_format, compression, ...config });
    const exportHour = async (hours: number) => {
      const range = {
        rewrite: true,
        start_at: hourAgo(hours).toISOString(),
        end_at: hourAgo(hours - 1).toISOString(),
      };
      expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
      await stack.waitForRun(id, (await stack.runs(id))[0]?.id ?? '', 'Completed');
    };
    const manifestsSince = async (since: string) =>
      (await stack.call('GET', `/batch_exports/${id}/manifests/?since=${since}`)).body.results as {
        readonly key: string;
        readonly generation: number;
      }[];
    await exportHour(3);
    await exportHour(3);
    const since = new Date().toISOString();
    await exportHour(2);
    const manifests = await manifestsSince('2000-01-01T00:00:00Z');
    expect(manifests.map(({ generation }) => generation)).toEqual([2, 1]);
    expect(await manifestsSince(since)).toEqual(manifests.slice(1));

    const { body } = await stack.call('GET', `/batch_exports/${id}/reading/`);
    for (const { key } of manifests) expect(key.startsWith(String(body.manifests))).toBe(true);
    const recipes = (body.recipes as ReadingRecipe[]).filter(
      ({ reader, tested }) => tested && !readersOfMatrix.includes(reader),
    );
    expect(recipes.map(({ reader }) => reader)).toEqual([
      ...readersOf[file_format]
        .filter((reader) => reader !== 'DuckDB' || !('prefix' in config && /\s/.test(config.prefix)))
        .map((reader) => ('table_format' in config && reader === 'pyarrow' ? 'deltalake' : reader)),
    ]);
    for (const recipe of recipes) {
      const newer = recipe.code
        .replace('since = ""', `since = "${since}"`)
        .replace("'-infinity'::timestamptz", `'${since}'::timestamptz`);
      const read = [await rowsReadBy(recipe), await rowsReadBy({ ...recipe, code: newer })];
      expect([recipe.reader, ...read]).toEqual([
        recipe.reader,
        2 * rowsOfHour,
        // A table has no `since`.
        'table_format' in config ? 2 * rowsOfHour : rowsOfHour,
      ]);
    }
  },
);

it.each([
  ['Parquet', 'zstd'],
  ['JSONLines', 'gzip'],
  ['CSV', 'gzip'],
] as const)('%s is read whatever its columns and its prefix are called', async (file_format, compression) => {
  await stack.pool.query('truncate events');
  await insertEvents(stack.pool, stack.projectId, hourAgo(2), rowsOfHour);
  const dialect_query = queryOfWorstNames(['uuid', 'event']);
  const range = { start_at: hourAgo(2).toISOString(), end_at: hourAgo(1).toISOString() };
  const read: [reader: string, rows: number][] = [];
  // DuckDB and ClickHouse have no program for a prefix that they would read as a pattern.
  for (const prefix of ['plain', `it's "odd"; -- $(touch pasted) %s {table}`]) {
    const config = { file_format, compression, prefix };
    const id = await stack.createExport({ paused: true, dialect_query }, config);
    expect((await stack.call('POST', `/batch_exports/${id}/backfill/`, range)).status).toBe(200);
    await stack.waitForRun(id, (await stack.runs(id))[0]?.id ?? '', 'Completed');
    const { body } = await stack.call('GET', `/batch_exports/${id}/reading/`);
    for (const recipe of body.recipes as ReadingRecipe[])
      if (recipe.tested && !readersOfMatrix.includes(recipe.reader))
        read.push([recipe.reader, await rowsReadBy(recipe)]);
  }
  const readers = readersOf[file_format].filter((reader) => reader !== 'polars' || file_format !== 'CSV');
  const others = readers.filter((reader) => reader !== 'DuckDB');
  expect(read).toEqual([...readers, ...others].map((reader) => [reader, rowsOfHour]));
});
