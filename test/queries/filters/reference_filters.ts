import type { JsonValue } from '../../../src/domain/event.ts';
import type {
  FilterScalar,
  PropertyFilter,
  PropertyFilters,
  PropertyGroup,
} from '../../../src/filters/schema.ts';

// A reference implementation of filters over rows in memory, one value at a time.

/** An event with the properties of its person and of its groups. */
export interface ReferenceEvent {
  readonly uuid: string;
  readonly event: string;
  readonly distinct_id: string;
  readonly properties: Readonly<Record<string, JsonValue>>;
  readonly person: Readonly<Record<string, JsonValue>> | null;
  /** By type; undefined if a group is not stored. */
  readonly groups?: readonly (Readonly<Record<string, JsonValue>> | undefined)[];
  readonly timestamp: Date;
}

/** Whether an event matches filters of the types event, person, group and event_metadata. */
export function matchesFilters(event: ReferenceEvent, filters: PropertyFilters | null | undefined): boolean {
  if (!filters) return true;
  return 'type' in filters
    ? matchesGroup(event, filters)
    : filters.every((filter) => matchesFilter(event, filter));
}

const matchesGroup = (event: ReferenceEvent, { type, values }: PropertyGroup): boolean => {
  const results = values.map((item) =>
    'values' in item ? matchesGroup(event, item) : matchesFilter(event, item),
  );
  if (results.length === 0) return true;
  return type === 'AND' ? results.every((result) => result) : results.some((result) => result);
};

function foundIn(event: ReferenceEvent, { type, group_type_index }: PropertyFilter, key: string): unknown {
  switch (type) {
    case 'person':
      return event.person?.[key];
    case 'group': {
      const index = group_type_index ?? 0;
      return key === '$group_key'
        ? (event.properties[`$group_${index}`] ?? '')
        : event.groups?.[index]?.[key];
    }
    case 'event_metadata':
      return (event as unknown as Record<string, JsonValue>)[key];
    default:
      return event.properties[key];
  }
}

function matchesFilter(event: ReferenceEvent, filter: PropertyFilter): boolean {
  const { key, operator, value } = filter;
  if (key === undefined || key === null) return true;
  const stored = (foundIn(event, filter, String(key)) ?? null) as JsonValue;
  const isMissing = stored === null || (key === '$group_key' && stored === '');
  if (operator === 'is_set') return !isMissing;
  if (operator === 'is_not_set') return isMissing;
  const filterValues = (Array.isArray(value) ? value : [value]).filter(
    (one) => one !== null && one !== undefined,
  );
  return filterValues.length === 0 || matchesOperator(stored, operator ?? 'exact', filterValues);
}

export const textOf = (stored: JsonValue): string | null =>
  stored === null ? null : typeof stored === 'object' ? JSON.stringify(stored) : String(stored);

const numberOf = (stored: FilterScalar | JsonValue): number | null => {
  if (typeof stored === 'number') return stored;
  return typeof stored === 'string' && /^[-+]?\d+(\.\d*)?$/.test(stored) ? Number(stored) : null;
};

function matchesOperator(
  stored: JsonValue,
  operator: string,
  filterValues: readonly FilterScalar[],
): boolean {
  const text = textOf(stored);
  const equals = (value: FilterScalar): boolean =>
    typeof value === 'number' ? numberOf(text) === value : text === String(value);
  const contains = (value: FilterScalar): boolean =>
    text?.toLowerCase().includes(String(value).toLowerCase()) === true;
  const matches = (value: FilterScalar): boolean => text !== null && new RegExp(String(value)).test(text);
  const compare = (value: FilterScalar): number => {
    const [left, right] =
      numberOf(value) === null ? [text, String(value)] : [numberOf(text), numberOf(value)];
    if (left === null || right === null) return Number.NaN;
    return left < right ? -1 : left > right ? 1 : 0;
  };
  const [low, high] = filterValues;
  switch (operator) {
    case 'exact':
    case 'in':
      return filterValues.some(equals);
    case 'is_not':
    case 'not_in':
      return !filterValues.some(equals);
    case 'icontains':
      return filterValues.some(contains);
    case 'not_icontains':
      return !filterValues.some(contains);
    case 'regex':
      return filterValues.some(matches);
    case 'not_regex':
      return !filterValues.some(matches);
    case 'gt':
      return filterValues.some((value) => compare(value) > 0);
    case 'gte':
    case 'min':
      return filterValues.some((value) => compare(value) >= 0);
    case 'lt':
      return filterValues.some((value) => compare(value) < 0);
    case 'lte':
    case 'max':
      return filterValues.some((value) => compare(value) <= 0);
    case 'between':
      return compare(low ?? null) >= 0 && compare(high ?? null) <= 0;
    case 'not_between':
      return compare(low ?? null) < 0 || compare(high ?? null) > 0;
    default:
      throw new Error(`Not in this model: ${operator}`);
  }
}
