import type { Comparison, Expression, Join } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { watchedRelation } from '../resolve/query_relation.ts';
import type { Relation } from '../resolve/relation.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Value } from '../resolve/value.ts';
import type { Sql } from '../sql.ts';
import { condition } from './coerce.ts';
import { compareValues } from './comparisons.ts';
import type { CompiledFrom } from './compiled_from.ts';
import type { Compiler } from './compiler.ts';
import { conjunctsOf } from './conjuncts.ts';
import { sidesOf } from './using_columns.ts';

/** Two values, one of each side of a join, that are equal where rows match. */
export interface JoinKey {
  readonly left: Value;
  readonly right: Value;
  readonly node: Node;
}

/** What a join says, taken apart by the sides that it reads. */
export interface JoinConditions {
  readonly keys: readonly JoinKey[];
  /** Conditions that read the left side alone, or nothing. */
  readonly ofLeft: readonly Sql[];
  readonly ofRight: readonly Sql[];
  /** Conditions on both sides that are no equality of them. */
  readonly ofBoth: readonly Sql[];
  /** Everything, as it was written. */
  readonly all: readonly Sql[];
}

/** @throws DialectError */
export function joinConditions(
  compiler: Compiler,
  { constraint }: Join,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): JoinConditions {
  const { statement } = scope;
  const keys: JoinKey[] = [];
  const found = { left: [] as Sql[], right: [] as Sql[], both: [] as Sql[], all: [] as Sql[] };
  const addKey = (key: JoinKey): void => {
    keys.push(key);
    found.all.push(compareValues('=', key, 'join', statement).sql);
  };
  if (constraint?.kind === 'using')
    for (const name of constraint.columns) addKey(sidesOf(left, right, name, statement));
  const inside: Scope = { ...scope, phase: 'JOIN', aliases: new Map() };
  for (const node of constraint?.kind === 'on' ? conjunctsOf(constraint.condition) : []) {
    const key = isEquality(node) ? keyOf(compiler, node, left, right, inside) : undefined;
    if (key !== undefined) {
      addKey(key);
      continue;
    }
    const { value, side } = sidedValue(compiler, node, left, right, inside);
    const piece = condition(value, node, statement);
    found[side ?? 'left'].push(piece);
    found.all.push(piece);
  }
  return { keys, ofLeft: found.left, ofRight: found.right, ofBoth: found.both, all: found.all };
}

const isEquality = (node: Expression): node is Comparison =>
  node.kind === 'comparison' && node.operator === '=';

function keyOf(
  compiler: Compiler,
  node: Comparison,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): JoinKey | undefined {
  const first = sidedValue(compiler, node.left, left, right, scope);
  const second = sidedValue(compiler, node.right, left, right, scope);
  if (first.side === 'left' && second.side === 'right')
    return { left: first.value, right: second.value, node };
  if (first.side === 'right' && second.side === 'left')
    return { left: second.value, right: first.value, node };
  return undefined;
}

type Side = 'left' | 'right' | 'both';

/** A part of ON with the side whose columns it reads; null for none. */
function sidedValue(
  compiler: Compiler,
  node: Expression,
  left: CompiledFrom,
  right: CompiledFrom,
  scope: Scope,
): { readonly value: Value; readonly side: Side | null } {
  const read = new Set<'left' | 'right'>();
  const watched = (from: CompiledFrom, side: 'left' | 'right'): readonly Relation[] =>
    from.relations.map((relation) => watchedRelation(relation, () => read.add(side)));
  const relations = [...watched(left, 'left'), ...watched(right, 'right')];
  const value = compiler.value(node, { ...scope, relations }, 'join');
  const [only, another] = read;
  return { value, side: another === undefined ? (only ?? null) : 'both' };
}
