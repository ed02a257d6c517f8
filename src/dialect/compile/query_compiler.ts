import type { Query } from '../ast.ts';
import { LateralJoins, type Scope } from '../resolve/scope.ts';
import type { Statement } from '../resolve/statement.ts';
import type { CompiledQuery, Compiler } from './compiler.ts';
import { expressionValue } from './expressions.ts';
import { compileSelect } from './select.ts';
import { compileSetOperation } from './set_operations.ts';
import { rejectTotals } from './totals.ts';

/** All compilation rules. */
export const compiler: Compiler = {
  value: (node, scope, use = 'value') => expressionValue(compiler, node, scope, use),
  query: (query, scope) => {
    rejectTotals(query, scope);
    return compileAnyQuery(query, scope);
  },
};

/** Compiles a SELECT or a set operation. @throws DialectError */
export function compileAnyQuery(query: Query, scope: Scope): CompiledQuery {
  return query.kind === 'select'
    ? compileSelect(compiler, query, scope)
    : compileSetOperation(compiler, query, scope);
}

/** The empty scope around a whole query. */
export const topScope = (statement: Statement): Scope => ({
  statement,
  context: 'select',
  enclosingAggregate: null,
  relations: [],
  usingColumns: new Map(),
  lateralJoins: new LateralJoins(),
  outerRelations: [],
  aliases: new Map(),
  arrayJoinColumns: new Map(),
  ctes: null,
  lambdaParameters: new Map(),
  lambdaDepth: 0,
  expandingAliases: [],
  grouping: null,
  windows: new Map(),
});
