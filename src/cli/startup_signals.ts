import { constants } from 'node:os';

const names = ['SIGINT', 'SIGTERM'] as const;

/** How often a process looks whether the npx that started it is there, in milliseconds. */
const parentPollMs = 1_000;

const exit = (signal: (typeof names)[number]): void => process.exit(128 + constants.signals[signal]);

/**
 * Lets signals end the process until a command handles them itself. A process that is the first of a container ignores
 * signals which it does not handle, and loading a command takes a second.
 */
export function exitOnSignals(): void {
  for (const name of names) process.on(name, exit);
  // A signal to npx ends only it and its shell, and would leave a server or the local stack running.
  if (process.env.npm_lifecycle_event !== 'npx') return;
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), parentPollMs).unref();
}

/**
 * Starts a command, and leaves the signals to it. It has to handle them before it waits for anything. Never is there a moment
 * without a handler: a signal that arrived while modules were loaded is delivered afterwards, and Node forgets it with the last
 * handler. Then the process would not stop.
 */
export async function withOwnSignals(start: () => Promise<void>): Promise<void> {
  const running = start();
  for (const name of names) process.off(name, exit);
  await running;
}
