import { statSync } from 'node:fs';

/**
 * A program that lets DuckDB write rows of PostgreSQL to a Parquet file. DuckDB reads them with its postgres extension: the
 * file EXTENSION, otherwise the installed one, which it downloads. libpq reads the other settings from the environment.
 * Prints the measurement, without the start of Node and the loading of libraries.
 */

const required = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set.`);
  return value;
};

// Imported here: a development dependency, and its library is loaded before the measurement.
const { DuckDBInstance } = await import('@duckdb/node-api');
const file = required('FILE');
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
const extension = process.env.EXTENSION;
if (extension === undefined) await connection.run('install postgres');
await connection.run(`load ${extension === undefined ? 'postgres' : `'${extension}'`}`);
const [[version] = []] = (await connection.runAndReadAll(`select ltrim(version(), 'v')`)).getRowsJson();

const startedAt = performance.now();
const usage = process.cpuUsage();
await connection.run(`attach '' as source (type postgres, read_only)`);
await connection.run(
  `copy (from postgres_query('source', $rows$${required('ROWS')}$rows$)) to '${file}' (format parquet, compression zstd)`,
);
const { user, system } = process.cpuUsage(usage);
process.stdout.write(
  JSON.stringify({
    version,
    seconds: (performance.now() - startedAt) / 1_000,
    cpu_seconds: (user + system) / 1e6,
    bytes: statSync(file).size,
    peak_memory_bytes: process.resourceUsage().maxRSS * 1_024,
    s3_requests: null,
  }),
);
connection.closeSync();
instance.closeSync();
