import { DateTime } from 'luxon';
import {
  type Call,
  type Expression,
  type GroupBy,
  type OrderItem,
  type Query,
  type Select,
  walk,
} from '@exportd/dialect/ast';
import { buildSelect } from '@exportd/dialect/ast_builders';
import { type CompiledStatement, compileQuery, type RowLimits } from '@exportd/dialect/compile/compile_query';
import { DialectError } from '@exportd/dialect/query_text';
import { findFunction } from '@exportd/dialect/functions/registry';
import { parseExpression, parseOrderItem, parseSelectItem } from '@exportd/dialect/parser/queries';
import type { Placeholders } from '@exportd/dialect/resolve/placeholders';
import { type Found, type Project, searchKey } from '@exportd/dialect/resolve/statement';
import type { Schema } from '@exportd/dialect/schema';
import { type Type, zoneOf } from '@exportd/dialect/types';
import { exactNumber, parseJson } from '../client/exact_numbers.ts';
import { conditionOfAction } from './actions.ts';
import type { QueryContext, QueryProject } from './query_kind.ts';
import { positionOf, QueryError } from './query_errors.ts';
import type { QueryStatement, ReadColumns, TextRow } from './warehouse.ts';

/**
 * Turns a DialectError of `read` into a QueryError with the path of the field in the request.
 * @throws QueryError `dialect_error`
 */
export function withFieldPath<Result>(attr: string | null, read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DialectError)) throw error;
    throw new QueryError('dialect_error', error.message, { attr, position: positionOf(error) });
  }
}

/** Parses an expression in a field of the request. @throws QueryError `dialect_error` */
export const parseExpressionAt = (text: string, attr: string): Expression =>
  withFieldPath(attr, () => parseExpression(text));

/** Parses an expression that may have an alias. @throws QueryError `dialect_error` */
export const parseSelectItemAt = (text: string, attr: string): Expression =>
  withFieldPath(attr, () => parseSelectItem(text));

/** Parses an item of ORDER BY. @throws QueryError `dialect_error` */
export const parseOrderItemAt = (text: string, attr: string): OrderItem =>
  withFieldPath(attr, () => parseOrderItem(withoutLabel(text)));

/**
 * An item of `orderBy` without the label of its column: `person_display_name -- Person DESC` means
 * `person_display_name DESC`. To the dialect all of the label would be a comment.
 */
export function withoutLabel(text: string): string {
  const { column = text, direction = '' } =
    /^(?<column>[^'"\n]*?)\s--\s[^\n]*?(?<direction>\s(?:asc|desc))?\s*$/i.exec(text)?.groups ?? {};
  return `${column}${direction}`;
}

const isAggregate = ({ name, over }: Call): boolean =>
  over === null && findFunction(name.text)?.definition.kind === 'aggregate';

/** Whether an expression contains an aggregate of its own SELECT. Aggregates inside subqueries belong to those. */
export function hasAggregate(expression: Expression): boolean {
  let found = false;
  walk(expression, {
    enter: (node) => {
      if (node.kind === 'call' && isAggregate(node)) found = true;
      return node.kind !== 'subquery';
    },
  });
  return found;
}

/**
 * Whether an expression is the same for all rows. A constant such as `1` in GROUP BY would mean a column's position.
 */
export const isConstant = ({ kind }: Expression): boolean =>
  kind === 'number' || kind === 'string' || kind === 'boolean' || kind === 'null' || kind === 'time';

/** An expression without its alias. */
export const withoutName = (expression: Expression): Expression =>
  expression.kind === 'alias' ? expression.expression : expression;

/** Times as PostgreSQL writes them in columns and in JSON. */
const utcTime = /^(\d{4,}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(?:\+00|Z)$/;

const quarterMs = 15 * 60_000;
/** From here on, a year may have five digits in some zone. */
const longYearsSince = Date.UTC(9999, 11, 30);

interface Offset {
  readonly ms: number;
  readonly text: string;
}

/**
 * Formats times in a zone: `2026-11-21 16:00:00.5+00` becomes `2026-11-21T17:00:00.500000+01:00`. Dates BC and infinite
 * times are returned unchanged. A result may contain a million times, and a zone lookup costs 40 µs, so the offset of
 * each quarter of an hour is looked up once.
 */
function timeFormatter(timezone: string): (text: string) => string {
  const offsets = new Map<number, Offset | null>();
  /** Null if the offset changes within the quarter. */
  const offsetIn = (quarter: number): Offset | null => {
    const known = offsets.get(quarter);
    if (known !== undefined) return known;
    const [time, next] = [quarter, quarter + 1].map((at) =>
      DateTime.fromMillis(at * quarterMs, { zone: timezone }),
    );
    const offset =
      time === undefined || time.offset !== next?.offset
        ? null
        : { ms: Math.round(time.offset * 60_000), text: formatOffset(time) };
    offsets.set(quarter, offset);
    return offset;
  };
  return (text) => {
    const [, day, clock, fraction] = utcTime.exec(text) ?? [];
    if (day === undefined || clock === undefined) return text;
    const formattedFraction = fraction === undefined ? '' : fraction.padEnd(7, '0');
    const moment = Date.parse(`${day}T${clock}Z`);
    const offset = moment < longYearsSince ? offsetIn(Math.floor(moment / quarterMs)) : null;
    if (offset !== null)
      return `${new Date(moment + offset.ms).toISOString().slice(0, 19)}${formattedFraction}${offset.text}`;
    const time = DateTime.fromISO(`${day}T${clock}Z`, { zone: timezone });
    if (!time.isValid) return text;
    return `${time.toFormat("yyyy-MM-dd'T'HH:mm:ss")}${formattedFraction}${formatOffset(time)}`;
  };
}

const formatOffset = (time: DateTime): string => (time.offset === 0 ? 'Z' : time.toFormat('ZZ'));

/** Converts a column value from PostgreSQL's text to JSON. */
type ValueFormatter = (text: string | null) => unknown;

/** Formats values of a type. Times, also nested ones, have the offset of their own zone, else the project's. */
export function valueFormatter(type: Type, timezone: string): ValueFormatter {
  const format = formatterOf(type, timezone);
  return (text) => (text === null ? null : format(text));
}

function formatterOf(type: Type, timezone: string): (text: string) => unknown {
  switch (type.kind) {
    case 'integer':
    case 'decimal':
      return exactNumber;
    case 'float':
      return Number;
    case 'boolean':
      return (text) => text === 't';
    case 'datetime':
      return timeFormatter(zoneOf(type) ?? timezone);
    case 'json':
      return parseJson;
    case 'array':
    case 'tuple':
    case 'map': {
      const formatNested = nestedFormatter(type, timezone);
      return formatNested === null ? parseJson : (text) => formatNested(parseJson(text));
    }
    default:
      return (text) => text;
  }
}

type NestedFormatter = (value: unknown) => unknown;

/** Formats a parsed JSON value of a type; null if the value stays unchanged, so that no copy is made. */
function nestedFormatter(type: Type, timezone: string): NestedFormatter | null {
  switch (type.kind) {
    case 'datetime': {
      const formatTime = timeFormatter(zoneOf(type) ?? timezone);
      return (value) => (typeof value === 'string' ? formatTime(value) : value);
    }
    case 'array': {
      const item = nestedFormatter(type.item, timezone);
      return item && ((value) => (Array.isArray(value) ? value.map(item) : value));
    }
    case 'tuple': {
      const items = type.items.map((item) => nestedFormatter(item, timezone));
      if (items.every((item) => item === null)) return null;
      return (value) =>
        Array.isArray(value) ? value.map((one: unknown, index) => items[index]?.(one) ?? one) : value;
    }
    case 'map': {
      const ofValue = nestedFormatter(type.value, timezone);
      return (
        ofValue &&
        ((value) =>
          typeof value === 'object' && value !== null
            ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, ofValue(one)]))
            : value)
      );
    }
    default:
      return null;
  }
}

/** Rows as arrays in column order, as PostgreSQL writes their values. */
interface ReadRows {
  readonly rows: readonly (readonly (string | null)[])[];
  readonly columns: ReadColumns;
}

/**
 * Reads at most `maxRows` rows of a SELECT and reports progress. A result that is too large is rejected before it is in
 * memory.
 * @throws QueryError `result_too_large`
 */
export async function readRows(
  { warehouse, byte_limit, progress }: Pick<QueryContext, 'warehouse' | 'byte_limit' | 'progress'>,
  statement: QueryStatement,
  maxRows: number,
): Promise<ReadRows> {
  const rows: (readonly (string | null)[])[] = [];
  let bytes = 0;
  const columns = await warehouse.readRows(statement, {
    maxRows,
    maxBytes: byte_limit,
    receive: (batch, size) => {
      for (const row of batch) rows.push(row);
      bytes += size;
      progress({ rows_read: rows.length, bytes_read: bytes });
    },
  });
  return { rows, columns };
}

/** The result of one dialect statement. */
export interface DialectRows {
  readonly statement: CompiledStatement;
  /** Formatted for JSON, at most `statement.limit` rows. */
  readonly rows: readonly (readonly unknown[])[];
  /** The row of WITH TOTALS, if any. */
  readonly totals: readonly (readonly unknown[])[];
  /** Whether rows beyond the limit exist. */
  readonly hasMore: boolean;
  /** Whether a query of a set operation has more rows than the default limit, so that rows are missing. */
  readonly hasCutBranch: boolean;
}

interface ReadOptions {
  readonly placeholders?: Placeholders;
  /** The default and the maximum LIMIT; both are the context's `row_limit` by default. */
  readonly rows?: RowLimits;
  /** The path that errors name; null for exportd's own queries. */
  readonly attr?: string | null;
  /** The rows of the query's searches. */
  readonly found?: Found;
}

/** More than a warehouse counts for an id. */
const bytesOfId = 64;

/** Compiles and runs dialect queries, given as text or as an AST, for one request. */
export interface DialectReader {
  readonly schema: Schema;
  /** @throws QueryError `dialect_error` */
  compile(query: string | Query, options?: ReadOptions): CompiledStatement;
  /** Compiles and runs a query. Statements run one after another. @throws QueryError */
  read(query: string | Query, options?: ReadOptions): Promise<DialectRows>;
}

/** What the text of a query is compiled against. */
export interface ProjectSchema {
  readonly project: QueryProject;
  readonly now: Date;
  readonly schema: Schema;
}

/** The project as the compiler takes it. */
export const compilerProject = ({ project, now, schema }: ProjectSchema): Project => ({
  teamId: project.team_id,
  timezone: project.timezone,
  weekStartDay: project.week_start_day,
  now: now.toISOString(),
  schema,
  actions: project.actions.map((action) => ({
    id: action.id,
    name: action.name,
    condition: () => conditionOfAction(action),
  })),
});

/** Reads the schema of the warehouse for the queries of one request. @throws RelationNotFound */
export async function openDialectReader(context: QueryContext): Promise<DialectReader> {
  const { warehouse, project, now, row_limit } = context;
  const schema = await warehouse.schema();
  const ofProject = compilerProject({ project, now, schema });
  const compile: DialectReader['compile'] = (query, options = {}) => {
    const { placeholders = new Map(), rows, attr = null, found = new Map() } = options;
    const compiled = (): CompiledStatement =>
      withFieldPath(attr, () =>
        compileQuery(query, ofProject, {
          placeholders,
          found,
          rows: rows ?? { defaultLimit: row_limit, maxRows: row_limit },
        }),
      );
    return schema.inference?.compile(compiled) ?? compiled();
  };
  const find = async ({ searches }: CompiledStatement): Promise<Found> => {
    const found = new Map<string, readonly (string | null)[]>();
    for (const search of searches) {
      const ids: (string | null)[] = [];
      const receive = (rows: readonly TextRow[]) => ids.push(...rows.map(([id = null]) => id));
      const { sql: text, parameters: values, maxRows } = search;
      await warehouse.readRows({ text, values }, { maxRows, maxBytes: maxRows * bytesOfId, receive });
      found.set(searchKey(search), ids);
    }
    return found;
  };
  const read: DialectReader['read'] = async (query, options) => {
    const first = compile(query, options);
    const statement =
      first.searches.length === 0 ? first : compile(query, { ...options, found: await find(first) });
    const { limit, hasExtraRow, hasTotals, columns, cutBranches } = statement;
    const most = limit ?? row_limit;
    const rowsOf = async (
      { sql, parameters, memoryOperations }: CompiledStatement,
      maxRows: number,
    ): Promise<readonly TextRow[]> =>
      (await readRows(context, { text: sql, values: parameters, memoryOperations }, maxRows)).rows;
    const rows = await rowsOf(statement, most + Number(hasExtraRow) + Number(hasTotals));
    const dataRows = hasTotals ? rows.slice(0, -1) : rows;
    const formatters = columns.map(({ type }) => valueFormatter(type, project.timezone));
    const formatted = (row: TextRow): readonly unknown[] =>
      formatters.map((formatValue, index) => formatValue(row[index] ?? null));
    return {
      statement,
      rows: dataRows.slice(0, most).map(formatted),
      totals: rows.slice(dataRows.length).map(formatted),
      hasMore: dataRows.length > most,
      hasCutBranch:
        cutBranches !== null &&
        rows.length >= cutBranches.least &&
        (await rowsOf(compile(cutBranches.query), most)).length > 0,
    };
  };
  return { schema, compile, read };
}

/** A condition and the path of its field in the request. */
export interface RequestedCondition {
  readonly condition: Expression;
  readonly attr: string;
}

/** A SELECT built from the items of a request's lists, together with those items. */
export interface SelectWithItems {
  readonly select: Select;
  /** The columns of each entry of `select`, and its GROUP BY keys in a grouped query. */
  readonly entries: readonly {
    readonly columns: readonly Expression[];
    readonly keys: readonly Expression[];
  }[];
  /** Conditions for WHERE. */
  readonly conditions: readonly RequestedCondition[];
  /** Conditions for HAVING. */
  readonly groupConditions: readonly RequestedCondition[];
  /** How many ORDER BY items come from the request; they come first. */
  readonly ordered: number;
}

/**
 * Runs a SELECT. If the dialect rejects it, compiles its items one after another so that the error names the first item
 * that fails.
 * @throws QueryError
 */
export async function readWithItemErrors(
  reader: DialectReader,
  items: SelectWithItems,
  options: ReadOptions,
): ReturnType<DialectReader['read']> {
  try {
    return await reader.read(items.select, options);
  } catch (error) {
    if (error instanceof QueryError && error.code === 'dialect_error')
      for (const { attr, select } of itemStatements(items)) reader.compile(select, { ...options, attr });
    throw error;
  }
}

function itemStatements({
  select,
  entries,
  conditions,
  groupConditions,
  ordered,
}: SelectWithItems): readonly { readonly attr: string; readonly select: Select }[] {
  const columns: Select = { ...select, where: null, having: null, orderBy: [] };
  const counted = buildSelect('select count() from events');
  return [
    ...entries.map((_entry, index) => {
      const selected = entries.slice(0, index + 1);
      return {
        attr: `query__select__${index}`,
        select: {
          ...columns,
          columns: selected.flatMap((entry) => entry.columns),
          groupBy: groupedBy(
            select.groupBy,
            selected.flatMap((entry) => entry.keys),
          ),
        },
      };
    }),
    { attr: 'query__select', select: columns },
    ...conditions.map(({ attr, condition }) => ({ attr, select: { ...columns, where: condition } })),
    ...groupConditions.map(({ attr, condition }) => ({ attr, select: { ...counted, having: condition } })),
    { attr: 'query__where', select: { ...select, orderBy: [] } },
    ...select.orderBy.slice(0, ordered).map((item, index) => ({
      attr: `query__orderBy__${index}`,
      select: { ...columns, orderBy: [item] },
    })),
    { attr: 'query__orderBy', select },
  ];
}

const groupedBy = (groupBy: GroupBy | null, items: readonly Expression[]): GroupBy | null =>
  groupBy === null || items.length === 0 ? null : { ...groupBy, items };
