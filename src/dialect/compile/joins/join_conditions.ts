import type { ComparisonOperator, Expression, Join, Node } from '../../ast.ts';
import { type Column, observedRelation, type Relation } from '../../resolve/relation.ts';
import type { Scope } from '../../resolve/scope.ts';
import { derive, type Value } from '../../resolve/value.ts';
import type { Sql } from '../../sql.ts';
import { conjunctsOf, asColumn, type CompiledFrom, usingOperands } from './compiled_from.ts';
import type { Compiler } from '../compiler.ts';
import { castOperation } from '../expressions/casts.ts';
import { toCondition } from '../expressions/coerce.ts';
import { compareValues, toComparable } from '../expressions/comparisons.ts';

/** Comparison operators of joins, with the operator for exchanged sides. */
const exchangedOperators = { '=': '=', '<': '>', '<=': '>=', '>': '<', '>=': '<=' } as const;

/** A comparison of a value of each side, in their common type. */
export interface JoinComparison {
  readonly operator: keyof typeof exchangedOperators;
  readonly left: Value;
  readonly right: Value;
  readonly node: Node;
}

/** The conditions of a join, classified by the sides that they read. */
export interface JoinConditions {
  /** Equalities between both sides. */
  readonly keys: readonly JoinComparison[];
  /** Inequalities between both sides. */
  readonly inequalities: readonly JoinComparison[];
  /** Other conditions on both sides. */
  readonly others: readonly Node[];
  /** Conditions that read only the left side, or neither. */
  readonly leftOnly: readonly Sql[];
  readonly rightOnly: readonly Sql[];
  /** All conditions. */
  readonly all: readonly Sql[];
}

/** @throws DialectError */
export function joinConditions(
  compiler: Compiler,
  { constraint, strictness }: Join,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): JoinConditions {
  const { statement } = scope;
  const comparisons: JoinComparison[] = [];
  const found = { left: [] as Sql[], right: [] as Sql[], all: [] as Sql[] };
  const others: Node[] = [];
  const add = (sides: JoinComparison): void => {
    const { left: one, right: other, type } = toComparable(sides, statement);
    const inType = (value: Value, fragment: Sql): Value =>
      fragment === value.sql ? value : derive(castOperation(type), [value], type, fragment);
    const comparison = { ...sides, left: inType(sides.left, one), right: inType(sides.right, other) };
    comparisons.push(comparison);
    found.all.push(compareValues(comparison.operator, comparison, 'join', statement).sql);
  };
  if (constraint?.kind === 'using')
    constraint.columns.forEach((name, index) => {
      const isClosest = strictness === 'asof' && index === constraint.columns.length - 1;
      add({ ...usingOperands(left, right, name, statement), operator: isClosest ? '>=' : '=' });
    });
  const inside: Scope = { ...scope, context: 'JOIN', aliases: new Map() };
  for (const node of constraint?.kind === 'on' ? conjunctsOf(constraint.condition) : []) {
    const sides = comparisonOf(compiler, node, left, right, inside);
    if (sides !== undefined) {
      add(sides);
      continue;
    }
    const { value, side } = sidedValue(compiler, node, left, right, inside);
    const fragment = toCondition(value, node, statement);
    found.all.push(fragment);
    if (side === 'both') others.push(node);
    else found[side ?? 'left'].push(fragment);
  }
  return {
    keys: comparisons.filter(({ operator }) => operator === '='),
    inequalities: comparisons.filter(({ operator }) => operator !== '='),
    others,
    leftOnly: found.left,
    rightOnly: found.right,
    all: found.all,
  };
}

/** Whether equalities are the only conditions on both sides. */
export const hasOnlyKeyConditions = ({ keys, inequalities, others }: JoinConditions): boolean =>
  keys.length > 0 && inequalities.length === 0 && others.length === 0;

/** Comparisons whose operands are read as columns of inner queries. */
export function compareColumns(
  comparisons: readonly JoinComparison[],
  leftColumn: (column: Column) => Column,
  rightColumn: (column: Column) => Column,
  { statement }: Scope,
): readonly Sql[] {
  const read = (value: Value, as: (column: Column) => Column): Value => {
    const { sql: fragment, type } = as(asColumn(value));
    return { ...value, sql: fragment, type };
  };
  return comparisons.map(({ operator, left, right, node }) => {
    const sides = { left: read(left, leftColumn), right: read(right, rightColumn), node };
    return compareValues(operator, sides, 'join', statement).sql;
  });
}

function comparisonOf(
  compiler: Compiler,
  node: Expression,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): JoinComparison | undefined {
  if (node.kind !== 'comparison' || !comparesSides(node.operator)) return undefined;
  const { operator } = node;
  const first = sidedValue(compiler, node.left, left, right, scope);
  const second = sidedValue(compiler, node.right, left, right, scope);
  if (first.side === 'left' && second.side === 'right')
    return { operator, left: first.value, right: second.value, node };
  if (first.side === 'right' && second.side === 'left')
    return { operator: exchangedOperators[operator], left: second.value, right: first.value, node };
  return undefined;
}

const comparesSides = (operator: ComparisonOperator): operator is keyof typeof exchangedOperators =>
  Object.hasOwn(exchangedOperators, operator);

type Side = 'left' | 'right' | 'both';

/** A part of ON with the side that it reads; null for neither. */
function sidedValue(
  compiler: Compiler,
  node: Expression,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): { readonly value: Value; readonly side: Side | null } {
  const read = new Set<'left' | 'right'>();
  const watched = (from: CompiledFrom, side: 'left' | 'right'): readonly Relation[] =>
    from.relations.map((relation) => observedRelation(relation, () => read.add(side)));
  const relations = [...watched(left, 'left'), ...watched(right, 'right')];
  const value = compiler.value(node, { ...scope, relations }, 'join');
  const [only, another] = read;
  return { value, side: another === undefined ? (only ?? null) : 'both' };
}
