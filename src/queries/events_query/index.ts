import type { Expression } from '@exportd/dialect/ast';
import { buildExpression, buildSelect } from '@exportd/dialect/ast_builders';
import { trendsPoint, withSourcePath } from '../actors_query/source.ts';
import { checkCohorts } from '../cohorts.ts';
import { type DialectReader, openDialectReader } from '../dialect_reader.ts';
import { readWithItemErrors } from '../item_errors.ts';
import { ignoredFieldNames } from '../query_fields.ts';
import { displayName, readByIds } from '../persons.ts';
import type { QueryContext, QueryKind, QueryOutput } from '../query_kind.ts';
import { trendsPointEvents } from '../trends_query/actors.ts';
import { type EventsQuery, eventsQuerySchema, freshnessOf, overrideEvents } from './schema.ts';
import { type EventEntry, eventsStatement, formatEvent, starType } from './statement.ts';

/** A person in results of events. */
interface EventPerson {
  readonly uuid: string;
  readonly created_at: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

type PersonRow = readonly [id: string, createdAt: string, properties: EventPerson['properties'] | null];

const personsOfIds = 'select id, created_at, properties from persons where id in {ids}';

/** Finds the persons of events by their ids. Deleted persons are missing. */
async function eventPersons(
  reader: DialectReader,
  ids: readonly (string | null)[],
): Promise<ReadonlyMap<string, EventPerson>> {
  const known = [...new Set(ids)].filter((id) => id !== null);
  const rows = (await readByIds(reader, personsOfIds, known)) as unknown as readonly PersonRow[];
  return new Map(
    rows.map(([uuid, created_at, properties]) => [uuid, { uuid, created_at, properties: properties ?? {} }]),
  );
}

type Row = readonly unknown[];

/** Converts rows of the statement to rows of the response, in which an event or a person is a single value. */
async function formatRows(
  reader: DialectReader,
  entries: readonly EventEntry[],
  rows: readonly Row[],
): Promise<readonly Row[]> {
  const ofPersons = columnRanges(entries).filter(
    ({ format }) => format === 'person' || format === 'display_name',
  );
  const ids = ofPersons.flatMap(({ from }) => rows.map((row) => actorAt(row, from).personId));
  const persons = await eventPersons(reader, ids);
  return rows.map((row) =>
    columnRanges(entries).map(({ format, from, to }) => {
      if (format === 'value') return row[from];
      if (format === 'event') return formatEvent(row.slice(from, to));
      const { distinctId: distinct_id, personId } = actorAt(row, from);
      const person = personId === null ? undefined : persons.get(personId);
      if (format === 'person') return person ? { ...person, distinct_id } : { distinct_id };
      const display_name = displayName(person?.properties ?? {}, [distinct_id], distinct_id);
      return { display_name, id: personId };
    }),
  );
}

/** The types of the response's columns, derived from those of the statement. */
const columnTypes = (entries: readonly EventEntry[], types: readonly string[]): readonly string[] =>
  columnRanges(entries).map(({ format, from, to }) => {
    switch (format) {
      case 'value':
        return types[from] ?? '';
      case 'event':
        return starType(types.slice(from, to));
      case 'person':
        return 'JSON';
      case 'display_name':
        return 'Tuple(display_name String, id Nullable(UUID))';
    }
  });

/** The distinct id and the person of an event. */
const actorAt = (
  row: Row,
  at: number,
): { readonly distinctId: string; readonly personId: string | null } => ({
  distinctId: row[at] as string,
  personId: row[at + 1] as string | null,
});

/** The statement columns of each entry. */
function columnRanges(
  entries: readonly EventEntry[],
): readonly { readonly format: EventEntry['format']; readonly from: number; readonly to: number }[] {
  let at = 0;
  return entries.map(({ format, expressions }) => {
    const from = at;
    at += expressions.length;
    return { format, from, to: at };
  });
}

/** The condition that an event is behind a point of a trend; null without a point. @throws QueryError */
async function pointCondition(
  point: EventsQuery['source'],
  reader: DialectReader,
  { project, now }: Pick<QueryContext, 'project' | 'now'>,
): Promise<Expression | null> {
  if (!point) return null;
  const { from, condition } = await withSourcePath(() =>
    trendsPointEvents(point.source, trendsPoint(point), { reader, project, now, attr: 'query__source' }),
  );
  const among = buildExpression('events.uuid in (select uuid from events)');
  if (among.kind !== 'comparison' || among.right.kind !== 'subquery') throw new Error('Not a subquery.');
  const query = { ...buildSelect('select events.uuid from events'), from, where: condition };
  return { ...among, right: { ...among.right, query } };
}

const defaultRows = 100;

/** Lists or aggregates events. @throws QueryError with the path of the invalid field */
async function runEvents(query: EventsQuery, context: QueryContext): Promise<QueryOutput> {
  const reader = await openDialectReader(context);
  await checkCohorts(query, reader);
  const planned = eventsStatement(query, context, await pointCondition(query.source, reader, context));
  const { entries } = planned;
  const limit = Math.min(query.limit ?? defaultRows, context.row_limit);
  const { statement, rows, hasMore } = await readWithItemErrors(reader, planned, {
    rows: { defaultLimit: limit, maxRows: limit },
  });
  return {
    results: await formatRows(reader, entries, rows),
    columns: entries.map(({ column }) => column),
    types: columnTypes(
      entries,
      statement.columns.map(({ typeName }) => typeName),
    ),
    hasMore,
    limit,
    offset: query.offset ?? 0,
    dialect_query: statement.printed,
  };
}

/** Lists or aggregates events. */
export const eventsQueryKind: QueryKind<EventsQuery> = {
  kind: 'EventsQuery',
  schema: eventsQuerySchema,
  freshness: freshnessOf,
  variables: () => [],
  override: overrideEvents,
  normalizeForCache: (query) =>
    Object.fromEntries(Object.entries(query).filter(([field]) => !ignoredFieldNames.has(field))),
  run: runEvents,
};
