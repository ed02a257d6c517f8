import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildField } from '@exportd/dialect/ast_builders';
import type { DialectError } from '@exportd/dialect/query_text';
import { propertyColumns } from '@exportd/dialect/resolve/tables/persons';
import type { PropertyFilter } from './schema.ts';

/** A filter that cannot be compiled. The message is shown to the user. */
export class FilterError extends Error {
  override readonly name = 'FilterError';
  /** `invalid_input`, `not_supported`, or `dialect_error` for an expression that the dialect rejects. */
  readonly code: 'invalid_input' | 'not_supported' | 'dialect_error';
  /** Path of the invalid field, joined by `__`. */
  readonly attr: string;

  constructor(
    code: FilterError['code'],
    message: string,
    attr: string,
    options?: { readonly cause: DialectError },
  ) {
    super(message, options);
    this.code = code;
    this.attr = attr;
  }
}

/** What a filter applies to, and its path in the request. */
export interface FilterTarget {
  /** The rows that are filtered. */
  readonly scope: 'events' | 'persons' | 'groups' | 'sessions';
  /** Path of the field, such as `query__series__0__properties`. */
  readonly attr: string;
  /** The name of the relation in FROM, if aliases of SELECT could hide its columns. */
  readonly relation?: string;
  /** For rows of groups: the index of their type, null for any type, and the expression of their keys. */
  readonly groups?: { readonly index: number | null; readonly key: Expression };
  /** The columns to compare, by the keys of filters; null for keys to skip. Any other key is an error. */
  readonly bindings?: ReadonlyMap<string, Expression | null>;
}

/** What a filter compares with its value. */
export interface FilterOperand {
  readonly value: Expression;
  /** A property has the type of its definition, else it is a string. The others are columns. */
  readonly kind: 'property' | 'text' | 'time';
  /** Whether a row without a value has ''. */
  readonly isEmptyIfMissing?: boolean;
  /** An additional condition on the rows, if the filter does not apply to all of them. */
  readonly restriction?: Expression;
}

const textFields = [
  ...(['event', 'distinct_id', 'uuid', 'person_id', 'elements_chain'] as const),
  ...propertyColumns,
];
const groupKeys = ['$group_0', '$group_1', '$group_2', '$group_3', '$group_4'];
const timeFields = ['timestamp', 'created_at'];

/** The error for other filter types on rows that are not events. */
const supportedTypes = {
  persons: 'Only filters of type person, cohort or hogql are supported here.',
  groups: 'Only filters of type group or hogql are supported here.',
  sessions: 'Only filters of type session or hogql are supported here.',
} as const;
const elements = 'Filters on elements are not supported. Use a filter of type hogql on elements_chain.';

/** Unsupported filter types, with the alternative. */
const unsupportedTypes: Readonly<Record<string, string>> = {
  element: elements,
  behavioral: 'Behaviours are not stored. Use a DialectQuery.',
  feature:
    'Filters on feature flags are not supported. Use a filter of type event on the property $feature/….',
  flag: 'Filters on feature flags are not supported. Use a filter of type event on the property $feature/….',
  recording: 'Filters on recordings are not supported. Query session_replay_events in the dialect.',
  person_metadata: 'Filters of this type are not supported. Use a filter of type hogql.',
};

/**
 * The operand of a filter with a key; null to skip the filter.
 * @param attr path of the filter
 * @throws FilterError if the value is not stored, or the filter type does not apply to these rows
 */
export function operandOf(
  filter: PropertyFilter,
  target: Omit<FilterTarget, 'attr'>,
  attr: string,
): FilterOperand | null {
  const { type, key } = filter;
  const { scope, relation } = target;
  const name = String(key);
  const below = fieldsOf(relation);
  const partOf = (...path: readonly [string, ...string[]]): Expression => below(...path, name);
  const kind = type ?? 'event';
  const reason = unsupportedTypes[kind];
  if (reason !== undefined) throw new FilterError('not_supported', reason, `${attr}__type`);
  if (target.bindings !== undefined) return boundOperand(target.bindings, name, attr);
  if (kind === 'person' && (scope === 'events' || scope === 'persons'))
    return {
      value: scope === 'persons' ? partOf('properties') : partOf('person', 'properties'),
      kind: 'property',
    };
  if (kind === 'group' && (scope === 'events' || scope === 'groups'))
    return groupOperand(filter, target, attr);
  if (kind === 'session' && scope === 'sessions') return { value: below(name), kind: 'property' };
  if (scope !== 'events') throw new FilterError('not_supported', supportedTypes[scope], `${attr}__type`);
  switch (kind) {
    case 'event':
      return { value: partOf('properties'), kind: 'property' };
    case 'session':
      return { value: partOf('session'), kind: 'property' };
    case 'event_metadata':
      if (timeFields.includes(name)) return { value: below(name), kind: 'time' };
      if (textFields.includes(name))
        return { value: below(name), kind: 'text', isEmptyIfMissing: propertyColumns.has(name) };
      throw new FilterError(
        'invalid_input',
        `Events have no such field. Fields: ${[...textFields, ...timeFields].join(', ')}.`,
        `${attr}__key`,
      );
    default:
      throw new FilterError('not_supported', `Filters of type ${kind} are not supported.`, `${attr}__type`);
  }
}

/**
 * The person whose cohorts a filter is about.
 * @param attr path of the filter
 * @throws FilterError if the rows are not those of persons
 */
export function personOf(
  { scope, relation, bindings }: Omit<FilterTarget, 'attr'>,
  attr: string,
): Expression {
  if (bindings !== undefined)
    throw new FilterError(
      'not_supported',
      'A filter of type cohort has no key to bind in {filters(…)}. Write IN COHORT into the query.',
      `${attr}__type`,
    );
  const below = fieldsOf(relation);
  if (scope === 'events') return below('person_id');
  if (scope === 'persons') return below('id');
  throw new FilterError('not_supported', supportedTypes[scope], `${attr}__type`);
}

function boundOperand(
  bindings: ReadonlyMap<string, Expression | null>,
  name: string,
  attr: string,
): FilterOperand | null {
  const value = bindings.get(name);
  if (value !== undefined) return value && { value, kind: 'property' };
  throw new FilterError(
    'invalid_input',
    `{filters(…)} binds no column to the filter on '${name}'. Write {filters(column AS '${name}')}, or null AS '${name}' to skip it.`,
    attr,
  );
}

/** Builds fields, qualified by the relation if it has a name. */
const fieldsOf =
  (relation: string | undefined) =>
  (first: string, ...more: readonly string[]): Expression =>
    relation === undefined ? buildField(first, ...more) : buildField(relation, first, ...more);

/** A filter on a group: its key, named like the event column or `$group_key`, or one of its properties. */
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
    throw new FilterError(
      'invalid_input',
      `The actors are groups of type ${only}.`,
      `${attr}__${isFieldOfEvents ? 'key' : 'group_type_index'}`,
    );
  const restriction =
    groups?.index === null
      ? {
          restriction: buildExpression('{type} = {index}', { type: below('index'), index: { value: index } }),
        }
      : {};
  if (isFieldOfEvents || name === '$group_key')
    return {
      value: groups?.key ?? below(`$group_${index}`),
      kind: 'text',
      isEmptyIfMissing: groups === undefined,
      ...restriction,
    };
  return {
    ...restriction,
    value: groups === undefined ? below(`group_${index}`, 'properties', name) : below('properties', name),
    kind: 'property',
  };
}

/** The condition that a row has a value. */
export const isPresent = ({ value, isEmptyIfMissing }: FilterOperand): Expression =>
  buildExpression(isEmptyIfMissing === true ? "{value} != ''" : '{value} is not null', { value });

/** The condition that a row has none. */
export const isMissing = ({ value, isEmptyIfMissing }: FilterOperand): Expression =>
  buildExpression(isEmptyIfMissing === true ? "{value} = ''" : '{value} is null', { value });

/** The operand as a string. */
export const asString = ({ value, kind }: FilterOperand): Expression =>
  kind === 'text' ? value : buildExpression('toString({value})', { value });

/** The operand as a number; null if it is not one. */
export const asNumber = ({ value, kind }: FilterOperand): Expression =>
  buildExpression(kind === 'property' ? 'CAST({value} AS Float64)' : 'CAST(toString({value}) AS Float64)', {
    value,
  });

/** The operand as a time; null if it is not one. */
export const asTime = ({ value, kind }: FilterOperand): Expression =>
  kind === 'time' ? value : buildExpression('toDateTime({value})', { value });
