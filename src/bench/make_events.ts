import { availableParallelism } from 'node:os';
import pg from 'pg';
import type { Report } from '../local_stack/report.ts';
import { insertEventRows, type EventRows } from './event_rows.ts';
import { benchApplicationName, sessionOptions } from './exported_rows.ts';

/** Rows that one statement inserts; a line of progress follows each. */
const rowsPerStatement = 100_000;
const mostSessions = 4;

/**
 * Fills the events of a scratch database, spread over an hour or several, in several sessions since one cannot use two cores for an insert. Afterwards
 * nothing is left to do for the first reader: statistics are there and every row is marked as visible.
 */
export async function makeEvents(
  databaseUrl: string,
  rows: Pick<EventRows, 'count' | 'hours' | 'projects'> & { readonly teamId: number; readonly start: Date },
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const connect = async () => {
    const client = new pg.Client({
      connectionString: databaseUrl,
      application_name: benchApplicationName,
      options: sessionOptions,
    });
    await client.connect();
    return client;
  };
  let next = 0;
  let made = 0;
  const insert = async () => {
    const client = await connect();
    try {
      while (next < rows.count) {
        signal.throwIfAborted();
        const { count } = rows;
        const range = { ...rows, first: next, end: Math.min(next + rowsPerStatement, count) };
        next = range.end;
        await client.query(insertEventRows(rows.teamId, rows.start, range));
        made += range.end - range.first;
        report(`Made ${made.toLocaleString('en')} of ${rows.count.toLocaleString('en')} events`);
      }
    } finally {
      await client.end();
    }
  };
  const client = await connect();
  try {
    // They are thrown away: a log that could bring them back would only take time and disk.
    await client.query(`do $$
      declare partition regclass;
      begin
        for partition in select relid from pg_partition_tree('public.events') where isleaf loop
          execute format('alter table %s set unlogged', partition);
        end loop;
      end $$`);
    const sessions = Math.min(mostSessions, availableParallelism());
    await Promise.all(Array.from({ length: sessions }, insert));
    await client.query('vacuum (analyze) public.events');
  } finally {
    await client.end();
  }
}
