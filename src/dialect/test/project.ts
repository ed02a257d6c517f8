import type { Project } from '../resolve/statement.ts';
import type { Schema, SourceRelation } from '../schema.ts';

const relation = (name: string, columns: Readonly<Record<string, string>>): SourceRelation => ({
  relation: `"public"."${name}"`,
  columns: new Map(Object.entries(columns)),
});

/** The relations of the migrations, and warehouse tables of one project. */
export const schema: Schema = {
  events: relation('events', { properties: 'jsonb', person_properties: 'jsonb' }),
  persons: relation('persons', { properties: 'jsonb' }),
  personDistinctIds: relation('person_distinct_ids', {}),
  sessionReplayEvents: relation('session_replay_events', {}),
  cohortPeople: relation('cohort_people', { cohort_name: 'text' }),
  groups: relation('groups', { group_properties: 'jsonb' }),
  warehouse: new Map([
    [
      'warehouse.orders',
      {
        ...relation('orders', {
          team_id: 'integer',
          id: 'bigint',
          distinct_id: 'text',
          total: 'numeric',
          paid_at: 'timestamp with time zone',
        }),
        teamColumn: 'team_id',
      },
    ],
    ['plans', { ...relation('plans', { name: 'text', price: 'integer' }), teamColumn: null }],
  ]),
  properties: new Map([
    [
      'event',
      new Map([
        ['amount', 'numeric'],
        ['paid', 'boolean'],
        ['trial_ends', 'datetime'],
      ]),
    ],
    ['person', new Map([['seats', 'numeric']])],
  ]),
};

export const teamId = 41;

export const project: Project = {
  teamId,
  timezone: 'UTC',
  weekStartDay: 'sunday',
  now: '2026-11-21T12:00:00Z',
  schema,
};

export const berlin: Project = { ...project, timezone: 'Europe/Berlin', weekStartDay: 'monday' };
