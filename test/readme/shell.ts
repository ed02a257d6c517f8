import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fromSetUp } from '../setup/environment.ts';
import { waitFor } from '../setup/wait_for.ts';

const root = join(import.meta.dirname, '../..');

/** A folder that looks like a fresh clone to the commands of the README: it has the same files, and no `.exportd`. */
export interface CloneFolder {
  readonly path: string;
  /**
   * Starts Bash with these commands. It stops at the first one that fails. `npx exportd` starts exportd without npm, which
   * takes two seconds of CPU each time, unless the environment has another PATH.
   */
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
  const programs = mkdtempSync(join(tmpdir(), 'exportd-npx-'));
  writeFileSync(
    join(programs, 'npx'),
    `#!/bin/sh
[ "$1" = exportd ] || exit 127
shift
exec '${process.execPath}' '${join(path, 'src/cli/main.ts')}' "$@"
`,
    { mode: 0o755 },
  );
  return {
    path,
    start: (commands, environment) => {
      const child = spawn('bash', ['-euo', 'pipefail', '-c', commands], {
        cwd: path,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PATH: [programs, process.env.PATH].join(delimiter),
          HOME: process.env.HOME,
          NODE_COMPILE_CACHE: fromSetUp('NODE_COMPILE_CACHE'),
          EXPORTD_DATA_DIR: join(path, '.exportd'),
          ...environment,
        },
      });
      return shellRun(child);
    },
    remove: () => {
      for (const folder of [path, programs]) rmSync(folder, { recursive: true, force: true });
    },
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
