import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Report } from '../report.ts';
import { insertEvents } from './event_rows.ts';
import { createDice } from './random.ts';
import { demoApplicationName } from './seed.ts';

/** Events that go on arriving. */
export interface Trickle {
  stop(): Promise<void>;
}

const eventsPerSecond = 5;
/** Seconds of one session, which has one event in each. */
const sessionSeconds = 12;

/** This second's events, one of each of several visitors' sessions; they arrive as they happen. */
const occurrences = (second: number): string => `
  select ${String(Math.floor(second / sessionSeconds) * eventsPerSecond)}::bigint + visitor as session,
    ${String(second % sessionSeconds)} as place, ${String(sessionSeconds)} as length,
    clock_timestamp() - interval '50 milliseconds' * visitor as at, clock_timestamp() as inserted_at
  from generate_series(0, ${String(eventsPerSecond - 1)}) as visitor`;

/** Inserts a few events every second until it is stopped; a database that is away is tried again. */
export function startTrickle(databaseUrl: string, teamId: number, seed: number, report: Report): Trickle {
  const dice = createDice(seed);
  const stopping = new AbortController();
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 1,
    application_name: demoApplicationName,
    connectionTimeoutMillis: 2_000,
  });
  pool.on('error', () => undefined);
  const run = async () => {
    // A second is never used twice, or its events would have the same ids.
    let last = 0;
    let flows = true;
    while (!stopping.signal.aborted) {
      const second = Math.max(Math.floor(Date.now() / 1_000), last + 1);
      last = second;
      try {
        await pool.query(insertEvents(dice, teamId, occurrences(second)));
        if (!flows) report('Demo events arrive again');
        flows = true;
      } catch (error) {
        if (flows) report(`Demo events cannot be written for now: ${(error as Error).message}`);
        flows = false;
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
