import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { JsonValue } from '../../../src/domain/event.ts';
import type { Pool } from '../../../src/journal/database.ts';
import type { ReferenceEvent } from './reference_filters.ts';
import { propertyKeys, storedValues } from './random_filters.ts';

const properties = (keys: readonly string[]): fc.Arbitrary<Record<string, JsonValue>> =>
  fc
    .array(fc.tuple(fc.constantFrom(...keys), fc.constantFrom(...storedValues)), { maxLength: 3 })
    .map((entries) => Object.fromEntries(entries));

const groupKeys = ['g0', 'g1', 'g2', 'not stored'];

/** The stored groups, of the first two types. The same keys are different groups in each type. */
const storedGroups = [3, 4].map(
  (seed) =>
    new Map(
      fc
        .sample(properties(propertyKeys), { numRuns: 3, seed })
        .map((group, number) => [groupKeys[number], group]),
    ),
);

/** Events of a few persons and groups, and without a person, within four days before `now`, at whole seconds. */
export const randomEvents = (before: Date, count: number): readonly ReferenceEvent[] => {
  const persons = fc.sample(properties(propertyKeys.slice(0, 2)), { numRuns: 6, seed: 1 });
  const event = fc.record({
    uuid: fc.constant(null).map(() => randomUUID()),
    event: fc.constantFrom('signup', 'bought', '$pageview'),
    who: fc.integer({ min: 0, max: 7 }),
    properties: properties(propertyKeys),
    groups: fc.array(fc.constantFrom(...groupKeys, null), { minLength: 2, maxLength: 2 }),
    ago: fc.integer({ min: 0, max: 4 * 86_400 }),
  });
  return fc.sample(event, { numRuns: count, seed: 2 }).map(({ who, ago, groups: keys, ...rest }) => ({
    ...rest,
    properties: {
      ...rest.properties,
      ...Object.fromEntries(
        keys.flatMap((key, index) => (key === null ? [] : [[`$group_${index}`, key] as const])),
      ),
    },
    groups: keys.map((key, index) => storedGroups[index]?.get(key ?? undefined)),
    distinct_id: `d${who}`,
    person: persons[who] ?? null,
    timestamp: new Date(before.getTime() - ago * 1000),
  }));
};

/** The id of the person with a distinct id. */
export const personIdOf = (distinctId: string): string =>
  `00000000-0000-0000-0000-0000000000${distinctId.slice(1).padStart(2, '0')}`;

/** Inserts events with their persons and groups, and next to each an event of another project with all its groups. */
export async function insertEvents(
  pool: Pool,
  teamId: number,
  events: readonly ReferenceEvent[],
): Promise<void> {
  for (const { uuid, event, distinct_id, properties: own, person, timestamp } of events)
    for (const team of [teamId, teamId + 1])
      await pool.query(
        `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, timestamp, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $7)`,
        [
          team,
          team === teamId ? uuid : randomUUID(),
          event,
          distinct_id,
          person === null ? null : personIdOf(distinct_id),
          own,
          timestamp,
        ],
      );
  const insertGroup = (team: number, index: number, key: string | undefined, group: object) =>
    pool.query(
      `insert into public.groups (team_id, group_type_index, group_key, group_properties) values ($1, $2, $3, $4)`,
      [team, index, key, group],
    );
  for (const [index, groups] of storedGroups.entries()) {
    for (const [key, group] of groups) await insertGroup(teamId, index, key, group);
    for (const key of groupKeys) await insertGroup(teamId + 1, index, key, { plan: 'a', amount: 10 });
  }
  const persons = new Map(events.map(({ distinct_id, person }) => [distinct_id, person]));
  for (const [distinctId, person] of persons)
    if (person !== null) {
      await pool.query(
        `insert into public.persons (team_id, id, properties, created_at) values ($1, $2, $3, '2026-01-01Z')`,
        [teamId, personIdOf(distinctId), person],
      );
      await pool.query(
        `insert into public.person_distinct_ids (team_id, distinct_id, person_id) values ($1, $2, $3)`,
        [teamId, distinctId, personIdOf(distinctId)],
      );
    }
}
