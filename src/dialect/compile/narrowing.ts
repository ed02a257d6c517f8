import type { Expression } from '../ast.ts';
import type { Narrowing } from '../resolve/relation.ts';
import type { Scope } from '../resolve/scope.ts';
import type { Sql } from '../sql.ts';
import { condition } from './coerce.ts';
import type { Compiler } from './compiler.ts';
import { conjunctsOf } from './conjuncts.ts';

/**
 * Tells the relations of a query what its WHERE says of their rows: the conditions joined by AND that read nothing but
 * the columns that a relation wants to know about. It only leaves out what could not appear, so answers stay the same.
 */
export function narrowRelations(compiler: Compiler, filters: readonly Expression[], scope: Scope): void {
  const narrowings = scope.relations.flatMap((relation) => relation.narrowings?.() ?? []);
  if (narrowings.length === 0) return;
  const conditions = filters
    .flatMap(conjunctsOf)
    .map((node) => condition(compiler.value(node, scope, 'filter'), node, scope.statement));
  for (const narrowing of narrowings) {
    const known = conditions.filter((one) => isAbout(one, narrowing));
    if (known.some((one) => columnsOf(one).has(narrowing.column.key))) narrowing.narrow(known);
  }
}

/** A subquery reads columns of its own. */
const subquery = /\bselect\b/i;

function isAbout(piece: Sql, { column, others }: Narrowing): boolean {
  const columns = columnsOf(piece);
  const allowed = new Set([column, ...others].map(({ key }) => key));
  return columns.size > 0 && [...columns].every((name) => allowed.has(name)) && !subquery.test(textOf(piece));
}

const textOf = ({ parts }: Sql): string =>
  parts.map((part) => (typeof part === 'string' ? part : '?')).join('');

const qualifiedColumn = /"(?:[^"]|"")+"\."(?:[^"]|"")+"/g;
const columnsOf = (piece: Sql): ReadonlySet<string> => new Set(textOf(piece).match(qualifiedColumn));
