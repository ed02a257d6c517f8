import { dates, floats, integers, randomTime, strings, uuids } from '../tables.ts';
import type { GeneratedKind } from './kinds.ts';
import type { Random } from './random.ts';

/** A string literal of the dialect. */
export const quoted = (text: string): string =>
  `'${text.replaceAll('\\', String.raw`\\`).replaceAll("'", String.raw`\'`)}'`;

/** A random literal, or a call that converts one. */
export function literalOf(kind: GeneratedKind, random: Random): string {
  switch (kind) {
    case 'integer':
      return signed(String(random.one(integers)));
    case 'float':
      return signed(random.one(floats).toFixed(2));
    case 'decimal':
      return `toDecimal(${String(random.one(integers))}, 2)`;
    case 'string':
      return quoted(random.one(strings));
    case 'boolean':
      return random.one(['true', 'false']);
    case 'date':
      return random.oneIn(2) ? `toDate('${random.one(dates)}')` : `DATE '${random.one(dates)}'`;
    case 'datetime':
      return `toDateTime('${randomTime(random)}')`;
    case 'uuid':
      return `toUUID('${random.one(uuids)}')`;
    case 'integers':
      return `[${list('integer', random)}]`;
    case 'strings':
      return `[${list('string', random)}]`;
  }
}

const signed = (text: string): string => (text.startsWith('-') ? `(${text})` : text);

function list(kind: GeneratedKind, random: Random): string {
  if (random.oneIn(8)) return '';
  const items = Array.from({ length: 1 + random.below(3) }, () => literalOf(kind, random));
  return (random.oneIn(5) ? [...items, 'NULL'] : items).join(', ');
}
