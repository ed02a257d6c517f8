import type { Node } from '../ast_node.ts';
import type { PropertyTypes } from '../schema.ts';
import type { Sql } from '../sql.ts';
import type { Type } from '../types.ts';

/** What a literal holds, known when the query is compiled. */
export type Constant = string | number | bigint | boolean | null;

/** What has to be known of an expression beside its value, handed up from its parts. */
export interface ExpressionTraits {
  /** An aggregate function is in it. */
  readonly aggregate: Node | null;
  /** A window function is in it. */
  readonly window: Node | null;
  /** A column of a row in it, outside of aggregates and of what the query groups by. */
  readonly column: Node | null;
}

export const noTraits: ExpressionTraits = { aggregate: null, window: null, column: null };

/** The text of a JSON document's part, which a further step goes on from. */
export interface JsonPath {
  readonly root: Sql;
  readonly keys: readonly Sql[];
}

/** An expression, compiled. */
export interface Value {
  readonly sql: Sql;
  readonly type: Type;
  readonly traits: ExpressionTraits;
  /** Of a literal. */
  readonly constant?: Constant;
  readonly json?: JsonPath;
  /** Types of what a column of JSON holds. */
  readonly properties?: PropertyTypes;
  /** The items of a tuple or an array that is written out. */
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

/** A value made of others. */
export const derive = (
  sql: Sql,
  type: Type,
  from: readonly { readonly traits: ExpressionTraits }[] = [],
): Value => ({
  sql,
  type,
  traits: mergeTraits(from),
});
