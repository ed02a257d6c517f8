import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitFor } from '../setup/wait_for.ts';

const root = join(import.meta.dirname, '../..');

/** A folder that looks like a fresh clone to the commands of the README: it has the same files, and no `.exportd`. */
export interface CloneFolder {
  readonly path: string;
  /** Starts Bash with these commands. It stops at the first one that fails. */
  start(commands: string, environment: Readonly<Record<string, string>>): ShellRun;
  remove(): void;
}

/** Bash, running commands. */
export interface ShellRun {
  /** Standard output and standard error so far. */
  output(): string;
  /** The exit code of Bash; null when a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Waits for a condition. @throws Error with the output when Bash ends before, or at the timeout. */
  waitFor(condition: () => boolean, what: string): Promise<void>;
  /** Sends a signal to Bash and every process that it started, and waits for the end of Bash. */
  stop(signal: 'SIGINT' | 'SIGTERM'): Promise<void>;
}

/** Creates the folder, with links to the files of this clone. */
export function createCloneFolder(): CloneFolder {
  const path = mkdtempSync(join(tmpdir(), 'exportd-readme-'));
  for (const name of readdirSync(root))
    if (!name.startsWith('.exportd') && name !== '.git') symlinkSync(join(root, name), join(path, name));
  return {
    path,
    start: (commands, environment) => {
      const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
        cwd: path,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: process.env.PATH,
          HOME: process.env.HOME,
          EXPORTD_DATA_DIR: join(path, '.exportd'),
          ...environment,
        },
      });
      return shellRun(child);
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

function shellRun(child: ChildProcess): ShellRun {
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  return {
    output: () => output,
    ended,
    waitFor: async (condition, what) => {
      await waitFor(
        () => {
          const holds = condition();
          if (!holds && child.exitCode !== null)
            throw new Error(`Bash ended with exit code ${child.exitCode} before ${what}\n${output}`);
          return holds;
        },
        () => `${what}\n${output}`,
      );
    },
    stop: async (signal) => {
      // A negative id addresses the process group. It is gone when Bash and its children have ended.
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal);
      } catch {
        return;
      }
      await ended;
    },
  };
}
