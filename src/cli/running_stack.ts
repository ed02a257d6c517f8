import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, type Settings } from '../config/settings.ts';
import { dataFolderPath, readStack } from '../local_stack/stack_file.ts';
import { CliError } from './cli_error.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The settings of a command. Without DATABASE_URL in the environment, they are those of the local stack, overridden by the
 * environment. With DATABASE_URL, the local stack is ignored.
 * @throws CliError without a database. @throws SettingsError
 */
export function commandSettings(environment: Environment): Settings {
  if (environment.DATABASE_URL) return readSettings(environment);
  const stack = readStack();
  if (!stack) throw new CliError('No database: set DATABASE_URL, or start the local stack with "npm start".');
  return readSettings({ ...stack, ...environment, DATABASE_URL: stack.DATABASE_URL });
}

/** URL and API key of the demo. */
export interface DemoService {
  readonly base_url?: string;
  readonly api_key?: string;
}

/** URL and API key of the running demo; empty when it is not running. */
export function readDemoService(): DemoService {
  try {
    return JSON.parse(readFileSync(join(dataFolderPath(), 'demo.json'), 'utf8')) as DemoService;
  } catch {
    return {};
  }
}
