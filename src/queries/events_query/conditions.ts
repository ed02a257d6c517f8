import type { Expression } from '../../dialect/ast.ts';
import { expressionOf, joined } from '../../dialect/build.ts';
import { hasAggregate } from '../aggregate_calls.ts';
import { readExpression } from '../dialect_texts.ts';
import { filtersCondition, testAccountsCondition } from '../filters/condition.ts';
import { refusableConditions } from '../filters/refusable.ts';
import { QueryInvalid } from '../query_errors.ts';
import type { QueryContext, QueryProject } from '../query_kind.ts';
import type { WrittenCondition } from '../select_pieces.ts';
import type { EventsQuery } from './schema.ts';
import { timeCondition } from './time_bounds.ts';

/** The entries of `where`: about events, and about the rows that events are put together in. */
export function writtenConditions(where: EventsQuery['where']): {
  readonly ofEvents: readonly WrittenCondition[];
  readonly ofRows: readonly WrittenCondition[];
} {
  const written = (where ?? []).map((text, index) => {
    const attr = `query__where__${index}`;
    return { condition: readExpression(text, attr), attr };
  });
  return {
    ofEvents: written.filter(({ condition }) => !hasAggregate(condition)),
    ofRows: written.filter(({ condition }) => hasAggregate(condition)),
  };
}

/** What the other members ask of an event. @throws QueryInvalid that names the member */
export function memberConditions(
  query: EventsQuery,
  context: Pick<QueryContext, 'project' | 'now'>,
): Expression | null {
  const { event, actionId, personId, properties, fixedProperties, filterTestAccounts } = query;
  if (actionId !== null && actionId !== undefined)
    throw new QueryInvalid('invalid_input', 'Action does not exist. Filter by its events instead.', {
      attr: 'query__actionId',
    });
  return joined('and', [
    timeCondition(query, context),
    event ? expressionOf('events.event = {event}', { event: { value: event } }) : null,
    personId ? ofPerson(personId) : null,
    filtersCondition(properties, place('properties')),
    filtersCondition(fixedProperties, place('fixedProperties')),
    filterTestAccounts ? testAccountsCondition(context.project, 'events', 'events') : null,
  ]);
}

const place = (member: 'properties' | 'fixedProperties') =>
  ({ scope: 'events', relation: 'events', attr: `query__${member}` }) as const;

/** Each filter that the dialect may refuse by itself. */
export const filterConditions = (
  { properties, fixedProperties, filterTestAccounts }: EventsQuery,
  project: QueryProject,
): readonly WrittenCondition[] => {
  const tests = filterTestAccounts ? testAccountsCondition(project, 'events', 'events') : null;
  return [
    ...refusableConditions(properties, place('properties')),
    ...refusableConditions(fixedProperties, place('fixedProperties')),
    ...(tests === null ? [] : [{ condition: tests, attr: 'query__filterTestAccounts' }]),
  ];
};

const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** By the distinct ids that are the person's now, whoever an event names. */
function ofPerson(personId: string): Expression {
  if (!isUuid.test(personId))
    throw new QueryInvalid('invalid_input', 'This field must be the UUID of a person.', {
      attr: 'query__personId',
    });
  return expressionOf(
    'events.distinct_id in (select distinct_id from person_distinct_ids where person_id = {person})',
    { person: { value: personId } },
  );
}
