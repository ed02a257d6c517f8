import type { Pool } from '../../../src/journal/database.ts';

/** A person's id by number. */
export const person = (number: number): string => `00000000-0000-0000-0000-00000000000${number}`;

type Row = readonly [
  event: string,
  person: number,
  time: string,
  properties: Readonly<Record<string, unknown>>,
];

const ofAda = { $browser: 'Chrome', $geoip_country_name: 'Germany' };
const ofBob = { $browser: 'Safari', $geoip_country_name: 'France' };
const ofEve = { $browser: 'Firefox', $geoip_country_name: 'Germany' };

const events: readonly Row[] = [
  ['$pageview', 1, '2026-11-20T09:00Z', { ...ofAda, $pathname: '/', $session_id: 's1' }],
  ['$pageview', 1, '2026-11-20T09:10Z', { ...ofAda, $pathname: '/pricing', $session_id: 's1' }],
  ['signed_up', 1, '2026-11-20T09:20Z', { ...ofAda, plan: 'pro', $session_id: 's1' }],
  ['$pageview', 2, '2026-11-20T15:00Z', { ...ofBob, $pathname: '/', $session_id: 's2' }],
  ['purchase_completed', 1, '2026-11-21T08:00Z', { ...ofAda, amount: 50, plan: 'pro', $session_id: 's3' }],
  ['purchase_completed', 1, '2026-11-21T08:30Z', { ...ofAda, amount: 30, $session_id: 's3' }],
  ['signed_up', 2, '2026-11-12T10:00Z', { ...ofBob, $session_id: 's4' }],
  ['$pageview', 3, '2026-11-12T11:00Z', { ...ofEve, $pathname: '/', $session_id: 's5' }],
  ['purchase_completed', 2, '2026-10-05T10:00Z', { ...ofBob, amount: 100 }],
  ['signed_up', 3, '2026-10-20T10:00Z', ofEve],
];

const persons = [
  { email: 'ada@example.com', plan: 'pro', created: '2026-11-02' },
  { email: 'bob@other.org', plan: 'free', created: '2026-11-10' },
  { email: 'eve@example.com', plan: 'pro', created: '2026-11-18' },
  { email: 'gone@example.com', plan: 'pro', created: '2026-11-19' },
];

/** Ten events of three persons, and a deleted person; the other project has an event name that this one lacks. */
export async function insertShop(pool: Pool, teamId: number, otherTeamId: number): Promise<void> {
  for (const [event, number, time, properties] of events)
    await pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp)
       values ($1, gen_random_uuid(), $2, $3, $4, $5, $6)`,
      [teamId, event, `d${number}`, person(number), properties, time],
    );
  for (const [index, { created, ...properties }] of persons.entries())
    await pool.query(
      `insert into public.persons (team_id, id, properties, created_at, is_deleted) values ($1, $2, $3, $4, $5)`,
      [teamId, person(index + 1), properties, `${created}T00:00Z`, index === 3],
    );
  await pool.query(
    `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
     values ($1, gen_random_uuid(), 'rocket launched', 'x', '{"fuel": "kerosene"}', '2026-11-20T09:00Z')`,
    [otherTeamId],
  );
}
