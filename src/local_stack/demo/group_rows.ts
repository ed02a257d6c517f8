import { jsonNumber, jsonObject, jsonString } from './json_text.ts';
import { changedAt, companies, country, plan } from './person_rows.ts';
import { sqlText, type Dice } from './random.ts';

/** How many organisations the demo's project has, its groups of type 0. */
export const organisationCount = 50;

/** By what events name the organisation with that number. */
export const organisationKey = (organisation: string): string =>
  `'org-' || lpad((${organisation})::text, 2, '0')`;

/** The number of the organisation that a person belongs to; null for two in five. */
export const personOrganisation = (dice: Dice, person: string): string =>
  `case when ${dice.below(person, 'member', 5)} < 3 then ${dice.below(person, 'organisation', organisationCount)} end`;

/** With the companies they make a name for each organisation. */
const branches = ['Labs', 'Group', 'Media', 'Systems', 'Foods', 'Logistics', 'Studios'];

/** The text of a list whose turn it is; each comes `times` times in a row. */
const inTurn = (texts: readonly string[], times: number): string =>
  `(array[${texts.map(sqlText).join(', ')}])[1 + organisation / ${String(times)} % ${String(texts.length)}]`;

/** An organisation's properties as JSON text, of a row of numbers `organisation`. */
const organisationProperties = (dice: Dice): string =>
  jsonObject({
    name: jsonString(`${inTurn(companies, 1)} || ' ' || ${inTurn(branches, companies.length)}`),
    plan: jsonString(plan(dice, 'organisation')),
    seats: jsonNumber(`5 + ${dice.below('organisation', 'organisation seats', 500)}`),
    industry: dice.oneOfJson('organisation', 'industry', ['software', 'retail', 'health', 'energy', 'media']),
    country: jsonString(country(dice, 'organisation')),
  });

/**
 * A statement that inserts the organisations.
 * @param from earliest time of a change, as SQL. @param to latest time of a change, as SQL.
 */
export function insertGroups(dice: Dice, teamId: number, from: string, to: string): string {
  const changed = changedAt(dice, 'organisation', 'organisation changed', from, to);
  return `insert into public.groups (team_id, group_type_index, group_key, group_properties, created_at, updated_at)
    select ${String(teamId)}, 0, ${organisationKey('organisation')}, (${organisationProperties(dice)})::jsonb,
      ${changed} - interval '1 day' * ${dice.below('organisation', 'founded', 900)}, ${changed}
    from generate_series(0, ${String(organisationCount - 1)}) as organisation`;
}
