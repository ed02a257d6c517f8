import type { Pool } from '../../../src/journal/database.ts';
import { funnelsQueryKind } from '../../../src/queries/funnels_query/index.ts';
import type { FunnelsQuery } from '../../../src/queries/funnels_query/schema.ts';
import type { OutputResults, QueryProject } from '../../../src/queries/query_kind.ts';
import { asQuery, sampledIds } from '../trends_query/run_trends_query.ts';
import type { ReferenceEvent } from './reference_events.ts';
import { queryProject } from '../query_project.ts';

export { asQuery, sampledIds };

export const kind = funnelsQueryKind;

/** A query with its defaults, as parsed by the endpoint. */
export const funnelsQuery = (query: object): FunnelsQuery =>
  kind.schema.parse({ kind: 'FunnelsQuery', ...query });

export const projectOf = (teamId: number): QueryProject =>
  queryProject({ team_id: teamId, timezone: 'Europe/Berlin' });

export const now = new Date('2026-11-21T12:00:00Z');

/** The `results` of a query. */
export async function runFunnelsQuery(
  pool: Pool,
  teamId: number,
  query: object,
  actions: QueryProject['actions'] = [],
): Promise<OutputResults> {
  const parsed = funnelsQuery(query);
  const project = { ...projectOf(teamId), actions };
  const { results } = await asQuery(pool, project, now, (context) => kind.run(parsed, context));
  return results;
}

/** Inserts events into the source, with groups that have the same properties, and the actor as a separate group. */
export async function insertEvents(
  pool: Pool,
  teamId: number,
  events: readonly ReferenceEvent[],
): Promise<void> {
  await pool.query(
    `with given as (
       select uuid, event, actor, to_timestamp(at / 1000.0) as time, concat_ws('|', size, plan, region) as key,
         jsonb_strip_nulls(jsonb_build_object('size', size, 'plan', plan, 'region', region)) as properties
       from jsonb_to_recordset($2)
         as x(uuid uuid, event text, actor text, size text, plan text, region text, at float8)),
     stored as (
       insert into public.groups (team_id, group_type_index, group_key, group_properties)
       select distinct $1::integer, 2, key, properties from given)
     insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
     select $1, uuid, event, actor, actor::uuid, properties || jsonb_build_object('$group_1', actor, '$group_2', key), time from given`,
    [teamId, JSON.stringify(events)],
  );
}
