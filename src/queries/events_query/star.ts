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

/** The columns that `*` reads; the relation's name keeps them apart from names of SELECT. */
export const starColumns: readonly Expression[] = fields.map((name) => buildField('events', name));

/** A whole event as one value, with the elements of its chain where it has one. */
export function formatEvent(values: readonly unknown[]): Readonly<Record<string, unknown>> {
  const event: Record<string, unknown> = Object.fromEntries(fields.map((name, at) => [name, values[at]]));
  const { elements_chain } = event;
  return typeof elements_chain === 'string' && elements_chain !== ''
    ? { ...event, elements: readElementsChain(elements_chain) }
    : event;
}

/** The type of `*`, of the types of its columns. */
export const starType = (types: readonly string[]): string =>
  `Tuple(${fields.map((name, at) => `${name} ${types[at] ?? ''}`).join(', ')})`;
