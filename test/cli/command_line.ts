import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { jest } from '@jest/globals';
import { runCommandLine } from '../../src/cli/run_command_line.ts';
import { fromSetUp } from '../setup/environment.ts';
import { v8OfTests } from '../setup/v8_options.ts';

/** The result of a command. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

const root = join(import.meta.dirname, '../..');
const main = join(root, 'src/cli/main.ts');

/** Isolates a command from the local stack of the clone. */
const isolated = () => ({ EXPORTD_DATA_DIR: join(root, '.exportd-test/no-stack') });

/** Runs `exportd` as a process with only this environment: a second of work that the command itself does not need. */
export const exportdProcess = (
  environment: Environment,
  ...args: readonly string[]
): Promise<CommandResult> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      [...v8OfTests, main, ...args],
      { env: { ...isolated(), NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'), ...environment } },
      (error, stdout, stderr) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : error ? -1 : 0, stdout, stderr });
      },
    );
  });

/** Thrown where a command ends its process. */
class Exited extends Error {}

/** Commands share the environment and the streams of this process, so one runs at a time. */
let previous: Promise<unknown> = Promise.resolve();

/** Runs `exportd` in this process with only this environment. Commands that start together run one after another. */
export function exportd(environment: Environment, ...args: readonly string[]): Promise<CommandResult> {
  const result = previous.then(() => runHere({ ...isolated(), ...environment }, args));
  previous = result.catch(() => undefined);
  return result;
}

async function runHere(environment: Environment, args: readonly string[]): Promise<CommandResult> {
  const printed = { stdout: '', stderr: '' };
  let code: number | undefined;
  const { exitCode } = process;
  const capture = (name: 'stdout' | 'stderr') =>
    jest.spyOn(process[name], 'write').mockImplementation((text, ...rest: readonly unknown[]) => {
      // After its exit a process prints nothing.
      if (code === undefined) printed[name] += typeof text === 'string' ? text : Buffer.from(text).toString();
      const written = rest.at(-1) as (() => void) | undefined;
      if (typeof written === 'function') process.nextTick(written);
      return true;
    });
  const replaced = [
    capture('stdout'),
    capture('stderr'),
    jest.spyOn(process, 'exit').mockImplementation((status) => {
      code ??= Number(status ?? process.exitCode ?? 0);
      throw new Exited();
    }),
    jest.replaceProperty(process, 'argv', [process.execPath, main, ...args]),
    jest.replaceProperty(process, 'env', { ...environment }),
  ];
  process.exitCode = undefined;
  try {
    await runCommandLine();
  } catch (error) {
    if (!(error instanceof Exited)) throw error;
  } finally {
    for (const one of replaced.toReversed()) {
      if ('mockRestore' in one) one.mockRestore();
      else one.restore();
    }
    process.exitCode = exitCode;
  }
  return { code: code ?? -1, ...printed };
}
