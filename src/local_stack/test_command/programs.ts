import { spawn, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';

/** The folder of the clone. */
export const root = join(import.meta.dirname, '../../..');
const running = new Set<ChildProcess>();

/** How a program ended; `output` is empty when the program wrote to the terminal. */
export interface ProgramResult {
  readonly code: number;
  readonly output: string;
}

/**
 * Runs a program in the clone's root folder.
 * @param show whether its output goes straight to the terminal instead of into the result.
 * @returns exit code 1 for a program that cannot be started or that a signal ended.
 */
export function runProgram(command: string, args: readonly string[], show = false): Promise<ProgramResult> {
  return new Promise((resolve) => {
    const stream = show ? 'inherit' : 'pipe';
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', stream, stream] });
    running.add(child);
    let output = '';
    for (const pipe of [child.stdout, child.stderr])
      pipe?.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('error', (error) => resolve({ code: 1, output: error.message }));
    child.once('close', (code) => {
      running.delete(child);
      resolve({ code: code ?? 1, output });
    });
  });
}

/** Sends SIGTERM to every program that still runs. */
export function stopPrograms(): void {
  for (const child of running) child.kill('SIGTERM');
}
