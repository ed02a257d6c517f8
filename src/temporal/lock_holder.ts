import type { Connection, Pool } from '../journal/database.ts';

/** An advisory lock that one session of all processes holds at a time. */
export interface LockHolder {
  /** Whether this process holds the lock now, taking it if it is free. */
  hold(): Promise<boolean>;
  release(): void;
}

/** The lock dies with its session, so a process that was killed leaves it to another at once. */
export function createLockHolder(pool: Pool, key: number): LockHolder {
  let held: Connection | undefined;
  const drop = (): void => {
    held?.release(true);
    held = undefined;
  };
  return {
    hold: async () => {
      if (held) {
        try {
          await held.query('select 1');
          return true;
        } catch {
          drop();
        }
      }
      const connection = await pool.connect();
      // An error between two queries would otherwise end the process.
      connection.on('error', () => undefined);
      try {
        const { rows } = await connection.query<{ taken: boolean }>(
          'select pg_try_advisory_lock($1) as taken',
          [key],
        );
        if (rows[0]?.taken === true) held = connection;
      } finally {
        if (held !== connection) connection.release(true);
      }
      return held !== undefined;
    },
    release: drop,
  };
}
