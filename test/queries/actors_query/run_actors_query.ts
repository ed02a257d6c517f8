import type { Pool } from '../../../src/journal/database.ts';
import { actorsQueryKind } from '../../../src/queries/actors_query/index.ts';
import type { QueryOutput, QueryProject } from '../../../src/queries/query_kind.ts';
import { asQuery } from '../trends_query/run_trends_query.ts';
import type { ReferencePerson } from './reference_persons.ts';
import { queryProject } from '../query_project.ts';

const kind = actorsQueryKind;

export const now = new Date('2026-11-21T12:00:00Z');

export const projectOf = (teamId: number): QueryProject => queryProject({ team_id: teamId });

/** Runs an ActorsQuery, which is parsed twice, as by a worker. */
export const runActorsQuery = (
  pool: Pool,
  teamId: number,
  query: object,
  project = projectOf(teamId),
): Promise<QueryOutput> => {
  const given = kind.schema.parse({ kind: 'ActorsQuery', ...query });
  const parsed = kind.schema.parse(JSON.parse(JSON.stringify(given)));
  return asQuery(pool, project, now, (context) => kind.run(parsed, context));
};

/** Inserts persons with their distinct ids into the source. */
export async function insertPersons(
  pool: Pool,
  teamId: number,
  persons: readonly ReferencePerson[],
): Promise<void> {
  await pool.query(
    `with given as (
       select * from jsonb_to_recordset($2)
         as x(id uuid, properties jsonb, created_at timestamptz, is_deleted boolean, distinct_ids text[])),
     mapped as (
       insert into public.person_distinct_ids (team_id, distinct_id, person_id)
       select $1, unnest(distinct_ids), id from given)
     insert into public.persons (team_id, id, properties, created_at, is_deleted)
     select $1, id, properties, created_at, is_deleted from given`,
    [teamId, JSON.stringify(persons)],
  );
}
