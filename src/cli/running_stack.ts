import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCommand } from '../config/installation.ts';
import type { Settings } from '../config/settings.ts';
import { dataFolderPath, readStack } from '../local_stack/data_folder.ts';
import { CliError } from './cli_error.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The settings of a command. Without DATABASE_URL in the environment, they are those of the local stack, overridden by the
 * environment. With DATABASE_URL, the local stack is ignored.
 * @throws CliError without a database. @throws SettingsError
 */
export async function commandSettings(environment: Environment): Promise<Settings> {
  const { readSettings } = await import('../config/settings.ts');
  if (environment.DATABASE_URL) return readSettings(environment);
  const stack = readStack();
  if (!stack)
    throw new CliError(`No database: set DATABASE_URL, or start the local stack with "${startCommand}".`);
  // Its processes use this Temporal, whatever else the user of the command has one for.
  const servers = Object.entries(stack).filter(([name]) => /^(DATABASE_URL$|TEMPORAL_)/.test(name));
  return readSettings({ ...stack, ...environment, ...Object.fromEntries(servers) });
}

/** What the demo says of itself, as far as commands need it. */
interface DemoService {
  readonly base_url?: string;
  readonly api_key?: string;
  readonly database_url?: string;
  readonly worker_pid?: number;
}

/** The running demo; empty when it is not running. */
export function readDemoService(): DemoService {
  try {
    return JSON.parse(readFileSync(join(dataFolderPath(), 'demo.json'), 'utf8')) as DemoService;
  } catch {
    return {};
  }
}

/** The URL of the server that an option, the environment or the running demo names; undefined if none does. */
export const serverUrlOf = (environment: Environment, baseUrl?: string): string | undefined =>
  baseUrl ?? environment.EXPORTD_BASE_URL ?? readDemoService().base_url;

/**
 * Checks that DATABASE_URL and the running demo are one installation, unless EXPORTD_BASE_URL names the server: else a
 * project and its key would be created in one of them, and its exports in the other.
 * @throws CliError that names both databases
 */
export function requireOneInstallation({ DATABASE_URL, EXPORTD_BASE_URL }: Environment): void {
  const { database_url, worker_pid } = readDemoService();
  if (!DATABASE_URL || EXPORTD_BASE_URL || database_url === undefined || !isRunning(worker_pid)) return;
  const [given, running] = [databaseNameOf(DATABASE_URL), databaseNameOf(database_url)];
  if (given === running) return;
  throw new CliError(
    `DATABASE_URL is ${given}, but the exportd that runs from ${dataFolderPath()} uses ${running}. Unset DATABASE_URL to work on that one, or set EXPORTD_BASE_URL to the server of ${given}.`,
  );
}

/** A database without user, password and options, such as `db.example.com:5432/exportd`. */
export function databaseNameOf(url: string): string {
  if (!URL.canParse(url)) return 'a database whose URL is invalid';
  const { hostname, port, pathname } = new URL(url);
  const host = hostname === 'localhost' ? '127.0.0.1' : hostname;
  return `${host}:${port === '' ? '5432' : port}${pathname}`;
}

function isRunning(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    // Signal 0 only asks whether the process exists.
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
