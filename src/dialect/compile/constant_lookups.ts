import type { Expression } from '../ast.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Value } from '../resolve/value.ts';
import type { Sql } from '../sql.ts';
import { readConstant } from './coerce.ts';
import type { Compiler } from './compiler.ts';
import { conjunctsOf } from './conjuncts.ts';

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
