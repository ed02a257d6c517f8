import { compileQuery, type CompiledStatement } from '../../compile/compile_query.ts';
import type { Type } from '../../types.ts';
import { project } from '../project.ts';

const kinds: Readonly<Partial<Record<Type['kind'], string>>> = {
  integer: 'number',
  float: 'number',
  decimal: 'number',
  boolean: 'number',
  string: 'text',
  uuid: 'text',
  date: 'date',
  datetime: 'datetime',
  array: 'array',
  tuple: 'tuple',
  map: 'map',
};

export const kindOfType = (type: Type): string | null => kinds[type.kind] ?? null;

/** New York has daylight saving time, and its day is not the UTC day. */
export const newYork = { ...project, timezone: 'America/New_York' };

export const compiled = (query: string): CompiledStatement => compileQuery(query, newYork);

/** Combines statements into one: a row per statement with its number and its result as JSON. */
export function batched(statements: readonly CompiledStatement[]): {
  readonly text: string;
  readonly values: readonly string[];
} {
  const values: string[] = [];
  const selects = statements.map(({ sql, parameters }, number) => {
    const shifted = sql.replaceAll(
      /\$(\d+)::/g,
      (_, parameter: string) => `$${Number(parameter) + values.length}::`,
    );
    values.push(...parameters);
    return `select ${number} as n, (select to_jsonb(q.c1)::text from (${shifted}) as q limit 1) as result`;
  });
  return { text: selects.join('\nunion all\n'), values };
}

/** Normalizes results for comparison: booleans as numbers, times in UTC, numbers to ten digits. */
export function comparable(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && !Number.isFinite(value)) return comparable(String(value));
  if (typeof value === 'number') return Object.is(value, -0) ? 0 : Number(value.toPrecision(10));
  if (typeof value === 'string') {
    if (/^(-?nan|-?inf(inity)?)$/i.test(value))
      return value.toLowerCase().replace('inity', '').replace('-nan', 'nan');
    return /^\d{4}-\d\d-\d\dT\d\d:/.test(value) ? new Date(value).toISOString() : value;
  }
  if (Array.isArray(value)) return value.map(comparable);
  if (value === null || typeof value !== 'object') return value ?? null;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, comparable(item)]));
}
