import { constants } from 'node:os';

const names = ['SIGINT', 'SIGTERM'] as const;

const exit = (signal: (typeof names)[number]): void => process.exit(128 + constants.signals[signal]);

/**
 * Lets signals end the process until a command handles them itself. A process that is the first of a container ignores
 * signals which it does not handle, and loading a command takes a second.
 */
export function exitOnSignals(): void {
  for (const name of names) process.on(name, exit);
}

/** Leaves the signals to the command that is about to start. It has to handle them before it waits for anything. */
export function handOverSignals(): void {
  for (const name of names) process.off(name, exit);
}
