import type { Expression } from '../../dialect/ast.ts';
import { buildField } from '../../dialect/ast_builders.ts';
import { readElementsChain } from './elements_chain.ts';

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
export const starColumns: readonly Expression[] = fields.map((name) => buildField('events', name));

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
