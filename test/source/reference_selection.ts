import type {
  FilterScalar,
  PropertyFilter,
  PropertyOperator,
  RowSelection,
} from '../../src/source/row_selection.ts';

/** The fields of a row that a selection uses. */
export interface SelectableRow {
  readonly event: string;
  readonly properties: Readonly<Record<string, unknown>> | null;
  readonly person_properties: Readonly<Record<string, unknown>> | null;
}

/** Reference implementation of selections, without a database. */
export const isSelected = (
  { include_events, exclude_events, filters }: RowSelection,
  row: SelectableRow,
): boolean =>
  (include_events.length === 0 || include_events.includes(row.event)) &&
  !exclude_events.includes(row.event) &&
  filters.every((filter) => {
    const document = filter.type === 'event' ? row.properties : row.person_properties;
    const found: unknown = document && Object.hasOwn(document, filter.key) ? document[filter.key] : undefined;
    return holds(filter, found ?? null);
  });

function holds({ operator, value }: PropertyFilter, property: unknown): boolean {
  const values = (Array.isArray(value) ? value : [value]) as readonly FilterScalar[];
  if (operator === 'is_set') return property !== null;
  if (operator === 'is_not_set') return property === null;
  if (values.length === 0) return true;
  if (operator === 'between' || operator === 'not_between') {
    const [low = Number.NaN, high = Number.NaN] = values.map((bound) => order(property, bound) ?? Number.NaN);
    return operator === 'between' ? low >= 0 && high <= 0 : low < 0 || high > 0;
  }
  const any = (test: (one: FilterScalar) => boolean): boolean => values.some(test);
  switch (operator) {
    case 'is_not':
    case 'not_in':
      return !any((one) => equal(property, one));
    case 'not_icontains':
      return !any((one) => contains(property, String(one)));
    case 'not_regex':
      return !any((one) => matches(property, String(one)));
    default:
      return any((one) => positive(operator, property, one));
  }
}

function positive(operator: PropertyOperator, property: unknown, value: FilterScalar): boolean {
  const compared = () => order(property, value);
  const is = (test: (order: number) => boolean): boolean => {
    const result = compared();
    return result !== undefined && test(result);
  };
  const moment = momentOf(textOf(property) ?? '');
  const [from, end] = dayOrMoment(String(value));
  switch (operator) {
    case 'icontains':
      return contains(property, String(value));
    case 'regex':
      return matches(property, String(value));
    case 'gt':
      return is((result) => result > 0);
    case 'gte':
    case 'min':
      return is((result) => result >= 0);
    case 'lt':
      return is((result) => result < 0);
    case 'lte':
    case 'max':
      return is((result) => result <= 0);
    case 'is_date_exact':
      return moment !== undefined && moment >= from && moment <= end;
    case 'is_date_before':
      return moment !== undefined && moment < from;
    case 'is_date_after':
      return moment !== undefined && moment > end;
    default:
      return equal(property, value);
  }
}

const textOf = (property: unknown): string | null =>
  property === null ? null : typeof property === 'string' ? property : JSON.stringify(property);

function parseNumber(text: string): number | undefined {
  const trimmed = text.startsWith('+') ? text.slice(1) : text;
  return /^[-.\d]/.test(trimmed) && !/^-?0[xob]/i.test(trimmed) && !/\s/.test(text) && trimmed !== '-'
    ? undefinedIfNaN(Number(trimmed))
    : undefined;
}
const undefinedIfNaN = (number: number): number | undefined => (Number.isNaN(number) ? undefined : number);

function equal(property: unknown, value: FilterScalar): boolean {
  const text = textOf(property);
  if (text === null || value === null) return text === value;
  const [left, right] = [parseNumber(text), parseNumber(String(value))];
  if (typeof value === 'number') return left === value;
  return text === String(value) || (typeof property === 'number' && right !== undefined && left === right);
}

/** Negative, zero or positive if the property is smaller, equal or larger; undefined if not comparable. */
function order(property: unknown, value: FilterScalar): number | undefined {
  const text = textOf(property);
  if (text === null) return undefined;
  const right = parseNumber(String(value));
  if (right === undefined) return Buffer.compare(Buffer.from(text), Buffer.from(String(value)));
  const left = parseNumber(text);
  return left === undefined ? undefined : left - right;
}

function contains(property: unknown, value: string): boolean {
  const text = textOf(property);
  if (text === null) return false;
  const pattern = `%${value}%`.replaceAll(/\\[^]|[^]/g, (part) => {
    if (part === '%') return '[^]*';
    if (part === '_') return '[^]';
    const literal = part.length === 2 ? part.slice(1) : part;
    return literal.replaceAll(/[$()*+.?[\\\]^{|}/]/g, String.raw`\$&`);
  });
  return new RegExp(`^${pattern}$`, 'iu').test(text);
}

const matches = (property: unknown, pattern: string): boolean => {
  const text = textOf(property);
  return text !== null && new RegExp(pattern, 's').test(text);
};

function momentOf(text: string): number | undefined {
  const parts = /^(?!0000)(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[-+]\d\d:\d\d)?)?$/.exec(
    text,
  );
  if (!parts) return undefined;
  const [, day = '', minutes = '00:00', seconds = ':00', zone = 'Z'] = parts;
  const midnight = Date.parse(`${day}T00:00:00Z`);
  // JavaScript parses February 30 as a day in March.
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) return undefined;
  return undefinedIfNaN(Date.parse(`${day}T${minutes}${seconds}${zone}`));
}

/** First and last millisecond of a day, or a moment twice. */
function dayOrMoment(text: string): [number, number] {
  const from = momentOf(text) ?? Number.NaN;
  return [from, text.includes(':') ? from : from + 86_399_999];
}
