import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, outcomeChannel, readCommand } from '../journal/commands.ts';
import type { Pool } from '../journal/database.ts';
import type { Logger } from '../telemetry/logger.ts';

/** Waits for the outcomes of commands. */
export interface CommandOutcomes {
  /**
   * Resolves with the command once it is no longer pending, or with undefined after `timeoutMs` or when `signal` aborts.
   * Listens from the call on: call it before signalling the schedule.
   */
  waitUntilDecided(id: string, timeoutMs: number, signal: AbortSignal): Promise<Command | undefined>;
  close(): Promise<void>;
}

/** Delay before reconnecting after the listening connection was lost or could not be opened. */
const relistenMs = 1_000;

/** How often waiting requests poll for an outcome, in case a notification is lost, in milliseconds. */
const pollMs = 500;

/**
 * Listens for outcomes on one connection of the pool, which it holds until it is closed. Polling covers notifications
 * that are lost with a connection.
 */
export function createCommandOutcomes(pool: Pool, logger: Logger): CommandOutcomes {
  const waiters = new Map<string, Set<() => void>>();
  const closing = new AbortController();

  const listen = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      await listenUntilLost(pool, closing.signal, (id) => {
        for (const wake of waiters.get(id) ?? []) wake();
      }).catch((error: unknown) => {
        logger.warn(
          { err: error },
          'Could not listen for command outcomes. Polling until the connection is back.',
        );
      });
      await sleep(relistenMs, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };
  const listening = listen();

  const waitUntilDecided: CommandOutcomes['waitUntilDecided'] = async (id, timeoutMs, signal) => {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const wake = subscribe(waiters, id);
      try {
        const command = await readCommand(pool, id);
        if (command && command.status !== 'pending') return command;
        const remaining = deadline - performance.now();
        if (remaining <= 0 || signal.aborted) return undefined;
        const timer = new AbortController();
        const poll = sleep(Math.min(pollMs, remaining), undefined, {
          signal: AbortSignal.any([timer.signal, signal]),
        }).catch(() => undefined);
        await Promise.race([wake.promise, poll]);
        timer.abort();
      } finally {
        wake.forget();
      }
    }
  };

  return {
    waitUntilDecided,
    close: async () => {
      closing.abort();
      await listening;
    },
  };
}

/** `promise` resolves with the next notification of the id. */
function subscribe(waiters: Map<string, Set<() => void>>, id: string) {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const wake = () => resolve(undefined);
  const waiting = waiters.get(id) ?? new Set();
  waiters.set(id, waiting.add(wake));
  const forget = () => {
    waiting.delete(wake);
    if (waiting.size === 0 && waiters.get(id) === waiting) waiters.delete(id);
  };
  return { promise, forget };
}

async function listenUntilLost(
  pool: Pool,
  closing: AbortSignal,
  onNotified: (id: string) => void,
): Promise<void> {
  const connection = await pool.connect();
  const { promise: lost, resolve, reject } = Promise.withResolvers<undefined>();
  const onNotification = ({ payload }: { payload?: string | undefined }) => onNotified(payload ?? '');
  const onClosing = () => resolve(undefined);
  connection.on('notification', onNotification);
  connection.once('error', reject);
  connection.once('end', onClosing);
  closing.addEventListener('abort', onClosing);
  // Handled right away: the connection can break during LISTEN.
  lost.catch(() => undefined);
  try {
    await connection.query(`listen ${outcomeChannel}`);
    if (!closing.aborted) await lost;
  } finally {
    connection.off('notification', onNotification);
    closing.removeEventListener('abort', onClosing);
    connection.release(true);
  }
}
