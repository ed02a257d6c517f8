import type { Node } from '../ast_node.ts';
import type { PropertyTypes } from '../schema.ts';
import type { Sql } from '../sql.ts';
import type { Type } from '../types.ts';

/** What a literal holds, known when the query is compiled. */
export type Constant = string | number | bigint | boolean | null;

/** What has to be known of an expression beside its value, handed up from its parts. */
export interface Facts {
  /** An aggregate function is in it. */
  readonly aggregate: Node | null;
  /** A window function is in it. */
  readonly window: Node | null;
  /** A column of a row in it, outside of aggregates and of what the query groups by. */
  readonly column: Node | null;
}

export const noFacts: Facts = { aggregate: null, window: null, column: null };

/** The text of a JSON document's part, which a further step goes on from. */
export interface JsonPath {
  readonly document: Sql;
  readonly keys: readonly Sql[];
}

/** An expression, compiled. */
export interface Value {
  readonly sql: Sql;
  readonly type: Type;
  readonly facts: Facts;
  /** Of a literal. */
  readonly constant?: Constant;
  readonly json?: JsonPath;
  /** Types of what a column of JSON holds. */
  readonly properties?: PropertyTypes;
  /** The items of a tuple or an array that is written out. */
  readonly items?: readonly Value[];
}

export function mergeFacts(values: readonly { readonly facts: Facts }[]): Facts {
  let merged = noFacts;
  for (const { facts } of values)
    if (facts !== noFacts)
      merged = {
        aggregate: merged.aggregate ?? facts.aggregate,
        window: merged.window ?? facts.window,
        column: merged.column ?? facts.column,
      };
  return merged;
}

/** A value made of others. */
export const derive = (sql: Sql, type: Type, from: readonly { readonly facts: Facts }[] = []): Value => ({
  sql,
  type,
  facts: mergeFacts(from),
});
