import type { Pool } from 'pg';
import { teamId } from './project.ts';

/** Appears in all rows of the other project, and must never appear in a result. */
export const otherTeamMarker = 'other-team';

const person = (number: number): string => `00000000-0000-0000-0000-00000000000${number}`;
const event = (number: number): string => `10000000-0000-0000-0000-00000000000${number}`;

const events: readonly (readonly [string, string, string | null, object, string])[] = [
  [
    '$pageview',
    'a',
    person(1),
    {
      plan: 'pro',
      amount: 10,
      $session_id: 's1',
      $current_url: 'https://ex.com/p?x=1',
      $group_0: 'acme',
      tags: ['a', 'b'],
      deep: { k: { z: 5 } },
    },
    '2026-11-20T10:00:00Z',
  ],
  [
    'signup',
    'a',
    person(1),
    { plan: null, amount: 'x', $session_id: 's1', paid: true },
    '2026-11-20T10:05:00Z',
  ],
  [
    '$pageview',
    'b',
    person(2),
    { plan: 'free', amount: '2.5', $session_id: 's2', trial_ends: '2026-12-01', $group_0: 'gone' },
    '2026-11-20T11:30:00Z',
  ],
  ['signup', 'c', null, { empty: '', trial_ends: '2026-02-30' }, '2026-11-18T23:30:00Z'],
];

/**
 * Inserts four events, two persons and a deleted one, a recording, groups and orders, and the same for another
 * project, marked with `otherTeamMarker`.
 */
export async function insertSmallData(pool: Pool): Promise<void> {
  await pool.query(`create table orders (team_id int, id bigint, distinct_id text, total numeric, paid_at timestamptz);
    create table plans (name text, price int); insert into plans values ('pro', 20), ('free', 0)`);
  for (const [index, [name, distinctId, personId, properties, time]] of events.entries())
    await pool.query(
      `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $7)`,
      [teamId, event(index + 1), name, distinctId, personId, properties, time],
    );
  await pool.query(
    `insert into persons (team_id, id, properties, created_at, is_deleted) values
      ($1, $2, '{"email": "a@ex.com", "seats": 3}', '2026-01-01Z', false), ($1, $3, '{"email": "b@ex.com"}', '2026-01-02Z', false),
      ($1, $4, '{"email": "gone@ex.com"}', '2026-01-03Z', true)`,
    [teamId, person(1), person(2), person(3)],
  );
  await pool.query(
    `insert into person_distinct_ids (team_id, distinct_id, person_id, is_deleted)
      values ($1, 'a', $2, false), ($1, 'b', $3, false), ($1, 'old', $2, true)`,
    [teamId, person(1), person(2)],
  );
  await pool.query(
    `insert into session_replay_events (team_id, session_id, distinct_id, min_first_timestamp, max_last_timestamp, first_url, click_count)
      values ($1, 's1', 'a', '2026-11-20 10:00Z', '2026-11-20 10:05Z', 'https://ex.com', 7)`,
    [teamId],
  );
  await pool.query(
    `insert into groups (team_id, group_type_index, group_key, group_properties)
      values ($1, 0, 'acme', '{"name": "Acme", "plan": "team signup"}'), ($1, 1, 'acme', '{"plan": "free"}')`,
    [teamId],
  );
  await pool.query(`insert into orders values ($1, 1, 'a', 12.50, '2026-11-20Z'), ($1, 2, 'b', 7.25, null)`, [
    teamId,
  ]);
  await insertOtherTeam(pool, teamId + 1);
}

/** Rows that every join without a team filter would match. */
async function insertOtherTeam(pool: Pool, other: number): Promise<void> {
  const properties = {
    plan: otherTeamMarker,
    email: otherTeamMarker,
    name: otherTeamMarker,
    $current_url: `https://${otherTeamMarker}/`,
    $session_id: 's1',
    $group_0: 'acme',
    $group_1: 'acme',
  };
  await pool.query(
    `insert into events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
      select $1, gen_random_uuid(), $2, d, $3, $4, '2026-11-20T09:00:00Z' from unnest(array['a', 'b', $2]) as d`,
    [other, otherTeamMarker, person(1), properties],
  );
  await pool.query(`insert into persons (team_id, id, properties) values ($1, $2, $4), ($1, $3, $4)`, [
    other,
    person(1),
    person(2),
    properties,
  ]);
  await pool.query(
    `insert into person_distinct_ids (team_id, distinct_id, person_id) values ($1, 'a', $2), ($1, 'b', $2), ($1, $3, $2)`,
    [other, person(1), otherTeamMarker],
  );
  await pool.query(
    `insert into session_replay_events (team_id, session_id, distinct_id, min_first_timestamp, max_last_timestamp, first_url)
      values ($1, 's1', 'a', now(), now(), $2), ($1, $2, $2, now(), now(), $2)`,
    [other, otherTeamMarker],
  );
  await pool.query(
    `insert into groups (team_id, group_type_index, group_key, group_properties)
      select $1, type, key, $3 from generate_series(0, 4) as type, unnest(array['acme', 'gone', $2]) as key`,
    [other, otherTeamMarker, properties],
  );
  await pool.query(`insert into orders values ($1, 1, $2, 1, now())`, [other, otherTeamMarker]);
}
