import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, combineConditions } from '../../dialect/ast_builders.ts';
import { hasAggregate } from '../aggregate_calls.ts';
import { parseExpressionAt } from '../parse_fragments.ts';
import { filtersCondition, testAccountsCondition, fallibleConditions } from '../filters.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryContext, QueryProject } from '../query_kind.ts';
import type { RequestedCondition } from '../item_errors.ts';
import type { EventsQuery } from './schema.ts';
import { timeCondition } from './time_bounds.ts';

/** The entries of `where`, split into conditions on events (WHERE) and on aggregated rows (HAVING). */
export function requestedConditions(where: EventsQuery['where']): {
  readonly eventConditions: readonly RequestedCondition[];
  readonly rowConditions: readonly RequestedCondition[];
} {
  const parsed = (where ?? []).map((text, index) => {
    const attr = `query__where__${index}`;
    return { condition: parseExpressionAt(text, attr), attr };
  });
  return {
    eventConditions: parsed.filter(({ condition }) => !hasAggregate(condition)),
    rowConditions: parsed.filter(({ condition }) => hasAggregate(condition)),
  };
}

/** The condition of the other fields on an event. @throws QueryError with the path of the field */
export function fieldConditions(
  query: EventsQuery,
  context: Pick<QueryContext, 'project' | 'now'>,
): Expression | null {
  const { event, actionId, personId, properties, fixedProperties, filterTestAccounts } = query;
  if (actionId !== null && actionId !== undefined)
    throw new QueryError('invalid_input', 'Action does not exist. Filter by its events instead.', {
      attr: 'query__actionId',
    });
  return combineConditions('and', [
    timeCondition(query, context),
    event ? buildExpression('events.event = {event}', { event: { value: event } }) : null,
    personId ? ofPerson(personId) : null,
    filtersCondition(properties, filterTarget('properties')),
    filtersCondition(fixedProperties, filterTarget('fixedProperties')),
    filterTestAccounts ? testAccountsCondition(context.project, 'events', 'events') : null,
  ]);
}

const filterTarget = (field: 'properties' | 'fixedProperties') =>
  ({ scope: 'events', relation: 'events', attr: `query__${field}` }) as const;

/** Each filter that may fail to compile. */
export const filterConditions = (
  { properties, fixedProperties, filterTestAccounts }: EventsQuery,
  project: QueryProject,
): readonly RequestedCondition[] => {
  const tests = filterTestAccounts ? testAccountsCondition(project, 'events', 'events') : null;
  return [
    ...fallibleConditions(properties, filterTarget('properties')),
    ...fallibleConditions(fixedProperties, filterTarget('fixedProperties')),
    ...(tests === null ? [] : [{ condition: tests, attr: 'query__filterTestAccounts' }]),
  ];
};

const isUuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** @throws QueryError if it is not a UUID */
function ofPerson(personId: string): Expression {
  if (!isUuid.test(personId))
    throw new QueryError('invalid_input', 'This field must be the UUID of a person.', {
      attr: 'query__personId',
    });
  return buildExpression('events.person_id = {person}', { person: { value: personId } });
}
