import { jsonNumber, jsonObject, jsonString } from './json_sql.ts';
import type { SeededRandom } from './seeded_random.ts';

/** Number of persons. */
export const personCount = 20_000;

/** SQL for the UUID of the person with that number. */
export const personId = (random: SeededRandom, person: string): string => random.uuid(person, 'person');

/** The distinct id of a person who is signed in. */
export const knownDistinctId = (person: string): string => `'user-' || lpad((${person})::text, 6, '0')`;

/** The distinct id of a browser; a person has up to three. */
export const deviceDistinctId = (random: SeededRandom, person: string, device: string): string =>
  `(${random.uuid(`(${person}) * 4 + (${device})`, 'device')})::text`;

const firstNames = [
  'Ada',
  'Björn',
  'Chloé',
  'Dmitri',
  'Elif',
  'Femi',
  'Grace',
  'Hana',
  'Iñigo',
  'Jun',
  'Kavya',
  'Łucja',
];
const lastNames = [
  'Abebe',
  "O'Neil",
  'Çelik',
  'Dąbrowski',
  'Eriksen',
  'Fujita',
  'García',
  'Hoffmann',
  'Ivanova',
  'Joshi',
];
export const companies = [
  'Acme',
  'Globex',
  'Initech',
  'Umbrella',
  'Hooli',
  'Stark Industries',
  'Wayne & Sons',
  'Tyrell',
];

/** SQL for the properties of the row `person`, as JSON text. */
function personProperties(random: SeededRandom): string {
  const first = random.oneOf('person', 'first name', firstNames);
  const last = random.oneOf('person', 'last name', lastNames);
  return jsonObject({
    email: jsonString(`'user-' || person || '@example.com'`),
    name: jsonString(`${first} || ' ' || ${last}`),
    plan: jsonString(plan(random, 'person')),
    company: jsonObject({
      name: random.oneOfJson('person', 'company', companies),
      seats: jsonNumber(`1 + ${random.integerBelow('person', 'seats', 250)}`),
    }),
    tags: random.oneOfJson('person', 'tags', [
      [],
      ['beta'],
      ['newsletter'],
      ['beta', 'newsletter', 'champion'],
    ]),
    country: jsonString(country(random, 'person')),
    lifetime_value: jsonNumber(`${random.integerBelow('person', 'value', 500_000)} / 100.0`),
    signed_up_days_ago: jsonNumber(random.integerBelow('person', 'signed up', 900)),
  });
}

/** The plan of a person, also in their events. */
export const plan = (random: SeededRandom, person: string): string =>
  random.oneOf(person, 'plan', ['free', 'free', 'free', 'starter', 'team', 'enterprise']);

/** The country of a person, also in their events. */
export const country = (random: SeededRandom, person: string): string =>
  random.oneOf(person, 'country', ['US', 'US', 'US', 'DE', 'GB', 'FR', 'BR', 'IN', 'JP', 'PL']);

/** SQL for the time of a row's last change, between two times. */
export const changedAt = (
  random: SeededRandom,
  row: string,
  purpose: string,
  from: string,
  to: string,
): string => `${from} + (${to} - ${from}) * ${random.fraction(row, purpose)}::float8`;

/**
 * Statements that insert the persons and their distinct ids: one for the signed-in person and one to three browsers.
 * @param from SQL for the earliest time of a change. @param to SQL for the latest.
 */
export function insertPersons(random: SeededRandom, teamId: number, from: string, to: string): string[] {
  const team = String(teamId);
  const persons = `generate_series(0, ${String(personCount - 1)}) as person`;
  const changed = changedAt(random, 'person', 'changed', from, to);
  return [
    `insert into public.persons (team_id, id, properties, created_at, updated_at, version, is_deleted)
     select ${team}, ${personId(random, 'person')}, (${personProperties(random)})::jsonb,
       ${changed} - interval '1 day' * ${random.integerBelow('person', 'signed up', 900)}, ${changed},
       ${random.integerBelow('person', 'version', 12)}, ${random.integerBelow('person', 'deleted', 200)} = 0
     from ${persons}`,
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, updated_at, is_deleted)
     select ${team}, case device when 0 then ${knownDistinctId('person')} else ${deviceDistinctId(random, 'person', 'device')} end,
       ${personId(random, 'person')}, ${random.integerBelow('person * 4 + device', 'mapping version', 3)},
       ${changedAt(random, 'person * 4 + device', 'mapped', from, to)}, false
     from ${persons}, generate_series(0, 1 + ${random.integerBelow('person', 'devices', 3)}) as device`,
  ];
}
