import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { bringPostgresExtension, duckDbVersion } from './duckdb_extension.ts';
import { psqlEnvironment } from './export_statements.ts';
import type { ScratchStack } from './scratch_stack.ts';
import type { MeasuredProgram } from './statistics.ts';
import { runTimed, ShellFailed } from './timed_shell.ts';

const program = join(import.meta.dirname, 'duckdb_program.ts');

/** DuckDB's measurement, by itself. */
export interface MeasuredDuckDb extends MeasuredProgram {
  readonly version: string;
}

/** A DuckDB that can read PostgreSQL. */
export interface DuckDb {
  /** Writes the rows of a query in their order to a Parquet file with zstd, and deletes it. */
  measure(rows: string): Promise<MeasuredDuckDb>;
}

/** Prepares DuckDB and tries it. @returns why it cannot run on this machine, if so. */
export async function prepareDuckDb(
  { databaseUrl, folder }: Pick<ScratchStack, 'databaseUrl' | 'folder'>,
  signal: AbortSignal,
): Promise<DuckDb | string> {
  const version = duckDbVersion();
  if (version === undefined)
    return 'The package @duckdb/node-api, a development dependency, is not installed.';
  const create = async (extension: string | undefined): Promise<DuckDb> => {
    const measure = async (rows: string): Promise<MeasuredDuckDb> => {
      const file = folder.inside('duckdb.parquet');
      const environment = { ...psqlEnvironment(databaseUrl), NODE: process.execPath, PROGRAM: program };
      try {
        const { output } = await runTimed(
          '"$NODE" "$PROGRAM"',
          {
            ...environment,
            FILE: file,
            ROWS: rows,
            ...(extension !== undefined && { EXTENSION: extension }),
          },
          signal,
        );
        return JSON.parse(output) as MeasuredDuckDb;
      } finally {
        rmSync(file, { force: true });
      }
    };
    await measure('select 1 as one');
    return { measure };
  };
  try {
    return await create(undefined).catch(async () => create(await bringPostgresExtension(version, signal)));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ShellFailed) return `Its postgres extension is not available. ${error.message}`;
    throw error;
  }
}
