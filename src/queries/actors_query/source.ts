import {
  type Expression,
  findNodes,
  type From,
  type Name,
  type Node,
  type Query,
  type Select,
  transform,
} from '@exportd/dialect/ast';
import {
  buildAlias,
  buildDerivedTable,
  buildExpression,
  buildField,
  buildJoin,
  buildSelect,
  buildTable,
} from '@exportd/dialect/ast_builders';
import { parseQuery } from '@exportd/dialect/parser/queries';
import type { Placeholders } from '@exportd/dialect/resolve/placeholders';
import { earliestFor } from '../dates.ts';
import { type PlaceholderContext, placeholdersOf, withFilterPath } from '../dialect_query/placeholders.ts';
import type { DialectQuery } from '../dialect_query/schema.ts';
import type { DialectReader } from '../dialect_reader.ts';
import { withFieldPath } from '../expressions.ts';
import { funnelActors } from '../funnels_query/actors.ts';
import { checkFunnel, planFunnel } from '../funnels_query/plan.ts';
import { checkExpressions } from '../funnels_query/read_events.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryContext } from '../query_kind.ts';
import { trendsActors, type TrendsPoint } from '../trends_query/actors.ts';
import { type ActorKind, selectActorKind } from './actor_kinds.ts';
import type { ActorsSource, FunnelsActorsQuery, InsightActorsQuery } from './schema.ts';

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
  const actors = buildTable(table);
  const id = source ? buildField('source', 'actor_id') : buildField(table, kind.id);
  return {
    kind,
    from: source ? buildJoin('left', buildDerivedTable(source, 'source'), actors, isActor) : actors,
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

/** Rewrites the paths of errors of an insight to its position here, the source of the source. @throws QueryError */
export async function withSourcePath<Result>(run: () => Result | Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof QueryError) || error.attr === null || !isOfInsight.test(error.attr)) throw error;
    const { code, message, position } = error;
    throw new QueryError(code, message, {
      attr: error.attr.replace(/^query__/, 'query__source__source__'),
      position,
    });
  }
}

/** An insight has no field `source`; a path that starts with it is already about the point. */
const isOfInsight = /^query__(?!source__)/;

/** The point of a trend that a request selects; of the first series by default. */
export const trendsPoint = ({ day, series, breakdown, compare }: InsightActorsQuery): TrendsPoint => ({
  day: day === null || day === undefined ? null : String(day),
  series: series ?? 0,
  breakdown: breakdown ?? null,
  compare: compare ?? null,
});

const attr = 'query__source__query';
const idNames = ['group_key', 'actor_id', 'person_id'];

/** Columns with keys of groups, and the index of their type. */
const groupTypeIndexes: ReadonlyMap<string, number> = new Map([
  ['group_key', 0],
  ...[0, 1, 2, 3, 4].map((index) => [`$group_${index}`, index] as const),
]);

/** The actors in the rows of a dialect query. @throws QueryError */
async function dialectSource(
  source: DialectQuery,
  reader: DialectReader,
  context: PlaceholderContext,
): Promise<SourceQuery> {
  const placeholders = placeholdersOf(source, context, 'query__source');
  const query: Query = withFieldPath(attr, () => parseQuery(source.query));
  const { columns } = await withFilterPath(() => reader.compile(query, { placeholders, attr }), source, {
    ...context,
    reader,
    attr: 'query__source',
  });
  const names = columns.map(({ name }) => name);
  const id =
    names.find((name) => idNames.includes(name)) ??
    names.find((name) => groupTypeIndexes.has(name)) ??
    names.find((name) => name.includes('id'));
  if (id === undefined)
    throw new QueryError('invalid_input', 'Source query must have an id column.', { attr });
  const kind = selectActorKind(groupTypeIndexes.get(id), reader, attr);
  const actor =
    kind.table === 'groups' ? buildExpression('toString({key})', { key: buildField(id) }) : buildField(id);
  const others = [...new Set(names)].filter((name) => name !== 'actor_id' && !kind.fields.has(name));
  return {
    select: {
      ...buildSelect('select 1 from events'),
      columns: [buildAlias(actor, 'actor_id'), ...others.map((name) => buildAlias(buildField(name), name))],
      from: buildDerivedTable(query, 'given'),
    },
    kind,
    placeholders,
    hasDistinctIds: false,
  };
}

/** The actors behind a point of a trend. @throws QueryError */
async function trendsSource(
  query: InsightActorsQuery,
  reader: DialectReader,
  { project, now }: QueryContext,
): Promise<SourceQuery> {
  const { source } = query;
  const point = trendsPoint(query);
  const select = await withSourcePath(() =>
    trendsActors(source, point, { reader, project, now, attr: 'query__source' }),
  );
  const series = source.series[point.series];
  const kind = selectActorKind(
    series?.math === 'unique_group' ? series.math_group_type_index : null,
    reader,
    `query__source__source__series__${point.series}__math`,
  );
  return { select, kind, placeholders: new Map(), hasDistinctIds: kind.table === 'persons' };
}

/** The actors behind a number of a funnel. @throws QueryError */
async function funnelsSource(
  { source, ...point }: FunnelsActorsQuery,
  reader: DialectReader,
  { project, now }: QueryContext,
): Promise<SourceQuery> {
  const kind = selectActorKind(
    source.aggregation_group_type_index,
    reader,
    'query__source__source__aggregation_group_type_index',
  );
  const earliest = await earliestFor(source.dateRange, reader);
  const select = await withSourcePath(() => {
    checkFunnel(source);
    checkExpressions(planFunnel(source), project, reader);
    return funnelActors(source, point, { project, now, earliest });
  });
  return { select, kind, placeholders: new Map(), hasDistinctIds: false };
}

/** The actors of a source. @throws QueryError */
export async function sourceQuery(
  source: ActorsSource,
  reader: DialectReader,
  context: QueryContext,
): Promise<SourceQuery> {
  switch (source.kind) {
    case 'DialectQuery':
      return dialectSource(source, reader, context);
    case 'InsightActorsQuery':
      return trendsSource(source, reader, context);
    case 'FunnelsActorsQuery':
      return funnelsSource(source, reader, context);
  }
}
