import type { Expression } from '../../ast.ts';
import type { PushdownTarget } from '../../resolve/relation.ts';
import type { Scope } from '../../resolve/scope.ts';
import { columnIdentityOf, everyOperand, type Value } from '../../resolve/value.ts';
import type { Sql } from '../../sql.ts';
import type { Compiler } from '../compiler.ts';
import { readConstant, toCondition } from '../expressions/coerce.ts';

/** The operands of nested ANDs. */
export const conjunctsOf = (node: Expression): readonly Expression[] =>
  node.kind === 'logical' && node.operator === 'and' ? node.operands.flatMap(conjunctsOf) : [node];

/**
 * Pushes the WHERE conditions of a query into its relations: conjuncts that read only the columns a relation
 * accepts. Only rows that cannot appear are dropped, so results do not change.
 */
export function pushDownPredicates(compiler: Compiler, filters: readonly Expression[], scope: Scope): void {
  const targets = scope.relations.flatMap((relation) => relation.pushdownTargets?.() ?? []);
  if (targets.length === 0) return;
  const conditions = filters.flatMap(conjunctsOf).map((node) => {
    const value = compiler.value(node, scope, 'filter');
    return { value, sql: toCondition(value, node, scope.statement) };
  });
  for (const target of targets) {
    const applicable = conditions.filter(({ value }) => readsOnly(value, target));
    const reads = applicable.some(
      ({ value }) => !everyOperand(value, (operand) => operand.sql !== target.column),
    );
    if (reads) target.pushDown(applicable.map((one) => one.sql));
  }
}

/** Whether a value reads a target's columns alone. Subqueries read other columns. */
const readsOnly = (value: Value, { column, otherColumns }: PushdownTarget): boolean =>
  everyOperand(
    value,
    (operand) =>
      operand.query === undefined &&
      (columnIdentityOf(operand) === undefined || [column, ...otherColumns].includes(operand.sql)),
  );

/**
 * Tells relations which constants their columns must equal according to WHERE (`person_id = '…'`, `person_id IN ('…', '…')`),
 * so that they find these rows by an index. The conditions stay, so results do not change.
 */
export function lookUpConstants(compiler: Compiler, filters: readonly Expression[], scope: Scope): void {
  const targets = scope.relations.flatMap((relation) => relation.lookupTargets?.() ?? []);
  if (targets.length === 0) return;
  for (const { compared, candidates } of filters.flatMap(conjunctsOf).flatMap(equalitiesOf)) {
    if (!candidates.every((candidate) => candidate.kind === 'string')) continue;
    const value = compiler.value(compared, scope);
    const constants = candidates.map((one) => constantSql(compiler.value(one, scope), value, scope));
    const known = constants.filter((constant) => constant !== null);
    if (known.length < constants.length) continue;
    for (const target of targets) if (target.column === value.sql) target.restrictTo(known);
  }
}

interface Equality {
  readonly compared: Expression;
  /** What it may equal. */
  readonly candidates: readonly Expression[];
}

/** The ways to read a condition as an equality. */
function equalitiesOf(condition: Expression): readonly Equality[] {
  if (condition.kind !== 'comparison') return [];
  const { operator, left, right } = condition;
  if (operator === '=')
    return [
      { compared: left, candidates: [right] },
      { compared: right, candidates: [left] },
    ];
  if (operator !== 'in') return [];
  if (right.kind === 'string') return [{ compared: left, candidates: [right] }];
  return right.kind === 'tuple' || right.kind === 'array'
    ? [{ compared: left, candidates: right.items }]
    : [];
}

/** A constant as the type of the other side; null if it is another type. */
function constantSql(constant: Value, { type }: Value, { statement }: Scope): Sql | null {
  if (constant.type.kind === type.kind) return constant.sql;
  return readConstant(constant, type, statement)?.sql ?? null;
}
