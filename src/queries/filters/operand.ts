import type { Expression } from '../../dialect/ast.ts';
import { buildExpression, buildField } from '../../dialect/ast_builders.ts';
import { QueryError } from '../query_errors.ts';
import type { FilterTarget } from './filter_target.ts';
import type { PropertyFilter } from './schema.ts';

/** What a filter compares. */
export interface FilterOperand {
  readonly value: Expression;
  /** A property has the type that its definition says, or is text; the others are columns. */
  readonly kind: 'property' | 'text' | 'time';
  /** Which of the rows are meant, where not all are. */
  readonly restriction?: Expression;
}

const textFields = [
  'event',
  'distinct_id',
  'uuid',
  'person_id',
  'elements_chain',
  '$session_id',
  '$window_id',
];
const groupKeys = ['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'];
const timeFields = ['timestamp', 'created_at'];

/** Filters that can be asked of rows that are no events. */
const supportedTypes = {
  persons: 'In this place only filters of the types person and hogql can be used.',
  groups: 'In this place only filters of the types group and hogql can be used.',
  sessions: 'In this place only filters of the types session and hogql can be used.',
} as const;
const cohorts = 'Cohorts are not stored; write their condition as filters.';
const elements = 'Filters of elements are not supported; write a filter of the type hogql on elements_chain.';

/** Why filters of some types cannot be answered, and what to write instead. */
const unsupportedTypes: Readonly<Record<string, string>> = {
  element: elements,
  cohort: cohorts,
  'static-cohort': cohorts,
  'precalculated-cohort': cohorts,
  behavioral: 'Behaviours are not stored; write a query in the dialect.',
  feature:
    'Filters of feature flags are not supported; write a filter of the type event on the property $feature/….',
  flag: 'Filters of feature flags are not supported; write a filter of the type event on the property $feature/….',
  recording: 'Filters of recordings are not supported; query session_replay_events in the dialect.',
  person_metadata: 'Filters of this type are not supported; write a filter of the type hogql.',
};

/**
 * The value that a filter with a key looks at.
 * @param attr path of the filter
 * @throws QueryError for what is not stored, or not known in the filter's place
 */
export function operandOf(
  filter: PropertyFilter,
  target: Omit<FilterTarget, 'attr'>,
  attr: string,
): FilterOperand {
  const { type, key } = filter;
  const { scope, relation } = target;
  const name = String(key);
  const below = fieldsOf(relation);
  const partOf = (...path: readonly [string, ...string[]]): Expression => below(...path, name);
  const kind = type ?? 'event';
  const reason = unsupportedTypes[kind];
  if (reason !== undefined) throw new QueryError('not_supported', reason, { attr: `${attr}__type` });
  if (kind === 'person' && (scope === 'events' || scope === 'persons'))
    return {
      value: scope === 'persons' ? partOf('properties') : partOf('person', 'properties'),
      kind: 'property',
    };
  if (kind === 'group' && (scope === 'events' || scope === 'groups'))
    return groupOperand(filter, target, attr);
  if (kind === 'session' && scope === 'sessions') return { value: below(name), kind: 'property' };
  if (scope !== 'events')
    throw new QueryError('not_supported', supportedTypes[scope], { attr: `${attr}__type` });
  switch (kind) {
    case 'event':
      return { value: partOf('properties'), kind: 'property' };
    case 'session':
      return { value: partOf('session'), kind: 'property' };
    case 'event_metadata':
      if (timeFields.includes(name)) return { value: below(name), kind: 'time' };
      if (textFields.includes(name) || groupKeys.includes(name)) return { value: below(name), kind: 'text' };
      throw new QueryError(
        'invalid_input',
        `Events have no such field; fields are: ${[...textFields, ...timeFields, ...groupKeys].join(', ')}.`,
        { attr: `${attr}__key` },
      );
    default:
      throw new QueryError('not_supported', `Filters of the type ${kind} are not supported.`, {
        attr: `${attr}__type`,
      });
  }
}

/** Fields of a relation that may have a name. */
const fieldsOf =
  (relation: string | undefined) =>
  (first: string, ...more: readonly string[]): Expression =>
    relation === undefined ? buildField(first, ...more) : buildField(relation, first, ...more);

/** The key of an event's group or of a group itself, which may be named as events name it, or a property. */
function groupOperand(
  { key, group_type_index }: PropertyFilter,
  { relation, groups }: Omit<FilterTarget, 'attr'>,
  attr: string,
): FilterOperand {
  const name = String(key);
  const below = fieldsOf(relation);
  const isFieldOfEvents = groupKeys.includes(name);
  const index = isFieldOfEvents ? groupKeys.indexOf(name) : (group_type_index ?? groups?.index ?? 0);
  const only = groups?.index ?? index;
  if (index !== only)
    throw new QueryError('invalid_input', `The actors are groups of the type ${only}.`, {
      attr: `${attr}__${isFieldOfEvents ? 'key' : 'group_type_index'}`,
    });
  const restriction =
    groups?.index === null
      ? {
          restriction: buildExpression('{type} = {index}', { type: below('index'), index: { value: index } }),
        }
      : {};
  if (isFieldOfEvents || name === '$group_key')
    return { value: groups?.key ?? below(`$group_${index}`), kind: 'text', ...restriction };
  return {
    ...restriction,
    value: groups === undefined ? below(`group_${index}`, 'properties', name) : below('properties', name),
    kind: 'property',
  };
}

/** A subject as text. */
export const asString = ({ value, kind }: FilterOperand): Expression =>
  kind === 'text' ? value : buildExpression('toString({value})', { value });

/** A subject as a number; null where it is none. */
export const asNumber = ({ value, kind }: FilterOperand): Expression =>
  buildExpression(kind === 'property' ? 'CAST({value} AS Float64)' : 'CAST(toString({value}) AS Float64)', {
    value,
  });

/** A subject as a time; null where it is none. */
export const asTime = ({ value, kind }: FilterOperand): Expression =>
  kind === 'time' ? value : buildExpression('toDateTime({value})', { value });
