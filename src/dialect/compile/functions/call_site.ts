import type { Call, Expression } from '../../ast.ts';
import type { Node } from '../../ast_node.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import type { Value } from '../../resolve/value.ts';
import { commaList, type Sql } from '../../sql.ts';
import type { Type } from '../../types.ts';
import type { Compiler } from '../compiler.ts';

/** A function call whose arguments are checked and converted to the parameter types. */
export interface CallSite {
  readonly compiler: Compiler;
  readonly scope: Scope;
  readonly statement: Statement;
  readonly node: Call;
  /** The name as written. */
  readonly name: string;
  /** The argument nodes. */
  readonly nodes: readonly Expression[];
  readonly values: readonly Value[];
  /** Arguments in the first of two pairs of parentheses. */
  readonly parameters: readonly Value[];
  /** The declared return type, nullable if any argument is. Its kind is `null` if only the emitter knows the type. */
  readonly returnType: Type;
}

/** A call of an aggregate. */
export interface AggregateCallSite extends CallSite {
  readonly distinct: boolean;
  /** Whether the aggregate may run over no rows. */
  readonly mayBeEmpty: boolean;
  /** The ORDER BY clause of the aggregate, or empty. */
  readonly orderBy: Sql;
  readonly isWindow: boolean;
  /** Applies the call's FILTER and OVER, and additional conditions, to a PostgreSQL aggregate. */
  readonly over: (call: Sql, ...conditions: readonly Sql[]) => Sql;
}

/** The SQL of a call, with its type if it differs from the declared one. */
export type Emitted = Sql | { readonly sql: Sql; readonly type: Type };
export type Emitter = (site: CallSite) => Emitted;
export type AggregateEmitter = (site: AggregateCallSite) => Emitted;

/** The argument at an index. @throws Error if the definition does not have it */
export function argument(site: CallSite, index: number): Value {
  const value = site.values[index];
  if (value === undefined) throw new Error(`${site.name} has no argument ${index}.`);
  return value;
}

/** The SQL of the argument at an index. */
export const argumentSql = (site: CallSite, index: number): Sql => argument(site, index).sql;

export const optionalArgumentSql = (site: CallSite, index: number): Sql | undefined =>
  site.values[index]?.sql;

/** All arguments from an index on, comma-separated. */
export const argumentsSql = (site: CallSite, from = 0): Sql =>
  commaList(site.values.slice(from).map(({ sql }) => sql));

export const argumentNode = (site: CallSite, index: number): Node => site.nodes[index] ?? site.node;
