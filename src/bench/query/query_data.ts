import pg from 'pg';
import type { Report } from '../../local_stack/report.ts';
import { benchApplicationName, sessionOptions } from '../exported_rows.ts';
import { makeEvents } from '../make_events.ts';

/** What is made for the bench of queries. */
export interface QueryData {
  readonly teamId: number;
  readonly events: number;
  readonly days: number;
  /** Whole hour before which all events lie. */
  readonly now: Date;
  /** How many projects share the events, the team's the first; 1 when it is not given. */
  readonly projects?: number | undefined;
}

/**
 * Fills a scratch database with the events of some days and the persons that they are of, with statistics.
 * @returns how many persons there are.
 */
export async function makeQueryData(
  databaseUrl: string,
  { teamId, events, days, now, projects = 1 }: QueryData,
  report: Report,
  signal: AbortSignal,
): Promise<number> {
  const hours = days * 24;
  const start = new Date(now.getTime() - hours * 3_600_000);
  await makeEvents(databaseUrl, { teamId, start, count: events, hours, projects }, report, signal);
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
      `insert into public.person_distinct_ids (team_id, distinct_id, person_id)
       select distinct team_id, distinct_id, person_id from public.events where team_id = $1`,
      [teamId],
    );
    await client.query('vacuum (analyze) public.persons, public.person_distinct_ids');
    report(`Made ${(rowCount ?? 0).toLocaleString('en')} persons`);
    return rowCount ?? 0;
  } finally {
    await client.end();
  }
}
