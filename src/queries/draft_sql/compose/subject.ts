import type { Expression } from '../../../dialect/ast.ts';
import { fieldOf } from '../../../dialect/build.ts';
import type { Draft } from '../draft.ts';
import type { MeantProperty } from '../naming/mentions.ts';
import { unclear } from '../unclear.ts';

/** What a query reads. */
export interface Subject {
  readonly table: 'events' | 'persons' | 'sessions';
  readonly time: Expression;
  /** @throws QueryInvalid `unclear` where the table has no such property. */
  property(property: MeantProperty): Expression;
}

const events: Subject = {
  table: 'events',
  time: fieldOf('timestamp'),
  property: ({ key, owners }) =>
    owners.includes('event') ? fieldOf('properties', key) : fieldOf('person', 'properties', key),
};

const persons: Subject = {
  table: 'persons',
  time: fieldOf('created_at'),
  property: ({ key, owners }) => {
    if (!owners.includes('person')) throw unclear(`Persons have no property "${key}"; only events have it.`);
    return fieldOf('properties', key);
  },
};

/** What is known of a session: how long it was, and where it began. */
const sessionFields: Readonly<Record<string, string>> = {
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
};

const sessions: Subject = {
  table: 'sessions',
  time: fieldOf('$start_timestamp'),
  property: ({ key }) => {
    const field = sessionFields[key];
    if (field === undefined)
      throw unclear(`Sessions are not known by "${key}"; count the sessions of an event instead.`);
    return fieldOf(field);
  },
};

/** All that queries can be about. */
export const subjects: readonly Subject[] = [events, persons, sessions];

/** Which table a draft is about. */
export function subjectOf(draft: Draft): Subject {
  const properties = [...draft.filters, ...draft.breakdowns].flatMap((part) =>
    'property' in part ? [part.property] : [],
  );
  if (draft.subject === 'persons') return persons;
  const hasOther = draft.breakdowns.some(({ kind }) => kind === 'event' || kind === 'person');
  if (draft.subject === 'events') return events;
  if (draft.subject === 'sessions')
    return draft.events.length === 0 &&
      !hasOther &&
      properties.every(({ key }) => Object.hasOwn(sessionFields, key))
      ? sessions
      : events;
  const isAboutEvents =
    draft.events.length > 0 ||
    draft.steps.length > 0 ||
    draft.bucket !== null ||
    draft.period !== null ||
    draft.compared !== null ||
    draft.measures.some(({ kind }) => kind !== 'count' && kind !== 'users') ||
    hasOther;
  const areOfPersons = properties.every(({ owners }) => owners.includes('person'));
  return draft.people && !isAboutEvents && areOfPersons ? persons : events;
}
