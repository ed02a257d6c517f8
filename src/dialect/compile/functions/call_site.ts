import type { Call, Expression } from '../../ast.ts';
import type { Node } from '../../ast_node.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';
import { commaList, type Sql } from '../../sql.ts';
import type { Type } from '../../types.ts';
import type { Compiler } from '../compiler.ts';

/** One call of a function: its arguments, checked and turned into the types that the function takes. */
export interface CallSite {
  readonly compiler: Compiler;
  readonly scope: Scope;
  readonly statement: Statement;
  readonly node: Call;
  /** As it was written. */
  readonly name: string;
  /** Arguments as they were written. */
  readonly nodes: readonly Expression[];
  readonly values: readonly Value[];
  /** What stands in the first of two pairs of brackets. */
  readonly parameters: readonly Value[];
  /** The type by the function's definition, null where any argument may be; `null` as a kind where only the call says. */
  readonly returnType: Type;
}

/** A call of an aggregate. */
export interface AggregateSite extends CallSite {
  readonly distinct: boolean;
  /** Whether rows are left out, so that a group can be empty for it. */
  readonly mayBeEmpty: boolean;
  /** ORDER BY in the brackets, with its words, or nothing. */
  readonly orderBy: Sql;
  readonly isWindow: boolean;
  /** The value of an aggregate of PostgreSQL over the rows of the call, and for which the conditions hold. */
  readonly over: (call: Sql, ...conditions: readonly Sql[]) => Sql;
}

/** The SQL of a call, with its type where that is not the one of the definition. */
export type Emitted = Sql | { readonly sql: Sql; readonly type: Type };
export type Emitter = (site: CallSite) => Emitted;
export type AggregateEmitter = (site: AggregateSite) => Emitted;

/** The argument at a place. @throws Error where the definition does not have it. */
export function argument(site: CallSite, index: number): Value {
  const value = site.values[index];
  if (value === undefined) throw new Error(`${site.name} has no argument ${index}.`);
  return value;
}

/** The SQL of the argument at a place. */
export const argumentSql = (site: CallSite, index: number): Sql => argument(site, index).sql;

export const optionalArgumentSql = (site: CallSite, index: number): Sql | undefined =>
  site.values[index]?.sql;

/** All arguments from a place on, with commas. */
export const argumentsSql = (site: CallSite, from = 0): Sql =>
  commaList(site.values.slice(from).map(({ sql }) => sql));

export const argumentNode = (site: CallSite, index: number): Node => site.nodes[index] ?? site.node;
