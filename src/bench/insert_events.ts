import { availableParallelism } from 'node:os';
import pg from 'pg';
import type { Report } from '../local_stack/report.ts';
import { insertEventRows, type EventRows } from './event_rows.ts';
import { benchApplicationName, sessionOptions } from './export_statements.ts';

/** Rows per statement. Each statement is followed by a line of progress. */
const rowsPerStatement = 100_000;
const maxConnections = 4;

/**
 * Inserts events over several connections, because an insert uses only one core. Then vacuums and analyzes the table, which
 * saves the first reader from setting hint bits.
 */
export async function insertEvents(
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
  let inserted = 0;
  const insert = async () => {
    const client = await connect();
    try {
      while (next < rows.count) {
        signal.throwIfAborted();
        const { count } = rows;
        const range = { ...rows, first: next, end: Math.min(next + rowsPerStatement, count) };
        next = range.end;
        await client.query(insertEventRows(rows.teamId, rows.start, range));
        inserted += range.end - range.first;
        report(`Inserted ${inserted.toLocaleString('en')} of ${rows.count.toLocaleString('en')} events`);
      }
    } finally {
      await client.end();
    }
  };
  const client = await connect();
  try {
    // The data is temporary: no write-ahead log is needed.
    await client.query(`do $$
      declare partition regclass;
      begin
        for partition in select relid from pg_partition_tree('public.events') where isleaf loop
          execute format('alter table %s set unlogged', partition);
        end loop;
      end $$`);
    const sessions = Math.min(maxConnections, availableParallelism());
    await Promise.all(Array.from({ length: sessions }, insert));
    await client.query('vacuum (analyze) public.events');
  } finally {
    await client.end();
  }
}
