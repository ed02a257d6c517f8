import {
  type Expression,
  findNodes,
  type From,
  type Name,
  type Node,
  type Select,
  transform,
} from '../../dialect/ast.ts';
import { buildDerivedTable, buildField, buildSelect } from '../../dialect/ast_builders.ts';
import type { Placeholders } from '../../dialect/resolve/placeholders.ts';
import type { ActorKind } from './actor_kinds/actor_kind.ts';

/** The actors of a source: one row each with `actor_id`, and possibly more columns. */
export interface SourceQuery {
  readonly select: Select;
  readonly kind: ActorKind;
  /** The placeholders in the text of the source. */
  readonly placeholders: Placeholders;
  /** Whether it returns the distinct ids under which persons acted. */
  readonly hasDistinctIds: boolean;
}

/** Where actors are read from. */
export interface ActorsFrom {
  readonly kind: ActorKind;
  readonly from: From;
  /** The actor's id. */
  readonly id: Expression;
  /** Resolves the fields of a requested expression to columns of the actors and the source. */
  readonly resolve: (expression: Expression) => Expression;
}

/** All actors of a kind, or those of a source. An actor that is no longer stored has an id and nothing else. */
export function actorsFrom(source: Select | null, kind: ActorKind): ActorsFrom {
  const { table, isActor } = kind;
  const { from } = source
    ? buildSelect(`select 1 from (select 1 as actor_id) as source left join ${table} on {isActor}`, {
        isActor,
      })
    : buildSelect(`select 1 from ${table}`);
  if (from === null) throw new Error('Nothing is read.');
  const id = source ? buildField('source', 'actor_id') : buildField(table, kind.id);
  return {
    kind,
    from: source && from.kind === 'join' ? { ...from, left: buildDerivedTable(source, 'source') } : from,
    id,
    resolve: (expression) => resolveFields(expression, id, kind),
  };
}

/**
 * `id`, `person.id` and the key of a group mean the actor's id; `person.properties.x` means `properties.x`. Fields
 * inside subqueries are left unchanged.
 */
function resolveFields(expression: Expression, id: Expression, kind: ActorKind): Expression {
  const isField = (node: Node): node is Extract<Node, { kind: 'field' }> => node.kind === 'field';
  const isSubquery = (node: Node): node is Extract<Node, { kind: 'subquery' }> => node.kind === 'subquery';
  const ofSubqueries = new Set<Node>(
    findNodes(expression, isSubquery).flatMap((one) => findNodes(one, isField)),
  );
  const changed = transform(expression, (node) => {
    if (node.kind !== 'field' || ofSubqueries.has(node)) return node;
    const path = withoutKind(node.path, kind);
    if (path.length === 1 && ['id', kind.id].includes(path[0]?.text ?? '')) return id;
    return path.length === node.path.length ? node : { ...node, path };
  });
  return changed as Expression;
}

const withoutKind = (path: readonly Name[], { names }: ActorKind): readonly Name[] => {
  const [first, ...rest] = path;
  return rest.length > 0 && names.includes(first?.text ?? '') ? rest : path;
};
