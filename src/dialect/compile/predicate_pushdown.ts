import type { Expression } from '../ast.ts';
import type { PushdownTarget } from '../resolve/relation.ts';
import type { Scope } from '../resolve/scope.ts';
import { renderWith, type Sql } from '../sql.ts';
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
  const conditions = filters
    .flatMap(conjunctsOf)
    .map((node) => toCondition(compiler.value(node, scope, 'filter'), node, scope.statement));
  for (const target of targets) {
    const applicable = conditions.filter((one) => readsOnly(one, target));
    if (applicable.some((one) => columnsOf(one).has(target.column.key))) target.pushDown(applicable);
  }
}

/** A subquery reads other columns. */
const subquery = /\bselect\b/i;

function readsOnly(fragment: Sql, { column, otherColumns }: PushdownTarget): boolean {
  const columns = columnsOf(fragment);
  const allowed = new Set([column, ...otherColumns].map(({ key }) => key));
  return (
    columns.size > 0 && [...columns].every((name) => allowed.has(name)) && !subquery.test(textOf(fragment))
  );
}

const textOf = (fragment: Sql): string => renderWith(fragment, () => '?');

const qualifiedColumn = /"(?:[^"]|"")+"\."(?:[^"]|"")+"/g;
const columnsOf = (fragment: Sql): ReadonlySet<string> => new Set(textOf(fragment).match(qualifiedColumn));
