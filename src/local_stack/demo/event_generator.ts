import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Report } from '../report.ts';
import { insertEvents } from './event_rows.ts';
import { createSeededRandom } from './seeded_random.ts';
import { demoApplicationName } from './seed.ts';

/** Inserts new events until it is stopped. */
export interface EventGenerator {
  stop(): Promise<void>;
}

const eventsPerSecond = 5;
/** Length of a session, which has one event per second. */
const sessionSeconds = 12;

/** SQL for the events of a second: one of each visitor, inserted as it happens. */
const occurrences = (second: number): string => `
  select ${String(Math.floor(second / sessionSeconds) * eventsPerSecond)}::bigint + visitor as session,
    ${String(second % sessionSeconds)} as position, ${String(sessionSeconds)} as length,
    clock_timestamp() - interval '50 milliseconds' * visitor as at, clock_timestamp() as inserted_at
  from generate_series(0, ${String(eventsPerSecond - 1)}) as visitor`;

/** Inserts a few events every second. Retries while the database is unavailable. */
export function startEventGenerator(
  databaseUrl: string,
  teamId: number,
  seed: number,
  report: Report,
): EventGenerator {
  const random = createSeededRandom(seed);
  const stopping = new AbortController();
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 1,
    application_name: demoApplicationName,
    connectionTimeoutMillis: 2_000,
  });
  pool.on('error', () => undefined);
  const run = async () => {
    // No second is used twice: its events would have the same ids.
    let last = 0;
    let isInserting = true;
    while (!stopping.signal.aborted) {
      const second = Math.max(Math.floor(Date.now() / 1_000), last + 1);
      last = second;
      try {
        await pool.query(insertEvents(random, teamId, occurrences(second)));
        if (!isInserting) report('Inserting demo events again');
        isInserting = true;
      } catch (error) {
        if (isInserting) report(`Inserting demo events failed, retrying: ${(error as Error).message}`);
        isInserting = false;
      }
      await delay(1_000, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
    await pool.end();
  };
  const done = run();
  return {
    stop: () => {
      stopping.abort();
      return done;
    },
  };
}
