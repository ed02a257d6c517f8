import type { DateTime } from 'luxon';

/** An event of the tests. */
export interface ReferenceEvent {
  readonly event: string;
  readonly distinct_id: string;
  readonly person_id: string | null;
  readonly properties: Readonly<Record<string, unknown>>;
  /** In the project's zone. */
  readonly time: DateTime;
}

const numberOf = (value: unknown): number | null => {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : null;
};

const shares: Readonly<Record<string, number>> = { median: 0.5, p75: 0.75, p90: 0.9, p95: 0.95, p99: 0.99 };

/** A statistic of numbers; 0 for none. */
function statistic(name: string, numbers: readonly number[]): number {
  if (numbers.length === 0) return 0;
  const total = numbers.reduce((sum, number) => sum + number, 0);
  if (name === 'sum') return total;
  if (name === 'avg') return total / numbers.length;
  const sorted = [...numbers].sort((one, other) => one - other);
  const place =
    name === 'min' ? 0 : name === 'max' ? sorted.length - 1 : (shares[name] ?? NaN) * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)] ?? NaN, sorted[Math.ceil(place)] ?? NaN];
  return low + (place - Math.floor(place)) * (high - low);
}

const counted = (keys: readonly (string | null)[]): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const key of keys) if (key !== null) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
};

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** The value of a math over events. `durations` are the lengths of sessions in seconds. */
export function mathOf(
  series: { readonly math: string; readonly math_property?: string; readonly math_multiplier?: number },
  events: readonly ReferenceEvent[],
  durations: ReadonlyMap<string, number>,
): number {
  const { math, math_property: property, math_multiplier: multiplier = 1 } = series;
  const persons = counted(events.map(({ person_id }) => person_id));
  switch (math) {
    case 'total':
      return events.length;
    case 'dau':
    case 'weekly_active':
    case 'monthly_active':
    case 'first_time_for_user':
    case 'first_matching_event_for_user':
      return persons.size;
    case 'unique_session':
      return new Set(events.map(({ properties }) => properties.$session_id ?? '')).size;
    case 'unique_group':
      return counted(events.map(({ properties }) => textOf(properties.$group_0))).size;
    case 'hogql':
      return events.length * 2 + events.filter(({ event }) => event === 'a').length;
  }
  if (math.endsWith('_count_per_actor'))
    return statistic(math.replace('_count_per_actor', ''), [...persons.values()]);
  if (property === '$session_duration') {
    const sessions = new Set(events.flatMap(({ properties }) => textOf(properties.$session_id) ?? []));
    return statistic(
      math,
      [...sessions].map((session) => (durations.get(session) ?? 0) * multiplier),
    );
  }
  const numbers = events.flatMap(({ properties }) => numberOf(properties[property ?? '']) ?? []);
  return statistic(
    math,
    numbers.map((number) => number * multiplier),
  );
}

/** The actor of an event for a math; null if the event has none. */
export function actorOf(
  math: string,
  property: string | undefined,
  { person_id, properties }: ReferenceEvent,
): string | null {
  if (['total', 'hogql', 'unique_session'].includes(math)) return '';
  if (math === 'unique_group') return textOf(properties.$group_0);
  if (property === '$session_duration') return textOf(properties.$session_id);
  return property === undefined ? person_id : '';
}
