import type { Query } from '../ast.ts';
import { Laterals, type Scope } from '../resolve/scope.ts';
import type { Statement } from '../resolve/statement.ts';
import type { CompiledQuery, Compiler } from './compiler.ts';
import { expressionValue } from './expressions.ts';
import { compileSelect } from './select.ts';
import { compileSetOperation } from './set_operations.ts';
import { refuseTotals } from './totals.ts';

/** All rules of compiling together. */
export const compiler: Compiler = {
  value: (node, scope, use = 'value') => expressionValue(compiler, node, scope, use),
  query: (query, scope) => {
    refuseTotals(query, scope);
    return compileAnyQuery(query, scope);
  },
};

/** A SELECT, or several joined by UNION and the like. @throws DialectError */
export function compileAnyQuery(query: Query, scope: Scope): CompiledQuery {
  return query.kind === 'select'
    ? compileSelect(compiler, query, scope)
    : compileSetOperation(compiler, query, scope);
}

/** What names mean outside of a whole query: nothing. */
export const topScope = (statement: Statement): Scope => ({
  statement,
  phase: 'select',
  aggregate: null,
  relations: [],
  merged: new Map(),
  laterals: new Laterals(),
  outerRelations: [],
  aliases: new Map(),
  joinedArrays: new Map(),
  ctes: null,
  lambdas: new Map(),
  lambdaDepth: 0,
  expanding: [],
  grouping: null,
  windows: new Map(),
});
