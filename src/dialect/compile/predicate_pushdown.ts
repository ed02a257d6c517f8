import type { Expression } from '../ast.ts';
import type { PushdownTarget } from '../resolve/relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { columnIdentityOf, everyOperand, type Value } from '../resolve/value.ts';
import { toCondition } from './coerce.ts';
import type { Compiler } from './compiler.ts';
import { conjunctsOf } from './conjuncts.ts';

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
