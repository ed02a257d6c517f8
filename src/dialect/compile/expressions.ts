import type { Between, Case, Comparison, Expression, Logical, Subquery } from '../ast.ts';
import { dateParts } from './date_parts.ts';
import type { Scope } from '../resolve/scope.ts';
import { derive, readFrom, type Value } from '../resolve/value.ts';
import { commaList, joinSql, sql } from '../sql.ts';
import { nameOfType, scalar, withNull } from '../types.ts';
import { arithmeticValue, negatedValue } from './arithmetic.ts';
import { castValue, typeOfName } from './casts.ts';
import { toCondition, unify } from './coerce.ts';
import { compareValues, matchValues, type MatchOperator, type OrderOperator } from './comparisons.ts';
import { arrayValue, dictionaryValue, sliceValue, tupleValue } from './collections.ts';
import type { Compiler, ExpressionUse } from './compiler.ts';
import { knownValue, rememberValue } from './compiled_values.ts';
import { callValue } from './functions/calls.ts';
import { intervalValue } from './intervals.ts';
import { literalValue, stringValue } from './literals.ts';
import { fieldValue, accessElement } from './field_access.ts';
import { inValue } from './in_operator.ts';
import { windowSubqueryValue } from './window_subquery_values.ts';
import { withSharedOperand } from './shared_operand.ts';
import { operationOf, subqueryColumn, subqueryOf } from './subqueries.ts';
import { toStringSql } from './to_string.ts';

/**
 * Compiles an expression. In a grouping query, an expression equal to a key becomes the column of that key.
 * @throws DialectError
 */
export function expressionValue(
  compiler: Compiler,
  node: Expression,
  scope: Scope,
  use: ExpressionUse,
): Value {
  const known = knownValue(node, scope, use);
  if (known !== undefined) return known;
  const { statement } = scope;
  statement.enterExpression(node);
  const value =
    windowSubqueryValue(compiler, node, scope, use) ??
    groupedValue(compileNode(compiler, node, scope, use), node, scope);
  statement.leaveExpression();
  statement.checkLength(value.sql, node);
  rememberValue(node, scope, use, value);
  return value;
}

/** In a grouping query, the column of the key that a value is. */
function groupedValue(value: Value, node: Expression, { grouping }: Scope): Value {
  const { traits } = value;
  if (grouping === null || traits.aggregate !== null || (traits.column === null && traits.key === null))
    return value;
  const key = grouping.keyOf(value);
  // It keeps its operation and operands, because a key may be part of another key.
  return key === undefined ? value : readFrom(value, key, { ...traits, column: null, key: node });
}

function compileNode(compiler: Compiler, node: Expression, scope: Scope, use: ExpressionUse): Value {
  const { statement } = scope;
  const value = (inner: Expression): Value => compiler.value(inner, scope);
  switch (node.kind) {
    case 'number':
    case 'string':
    case 'boolean':
    case 'null':
    case 'time':
      return literalValue(node, statement);
    case 'field':
      return fieldValue(compiler, node, scope);
    case 'alias':
      return compiler.value(
        node.expression,
        { ...scope, expandingAliases: [...scope.expandingAliases, node.expression] },
        use,
      );
    case 'call':
      return callValue(compiler, node, scope, use);
    case 'arithmetic':
      return arithmeticValue(compiler, node, scope);
    case 'unary':
      return node.operator === '-'
        ? negatedValue(compiler, node, scope)
        : notValue(compiler, node.operand, scope, use);
    case 'comparison':
      return comparisonValue(compiler, node, scope, use);
    case 'logical':
      return logicalValue(compiler, node, scope, use);
    case 'is_null': {
      const operand = value(node.operand);
      const test = node.negated ? sql`is not null` : sql`is null`;
      const operation = node.negated ? 'is not null' : 'is null';
      return derive(operation, [operand], scalar('boolean'), sql`(${operand.sql} ${test})`);
    }
    case 'between':
      return betweenValue(compiler, node, scope, use);
    case 'nullish': {
      const [left, right] = [value(node.left), value(node.right)];
      const { type, fragments } = unify(
        [left, right],
        [node.left, node.right],
        statement,
        'The sides of `??`',
      );
      const nullable = left.type.nullable && right.type.nullable;
      const fragment = sql`coalesce(${commaList(fragments)})`;
      return derive('coalesce', [left, right], withNull(type, nullable), fragment);
    }
    case 'conditional':
      return caseValue(
        compiler,
        {
          ...node,
          kind: 'case',
          subject: null,
          branches: [
            { kind: 'branch', when: node.condition, then: node.then, start: node.start, end: node.end },
          ],
        },
        scope,
      );
    case 'case':
      return caseValue(compiler, node, scope);
    case 'cast':
      return castValue(value(node.operand), typeOfName(node.type, statement), node, statement);
    case 'interval':
      return intervalValue(compiler, node, scope);
    case 'extract':
      return datePart(value(node.operand), node.unit, node, scope);
    case 'trim': {
      const operand = value(node.operand);
      const removed = node.characters === null ? null : value(node.characters);
      const characters = removed === null ? sql`' '` : toStringSql(removed, statement);
      const side = { both: sql`btrim`, leading: sql`ltrim`, trailing: sql`rtrim` }[node.side];
      const fragment = sql`${side}(${toStringSql(operand, statement)}, ${characters})`;
      const operands = removed === null ? [operand] : [operand, removed];
      return derive(`trim ${node.side}`, operands, scalar('string', operand.type.nullable), fragment);
    }
    case 'template': {
      const parts = node.parts.map(value);
      const fragments = parts.map((part) => toStringSql(part, statement));
      return derive(
        'concat',
        parts,
        scalar('string'),
        fragments.length === 0 ? sql`''::text` : sql`concat(${commaList(fragments)})`,
      );
    }
    case 'array':
      return arrayValue(compiler, node.items, scope);
    case 'tuple':
      return tupleValue(node.items.map(value));
    case 'dictionary':
      return dictionaryValue(compiler, node.entries, scope);
    case 'member':
      return accessElement(value(node.object), stringValue(node.name.text), node.name, scope);
    case 'element': {
      const position = literalValue(node.position, statement);
      return accessElement(value(node.object), position, node.position, scope);
    }
    case 'index':
      return accessElement(value(node.object), value(node.index), node.index, scope);
    case 'slice':
      return sliceValue(compiler, node, scope);
    case 'subquery':
      return subqueryValue(compiler, node, scope);
    case 'star':
      throw statement.error('`*` is allowed only in SELECT and in count(*).', node);
    case 'columns':
      throw statement.error('COLUMNS() is not supported.', node, 'List the columns.');
    case 'lambda':
      throw statement.error(
        'A lambda is allowed only as an argument of a function such as arrayMap().',
        node,
      );
    case 'placeholder':
      throw statement.error('Unresolved placeholder.', node);
  }
}

function notValue(compiler: Compiler, operand: Expression, scope: Scope, use: ExpressionUse): Value {
  const value = compiler.value(operand, scope, use === 'join' ? 'join' : 'value');
  return negation({ ...value, sql: toCondition(value, operand, scope.statement) });
}

const negation = (condition: Value): Value =>
  derive('not', [condition], scalar('boolean', condition.type.nullable), sql`(not ${condition.sql})`);

function logicalValue(compiler: Compiler, node: Logical, scope: Scope, use: ExpressionUse): Value {
  const values = node.operands.map((operand) => {
    const value = compiler.value(operand, scope, use);
    return { ...value, sql: toCondition(value, operand, scope.statement) };
  });
  return conjunction(node.operator, values);
}

function conjunction(operator: Logical['operator'], conditions: readonly Value[]): Value {
  const fragments = conditions.map((condition) => condition.sql);
  const type = scalar(
    'boolean',
    conditions.some(({ type: { nullable } }) => nullable),
  );
  return derive(operator, conditions, type, sql`(${joinSql(fragments, ` ${operator} `)})`);
}

function comparisonValue(compiler: Compiler, node: Comparison, scope: Scope, use: ExpressionUse): Value {
  const { operator } = node;
  if (operator === 'in cohort' || operator === 'not in cohort')
    throw scope.statement.error(
      'IN COHORT is not supported: cohorts are not stored.',
      node,
      'Write out the conditions of the cohort.',
    );
  if (
    operator === 'in' ||
    operator === 'global in' ||
    operator === 'not in' ||
    operator === 'global not in'
  ) {
    const negated = operator === 'not in' || operator === 'global not in';
    return inValue(compiler, { left: node.left, right: node.right, negated }, scope, use);
  }
  const sides = { left: compiler.value(node.left, scope), right: compiler.value(node.right, scope), node };
  if (operator === 'is distinct from' || operator === 'is not distinct from') {
    const opposite = operator === 'is distinct from' ? '!=' : '=';
    return compareValues(opposite, sides, 'value', scope.statement);
  }
  if (isOrder(operator)) return compareValues(operator, sides, use, scope.statement);
  return matchValues(operator, sides, use, scope.statement);
}

const isOrder = (operator: OrderOperator | MatchOperator): operator is OrderOperator =>
  ['=', '!=', '<', '<=', '>', '>='].includes(operator);

function betweenValue(compiler: Compiler, node: Between, scope: Scope, use: ExpressionUse): Value {
  const { statement } = scope;
  const { negated } = node;
  const innerUse = negated && use !== 'join' ? 'value' : use;
  const [low, high] = [compiler.value(node.low, scope), compiler.value(node.high, scope)];
  return withSharedOperand(compiler.value(node.operand, scope), (left) => {
    const bounds = [
      compareValues('>=', { left, right: low, node }, innerUse, statement),
      compareValues('<=', { left, right: high, node }, innerUse, statement),
    ];
    const both = conjunction('and', bounds);
    return negated ? negation(both) : both;
  });
}

function caseValue(compiler: Compiler, node: Case, scope: Scope): Value {
  const { statement } = scope;
  const whenUse = node.subject === null ? 'filter' : 'value';
  const whens = node.branches.map(({ when }) => compiler.value(when, scope, whenUse));
  const otherwise: Expression = node.otherwise ?? { kind: 'null', start: node.start, end: node.end };
  const nodes = [...node.branches.map(({ then }) => then), otherwise];
  const values = nodes.map((one) => compiler.value(one, scope));
  const { type, fragments } = unify(values, nodes, statement, 'The branches');
  const withConditions = (conditions: readonly Value[]): Value => {
    const branches = conditions.map(
      (test, index) =>
        sql` when ${toCondition(test, node.branches[index]?.when ?? node, statement)} then ${fragments[index] ?? sql`null`}`,
    );
    const fragment = sql`(case${joinSql(branches, '')} else ${fragments.at(-1) ?? sql`null`} end)`;
    const operands = values.flatMap((value, index) => [...conditions.slice(index, index + 1), value]);
    return derive('case', operands, type, fragment);
  };
  if (node.subject === null) return withConditions(whens);
  return withSharedOperand(compiler.value(node.subject, scope), (left) =>
    withConditions(
      whens.map((right, index) =>
        compareValues('=', { left, right, node: node.branches[index] ?? node }, 'filter', statement),
      ),
    ),
  );
}

function datePart(operand: Value, unit: string, node: Expression, scope: Scope): Value {
  const { type } = operand;
  const make = dateParts[unit];
  if ((type.kind !== 'date' && type.kind !== 'datetime') || make === undefined)
    throw scope.statement.error(
      `EXTRACT(${unit.toUpperCase()}) requires a date or time, found ${nameOfType(type)}.`,
      node,
    );
  const local =
    type.kind === 'date'
      ? sql`(${operand.sql})::timestamp`
      : sql`(${operand.sql} at time zone ${scope.statement.zoneOf(type)})`;
  return derive(`extract ${unit}`, [operand], scalar('integer', type.nullable), make(local));
}

/** A scalar subquery: its only value, or null if there is no row. */
function subqueryValue(compiler: Compiler, node: Subquery, scope: Scope): Value {
  const query = subqueryOf(compiler, node.query, scope);
  const { alias } = query;
  const [first, ...others] = query.columns.map(({ type }, index) => subqueryColumn(query, index, type));
  if (first === undefined) throw scope.statement.error('This subquery has no columns.', node);
  const row = others.length === 0 ? first : tupleValue([first, ...others]);
  const fragment = sql`(select ${row.sql} from (${query.sql}) as ${alias} limit 1)`;
  return derive(operationOf(query), [], withNull(row.type), fragment, { query: query.typed });
}
