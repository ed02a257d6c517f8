import type { Case, Comparison, Expression, Logical, Subquery } from '../ast.ts';
import { dateParts } from './date_parts.ts';
import type { Scope } from '../resolve/scope.ts';
import { derive, type Value } from '../resolve/value.ts';
import { commaList, joinSql, sql } from '../sql.ts';
import { nameOfType, scalar, withNull } from '../types.ts';
import { arithmeticValue, negatedValue } from './arithmetic.ts';
import { castValue, typeOfName } from './casts.ts';
import { toCondition, unify } from './coerce.ts';
import { compareValues, matchValues, type MatchOperator, type OrderOperator } from './comparisons.ts';
import { arrayValue, dictionaryValue, sliceValue, tupleValue } from './collections.ts';
import { type Compiler, columnAlias, type ExpressionUse } from './compiler.ts';
import { callValue } from './functions/calls.ts';
import { intervalValue } from './intervals.ts';
import { literalValue, stringValue } from './literals.ts';
import { fieldValue, accessElement } from './field_access.ts';
import { inValue } from './in_operator.ts';
import { windowSubqueryValue } from './window_subquery_values.ts';
import { subqueryOf } from './subqueries.ts';
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
  const windowSubqueryColumn = windowSubqueryValue(compiler, node, scope, use);
  if (windowSubqueryColumn !== undefined) return windowSubqueryColumn;
  const value = compileNode(compiler, node, scope, use);
  scope.statement.checkSize(value.sql, node);
  if (scope.grouping === null || value.traits.column === null || value.traits.aggregate !== null)
    return value;
  const { grouping } = scope;
  // A condition may have been compiled for a filter, and a key may be part of another key.
  const isFilter = use !== 'value' && grouping.keyCount > 0;
  const ungrouped = (): Value => compileNode(compiler, node, { ...scope, grouping: null }, 'value');
  const key =
    grouping.keyOf(value) ??
    (isFilter ? grouping.keyOf(compileNode(compiler, node, scope, 'value')) : undefined) ??
    (grouping.keyCount > 1 && node.kind !== 'field' ? grouping.keyOf(ungrouped()) : undefined);
  if (key === undefined) return value;
  return { sql: key.sql, type: key.type, traits: { ...value.traits, column: null } };
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
      return derive(sql`(${operand.sql} ${test})`, scalar('boolean'), [operand]);
    }
    case 'between': {
      const { start, end, operand } = node;
      const bound = (operator: '>=' | '<=', right: Expression): Comparison => ({
        kind: 'comparison',
        operator,
        left: operand,
        right,
        start,
        end,
      });
      const operands = [bound('>=', node.low), bound('<=', node.high)];
      const both: Logical = { kind: 'logical', operator: 'and', operands, start, end };
      return node.negated ? notValue(compiler, both, scope, use) : logicalValue(compiler, both, scope, use);
    }
    case 'nullish': {
      const [left, right] = [value(node.left), value(node.right)];
      const { type, fragments } = unify(
        [left, right],
        [node.left, node.right],
        statement,
        'The sides of `??`',
      );
      const nullable = left.type.nullable && right.type.nullable;
      return derive(sql`coalesce(${commaList(fragments)})`, withNull(type, nullable), [left, right]);
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
      const characters = node.characters === null ? sql`' '` : toStringSql(value(node.characters), statement);
      const side = { both: sql`btrim`, leading: sql`ltrim`, trailing: sql`rtrim` }[node.side];
      const fragment = sql`${side}(${toStringSql(operand, statement)}, ${characters})`;
      return derive(fragment, scalar('string', operand.type.nullable), [operand]);
    }
    case 'template': {
      const parts = node.parts.map(value);
      const fragments = parts.map((part) => toStringSql(part, statement));
      return derive(
        fragments.length === 0 ? sql`''::text` : sql`concat(${commaList(fragments)})`,
        scalar('string'),
        parts,
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
  const fragment = sql`(not ${toCondition(value, operand, scope.statement)})`;
  return derive(fragment, scalar('boolean', value.type.nullable), [value]);
}

function logicalValue(compiler: Compiler, node: Logical, scope: Scope, use: ExpressionUse): Value {
  const values = node.operands.map((operand) => {
    const value = compiler.value(operand, scope, use);
    return { ...value, sql: toCondition(value, operand, scope.statement) };
  });
  const word = node.operator === 'and' ? ' and ' : ' or ';
  const fragment = sql`(${joinSql(
    values.map((value) => value.sql),
    word,
  )})`;
  return derive(
    fragment,
    scalar(
      'boolean',
      values.some(({ type }) => type.nullable),
    ),
    values,
  );
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

function caseValue(compiler: Compiler, node: Case, scope: Scope): Value {
  const { statement } = scope;
  const subject = node.subject;
  const conditions = node.branches.map(({ when, start, end }) => {
    const test: Expression =
      subject === null ? when : { kind: 'comparison', operator: '=', left: subject, right: when, start, end };
    const value = compiler.value(test, scope, 'filter');
    return { ...value, sql: toCondition(value, when, statement) };
  });
  const otherwise: Expression = node.otherwise ?? { kind: 'null', start: node.start, end: node.end };
  const nodes = [...node.branches.map(({ then }) => then), otherwise];
  const values = nodes.map((one) => compiler.value(one, scope));
  const { type, fragments } = unify(values, nodes, statement, 'The branches');
  const branches = conditions.map(
    (test, index) => sql` when ${test.sql} then ${fragments[index] ?? sql`null`}`,
  );
  const fragment = sql`(case${joinSql(branches, '')} else ${fragments.at(-1) ?? sql`null`} end)`;
  return derive(fragment, type, [...conditions, ...values]);
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
  return derive(make(local), scalar('integer', type.nullable), [operand]);
}

/** A scalar subquery: its only value, or null if there is no row. */
function subqueryValue(compiler: Compiler, node: Subquery, scope: Scope): Value {
  const query = subqueryOf(compiler, node.query, scope);
  const { alias } = query;
  const [only] = query.columns;
  if (only === undefined) throw scope.statement.error('This subquery has no columns.', node);
  if (query.columns.length === 1)
    return derive(sql`(select ${alias}.c1 from (${query.sql}) as ${alias} limit 1)`, withNull(only.type));
  const items = query.columns.map((column, index) =>
    derive(sql`${alias}.${columnAlias(index + 1)}`, column.type),
  );
  const tuple = tupleValue(items);
  return derive(sql`(select ${tuple.sql} from (${query.sql}) as ${alias} limit 1)`, withNull(tuple.type));
}
