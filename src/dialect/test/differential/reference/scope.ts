import type { Expression, NamedWindow, Query } from '../../../ast.ts';
import type { ReferenceType } from './types.ts';
import { type Value, unsupported } from './values.ts';

/** A table of the reference interpreter, with its rows. */
export interface ReferenceTable {
  readonly columns: ReadonlyMap<string, ReferenceType>;
  readonly rows: readonly ReadonlyMap<string, Value>[];
}

/** What queries run against. */
export interface ReferenceWorld {
  readonly timezone: string;
  readonly weekStartDay: 'sunday' | 'monday';
  readonly tables: ReadonlyMap<string, ReferenceTable>;
}

/** A row at some stage of a query. */
export interface Row {
  readonly cells: ReadonlyMap<string, Value>;
  /** The rows and key values of a group. */
  readonly group?: { readonly rows: readonly Row[]; readonly keys: readonly Value[] };
  /** All rows that window functions see, and the index of this one. */
  readonly stage?: readonly Row[];
  readonly index?: number;
}

/** A column of FROM; `key` is its name in the cells of a row. */
export interface ScopeColumn {
  readonly table: string | null;
  readonly name: string;
  readonly key: string;
  readonly type: ReferenceType;
}

/** What the names in an expression mean. */
export interface ReferenceScope {
  readonly world: ReferenceWorld;
  readonly ctes: ReadonlyMap<string, Query>;
  readonly columns: readonly ScopeColumn[];
  readonly aliases: ReadonlyMap<string, Expression>;
  readonly lambdas: ReadonlyMap<string, ReferenceType>;
  readonly windows: readonly NamedWindow[];
  /** The types of GROUP BY keys by identity; undefined where expressions see single rows. */
  readonly keys?: ReadonlyMap<string, { readonly index: number; readonly type: ReferenceType }> | undefined;
  /** Whether a group may have no rows. */
  readonly mayBeEmpty: boolean;
  /** Whether this is the condition of a join, where comparisons with null are null. */
  readonly inJoin: boolean;
  /** Whether the order of an array does not matter to the function around it. */
  readonly anyOrder?: boolean;
}

/** A typed expression. */
export interface Meaning {
  readonly type: ReferenceType;
  readonly of: (row: Row) => Value;
  /** The value of a literal, and of arithmetic with literals. */
  readonly constant?: Value;
  /** The text of a string literal, which other types read. */
  readonly literal?: string;
  /** Set for the literal NULL. */
  readonly isNull?: boolean;
}

export const lambdaKey = (name: string): string => `lambda ${name}`;

/** The column that a path of names refers to. */
export function columnOf(path: readonly string[], scope: ReferenceScope): ScopeColumn {
  const name = path.join('.');
  const found = scope.columns.filter(
    (column) => column.name === name || (column.table !== null && `${column.table}.${column.name}` === name),
  );
  const [first, second] = found;
  if (first === undefined || second !== undefined) return unsupported(`The column ${name}.`);
  return first;
}

/** A text that is equal for expressions that mean the same: without spans, with columns and aliases resolved. */
export function expressionIdentity(expression: Expression, scope: ReferenceScope): string {
  const resolve = (name: string, value: unknown): unknown => {
    if (name === 'start' || name === 'end') return undefined;
    if (typeof value !== 'object' || value === null || !('kind' in value)) return value;
    const node = value as Expression;
    if (node.kind === 'alias') return node.expression;
    if (node.kind !== 'field') return value;
    const path = node.path.map((part) => part.text);
    const [only, ...rest] = path;
    if (only !== undefined && rest.length === 0) {
      if (scope.lambdas.has(only)) return lambdaKey(only);
      const alias = scope.aliases.get(only);
      if (alias !== undefined) return JSON.parse(expressionIdentity(alias, scope)) as unknown;
    }
    const column = scope.columns.find(
      ({ table, name: own }) => own === path.join('.') || `${table ?? ''}.${own}` === path.join('.'),
    );
    return column === undefined ? `parameter ${path.join('.')}` : `column ${column.key}`;
  };
  return JSON.stringify(resolve('', expression), resolve);
}
