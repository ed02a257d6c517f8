import pg from 'pg';
import type { Report } from '../../local_stack/report.ts';
import { benchApplicationName, sessionOptions } from '../export_statements.ts';
import { insertEvents } from '../insert_events.ts';

/** Data of the query benchmark. */
export interface QueryData {
  readonly teamId: number;
  readonly events: number;
  readonly days: number;
  /** Whole hour; all events are before it. */
  readonly now: Date;
  /** Number of projects that share the events, starting with `teamId`; 1 by default. */
  readonly projects?: number | undefined;
}

/**
 * Inserts the events of some days and their persons, some of them merged, and analyzes the tables.
 * @returns The number of persons.
 */
export async function insertQueryData(
  databaseUrl: string,
  { teamId, events, days, now, projects = 1 }: QueryData,
  report: Report,
  signal: AbortSignal,
): Promise<number> {
  const hours = days * 24;
  const start = new Date(now.getTime() - hours * 3_600_000);
  await insertEvents(databaseUrl, { teamId, start, count: events, hours, projects }, report, signal);
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: benchApplicationName,
    options: sessionOptions,
  });
  await client.connect();
  try {
    const { rowCount } = await client.query(
      `insert into public.persons (team_id, id, properties, created_at, updated_at)
       select team_id, person_id, min(person_properties::text)::jsonb
         || jsonb_build_object('email', min(distinct_id) || '@example.com', 'name', 'Person of ' || min(distinct_id)),
         min(timestamp), max(timestamp)
       from public.events where team_id = $1 group by team_id, person_id`,
      [teamId],
    );
    await client.query(
      // One in fifty distinct ids has been merged into the person of the preceding one.
      `insert into public.person_distinct_ids (team_id, distinct_id, person_id)
       select team_id, distinct_id, case when hashtext(distinct_id) % 50 = 0
         then coalesce(lag(person_id) over (order by distinct_id), person_id) else person_id end
       from (select distinct team_id, distinct_id, person_id from public.events where team_id = $1) as stored`,
      [teamId],
    );
    await client.query('vacuum (analyze) public.persons, public.person_distinct_ids');
    report(`Inserted ${(rowCount ?? 0).toLocaleString('en')} persons`);
    return rowCount ?? 0;
  } finally {
    await client.end();
  }
}
