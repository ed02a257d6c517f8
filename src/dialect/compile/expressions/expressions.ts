import type { Between, Case, Comparison, Expression, Logical, Subquery } from '../../ast.ts';
import { buildExpression, buildSelect } from '../../ast_builders.ts';
import { concatenation, jsonArray, jsonObject } from '../../many_arguments.ts';
import type { DialectError } from '../../query_text.ts';
import type { Scope } from '../../resolve/scope.ts';
import { derive, readFrom, type Value } from '../../resolve/value.ts';
import { commaList, generatedName, joinSql, sql } from '../../sql.ts';
import {
  arrayOf,
  commonTypeOf,
  isComposite,
  mapOf,
  nameOfType,
  scalarType,
  tupleOf,
  withNull,
} from '../../types.ts';
import { callValue } from '../calls/calls.ts';
import { windowSubqueryValue } from '../clauses/windows.ts';
import {
  type Compiler,
  type ExpressionUse,
  knownValue,
  rememberValue,
  withSharedOperand,
} from '../compiler.ts';
import { dateParts } from '../times/local_times.ts';
import { arithmeticValue, intervalValue, negatedValue } from './arithmetic.ts';
import { castValue, typeOfName } from './casts.ts';
import { coerce, spacedSql, toCondition, toJsonItem, toStringSql, unify } from './coerce.ts';
import {
  compareValues,
  inValue,
  type MatchOperator,
  matchValues,
  operationOf,
  type OrderOperator,
  subqueryColumn,
  subqueryOf,
} from './comparisons.ts';
import { accessElement, fieldValue, literalValue, stringValue } from './field_access.ts';
import { notText } from './readings.ts';

function arrayValue(compiler: Compiler, nodes: readonly Expression[], scope: Scope): Value {
  const items = nodes.map((item) => compiler.value(item, scope));
  const { type, fragments } = unify(items, nodes, scope.statement, 'The items of this array');
  const json = fragments.map((fragment) => toJsonItem(fragment, type));
  return derive('array', items, arrayOf(type), jsonArray(json), { items });
}

function tupleValue(items: readonly Value[]): Value {
  const json = items.map(({ sql: fragment, type }) => toJsonItem(fragment, type));
  return derive('tuple', items, tupleOf(items.map(({ type }) => type)), jsonArray(json), { items });
}

function dictionaryValue(
  compiler: Compiler,
  entries: readonly { readonly key: Expression; readonly value: Expression }[],
  scope: Scope,
): Value {
  const keys = entries.map(({ key }) => compiler.value(key, scope));
  const values = entries.map(({ value }) => compiler.value(value, scope));
  const type = commonTypeOf(values.map((one) => one.type)) ?? scalarType('json', true);
  const parts = keys.flatMap((key, index) => {
    const value = values[index];
    if (value === undefined) return [];
    const fragment =
      type.kind === 'json'
        ? toJsonItem(value.sql, value.type)
        : toJsonItem(coerce(value, type, scope.statement), type);
    return [toStringSql(key, scope.statement), fragment];
  });
  const operands = keys.flatMap((key, index) => [key, ...values.slice(index, index + 1)]);
  return derive('map', operands, mapOf(type), jsonObject(parts));
}

/** `a[2:3]`: the second and third item. */
function sliceValue(compiler: Compiler, node: Extract<Expression, { kind: 'slice' }>, scope: Scope): Value {
  const object = compiler.value(node.object, scope);
  if (object.type.kind !== 'array')
    throw scope.statement.error(`Only arrays can be sliced, found ${nameOfType(object.type)}.`, node);
  const bound = (one: Expression | null): Value | null => {
    if (one === null) return null;
    const value = compiler.value(one, scope);
    if (value.type.kind === 'integer') return value;
    throw scope.statement.error('Slice bounds must be integers.', one);
  };
  const [from, to] = [bound(node.from), bound(node.to)];
  const name = generatedName('slice');
  const conditions = [
    ...(from === null ? [] : [sql`${name}.at >= ${from.sql}`]),
    ...(to === null ? [] : [sql`${name}.at <= ${to.sql}`]),
  ];
  const where = conditions.length === 0 ? sql`` : sql` where ${joinSql(conditions, ' and ')}`;
  const fragment = sql`(select coalesce(jsonb_agg(${name}.v order by ${name}.at), '[]'::jsonb)
    from jsonb_array_elements(${object.sql}) with ordinality as ${name}(v, at)${where})`;
  const bounds = [from, to].filter((one) => one !== null);
  const operation = `slice${from === null ? '' : ' from'}${to === null ? '' : ' to'}`;
  return derive(operation, [object, ...bounds], object.type, fragment);
}

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
      return derive(operation, [operand], scalarType('boolean'), sql`(${spacedSql(operand)} ${test})`);
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
    case 'cast': {
      const [operand, to] = [value(node.operand), typeOfName(node.type, statement)];
      if (isComposite(operand.type) && to.kind === 'string')
        return value(buildExpression('toString({operand})', { operand: node.operand }));
      return castValue(operand, to, node, statement);
    }
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
      return derive(`trim ${node.side}`, operands, scalarType('string', operand.type.nullable), fragment);
    }
    case 'template': {
      const parts = node.parts.map(value);
      const fragments = parts.map((part) => toStringSql(part, statement));
      return derive('concat', parts, scalarType('string'), concatenation(fragments));
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
      const object = value(node.object);
      // Of an array of tuples, the elements at the position, as in ClickHouse.
      if (object.type.kind === 'array' && object.type.item.kind === 'tuple')
        return value(
          buildExpression(`arrayMap(item -> item.${node.position.text}, {array})`, { array: node.object }),
        );
      return accessElement(object, position, node.position, scope);
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
  derive('not', [condition], scalarType('boolean', condition.type.nullable), sql`(not ${condition.sql})`);

function logicalValue(compiler: Compiler, node: Logical, scope: Scope, use: ExpressionUse): Value {
  const values = node.operands.map((operand) => {
    const value = compiler.value(operand, scope, use);
    return { ...value, sql: toCondition(value, operand, scope.statement) };
  });
  return conjunction(node.operator, values);
}

function conjunction(operator: Logical['operator'], conditions: readonly Value[]): Value {
  const fragments = conditions.map((condition) => condition.sql);
  const type = scalarType(
    'boolean',
    conditions.some(({ type: { nullable } }) => nullable),
  );
  return derive(operator, conditions, type, sql`(${joinSql(fragments, ` ${operator} `)})`);
}

function comparisonValue(compiler: Compiler, node: Comparison, scope: Scope, use: ExpressionUse): Value {
  const { operator } = node;
  if (operator === 'in cohort' || operator === 'not in cohort') return inCohort(compiler, node, scope, use);
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

/** `person_id IN COHORT 5` and `IN COHORT 'name'`: the persons that the source stores for a cohort. @throws DialectError */
function inCohort(compiler: Compiler, node: Comparison, scope: Scope, use: ExpressionUse): Value {
  const { left, right, operator } = node;
  const { cohortPeople } = scope.statement.project.schema;
  const error = (message: string, suggestion: string): DialectError =>
    scope.statement.error(message, node, suggestion);
  if (cohortPeople === null)
    throw error(
      'IN COHORT requires public.cohort_people, which the source does not have.',
      'Write out the conditions of the cohort.',
    );
  if (right.kind !== 'number' && right.kind !== 'string')
    throw error(
      'IN COHORT requires the id or the name of a cohort.',
      "For example IN COHORT 5 or IN COHORT 'name'.",
    );
  const key = right.kind === 'number' ? 'cohort_id' : 'cohort_name';
  if (key === 'cohort_name' && !cohortPeople.columns.has(key))
    throw error(
      'IN COHORT with a name requires the column cohort_name of public.cohort_people.',
      'Use the id.',
    );
  const query = buildSelect(`select person_id from cohort_people where ${key} = {cohort}`, { cohort: right });
  const people: Expression = { kind: 'subquery', query, start: right.start, end: right.end };
  return inValue(compiler, { left, right: people, negated: operator === 'not in cohort' }, scope, use);
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

function datePart(given: Value, unit: string, node: Expression, scope: Scope): Value {
  const operand = notText(given, scope.statement);
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
  return derive(`extract ${unit}`, [operand], scalarType('integer', type.nullable), make(local));
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
