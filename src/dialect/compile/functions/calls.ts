import type { Call } from '../../ast.ts';
import type { FunctionDefinition } from '../../functions/function_definition.ts';
import { findFunction, unsupportedCombinatorHint, suggestFunction } from '../../functions/registry.ts';
import type { Scope } from '../../resolve/scope.ts';
import { derive, type Value } from '../../resolve/value.ts';
import { sql, Sql } from '../../sql.ts';
import { scalar, type Type } from '../../types.ts';
import { castOperation } from '../casts.ts';
import type { Compiler, ExpressionUse } from '../compiler.ts';
import { postgresType } from '../json_values.ts';
import { aggregateValue } from './aggregate_calls.ts';
import { arrayCombinatorCall } from './array_aggregates.ts';
import { higherOrderValue } from './higher_order.ts';
import { checkRanges } from './range_checks.ts';
import { checkArity, applySignature } from './signature.ts';
import type { CallSite } from './call_site.ts';
import { specialCall } from './special_calls.ts';
import { fillTemplate } from './sql_templates.ts';

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
  return derive(operationOf(definition.name, argumentValues.length), argumentValues, type, fragment);
}

/** Functions that mean the same as syntax of the dialect. */
const operations: Readonly<Record<string, string>> = {
  ifNull: 'coalesce',
  if: 'case',
  multiIf: 'case',
  toString: castOperation(scalar('string')),
};

/** The operation of a call. Syntax and functions that mean the same have one. */
function operationOf(name: string, argumentCount: number): string {
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
