import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, type Settings } from '../config/settings.ts';
import { dataFolderPath, readStack } from '../local_stack/stack_file.ts';
import { CliError } from './cli_error.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The settings of a command. Where the environment names no database, they are those of the stack of this clone, with
 * what the environment says otherwise; where it names one, that stack has nothing to do with it.
 * @throws CliError when there is no database to work on; SettingsError.
 */
export function commandSettings(environment: Environment): Settings {
  if (environment.DATABASE_URL) return readSettings(environment);
  const stack = readStack();
  if (!stack)
    throw new CliError(
      'There is no database: set DATABASE_URL, or start the stack of this clone with "npm start".',
    );
  return readSettings({ ...stack, ...environment, DATABASE_URL: stack.DATABASE_URL });
}

/** Where the service of this clone's stack answers, and a key for it. */
export interface DemoService {
  readonly base_url?: string;
  readonly api_key?: string;
}

/** What the demo of this clone tells about itself while it runs; empty when it does not. */
export function readDemoService(): DemoService {
  try {
    return JSON.parse(readFileSync(join(dataFolderPath(), 'demo.json'), 'utf8')) as DemoService;
  } catch {
    return {};
  }
}
