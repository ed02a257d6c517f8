import type { Expression, OrderItem, Select } from '@exportd/dialect/ast';
import {
  buildExpression,
  buildField,
  buildOrderItem,
  buildSelect,
  combineConditions,
} from '@exportd/dialect/ast_builders';
import type { RequestedCondition, SelectWithItems } from '../item_errors.ts';
import {
  hasAggregate,
  isConstant,
  parseExpressionAt,
  parseOrderItemAt,
  parseSelectItemAt,
  withoutName,
} from '../expressions.ts';
import { findAction, matchesAction } from '../nodes.ts';
import { fallibleConditions, filtersCondition, testAccountsCondition } from '../property_filters.ts';
import { displayProperties } from '../persons.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryContext, QueryProject } from '../query_kind.ts';
import { type EventsQuery, timeCondition } from './schema.ts';

/** An element of a page in results. */
interface PageElement {
  readonly order: number;
  readonly tag_name: string | null;
  readonly attr_class: readonly string[] | null;
  readonly text: string | null;
  readonly href: string | null;
  readonly attr_id: string | null;
  readonly nth_child: number | null;
  readonly nth_of_type: number | null;
  readonly attributes: Readonly<Record<string, string>>;
}

/** Elements are separated by `;` outside of quotes. */
const elementPattern = /(?:[^\s;"]|"(?:\\[\s\S]|[^"\\])*")+/g;
/** Tag and classes are separated by `.` and end at the first `:name=`; a class may itself contain colons. */
const attributesStart = /:(?=[a-zA-Z_0-9-]*=)/;
const attribute = /([^"=]+)="((?:\\[\s\S]|[^"\\])*)"/g;

/** Parses a chain such as `a.link:href="/x"text="Go";div:nth-child="2"`, the innermost element first. */
const readElementsChain = (chain: string): readonly PageElement[] =>
  [...chain.matchAll(elementPattern)].map(([text], order) => readElement(text, order));

function readElement(element: string, order: number): PageElement {
  const at = element.search(attributesStart);
  const [tag = '', ...classes] = (at === -1 ? element : element.slice(0, at)).split('.');
  const named = [...element.slice(at === -1 ? element.length : at + 1).matchAll(attribute)].map(
    ([, name = '', value = '']): readonly [string, string] => [name, value.replaceAll('\\"', '"')],
  );
  const {
    text = null,
    href = null,
    attr_id = null,
    'nth-child': child,
    'nth-of-type': ofType,
    ...attributes
  } = Object.fromEntries(named) as Readonly<Record<string, string | undefined>>;
  const known = classes.filter((name) => name !== '');
  return {
    order,
    tag_name: tag === '' ? null : tag,
    attr_class: known.length === 0 ? null : known,
    text,
    href,
    attr_id,
    nth_child: numberIn(child),
    nth_of_type: numberIn(ofType),
    attributes: attributes as Readonly<Record<string, string>>,
  };
}

const numberIn = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;

const fields = [
  'uuid',
  'event',
  'properties',
  'timestamp',
  'team_id',
  'distinct_id',
  'elements_chain',
  'created_at',
] as const;

/** The columns of `*`, qualified so that aliases of SELECT cannot hide them. */
const starColumns: readonly Expression[] = fields.map((name) => buildField('events', name));

/** Formats an event as one value, with its parsed elements chain if it has one. */
export function formatEvent(values: readonly unknown[]): Readonly<Record<string, unknown>> {
  const event: Record<string, unknown> = Object.fromEntries(fields.map((name, at) => [name, values[at]]));
  const { elements_chain } = event;
  return typeof elements_chain === 'string' && elements_chain !== ''
    ? { ...event, elements: readElementsChain(elements_chain) }
    : event;
}

/** The type of `*`, derived from the types of its columns. */
export const starType = (types: readonly string[]): string =>
  `Tuple(${fields.map((name, at) => `${name} ${types[at] ?? ''}`).join(', ')})`;

/** One entry of `select`. */
export interface EventEntry {
  /** The column name in the response. */
  readonly column: string;
  readonly format: 'value' | 'event' | 'person' | 'display_name';
  /** The statement columns of the entry, at least one. */
  readonly expressions: readonly [Expression, ...Expression[]];
  readonly isAggregate: boolean;
  /** GROUP BY keys beside an aggregate. */
  readonly keys: readonly Expression[];
}

const distinctId = buildField('events', 'distinct_id');

/** A person entry needs the distinct id, which stands for events without a person. */
const personEntry = (column: string, format: 'person' | 'display_name', isGrouped: boolean): EventEntry => ({
  column,
  format,
  expressions: [distinctId, buildExpression(isGrouped ? 'any(events.person_id)' : 'events.person_id')],
  isAggregate: false,
  keys: [distinctId],
});

/**
 * Parses the entries of `select`.
 * @param hasRowConditions whether a condition contains an aggregate
 * @throws QueryError with the path of the entry
 */
function selectEntries(select: readonly string[], hasRowConditions: boolean): readonly EventEntry[] {
  const items = select.map((text, index) => ({
    text,
    attr: `query__select__${index}`,
    item: parseSelectItemAt(text, `query__select__${index}`),
  }));
  const isGrouped = hasRowConditions || items.some(({ item }) => hasAggregate(item));
  return items.map(({ text, attr, item }) => entryOf(text, item, attr, isGrouped));
}

function entryOf(text: string, item: Expression, attr: string, isGrouped: boolean): EventEntry {
  const column = item.kind === 'alias' ? item.name.text : text;
  const expression = withoutName(item);
  if (expression.kind === 'star' && isPlain(expression)) {
    const [first, ...more] = starColumns;
    if (first === undefined) throw new Error('An event has columns.');
    return { column, format: 'event', expressions: [first, ...more], isAggregate: false, keys: starColumns };
  }
  if (expression.kind === 'star' || expression.kind === 'columns')
    throw new QueryError('not_supported', 'Use a plain `*`, or list the columns explicitly.', { attr });
  if (expression.kind === 'field' && expression.path.length === 1) {
    const name = expression.path[0]?.text;
    if (name === 'person') return personEntry(column, 'person', isGrouped);
    if (name === 'person_display_name') return personEntry(column, 'display_name', isGrouped);
  }
  const isAggregate = hasAggregate(expression);
  return {
    column,
    format: 'value',
    expressions: [item],
    isAggregate,
    keys: isAggregate || isConstant(expression) ? [] : [expression],
  };
}

const isPlain = ({ table, exclude, replace }: Extract<Expression, { kind: 'star' }>): boolean =>
  table.length === 0 && exclude.length === 0 && replace.length === 0;

/**
 * The sort order: `orderBy`, else the count or the first aggregate in descending order, else the time in descending
 * order if selected, else the first entry. Ties are broken by uuid or by the GROUP BY keys so that pages do not
 * overlap.
 * @throws QueryError with the path of the entry of `orderBy`
 */
function orderOf(
  orderBy: readonly string[] | null | undefined,
  entries: readonly EventEntry[],
  isGrouped: boolean,
): readonly OrderItem[] {
  const explicit = orderBy?.length
    ? orderBy.map((text, at) => readItem(text, at, entries))
    : defaultOrder(entries);
  const rest = isGrouped
    ? entries.flatMap(({ keys, format }) => (format === 'event' ? [] : keys))
    : [buildField('events', 'uuid')];
  return [...explicit, ...rest.map((expression) => buildOrderItem(expression, false))];
}

function readItem(text: string, at: number, entries: readonly EventEntry[]): OrderItem {
  const attr = `query__orderBy__${at}`;
  const order = parseOrderItemAt(text, attr);
  const { expression } = order;
  if (expression.kind === 'number') {
    const entry = entries[Number(expression.text) - 1];
    if (entry !== undefined) return { ...order, expression: withoutName(entry.expressions[0]) };
    throw new QueryError('invalid_input', `select has no entry ${expression.text}.`, { attr });
  }
  const isPerson =
    expression.kind === 'field' &&
    expression.path.length === 1 &&
    ['person', 'person_display_name'].includes(expression.path[0]?.text ?? '');
  return isPerson ? { ...order, expression: displayNameExpression() } : order;
}

/** The display name of a person, as far as SQL can compute it. */
const displayNameExpression = (): Expression => {
  const names = displayProperties.map((name) => `nullIf(toString(events.person.properties.${name}), '')`);
  return buildExpression(`coalesce(${names.join(', ')}, events.distinct_id)`);
};

function defaultOrder(entries: readonly EventEntry[]): readonly OrderItem[] {
  const counted = entries.find(({ expressions: [first] }) => isCount(withoutName(first)));
  const aggregate = counted ?? entries.find(({ isAggregate }) => isAggregate);
  if (aggregate) return [buildOrderItem(withoutName(aggregate.expressions[0]), true)];
  const time = entries.find(
    ({ format, expressions: [first] }) => format === 'value' && isTime(withoutName(first)),
  );
  if (time) return [buildOrderItem(withoutName(time.expressions[0]), true)];
  const first = entries.find(({ keys }) => keys.length > 0);
  return first ? [buildOrderItem(withoutName(first.expressions[0]), false)] : [];
}

const isCount = (expression: Expression): boolean =>
  expression.kind === 'call' &&
  expression.name.text.toLowerCase() === 'count' &&
  expression.arguments.length === 0 &&
  expression.over === null;

const isTime = (expression: Expression): boolean =>
  expression.kind === 'field' && expression.path.length === 1 && expression.path[0]?.text === 'timestamp';

/** The entries of `where`, split into conditions on events (WHERE) and on aggregated rows (HAVING). */
function requestedConditions(where: EventsQuery['where']): {
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
function fieldConditions(
  query: EventsQuery,
  context: Pick<QueryContext, 'project' | 'now'>,
): Expression | null {
  const { event, actionId, personId, properties, fixedProperties, filterTestAccounts } = query;
  return combineConditions('and', [
    timeCondition(query, context),
    event ? buildExpression('events.event = {event}', { event: { value: event } }) : null,
    actionId ? matchesAction(findAction(context.project, actionId, 'query__actionId')) : null,
    personId ? ofPerson(personId) : null,
    filtersCondition(properties, filterTarget('properties')),
    filtersCondition(fixedProperties, filterTarget('fixedProperties')),
    filterTestAccounts ? testAccountsCondition(context.project, 'events', { relation: 'events' }) : null,
  ]);
}

const filterTarget = (field: 'properties' | 'fixedProperties') =>
  ({ scope: 'events', relation: 'events', attr: `query__${field}` }) as const;

/** Each filter that may fail to compile. */
const filterConditions = (
  { properties, fixedProperties, filterTestAccounts }: EventsQuery,
  project: QueryProject,
): readonly RequestedCondition[] => {
  const tests = filterTestAccounts ? testAccountsCondition(project, 'events', { relation: 'events' }) : null;
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

/** The SELECT of a query and its items. */
interface EventsStatement extends SelectWithItems {
  readonly entries: readonly (EventEntry & { readonly columns: readonly Expression[] })[];
}

/**
 * Builds the SELECT of a query.
 * @param pointCondition the condition of an insight's point on an event
 * @throws QueryError with the path of the invalid field
 */
export function eventsStatement(
  query: EventsQuery,
  context: Pick<QueryContext, 'project' | 'now'>,
  pointCondition: Expression | null,
): EventsStatement {
  const { eventConditions, rowConditions } = requestedConditions(query.where);
  const entries = selectEntries(query.select, rowConditions.length > 0);
  const isGrouped = rowConditions.length > 0 || entries.some(({ isAggregate }) => isAggregate);
  const keys = isGrouped ? entries.flatMap((entry) => entry.keys) : [];
  const shape = buildSelect(
    `select 1 from events${keys.length > 0 ? ' group by 1' : ''} offset ${query.offset ?? 0}`,
  );
  const select: Select = {
    ...shape,
    columns: entries.flatMap(({ expressions }) => expressions),
    where: combineConditions('and', [
      fieldConditions(query, context),
      pointCondition,
      ...eventConditions.map(({ condition }) => condition),
    ]),
    groupBy: shape.groupBy && { ...shape.groupBy, items: keys },
    having: combineConditions(
      'and',
      rowConditions.map(({ condition }) => condition),
    ),
    orderBy: orderOf(query.orderBy, entries, isGrouped),
  };
  return {
    select,
    entries: entries.map((entry) => ({ ...entry, columns: entry.expressions })),
    conditions: [...filterConditions(query, context.project), ...eventConditions],
    groupConditions: rowConditions,
    ordered: query.orderBy?.length ?? 0,
  };
}
