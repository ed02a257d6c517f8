import { jsonNumber, jsonObject, jsonString } from './json_sql.ts';
import { changedAt, companies, country, plan } from './person_rows.ts';
import { sqlLiteral, type SeededRandom } from './seeded_random.ts';

/** Number of organisations, which are groups of type 0. */
export const organisationCount = 50;

/** The group key of the organisation with that number. */
export const organisationKey = (organisation: string): string =>
  `'org-' || lpad((${organisation})::text, 2, '0')`;

/** The number of a person's organisation; null for two in five. */
export const personOrganisation = (random: SeededRandom, person: string): string =>
  `case when ${random.integerBelow(person, 'member', 5)} < 3 then ${random.integerBelow(person, 'organisation', organisationCount)} end`;

/** Second part of the names of organisations; the first is a company. */
const branches = ['Labs', 'Group', 'Media', 'Systems', 'Foods', 'Logistics', 'Studios'];

/** Repeats a list of texts over the organisations, each text `times` times in a row. */
const cycle = (texts: readonly string[], times: number): string =>
  `(array[${texts.map(sqlLiteral).join(', ')}])[1 + organisation / ${String(times)} % ${String(texts.length)}]`;

/** SQL for the properties of the row `organisation`, as JSON text. */
const organisationProperties = (random: SeededRandom): string =>
  jsonObject({
    name: jsonString(`${cycle(companies, 1)} || ' ' || ${cycle(branches, companies.length)}`),
    plan: jsonString(plan(random, 'organisation')),
    seats: jsonNumber(`5 + ${random.integerBelow('organisation', 'organisation seats', 500)}`),
    industry: random.oneOfJson('organisation', 'industry', [
      'software',
      'retail',
      'health',
      'energy',
      'media',
    ]),
    country: jsonString(country(random, 'organisation')),
  });

/**
 * A statement that inserts the organisations.
 * @param from SQL for the earliest time of a change. @param to SQL for the latest.
 */
export function insertGroups(random: SeededRandom, teamId: number, from: string, to: string): string {
  const changed = changedAt(random, 'organisation', 'organisation changed', from, to);
  return `insert into public.groups (team_id, group_type_index, group_key, group_properties, created_at, updated_at)
    select ${String(teamId)}, 0, ${organisationKey('organisation')}, (${organisationProperties(random)})::jsonb,
      ${changed} - interval '1 day' * ${random.integerBelow('organisation', 'founded', 900)}, ${changed}
    from generate_series(0, ${String(organisationCount - 1)}) as organisation`;
}
