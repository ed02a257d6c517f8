import type { Connection, Pool } from '../../journal/database.ts';

/** A lock that one process at a time holds. */
export interface AdvisoryLock {
  /** Acquires the lock if it is free; returns whether this process holds it. */
  tryAcquire(): Promise<boolean>;
  release(): void;
}

/** A session-level advisory lock of PostgreSQL. It ends with its session, so a killed process releases it at once. */
export function createAdvisoryLock(pool: Pool, key: number): AdvisoryLock {
  let held: Connection | undefined;
  const release = (): void => {
    held?.release(true);
    held = undefined;
  };
  return {
    tryAcquire: async () => {
      if (held) {
        try {
          await held.query('select 1');
          return true;
        } catch {
          release();
        }
      }
      const connection = await pool.connect();
      // An unhandled error of an idle connection would end the process.
      connection.on('error', () => undefined);
      try {
        const { rows } = await connection.query<{ acquired: boolean }>(
          'select pg_try_advisory_lock($1) as acquired',
          [key],
        );
        if (rows[0]?.acquired === true) held = connection;
      } finally {
        if (held !== connection) connection.release(true);
      }
      return held !== undefined;
    },
    release,
  };
}
