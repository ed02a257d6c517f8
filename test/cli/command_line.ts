import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fromSetUp } from '../setup/environment.ts';

/** The result of a command. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const root = join(import.meta.dirname, '../..');

/** Runs `exportd` with only this environment, isolated from the local stack of the clone. */
export const exportd = (
  environment: Readonly<Record<string, string>>,
  ...args: readonly string[]
): Promise<CommandResult> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      [join(root, 'src/cli/main.ts'), ...args],
      {
        env: {
          EXPORTD_DATA_DIR: join(root, '.exportd-test/no-stack'),
          NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
          ...environment,
        },
      },
      (error, stdout, stderr) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr });
      },
    );
  });
