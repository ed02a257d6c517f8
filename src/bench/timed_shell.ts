import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Measurement } from './statistics.ts';

/** Duration and output of a shell script. */
export interface ShellResult extends Measurement {
  readonly output: string;
}

/** A script failed. The message is the end of its stderr. */
export class ShellFailed extends Error {
  override readonly name = 'ShellFailed';
}

/**
 * Runs a script in bash, which fails when any program of a pipe does.
 * @returns The time until all programs have exited, and their CPU time.
 * @throws ShellFailed. @throws the reason of an aborted signal, which kills every program
 */
export async function runTimed(
  script: string,
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<ShellResult> {
  signal.throwIfAborted();
  const startedAt = performance.now();
  const shell = spawn('bash', ['-o', 'pipefail', '-c', `${script}\nstatus=$?; times >&3; exit $status`], {
    env: environment,
    // A separate process group, to kill all programs of a pipe.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  const kill = () => {
    if (shell.pid !== undefined && shell.exitCode === null) process.kill(-shell.pid, 'SIGKILL');
  };
  signal.addEventListener('abort', kill);
  process.once('exit', kill);
  const [, output, errors, times] = shell.stdio.map(gather);
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      shell.once('error', reject);
      shell.once('close', resolve);
    });
    signal.throwIfAborted();
    if (code !== 0) throw new ShellFailed((errors?.() ?? '').trim().slice(-500));
    const seconds = (performance.now() - startedAt) / 1_000;
    return { seconds, cpu_seconds: cpuSecondsIn(times?.() ?? ''), output: output?.() ?? '' };
  } finally {
    signal.removeEventListener('abort', kill);
    process.off('exit', kill);
  }
}

/** Collects the text of a stream. @returns Reads the text so far. */
function gather(stream: Readable | Writable | null | undefined): () => string {
  let text = '';
  stream?.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return () => text;
}

/** The sum of what `times` prints: user and system time of the shell, then of its children, each as `0m1.234s`. */
export const cpuSecondsIn = (times: string): number =>
  [...times.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  );
