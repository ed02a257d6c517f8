import type { Expression, Select } from '../ast.ts';
import type { Node } from '../ast_node.ts';
import { Grouping, type Scope } from '../resolve/scope.ts';
import type { Value } from '../resolve/value.ts';
import { sql } from '../sql.ts';
import { childrenOf } from '../walk.ts';
import type { Compiler } from './compiler.ts';
import { selectItems } from './select_items.ts';

/**
 * The keys of GROUP BY ALL: the columns of SELECT, and of columns with aggregates the largest subexpressions without
 * one.
 */
export function groupByAllKeys(compiler: Compiler, select: Select, rows: Scope): readonly Value[] {
  const scope: Scope = { ...rows, grouping: new Grouping(sql`nothing`) };
  return selectItems(compiler, select, scope).flatMap(({ value, node }) =>
    keysIn(compiler, value, node, scope),
  );
}

function keysIn(compiler: Compiler, value: Value, node: Node, scope: Scope): readonly Value[] {
  const { aggregate, window, column } = value.traits;
  if (aggregate === null && window === null) return column === null ? [] : [value];
  if (node === aggregate) return [];
  const inside: Scope =
    node.kind === 'alias'
      ? { ...scope, expandingAliases: [...scope.expandingAliases, node.expression] }
      : scope;
  return partsOf(node).flatMap((part) => keysIn(compiler, compiler.value(part, inside), part, inside));
}

/** Nodes that consist of expressions but are not expressions. */
const wrapperKinds: ReadonlySet<Node['kind']> = new Set(['branch', 'entry']);
const nonValueKinds: ReadonlySet<Node['kind']> = new Set([
  'name',
  'type',
  'named_type',
  'window',
  'lambda',
  'order_item',
]);

const isValue = (node: Node): node is Expression =>
  !wrapperKinds.has(node.kind) && !nonValueKinds.has(node.kind);

const partsOf = (node: Node): readonly Expression[] =>
  childrenOf(node).flatMap((child) =>
    wrapperKinds.has(child.kind) ? partsOf(child) : isValue(child) ? [child] : [],
  );
