import type { Expression } from '../../../dialect/ast.ts';
import { buildField } from '../../../dialect/ast_builders.ts';
import type { Breakdown, Draft, Filter, Measure } from '../draft.ts';
import type { PropertyReference } from '../naming/mentions.ts';
import { unclear } from '../unclear.ts';

/** A table that queries read. */
export interface QueryTable {
  readonly name: 'events' | 'persons' | 'sessions';
  readonly time: Expression;
  /** The field of a property. @throws QueryError `unclear` if the table has no such property */
  property(property: PropertyReference): Expression;
}

const events: QueryTable = {
  name: 'events',
  time: buildField('timestamp'),
  property: ({ key, owners }) =>
    owners.includes('event') ? buildField('properties', key) : buildField('person', 'properties', key),
};

const persons: QueryTable = {
  name: 'persons',
  time: buildField('created_at'),
  property: ({ key, owners }) => {
    if (!owners.includes('person')) throw unclear(`Only events have the property "${key}", persons do not.`);
    return buildField('properties', key);
  },
};

/** Session fields by property: the duration, and properties of the entry page. */
const sessionFields: ReadonlyMap<string, string> = new Map(
  Object.entries({
    $session_duration: '$session_duration',
    $current_url: '$entry_current_url',
    $pathname: '$entry_pathname',
    $host: '$entry_hostname',
    $referring_domain: '$entry_referring_domain',
    ...Object.fromEntries(
      ['source', 'medium', 'campaign', 'term', 'content'].flatMap((name) => [
        [`utm_${name}`, `$entry_utm_${name}`],
        [`$utm_${name}`, `$entry_utm_${name}`],
      ]),
    ),
  }),
);

const sessions: QueryTable = {
  name: 'sessions',
  time: buildField('$start_timestamp'),
  property: ({ key }) => {
    const field = sessionFields.get(key);
    if (field === undefined)
      throw unclear(`Sessions have no property "${key}". Count the sessions of an event instead.`);
    return buildField(field);
  },
};

/** All tables that queries can read. */
export const queryTables: readonly QueryTable[] = [events, persons, sessions];

/** The table of a draft. */
export function queryTableOf(draft: Draft): QueryTable {
  if (draft.table === 'persons') return persons;
  if (draft.table === 'events') return events;
  if (draft.table === 'sessions') return areOfSessions(draft) ? sessions : events;
  return areOfPersons(draft) ? persons : events;
}

const isOfEvents = ({ kind }: Breakdown): boolean => kind !== 'property';

/** Filters and breakdowns on other properties count the sessions of events instead. */
const areOfSessions = ({ events: named, filters, breakdowns }: Draft): boolean =>
  named.length === 0 &&
  !breakdowns.some(isOfEvents) &&
  propertiesOf([...filters, ...breakdowns]).every(({ key }) => sessionFields.has(key));

/** Counts persons themselves if the draft says nothing about events and uses only properties of persons. */
function areOfPersons(draft: Draft): boolean {
  const isAboutEvents =
    [draft.events, draft.steps].some(({ length }) => length > 0) ||
    [draft.bucket, draft.period, draft.compared].some((part) => part !== null) ||
    draft.measures.some((one) => !('property' in one) && one.kind !== 'count' && one.kind !== 'users') ||
    draft.breakdowns.some(isOfEvents);
  const properties = propertiesOf([...draft.filters, ...draft.breakdowns, ...draft.measures]);
  const areTheirs = properties.every(({ owners }) => owners.includes('person'));
  const areTheirsAlone = properties.length > 0 && properties.every(({ owners }) => !owners.includes('event'));
  return !isAboutEvents && areTheirs && (draft.people || areTheirsAlone);
}

const propertiesOf = (parts: readonly (Filter | Breakdown | Measure)[]): readonly PropertyReference[] =>
  parts.flatMap((part) => ('property' in part ? [part.property] : []));
