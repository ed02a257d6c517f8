import type { Call, Comparison, Expression, Logical, Name } from '../../ast.ts';
import type { CallSite, FunctionDefinition } from '../../functions/function_definition.ts';
import { higherOrderValue } from '../../functions/lambdas.ts';
import {
  arrayFunctionOf,
  findFunction,
  type FoundFunction,
  suggestFunction,
  unsupportedCombinatorHint,
} from '../../functions/registry.ts';
import type { Scope } from '../../resolve/scope.ts';
import type { Statement } from '../../resolve/statement.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { sql, Sql } from '../../sql.ts';
import { scalarType, type Type } from '../../types.ts';
import type { Compiler, ExpressionUse } from '../compiler.ts';
import { castOperation } from '../expressions/casts.ts';
import { postgresType } from '../expressions/coerce.ts';
import { operationOf, subqueryOf } from '../expressions/comparisons.ts';
import { arrayJoinCall } from '../joins/array_joins.ts';
import { aggregateValue } from './aggregate_calls.ts';
import { applySignature, checkArity, checkRanges, fillTemplate } from './signature.ts';

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
function specialCall(compiler: Compiler, call: Call, scope: Scope, use: ExpressionUse): Value | undefined {
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
      return derive(`exists ${operationOf(query)}`, [], scalarType('boolean'), sql`exists (${query.sql})`, {
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

/**
 * Rewrites an aggregate with the Array combinator: `sumArray(x)` becomes `arraySum(arrayFlatten(groupArray(x)))`.
 * @throws DialectError if the aggregate has no array function
 */
function arrayCombinatorCall(
  call: Call,
  { definition, combinators }: FoundFunction,
  statement: Statement,
): Call {
  const { name, start, end } = call;
  const ofItems = arrayFunctionOf(definition.name);
  const others = combinators.filter((one) => one !== 'Array' && one !== 'If');
  if (ofItems === null || others.length > 0)
    throw statement.error(`Unsupported function call '${name.text}(...)'.`, name, 'Use ARRAY JOIN.');
  const named = (text: string): Name => ({ ...name, text });
  const plain = (text: string, argument: Expression): Call => ({
    kind: 'call',
    name: named(text),
    parameters: null,
    distinct: false,
    arguments: [argument],
    orderBy: [],
    nulls: null,
    filter: null,
    over: null,
    start,
    end,
  });
  const arrays: Call = { ...call, name: named(combinators.includes('If') ? 'groupArrayIf' : 'groupArray') };
  return plain(ofItems, plain('arrayFlatten', arrays));
}

/** Compiles a function call. @throws DialectError for an unknown function or wrong arguments */
export function callValue(compiler: Compiler, call: Call, scope: Scope, use: ExpressionUse): Value {
  const { statement } = scope;
  const name = call.name.text;
  const special = specialCall(compiler, call, scope, use);
  if (special !== undefined) return special;
  const found = findFunction(name);
  if (found === undefined)
    throw statement.error(
      `Unsupported function call '${name}(...)'.`,
      call.name,
      unsupportedCombinatorHint(name) ?? suggestFunction(name),
    );
  const { definition, combinators } = found;
  if (definition.unsupported !== null)
    throw statement.error(`Function '${name}' is not supported.`, call.name, definition.unsupported);
  if (definition.kind === 'aggregate' || definition.kind === 'window' || call.over !== null)
    return combinators.includes('Array')
      ? compiler.value(arrayCombinatorCall(call, found, statement), scope)
      : aggregateValue(compiler, call, found, scope);
  rejectAggregateClauses(call, scope);
  checkArity(name, definition.argumentTypes, call.arguments.length, call, statement);
  if (definition.kind === 'higher_order') return higherOrderValue(compiler, call, definition, scope);
  return scalarValue(compiler, call, definition, scope);
}

function rejectAggregateClauses(call: Call, scope: Scope): void {
  const name = call.name.text;
  const unsupported = (what: string): Error =>
    scope.statement.error(`Function '${name}' is not an aggregate and does not support ${what}.`, call);
  if (call.distinct) throw unsupported('DISTINCT');
  if (call.filter !== null) throw unsupported('FILTER');
  if (call.orderBy.length > 0) throw unsupported('ORDER BY');
  if (call.parameters !== null) throw unsupported('a second pair of parentheses');
  if (call.nulls !== null) throw unsupported('IGNORE or RESPECT NULLS');
}

function scalarValue(compiler: Compiler, call: Call, definition: FunctionDefinition, scope: Scope): Value {
  const { statement } = scope;
  const name = call.name.text;
  const argumentValues = call.arguments.map((node) => compiler.value(node, scope));
  const rangeChecked = { values: argumentValues, nodes: call.arguments, what: 'argument' } as const;
  checkRanges(name, definition.argumentRanges, rangeChecked, statement);
  const { values, returnType } = applySignature(definition, name, argumentValues, call.arguments, statement);
  const site: CallSite = {
    compiler,
    scope,
    statement,
    node: call,
    name,
    nodes: call.arguments,
    values,
    parameters: [],
    returnType,
  };
  if (definition.emit === null && definition.template === null)
    throw statement.error(`Function '${name}' does not support these arguments.`, call.name);
  const emitted = definition.emit?.(site) ?? fromTemplate(definition.template ?? '', values, returnType);
  const { sql: fragment, type } = emitted instanceof Sql ? { sql: emitted, type: returnType } : emitted;
  return derive(callOperation(definition.name, argumentValues.length), argumentValues, type, fragment);
}

/** Functions that mean the same as syntax of the dialect. */
const operations: Readonly<Record<string, string>> = {
  ifNull: 'coalesce',
  if: 'case',
  multiIf: 'case',
  toString: castOperation(scalarType('string')),
};

/** The operation of a call. Syntax and functions that mean the same have one. */
function callOperation(name: string, argumentCount: number): string {
  const unit = /^toInterval(\w+)$/.exec(name)?.[1];
  if (unit !== undefined) return `interval ${unit.toLowerCase()}`;
  const known = argumentCount > 1 && name === 'toString' ? undefined : operations[name];
  return known ?? name;
}

/** Fills the SQL template and casts the result to the declared type. */
function fromTemplate(template: string, values: readonly Value[], returnType: Type): Sql {
  const filled = fillTemplate(template, values);
  return returnType.kind === 'null' ? filled : sql`(${filled})::${postgresType(returnType)}`;
}
