import type { Call, Comparison, Expression, Logical } from '../../ast.ts';
import type { Scope } from '../../resolve/scope.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { sql } from '../../sql.ts';
import { scalar } from '../../types.ts';
import { arrayJoinCall } from '../array_joins.ts';
import type { Compiler, ExpressionUse } from '../compiler.ts';
import { operationOf, subqueryOf } from '../subqueries.ts';

const comparisons: Readonly<Record<string, Comparison['operator']>> = {
  equals: '=',
  notEquals: '!=',
  less: '<',
  greater: '>',
  lessOrEquals: '<=',
  greaterOrEquals: '>=',
  in: 'in',
  notIn: 'not in',
  like: 'like',
  ilike: 'ilike',
  notLike: 'not like',
  notILike: 'not ilike',
  match: '=~',
};

const arithmetic: Readonly<Record<string, '+' | '-' | '*' | '/' | '%'>> = {
  plus: '+',
  minus: '-',
  multiply: '*',
  divide: '/',
  modulo: '%',
};

/** Compiles functions that are operators, and those with special arguments; undefined for all others. */
export function specialCall(
  compiler: Compiler,
  call: Call,
  scope: Scope,
  use: ExpressionUse,
): Value | undefined {
  const name = call.name.text;
  const { start, end } = call;
  if (call.over !== null || call.parameters !== null || call.distinct) return undefined;
  const [first, second, ...more] = call.arguments;
  if (name === 'arrayJoin') return arrayJoinCall(compiler, call, scope);
  if (first === undefined) return undefined;
  if (second === undefined) return oneArgument(compiler, call, first, scope, use);
  const lower = name.toLowerCase();
  if (lower === 'and' || lower === 'or') {
    const operator: Logical['operator'] = lower;
    return compiler.value({ kind: 'logical', operator, operands: call.arguments, start, end }, scope, use);
  }
  if (more.length > 0) return undefined;
  const known = Object.hasOwn(comparisons, name)
    ? comparisons[name]
    : comparisons[lower === 'like' || lower === 'ilike' || lower === 'in' ? lower : ''];
  if (known !== undefined)
    return compiler.value(
      { kind: 'comparison', operator: known, left: first, right: second, start, end },
      scope,
      use,
    );
  const sign = Object.hasOwn(arithmetic, name) ? arithmetic[name] : undefined;
  if (sign === undefined) return undefined;
  return compiler.value(
    { kind: 'arithmetic', operator: sign, left: first, right: second, start, end },
    scope,
  );
}

function oneArgument(
  compiler: Compiler,
  call: Call,
  only: Expression,
  scope: Scope,
  use: ExpressionUse,
): Value | undefined {
  const { start, end } = call;
  switch (call.name.text.toLowerCase()) {
    case 'not':
      return compiler.value({ kind: 'unary', operator: 'not', operand: only, start, end }, scope, use);
    case 'exists': {
      if (only.kind !== 'subquery') return undefined;
      const query = subqueryOf(compiler, only.query, scope);
      return derive(`exists ${operationOf(query)}`, [], scalar('boolean'), sql`exists (${query.sql})`, {
        query: query.typed,
      });
    }
    case 'isnull':
    case 'isnotnull': {
      const negated = call.name.text.toLowerCase() === 'isnotnull';
      return compiler.value({ kind: 'is_null', operand: only, negated, start, end }, scope);
    }
    default:
      return undefined;
  }
}
