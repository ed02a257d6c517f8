import { jsonNumber, jsonObject, jsonString } from './json_text.ts';
import type { Dice } from './random.ts';

/** How many persons the demo's project has. */
export const personCount = 20_000;

/** UUID of the person with that number. */
export const personId = (dice: Dice, person: string): string => dice.uuid(person, 'person');

/** What a person is called once signed in. */
export const knownDistinctId = (person: string): string => `'user-' || lpad((${person})::text, 6, '0')`;

/** What a person's browser is called; each has up to three. */
export const deviceDistinctId = (dice: Dice, person: string, device: string): string =>
  `(${dice.uuid(`(${person}) * 4 + (${device})`, 'device')})::text`;

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

/** A person's properties as JSON text, of a row of numbers `person`. */
function personProperties(dice: Dice): string {
  const first = dice.oneOf('person', 'first name', firstNames);
  const last = dice.oneOf('person', 'last name', lastNames);
  return jsonObject({
    email: jsonString(`'user-' || person || '@example.com'`),
    name: jsonString(`${first} || ' ' || ${last}`),
    plan: jsonString(plan(dice, 'person')),
    company: jsonObject({
      name: dice.oneOfJson('person', 'company', companies),
      seats: jsonNumber(`1 + ${dice.below('person', 'seats', 250)}`),
    }),
    tags: dice.oneOfJson('person', 'tags', [
      [],
      ['beta'],
      ['newsletter'],
      ['beta', 'newsletter', 'champion'],
    ]),
    country: jsonString(country(dice, 'person')),
    lifetime_value: jsonNumber(`${dice.below('person', 'value', 500_000)} / 100.0`),
    signed_up_days_ago: jsonNumber(dice.below('person', 'signed up', 900)),
  });
}

/** What the person pays for; events show the same. */
export const plan = (dice: Dice, person: string): string =>
  dice.oneOf(person, 'plan', ['free', 'free', 'free', 'starter', 'team', 'enterprise']);

/** Where the person is; events show the same. */
export const country = (dice: Dice, person: string): string =>
  dice.oneOf(person, 'country', ['US', 'US', 'US', 'DE', 'GB', 'FR', 'BR', 'IN', 'JP', 'PL']);

/** When a row was changed last, between the two times. */
export const changedAt = (dice: Dice, row: string, purpose: string, from: string, to: string): string =>
  `${from} + (${to} - ${from}) * ${dice.fraction(row, purpose)}::float8`;

/**
 * Statements that insert the persons and their distinct ids: a known one and one to three browsers each.
 * @param from earliest time of a change, as SQL. @param to latest time of a change, as SQL.
 */
export function insertPersons(dice: Dice, teamId: number, from: string, to: string): string[] {
  const team = String(teamId);
  const persons = `generate_series(0, ${String(personCount - 1)}) as person`;
  const changed = changedAt(dice, 'person', 'changed', from, to);
  return [
    `insert into public.persons (team_id, id, properties, created_at, updated_at, version, is_deleted)
     select ${team}, ${personId(dice, 'person')}, (${personProperties(dice)})::jsonb,
       ${changed} - interval '1 day' * ${dice.below('person', 'signed up', 900)}, ${changed},
       ${dice.below('person', 'version', 12)}, ${dice.below('person', 'deleted', 200)} = 0
     from ${persons}`,
    `insert into public.person_distinct_ids (team_id, distinct_id, person_id, version, updated_at, is_deleted)
     select ${team}, case device when 0 then ${knownDistinctId('person')} else ${deviceDistinctId(dice, 'person', 'device')} end,
       ${personId(dice, 'person')}, ${dice.below('person * 4 + device', 'mapping version', 3)},
       ${changedAt(dice, 'person * 4 + device', 'mapped', from, to)}, false
     from ${persons}, generate_series(0, 1 + ${dice.below('person', 'devices', 3)}) as device`,
  ];
}
