/** The types of generated expressions. */
export type GeneratedKind =
  | 'integer'
  | 'float'
  | 'decimal'
  | 'string'
  | 'boolean'
  | 'date'
  | 'datetime'
  | 'uuid'
  | 'integers'
  | 'strings';

/** A column, key or parameter that expressions can use. */
export interface Atom {
  readonly text: string;
  readonly kind: GeneratedKind;
}

/** What expressions can contain at a point of a query. */
export interface GeneratorScope {
  readonly atoms: readonly Atom[];
  /** The columns of single rows, which aggregates can use; undefined where there are none. */
  readonly aggregated?: readonly Atom[];
  readonly hasWindows: boolean;
  /** Creates a subquery with one column of a kind; undefined where there are none. */
  readonly subquery?: (kind: GeneratedKind, isScalar: boolean) => string;
}

/** Kinds of single values, the common ones more often. */
export const scalarKinds: readonly GeneratedKind[] = [
  ...(['integer', 'integer', 'float', 'string', 'string', 'boolean', 'date', 'datetime', 'uuid'] as const),
];
/** Kinds with an order. */
export const orderedKinds: readonly GeneratedKind[] = ['integer', 'float', 'string', 'date', 'datetime'];
