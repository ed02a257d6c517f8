import type { Node } from '../ast_node.ts';
import type { PropertyTypes } from '../schema.ts';
import type { Sql } from '../sql.ts';
import type { Type } from '../types.ts';

/** The value of a literal, known at compile time. */
export type Constant = string | number | bigint | boolean | null;

/** Traits of an expression besides its value, collected from its parts. */
export interface ExpressionTraits {
  /** An aggregate function in it. */
  readonly aggregate: Node | null;
  /** A window function in it. */
  readonly window: Node | null;
  /** A row's column in it, outside aggregates and GROUP BY keys. */
  readonly column: Node | null;
}

export const noTraits: ExpressionTraits = { aggregate: null, window: null, column: null };

/** A path into a JSON value that was read as text. Further steps extend it. */
export interface JsonPath {
  readonly root: Sql;
  readonly keys: readonly Sql[];
}

/** A compiled expression. */
export interface Value {
  readonly sql: Sql;
  readonly type: Type;
  readonly traits: ExpressionTraits;
  /** Set for literals. */
  readonly constant?: Constant;
  readonly json?: JsonPath;
  /** Declared types of the properties in a JSON column. */
  readonly properties?: PropertyTypes;
  /** The items of a tuple or array literal. */
  readonly items?: readonly Value[];
}

export function mergeTraits(values: readonly { readonly traits: ExpressionTraits }[]): ExpressionTraits {
  let merged = noTraits;
  for (const { traits } of values)
    if (traits !== noTraits)
      merged = {
        aggregate: merged.aggregate ?? traits.aggregate,
        window: merged.window ?? traits.window,
        column: merged.column ?? traits.column,
      };
  return merged;
}

/** A value computed from others. */
export const derive = (
  sql: Sql,
  type: Type,
  from: readonly { readonly traits: ExpressionTraits }[] = [],
): Value => ({
  sql,
  type,
  traits: mergeTraits(from),
});
