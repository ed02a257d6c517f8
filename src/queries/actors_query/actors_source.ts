import type { Expression, From, Name, Select } from '../../dialect/ast.ts';
import { derived, fieldOf, selectOf } from '../../dialect/build.ts';
import type { Node } from '../../dialect/ast_node.ts';
import { findNodes, transform } from '../../dialect/walk.ts';
import type { Placeholders } from '../../dialect/resolve/placeholders.ts';

/** Whom a source query tells of: a row for each, with `actor_id` and maybe more columns. */
export interface SourceQuery {
  readonly select: Select;
  /** What the text of the source reads. */
  readonly placeholders: Placeholders;
  /** Whether it has the distinct ids under which the actors did it. */
  readonly hasDistinctIds: boolean;
}

/** Where actors are read from. */
export interface ActorsFrom {
  readonly from: From;
  /** The actor's id. */
  readonly id: Expression;
  /** An expression of the request, whose names mean persons and the columns of the source. */
  readonly inPlace: (expression: Expression) => Expression;
}

/** The name under which persons are read, for conditions that say whose columns they mean. */
export const personsName = 'persons';

/** Columns that a source must not hide. */
export const personFields: ReadonlySet<string> = new Set([
  ...['id', 'created_at', 'properties', 'team_id', 'version', 'pdi', 'is_identified'],
]);

/** All persons, or those of a source; who is no person any more has an id and nothing else. */
export function actorsFrom(source: Select | null): ActorsFrom {
  const template = source
    ? `select 1 from (select 1 as actor_id) as source left join persons as ${personsName} on ${personsName}.id = source.actor_id`
    : `select 1 from persons as ${personsName}`;
  const { from } = selectOf(template);
  if (from === null) throw new Error('Nothing is read.');
  const id = source ? fieldOf('source', 'actor_id') : fieldOf(personsName, 'id');
  return {
    from: source && from.kind === 'join' ? { ...from, left: derived(source, 'source') } : from,
    id,
    inPlace: (expression) => meantHere(expression, id),
  };
}

/** `id` and `person.id` are the actor's; `person.properties.x` is `properties.x`. Subqueries have names of their own. */
function meantHere(expression: Expression, id: Expression): Expression {
  const isField = (node: Node): node is Extract<Node, { kind: 'field' }> => node.kind === 'field';
  const isSubquery = (node: Node): node is Extract<Node, { kind: 'subquery' }> => node.kind === 'subquery';
  const ofSubqueries = new Set<Node>(
    findNodes(expression, isSubquery).flatMap((one) => findNodes(one, isField)),
  );
  const changed = transform(expression, (node) => {
    if (node.kind !== 'field' || ofSubqueries.has(node)) return node;
    const path = withoutPerson(node.path);
    if (path.length === 1 && path[0]?.text === 'id') return id;
    return path.length === node.path.length ? node : { ...node, path };
  });
  return changed as Expression;
}

const withoutPerson = (path: readonly Name[]): readonly Name[] => {
  const [first, ...rest] = path;
  return rest.length > 0 && (first?.text === 'person' || first?.text === 'actor') ? rest : path;
};
