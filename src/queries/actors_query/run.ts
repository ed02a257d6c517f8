import type { Expression, OrderItem, Select } from '@exportd/dialect/ast';
import {
  buildField,
  buildLiteral,
  buildOrderItem,
  buildSelect,
  combineConditions,
} from '@exportd/dialect/ast_builders';
import type { FilterTarget } from '../../filters/operand.ts';
import { checkCohorts } from '../cohorts.ts';
import { type DialectReader, openDialectReader } from '../dialect_reader.ts';
import { readWithItemErrors, type SelectWithItems } from '../item_errors.ts';
import {
  hasAggregate,
  isConstant,
  parseOrderItemAt,
  parseSelectItemAt,
  withoutLabel,
  withoutName,
} from '../expressions.ts';
import { fallibleConditions, filtersCondition } from '../property_filters.ts';
import { QueryError } from '../query_errors.ts';
import type { QueryContext, QueryOutput } from '../query_kind.ts';
import { type ActorEntry, type ActorKind, personActors } from './actor_kinds.ts';
import type { ActorsQuery } from './schema.ts';
import { type ActorsFrom, actorsFrom, type SourceQuery, sourceQuery } from './source.ts';

/** A single word can name an entry that shows actors; those are sorted by a property. */
const word = /^(?<name>\S+)(?:\s+(?:asc|(?<down>desc)))?$/i;

/**
 * The sort order: `orderBy`, else the count or the first aggregate in descending order, else `created_at` in descending
 * order if selected, else the first column. Ties are broken by id so that pages do not overlap.
 * @throws QueryError with the path of the entry of `orderBy`
 */
function orderOf(
  orderBy: readonly string[] | null | undefined,
  entries: readonly SelectEntry[],
  from: ActorsFrom,
): readonly OrderItem[] {
  const isGrouped = entries.some(({ isAggregate }) => isAggregate);
  const explicit = orderBy?.length
    ? orderBy.map((text, index) => read(text, index, from))
    : defaultOrder(entries);
  return isGrouped ? explicit : [...explicit, buildOrderItem(from.id, false)];
}

function read(text: string, index: number, { kind, resolve }: ActorsFrom): OrderItem {
  const { name, down } = word.exec(withoutLabel(text).trim())?.groups ?? {};
  if (name !== undefined && Object.hasOwn(kind.entries, name.toLowerCase()))
    return buildOrderItem(buildField('properties', kind.sortedBy), down !== undefined);
  const order = parseOrderItemAt(text, `query__orderBy__${index}`);
  return { ...order, expression: resolve(order.expression) };
}

function defaultOrder(entries: readonly SelectEntry[]): readonly OrderItem[] {
  const counted = entries.find(({ column }) => column.trim() === 'count()');
  const aggregate = counted ?? entries.find(({ isAggregate }) => isAggregate);
  if (aggregate) return [buildOrderItem(withoutName(aggregate.expression), true)];
  const newest = entries.find(({ column }) => column.trim() === 'created_at');
  if (newest) return [buildOrderItem(newest.expression, true)];
  const first = entries.find(({ isKey }) => isKey);
  return first ? [buildOrderItem(withoutName(first.expression), false)] : [];
}

/** The condition that a name or id contains a string, ignoring case; null for an empty string. */
function searchCondition(search: string | null | undefined, { kind, id }: ActorsFrom): Expression | null {
  const text = search?.trim() ?? '';
  return text === '' ? null : kind.search(`%${text.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`, id);
}

/** One entry of `select`. */
interface SelectEntry {
  /** The column name in the response. */
  readonly column: string;
  readonly expression: Expression;
  /** How the actor is formatted in place of the id in this column; null for a plain column. */
  readonly actorEntry: ActorEntry | null;
  readonly isAggregate: boolean;
  /** Whether it is a GROUP BY key beside an aggregate. */
  readonly isKey: boolean;
}

const notSupported = (message: string, attr: string): QueryError =>
  new QueryError('not_supported', message, { attr });

/** Entries that are unsupported for all actors, with the alternative. */
const unsupportedForAll: Readonly<Record<string, string>> = {
  matched_recordings: 'Matched recordings are not supported. Query session_replay_events in the dialect.',
  '*': 'List the columns explicitly.',
};

/** Parses the entries of `select`. @throws QueryError with the path of the entry */
const selectEntries = (
  select: readonly string[],
  { kind, id, resolve }: ActorsFrom,
): readonly SelectEntry[] => {
  const unsupported = { ...unsupportedForAll, ...kind.unsupported };
  return select.map((text, index) => {
    const attr = `query__select__${index}`;
    const [beforeComment = ''] = text.split('--', 1);
    const name = beforeComment.trim();
    const reason = Object.hasOwn(unsupported, name) ? unsupported[name] : undefined;
    if (reason !== undefined) throw notSupported(reason, attr);
    const defaults = { column: text, isAggregate: false, isKey: true };
    const actorEntry = Object.hasOwn(kind.entries, name) ? kind.entries[name] : undefined;
    if (actorEntry !== undefined) return { ...defaults, expression: id, actorEntry };
    if (name === 'person.$delete')
      return { ...defaults, expression: buildLiteral(1), actorEntry: null, isKey: false };
    const item = parseSelectItemAt(text, attr);
    if (item.kind === 'star' || item.kind === 'columns')
      throw notSupported('List the columns explicitly.', attr);
    const expression = resolve(item);
    const isAggregate = hasAggregate(expression);
    return {
      column: item.kind === 'alias' ? item.name.text : text,
      expression,
      actorEntry: null,
      isAggregate,
      isKey: !isAggregate && !isConstant(withoutName(expression)),
    };
  });
};

type Row = readonly unknown[];

/** Replaces ids in rows by their actors. The last column of each row is the actor's id. */
async function formatActors(
  reader: DialectReader,
  kind: ActorKind,
  entries: readonly SelectEntry[],
  rows: readonly Row[],
): Promise<{ readonly results: readonly Row[]; readonly missing_actors_count: number }> {
  const ids = rows.map((row) => (row[entries.length] ?? null) as string | null);
  const found = await kind.find(
    reader,
    ids.filter((id) => id !== null),
  );
  const actors = ids.map((id) => (id === null ? undefined : found.get(id)));
  const withDistinctIds = entries.findIndex(({ column }) => column === 'event_distinct_ids');
  const results = rows.map((row, at) => {
    const distinctIds = withDistinctIds === -1 ? [] : (row[withDistinctIds] as readonly string[]);
    return entries.map(({ actorEntry: entry }, index) =>
      entry === null ? row[index] : entry.format(ids[at] ?? null, actors[at], distinctIds),
    );
  });
  return { results, missing_actors_count: actors.filter((actor) => actor === undefined).length };
}

const defaultRows = 100;

/** Lists persons, or the actors behind a result. @throws QueryError */
export async function runActors(query: ActorsQuery, context: QueryContext): Promise<QueryOutput> {
  const reader = await openDialectReader(context);
  await checkCohorts(query, reader);
  const source = query.source ? await sourceQuery(query.source, reader, context) : null;
  const from = actorsFrom(source?.select ?? null, source?.kind ?? personActors);
  const entries = selectEntries(query.select?.length ? query.select : defaultSelect(source, from), from);
  const needsActor = entries.some(({ actorEntry }) => actorEntry !== null);
  const select = selectActors(query, entries, from, needsActor);
  const limit = Math.min(query.limit ?? defaultRows, context.row_limit);
  const options = {
    placeholders: source?.placeholders ?? new Map(),
    rows: { defaultLimit: limit, maxRows: limit },
  };
  const { statement, rows, hasMore } = await readWithItemErrors(reader, select, options);
  const types = statement.columns.map(({ typeName }) => typeName);
  const formatted = needsActor
    ? await formatActors(reader, from.kind, entries, rows)
    : { results: rows, missing_actors_count: null };
  return {
    results: formatted.results,
    columns: entries.map(({ column }) => column),
    types: entries.map(({ actorEntry }, index) => actorEntry?.typeName ?? types[index] ?? ''),
    hasMore,
    limit,
    offset: query.offset ?? 0,
    dialect_query: statement.printed,
    more: { missing_actors_count: formatted.missing_actors_count },
  };
}

const defaultSelect = (source: SourceQuery | null, { kind }: ActorsFrom): readonly string[] => [
  ...kind.defaultSelect,
  ...(source?.hasDistinctIds ? ['event_distinct_ids'] : []),
];

/** Builds the SELECT. If entries show actors, the actor's id is the last column. */
function selectActors(
  { properties, fixedProperties, search, orderBy, offset }: ActorsQuery,
  entries: readonly SelectEntry[],
  from: ActorsFrom,
  needsActor: boolean,
): SelectWithItems {
  const isGrouped = entries.some(({ isAggregate }) => isAggregate);
  const keys = entries.filter(({ isKey }) => isKey).map(({ expression }) => withoutName(expression));
  const groups = needsActor ? [...keys, from.id] : keys;
  const filterTarget = (field: string): FilterTarget => ({
    ...from.kind.filtered(from.id),
    attr: `query__${field}`,
    relation: from.kind.table,
  });
  const shape = buildSelect(
    `select 1 from persons${isGrouped && groups.length > 0 ? ' group by 1' : ''} offset ${offset ?? 0}`,
  );
  const select: Select = {
    ...shape,
    from: from.from,
    columns: [...entries.map(({ expression }) => expression), ...(needsActor ? [from.id] : [])],
    where: combineConditions('and', [
      filtersCondition(properties, filterTarget('properties')),
      filtersCondition(fixedProperties, filterTarget('fixedProperties')),
      searchCondition(search, from),
    ]),
    groupBy: shape.groupBy && { ...shape.groupBy, items: groups },
    orderBy: orderOf(orderBy, entries, from),
  };
  return {
    select,
    entries: entries.map(({ expression, isKey }) => ({
      columns: [expression],
      keys: isKey ? [withoutName(expression)] : [],
    })),
    conditions: [
      ...fallibleConditions(properties, filterTarget('properties')),
      ...fallibleConditions(fixedProperties, filterTarget('fixedProperties')),
    ],
    groupConditions: [],
    ordered: orderBy?.length ?? 0,
  };
}
